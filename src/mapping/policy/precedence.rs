//! Combines all policy settings of a route and compiles the dialect for each combination. Precedence, lowest first:
//! dialect, profile, environment, route, user-agent rule, `choose:`, header. The profile of a user-agent rule or of a
//! header replaces the route's profile and takes precedence over the route's policies.

use super::environment::{Environment, EnvironmentReader};
use super::owners::DialectIndex;
use super::resolve::{AllowedValues, ResolvedPolicies, SetBy, Setting};
use super::variants::{AgentMatch, HeaderChoice, ProfileMatch, RouteVariant, RouteVariants, VariantGroup};
use crate::diagnostics::{Code, Diagnostic};
use crate::domain::Policies;
use crate::domain::policy::PolicySpec;
use crate::mapping::config::dialect::{DialectPlan, GivenPolicies};
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::profile::ProfileChain;
use crate::mapping::config::profile_patch::PatchedDialect;
use crate::mapping::config::route::{RoutePlan, UserAgentRule};
use crate::mapping::config::route_choose::ChooseConditions;
use crate::mapping::config::route_headers::ProfileHeader;
use crate::mapping::language::table::Tables;
use crate::mapping::source::field_reader::LoadContext;
use std::sync::Arc;

/// The settings from environment variables, for one dialect and profile.
#[derive(Debug)]
pub struct EnvironmentSettings {
    dialect: String,
    profile: String,
    settings: Vec<Setting>,
}

/// The inputs of variant compilation.
pub struct PolicyLayers<'l> {
    /// Each dialect with each profile.
    pub bases: &'l [Arc<DialectPlan>],
    pub dialects: &'l DialectIndex<'l>,
    pub environment: &'l [EnvironmentSettings],
    /// Of shared.yaml, for the conditions of `choose:`.
    pub tables: &'l Tables,
    /// Compiles a dialect and profile with these policies.
    pub compile: &'l dyn Fn(&DialectPlan, GivenPolicies) -> Option<DialectPlan>,
    pub cx: LoadContext<'l>,
}

/// The most variants of one route that are compiled before the set is used.
const MAX_VARIANTS: usize = 64;
/// The most variants of one route, including those that share a compiled dialect: each is verified.
const MAX_COMBINATIONS: usize = 512;

/// The environment settings of all dialects with all profiles.
pub fn environment_settings(
    bases: &[(&PatchedDialect, &ResolvedPolicies)],
    chains: &[ProfileChain],
    dialects: &DialectIndex,
    environment: &Environment,
    cx: LoadContext,
) -> Vec<EnvironmentSettings> {
    let mut found = Vec::new();
    for (base, resolved) in bases {
        let is_of_base = |chain: &&ProfileChain| chain.last().is_some_and(|p| Some(p.name) == base.profile.as_deref());
        let Some(chain) = chains.iter().find(is_of_base) else { continue };
        let reader = EnvironmentReader { dialect: &base.dialect, dialects, environment };
        let settings = chain.iter().flat_map(|p| reader.read(&p.environment, resolved, cx)).collect();
        let profile = base.profile.clone().unwrap_or_default();
        found.push(EnvironmentSettings { dialect: base.dialect.clone(), profile, settings });
    }
    found.retain(|f| !f.settings.is_empty());
    found
}

impl EnvironmentSettings {
    pub fn of(all: &[EnvironmentSettings], base: &DialectPlan) -> Vec<Setting> {
        let applies = |s: &&EnvironmentSettings| s.dialect == base.name && Some(&s.profile) == base.profile.as_ref();
        all.iter().find(applies).map(|s| s.settings.clone()).unwrap_or_default()
    }
}

impl PolicyLayers<'_> {
    pub fn compile_variants(&self, gateway: &mut GatewayPlan) {
        let mut compiled: Vec<Arc<DialectPlan>> = self.bases.to_vec();
        for route in &mut gateway.routes {
            let clients = GroupClients::of_route(route, &gateway.by_user_agent);
            // A dialect that could not be compiled is already reported.
            let Some(groups) = clients.map(|clients| self.group(route, clients)).collect::<Option<Vec<_>>>() else {
                continue;
            };
            if self.too_many(route, &groups) || self.cx.findings.errors() > 0 {
                continue;
            }
            route.variants =
                RouteVariants(groups.into_iter().filter_map(|g| self.compile_group(g, &mut compiled)).collect());
            if let Some(dialect) = route.variants.default_dialect() {
                route.check_parameters(dialect, self.cx);
            }
        }
    }

    /// The settings of a group before header choices and `choose:`.
    fn group<'g>(&'g self, route: &RoutePlan, clients: GroupClients) -> Option<PendingGroup<'g>> {
        let (agent, rule, chosen) = match clients {
            GroupClients::Others => (None, None, None),
            GroupClients::UserAgent(at, r) => (Some(AgentMatch { word: r.pattern.clone(), rule: at }), Some(r), None),
            GroupClients::ProfileHeader(header, name) => (None, None, Some((header, name))),
        };
        let replaced = clients.profile();
        let profile = replaced.or(route.profile.as_ref());
        let base = self.bases.iter().find(|d| d.name == route.dialect && d.profile.as_ref() == profile)?;
        let resolved = &base.resolved;
        let (from_dialect, from_profile): (Vec<Setting>, Vec<Setting>) =
            resolved.settings.iter().cloned().partition(|s| s.by == SetBy::Dialect);
        let from_environment = EnvironmentSettings::of(self.environment, base);
        let from_route = resolved.read(&route.policies, &SetBy::Route, self.cx);
        let rule_policies = rule.map_or(&[][..], |r| &r.policies);
        let from_rule = resolved.read_per_dialect(&base.name, self.dialects, rule_policies, &SetBy::UserAgent, self.cx);
        let settings = match replaced {
            Some(_) => [from_dialect, from_route, from_profile, from_environment, from_rule],
            None => [from_dialect, from_profile, from_environment, from_route, from_rule],
        };
        let choose_settings: Vec<Vec<Setting>> =
            route.choose.iter().map(|rule| resolved.read(&rule.policies, &SetBy::Choose, self.cx)).collect();
        let conditions = ChooseConditions::compile(&route.choose, resolved, self.tables, self.cx);
        if conditions.is_none() && !route.choose.is_empty() {
            return None;
        }
        let choices = self.choices(route, resolved);
        let chosen_policies = choices.iter().map(|choice| &choice.policy);
        let chosen_policies = chosen_policies.chain(choose_settings.iter().flatten().map(|setting| &setting.name));
        let mut open: Vec<String> =
            chosen_policies.filter(|name| PolicySpec::is_read_by_expressions_only(name)).cloned().collect();
        open.sort();
        open.dedup();
        let group = VariantGroup {
            agent,
            profile: chosen.map(|(header, name)| ProfileMatch {
                header: header.name.clone(),
                profile: name.clone(),
                unknown: header.unknown,
            }),
            choices,
            choose: conditions,
            variants: Vec::new(),
        };
        Some(PendingGroup { base, settings: settings.concat(), choose_settings, open, group })
    }

    fn choices(&self, route: &RoutePlan, resolved: &ResolvedPolicies) -> Vec<HeaderChoice> {
        let mut choices = Vec::new();
        for rule in &route.headers.policies {
            match resolved.allowed(&rule.policy) {
                Some(AllowedValues::OneOf(words)) => {
                    for (_, value, span) in rule.words.iter().filter(|(_, value, _)| !words.contains(value)) {
                        let message = format!("`{}` cannot be `{value}`", rule.policy);
                        self.cx.unknown(Code::BadPolicyValue, *span, message, value, words.iter().map(String::as_str));
                    }
                    choices.push(HeaderChoice {
                        header: rule.name.clone(),
                        policy: rule.policy.clone(),
                        aliases: rule.words.iter().map(|(word, value, _)| (word.clone(), value.clone())).collect(),
                        // An empty header counts as absent.
                        words: words.into_iter().filter(|w| !w.is_empty()).collect(),
                        unknown: rule.unknown,
                        span: rule.span,
                    });
                }
                Some(AllowedValues::FinishList) => {
                    let message = format!("the policy `{}` is a list, which a header cannot set", rule.policy);
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

    fn too_many(&self, route: &RoutePlan, groups: &[PendingGroup]) -> bool {
        let all = groups.iter().map(PendingGroup::count).sum::<Option<usize>>();
        let (count, limit) = match all.filter(|count| *count <= MAX_COMBINATIONS) {
            Some(_) => (Some(groups.iter().map(PendingGroup::compiled_count).sum()), MAX_VARIANTS),
            None => (all, MAX_COMBINATIONS),
        };
        if count.is_some_and(|count| count <= limit) {
            return false;
        }
        let shown = count.map_or("too many".to_owned(), |n| n.to_string());
        let message = format!("this route has {shown} variants; the limit is {limit}");
        let help = "each header multiplies the variants by the number of its values plus one, and each user-agent rule \
                    adds as many again";
        let span = route.headers.policies.first().map_or(route.span, |h| h.span);
        self.cx.add(Diagnostic::new(Code::TooManyVariants, span, message).help(help));
        true
    }

    fn compile_group(&self, pending: PendingGroup, compiled: &mut Vec<Arc<DialectPlan>>) -> Option<VariantGroup> {
        let mut variants = Vec::new();
        for resolved in pending.resolved() {
            let plan = self.plan(pending.base, &resolved, &pending.open, compiled)?;
            variants.push(RouteVariant { resolved, plan });
        }
        Some(VariantGroup { variants, ..pending.group })
    }

    /// The compiled dialect with these policies. Plans that differ in open policies only share what is compiled.
    fn plan(
        &self,
        base: &DialectPlan,
        resolved: &ResolvedPolicies,
        open: &[String],
        compiled: &mut Vec<Arc<DialectPlan>>,
    ) -> Option<Arc<DialectPlan>> {
        let policies = &resolved.policies;
        let of_base = |d: &&Arc<DialectPlan>| (&d.name, &d.profile) == (&base.name, &base.profile);
        let candidates = || compiled.iter().filter(of_base).filter(|d| d.open_policies == open);
        if let Some(same) = candidates().find(|d| d.resolved.policies == *policies) {
            return Some(same.clone());
        }
        let plan = match candidates().find(|d| d.resolved.policies.is_equal_except(policies, open)) {
            Some(shared) => shared.with_policies(resolved.clone()),
            None => (self.compile)(base, GivenPolicies { resolved, open })?,
        };
        compiled.push(Arc::new(plan));
        compiled.last().cloned()
    }
}

/// The clients of a group.
#[derive(Clone, Copy)]
enum GroupClients<'g> {
    UserAgent(usize, &'g UserAgentRule),
    /// Those that name this profile in this header.
    ProfileHeader(&'g ProfileHeader, &'g String),
    Others,
}

impl<'g> GroupClients<'g> {
    /// The groups of a route, in their order.
    fn of_route(route: &'g RoutePlan, rules: &'g [UserAgentRule]) -> impl Iterator<Item = GroupClients<'g>> {
        let by_rule = rules.iter().enumerate().map(|(at, rule)| GroupClients::UserAgent(at, rule));
        let by_header = route
            .headers
            .profile
            .iter()
            .flat_map(|header| header.profiles.iter().map(move |name| GroupClients::ProfileHeader(header, name)));
        std::iter::once(GroupClients::Others).chain(by_rule).chain(by_header)
    }

    /// The profile that replaces the one of the route.
    fn profile(self) -> Option<&'g String> {
        match self {
            GroupClients::Others => None,
            GroupClients::UserAgent(_, rule) => rule.profile.as_ref(),
            GroupClients::ProfileHeader(_, name) => Some(name),
        }
    }
}

/// Whether clients of a route can get the dialect with the profile. Lints compare it with the dialect without a profile.
pub fn may_use(gateway: &GatewayPlan, dialect: &str, profile: Option<&str>) -> bool {
    let mut routes = gateway.routes.iter().filter(|route| route.dialect == dialect);
    routes.any(|route| {
        let mut clients = GroupClients::of_route(route, &gateway.by_user_agent);
        profile.is_none()
            || clients.any(|clients| clients.profile().or(route.profile.as_ref()).map(String::as_str) == profile)
    })
}

/// The policies that clients of the dialect with the profile choose by a header and only expressions read, if they are
/// the same at all routes: then one compiled dialect is enough.
pub fn open_policies(gateway: &GatewayPlan, dialect: &str, profile: Option<&str>) -> Vec<String> {
    let of_route = |route: &RoutePlan| {
        let chosen = route.headers.policies.iter().map(|rule| &rule.policy);
        let mut open: Vec<String> =
            chosen.filter(|name| PolicySpec::is_read_by_expressions_only(name)).cloned().collect();
        open.sort();
        open.dedup();
        if route.choose.is_empty() { open } else { Vec::new() }
    };
    let uses_it = |route: &&RoutePlan| {
        let mut clients = GroupClients::of_route(route, &gateway.by_user_agent);
        route.dialect == dialect
            && clients.any(|clients| clients.profile().or(route.profile.as_ref()).map(String::as_str) == profile)
    };
    let mut routes = gateway.routes.iter().filter(uses_it).map(of_route);
    let first = routes.next().unwrap_or_default();
    if routes.all(|other| other == first) { first } else { Vec::new() }
}

/// A group before its dialects are compiled.
struct PendingGroup<'e> {
    base: &'e Arc<DialectPlan>,
    settings: Vec<Setting>,
    /// Of each rule of `choose:`.
    choose_settings: Vec<Vec<Setting>>,
    /// The policies that clients choose and only expressions read. Their values make no variant of the plan.
    open: Vec<String>,
    /// Without its variants.
    group: VariantGroup,
}

impl PendingGroup<'_> {
    /// The number of variants. `None` on overflow.
    fn count(&self) -> Option<usize> {
        VariantGroup::count(&self.group.choices)?.checked_mul(self.choose_settings.len() + 1)
    }

    /// How many dialects they need.
    fn compiled_count(&self) -> usize {
        let mut distinct: Vec<Policies> = Vec::new();
        for ResolvedPolicies { policies, .. } in self.resolved() {
            if !distinct.iter().any(|other| other.is_equal_except(&policies, &self.open)) {
                distinct.push(policies);
            }
        }
        distinct.len()
    }

    /// The policies of each variant, in their order.
    fn resolved(&self) -> Vec<ResolvedPolicies> {
        let choices = &self.group.choices;
        let (Some(count), Some(per_rule)) = (self.count(), VariantGroup::count(choices)) else { return Vec::new() };
        let resolve = |at: usize| {
            let rule = (at / per_rule).checked_sub(1).and_then(|rule| self.choose_settings.get(rule));
            let chosen = choices.iter().zip(VariantGroup::chosen_words(choices, at)).filter_map(|(choice, word)| {
                let by = SetBy::Header(choice.header.clone());
                let (name, value) = (choice.policy.clone(), choice.words.get(word?)?.clone());
                Some(Setting { name, value, span: choice.span, by })
            });
            let settings = self.settings.iter().chain(rule.into_iter().flatten()).cloned();
            self.base.resolved.with_settings(settings.chain(chosen).collect())
        };
        (0..count).map(resolve).collect()
    }
}
