//! The layers of policies over each route's dialect, and what they make of it: dialect < profile < environment < route <
//! user-agent rule < header. The profile of a rule takes the place of the route's, and comes after the route's policies.

use super::environment::{Environment, Reader};
use super::owners::Dialects;
use super::resolve::{Allowed, Resolved, SetBy, Setting};
use super::variants::{Agent, Choice, Group, Variant, Variants};
use crate::diagnostics::{Code, Diagnostic};
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::profile::Profile;
use crate::mapping::config::route::{AgentRule, RoutePlan};
use crate::mapping::source::field_reader::Cx;
use std::sync::Arc;

/// What the variables set, for a dialect under a profile.
#[derive(Debug)]
pub struct FromOutside {
    dialect: String,
    profile: String,
    settings: Vec<Setting>,
}

/// What is laid with what.
pub struct Layers<'l> {
    /// Each dialect under each profile.
    pub bases: &'l [Arc<DialectPlan>],
    pub dialects: &'l Dialects<'l>,
    pub outside: &'l [FromOutside],
    /// A dialect under a profile and under these policies.
    pub compile: &'l dyn Fn(&DialectPlan, &Resolved) -> Option<DialectPlan>,
    pub cx: Cx<'l>,
}

/// A set with more than these for one route is refused: each is compiled and proven before it is used.
const MOST: usize = 64;

/// What the environment sets, for all dialects under all profiles.
pub fn from_outside(
    bases: &[Arc<DialectPlan>],
    profiles: &[Profile],
    dialects: &Dialects,
    environment: &Environment,
    cx: Cx,
) -> Vec<FromOutside> {
    let mut found = Vec::new();
    for base in bases {
        let Some(profile) = profiles.iter().find(|p| Some(p.name) == base.profile.as_deref()) else { continue };
        let reader = Reader { dialect: &base.name, dialects, environment };
        let settings = reader.read(profile.environment, &base.resolved, cx);
        found.push(FromOutside { dialect: base.name.clone(), profile: profile.name.to_owned(), settings });
    }
    found.retain(|f| !f.settings.is_empty());
    found
}

impl FromOutside {
    pub fn of(outside: &[FromOutside], base: &DialectPlan) -> Vec<Setting> {
        let is_its = |f: &&FromOutside| f.dialect == base.name && Some(&f.profile) == base.profile.as_ref();
        outside.iter().find(is_its).map(|f| f.settings.clone()).unwrap_or_default()
    }
}

impl Layers<'_> {
    pub fn lay(&self, gateway: &mut GatewayPlan) {
        let mut made: Vec<Arc<DialectPlan>> = self.bases.to_vec();
        for route in &mut gateway.routes {
            let rules = std::iter::once(None).chain(gateway.by_user_agent.iter().enumerate().map(Some));
            // A dialect that could not be compiled has been told of.
            let Some(groups) = rules.map(|rule| self.group(route, rule)).collect::<Option<Vec<_>>>() else { continue };
            if self.too_many(route, &groups) || self.cx.findings.errors() > 0 {
                continue;
            }
            route.variants = Variants(groups.into_iter().filter_map(|g| self.fill(g, &mut made)).collect());
        }
    }

    /// The settings of a group before any header has spoken.
    fn group<'g>(&'g self, route: &RoutePlan, rule: Option<(usize, &AgentRule)>) -> Option<Empty<'g>> {
        let agent = rule.map(|(rule, r)| Agent { word: r.word.clone(), rule });
        let rule = rule.map(|(_, r)| r);
        let own = rule.and_then(|r| r.profile.as_ref());
        let profile = own.or(route.profile.as_ref());
        let base = self.bases.iter().find(|d| d.name == route.dialect && d.profile.as_ref() == profile)?;
        let resolved = &base.resolved;
        let (from_dialect, from_profile): (Vec<Setting>, Vec<Setting>) =
            resolved.settings.iter().cloned().partition(|s| s.by == SetBy::Dialect);
        let from_outside = FromOutside::of(self.outside, base);
        let from_route = resolved.read(&route.policies, &SetBy::Route, self.cx);
        let over = rule.map_or(&[][..], |r| &r.policies);
        let from_rule = resolved.read_for(&base.name, self.dialects, over, &SetBy::UserAgent, self.cx);
        let settings = match own {
            Some(_) => [from_dialect, from_route, from_profile, from_outside, from_rule],
            None => [from_dialect, from_profile, from_outside, from_route, from_rule],
        };
        Some(Empty { base, settings: settings.concat(), agent, choices: self.choices(route, resolved) })
    }

    fn choices(&self, route: &RoutePlan, resolved: &Resolved) -> Vec<Choice> {
        let mut choices = Vec::new();
        for rule in &route.headers {
            match resolved.allowed(&rule.policy) {
                Some(Allowed::One(words)) => choices.push(Choice {
                    header: rule.name.clone(),
                    policy: rule.policy.clone(),
                    // An empty header chooses nothing.
                    words: words.into_iter().filter(|w| !w.is_empty()).collect(),
                    span: rule.span,
                }),
                Some(Allowed::List) => {
                    let message = format!("`{}` is a list, and a header chooses one word", rule.policy);
                    self.cx.add(
                        Diagnostic::new(Code::BadPolicyValue, rule.policy_span, message)
                            .help("set it in `policies:` of the route or of its profile"),
                    );
                }
                None => resolved.unknown(&rule.policy, rule.policy_span, self.cx),
            }
        }
        choices
    }

    fn too_many(&self, route: &RoutePlan, groups: &[Empty]) -> bool {
        let counts = groups.iter().map(|g| Group::count(&g.choices));
        let count = counts.sum::<Option<usize>>();
        if count.is_some_and(|count| count <= MOST) {
            return false;
        }
        let shown = count.map_or("too many to count".to_owned(), |n| n.to_string());
        let message = format!("this route has {shown} variants, and at most {MOST} are compiled");
        let help = "a header multiplies them by the words of its policy and one more, and a rule by user agent adds as many again";
        let span = route.headers.first().map_or(route.span, |h| h.span);
        self.cx.add(Diagnostic::new(Code::TooManyVariants, span, message).help(help));
        true
    }

    fn fill(&self, empty: Empty, made: &mut Vec<Arc<DialectPlan>>) -> Option<Group> {
        let Empty { base, settings, agent, choices } = empty;
        let mut variants = Vec::new();
        for at in 0..Group::count(&choices)? {
            let mut settings = settings.clone();
            for (choice, said) in choices.iter().zip(Group::said(&choices, at)) {
                let Some(word) = said.and_then(|at| choice.words.get(at)) else { continue };
                let by = SetBy::Header(choice.header.clone());
                let (name, value) = (choice.policy.clone(), word.clone());
                settings.push(Setting { name, value, span: choice.span, by });
            }
            let resolved = base.resolved.under(settings);
            let same = |d: &&Arc<DialectPlan>| {
                d.name == base.name && d.profile == base.profile && d.resolved.policies == resolved.policies
            };
            let plan = match made.iter().find(same) {
                Some(plan) => plan.clone(),
                None => {
                    let plan = Arc::new((self.compile)(base, &resolved)?);
                    made.push(plan.clone());
                    plan
                }
            };
            variants.push(Variant { resolved, plan });
        }
        Some(Group { agent, choices, variants })
    }
}

/// A group whose dialects are not compiled yet.
struct Empty<'e> {
    base: &'e Arc<DialectPlan>,
    settings: Vec<Setting>,
    agent: Option<Agent>,
    choices: Vec<Choice>,
}
