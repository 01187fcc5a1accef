//! `reframe explain --policies`: the effective policies, where each was set, and which settings it overrides.

use super::input::{Target, TargetScope};
use crate::cli::columns::aligned;
use crate::diagnostics::{Sources, or_list};
use crate::domain::RequestHead;
use crate::mapping::Plan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::profile_gateway::GatewayVariable;
use crate::mapping::config::route::RoutePlan;
use crate::mapping::policy::resolve::{AllowedValues, ResolvedPolicies, SetBy, Setting, with_aliases};
use crate::mapping::policy::variants::{HeaderChoice, RouteVariant, USER_AGENT};
use crate::mapping::source::yaml::Entry;
use clap::Args;
use url::form_urlencoded;

/// The client to explain.
#[derive(Args)]
pub struct ClientArgs {
    /// The route of the client: "POST /path", or only the path. With the parameters of a request in it
    /// ("/v1/models/m?x=1"), `--sent` reads them
    #[arg(long, value_name = "ENDPOINT")]
    pub route: Option<String>,
    /// A header of the client; can be repeated
    #[arg(long = "header", value_name = "NAME=VALUE")]
    headers: Vec<String>,
    /// The user agent of the client
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,
}

impl ClientArgs {
    /// Checks that `--header` and `--user-agent` come with `--route`: only a route uses them.
    pub fn require_route(&self) -> Result<(), String> {
        let flag = match (&self.route, self.headers.as_slice(), &self.user_agent) {
            (Some(_), ..) | (None, [], None) => return Ok(()),
            (None, [_, ..], _) => "--header",
            (None, [], Some(_)) => "--user-agent",
        };
        Err(format!("error: {flag} requires a route: use --route instead of --to"))
    }
}

/// A client of a route, with its headers by lower-case name.
pub struct Client<'p> {
    pub route: &'p RoutePlan,
    /// With the parameters of the path and the query, if the endpoint is that of a request: `POST /v1/models/m?x=1`.
    pub head: RequestHead,
}

/// Longer values are wrapped.
const MAX_VALUE_WIDTH: usize = 28;

impl<'p> Client<'p> {
    pub fn new(args: &ClientArgs, endpoint: &str, plan: &'p Plan) -> Result<Client<'p>, String> {
        let (endpoint, query) = endpoint.split_once('?').unwrap_or((endpoint, ""));
        let (route, path) = find(endpoint, &plan.gateway.routes)?;
        let mut headers: Vec<(String, String)> = Vec::new();
        headers.extend(args.user_agent.iter().map(|text| (USER_AGENT.to_owned(), text.clone())));
        for header in &args.headers {
            let (name, value) =
                header.split_once('=').ok_or_else(|| format!("error: --header {header}: write NAME=VALUE"))?;
            headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Ok(Client { route, head: RequestHead { path, query, headers } })
    }

    /// The variant that serves this client, or the error that it gets.
    pub fn variant(&self) -> Result<&'p RouteVariant, String> {
        match self.route.variants.select(|name| self.header(name)) {
            Some(Ok(selected)) => Ok(selected.variant),
            Some(Err(refused)) => Err(format!("error: the request is rejected: {}", refused.fault.message)),
            None => Err("error: the route has no dialect".to_owned()),
        }
    }

    /// The variant, where each policy was set, and what the client may choose.
    pub fn describe(&self, plan: &Plan) -> Result<String, String> {
        let (route, variant) = (self.route, self.variant()?);
        let rule = route.variants.rule(|name| self.header(name)).and_then(|at| plan.gateway.by_user_agent.get(at));
        let profile_header = route.variants.profile_header(|name| self.header(name));
        let profile_source = match (rule.and_then(|r| r.profile.as_ref()), route.profile_span) {
            _ if profile_header.is_some() => " (by header)",
            (Some(_), _) => " (by user agent)",
            (None, None) => " (--profile)",
            (None, Some(_)) => "",
        };
        let (dialect_name, place) = (dialect_name(&variant.plan, profile_source), plan.sources.show(route.span));
        let mut text = format!("{} {} serves {dialect_name}: {place}\n", route.method, route.path);
        let choices = route.variants.choices(|name| self.header(name));
        for (name, value) in &self.head.headers {
            let why = match choices.iter().find(|c| c.header == *name) {
                _ if name == USER_AGENT => match rule {
                    Some(rule) => format!("matches the rule at {}", plan.sources.show(rule.span)),
                    None => "matches no rule".to_owned(),
                },
                None if profile_header == Some(name) => "selects the profile".to_owned(),
                Some(choice) if value.is_empty() => {
                    format!("is empty and has no effect (it may select `{}`)", choice.policy)
                }
                Some(choice) => format!("selects `{}`", choice.policy),
                None => "has no effect: the route does not allow it".to_owned(),
            };
            text.push_str(&format!("`{name}: {value}` {why}\n"));
        }
        text.push_str(&format!("\n{}", table(&variant.resolved, &plan.sources)));
        if !plan.gateway.variables.is_empty() {
            text.push_str(&format!("\nset in the gateway by the environment\n{}", gateway_variables(plan)));
        }
        for unknown in &plan.gateway.unknown_variables {
            let near = unknown.did_you_mean.as_ref().map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            text.push_str(&format!("\nno profile names the environment variable `{}`{near}\n", unknown.name));
        }
        let profiles: Vec<(&str, &str)> = route.variants.profiles().collect();
        if let Some((header, _)) = profiles.first() {
            let names = or_list(profiles.iter().map(|(_, name)| *name));
            text.push_str(&format!("\n`{header}` may select a profile: {names}\n"));
        }
        if !choices.is_empty() {
            text.push_str(&format!("\nclients may select\n{}", offered(choices, &plan.sources)));
        }
        if !route.choose.is_empty() {
            text.push_str(&format!("\nthe request may select\n{}", chosen_by_request(route, &plan.sources)));
        }
        Ok(text)
    }

    /// The value of a header. Repeated headers are joined by commas, as in HTTP.
    fn header(&self, name: &str) -> Option<String> {
        let values: Vec<&str> = self.head.headers.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

/// The policies of the dialect that is explained.
pub fn describe_target(target: &Target, sources: &Sources) -> String {
    let at = match target.scope {
        TargetScope::Route(route) => format!(", as served at {} {}", route.method, route.path),
        TargetScope::NoRoute => ", which no route serves".to_owned(),
        TargetScope::Files => ", as defined in its files".to_owned(),
    };
    format!("{}{at}\n\n{}", dialect_name(target.dialect, ""), table(target.resolved, sources))
}

/// A route, and the parameters of the path of a request.
type Found<'p> = (&'p RoutePlan, Vec<(String, String)>);

fn find<'p>(endpoint: &str, routes: &'p [RoutePlan]) -> Result<Found<'p>, String> {
    let shown = |r: &RoutePlan| format!("{} {}", r.method, r.path);
    let found: Vec<&RoutePlan> = routes.iter().filter(|r| r.path == endpoint || shown(r) == endpoint).collect();
    let parameters = |r: &RoutePlan| {
        let path = endpoint.strip_prefix(&format!("{} ", r.method)).unwrap_or(endpoint);
        r.path_matcher.as_ref().map(|matcher| matcher.parameters(path)).filter(|found| !found.is_empty())
    };
    let (problem, candidates) = match found.as_slice() {
        [route] => return Ok((route, Vec::new())),
        [] if let Some(matched) = routes.iter().find_map(|r| Some((r, parameters(r)?))) => return Ok(matched),
        [] => (format!("no route serves `{endpoint}`; known routes:"), routes.iter().collect()),
        _ => (format!("several routes serve `{endpoint}`: use"), found),
    };
    let candidates: Vec<String> = candidates.into_iter().map(shown).collect();
    Err(format!("error: {problem} {}", or_list(candidates.iter().map(String::as_str))))
}

/// `chat with the profile openai`
fn dialect_name(dialect: &DialectPlan, profile_source: &str) -> String {
    match &dialect.profile {
        Some(profile) => format!("{} with the profile {profile}{profile_source}", dialect.name),
        None => format!("{} without a profile", dialect.name),
    }
}

/// Each policy with its value and where it was set. The last setting wins.
fn table(resolved: &ResolvedPolicies, sources: &Sources) -> String {
    let mut rows = vec![["policy", "value", "other values", "set by", "overrides"].map(str::to_owned)];
    for name in resolved.names() {
        let mut settings = resolved.settings.iter().rev().filter(|s| s.name == name);
        let own = resolved.custom.iter().any(|p| p.name == name);
        let (value, by) = match settings.next() {
            Some(setting) => (setting.value.clone(), set_by(setting, sources)),
            None => (
                resolved.policies.text(&name),
                if own { "default of the dialect" } else { "built-in default" }.to_owned(),
            ),
        };
        let over: Vec<String> = settings.map(|s| format!("{} {}", set_by(s, sources), quoted(&s.value))).collect();
        let (values, others) = (wrapped(quoted(&value)), wrapped(&other_values(resolved, &name, &value)));
        let line = |lines: &[String], at: usize| lines.get(at).cloned().unwrap_or_default();
        rows.push([name, line(&values, 0), line(&others, 0), by, over.join(", ")]);
        let more = 1..values.len().max(others.len());
        rows.extend(more.map(|at| [String::new(), line(&values, at), line(&others, at), String::new(), String::new()]));
    }
    aligned(&rows, usize::MAX)
}

/// The values that a policy could have instead.
fn other_values(resolved: &ResolvedPolicies, name: &str, value: &str) -> String {
    match resolved.allowed(name) {
        Some(AllowedValues::OneOf(values)) => {
            let others: Vec<String> = values.into_iter().filter(|other| other != value).collect();
            with_aliases(name, &others).iter().map(|other| quoted(other)).collect::<Vec<_>>().join(", ")
        }
        Some(AllowedValues::FinishList) => "any other order".to_owned(),
        None => String::new(),
    }
}

fn offered(choices: &[HeaderChoice], sources: &Sources) -> String {
    let mut rows = vec![["header", "policy", "values", "allowed by"].map(str::to_owned)];
    let words = |choice: &HeaderChoice| or_list(choice.words.iter().map(String::as_str));
    rows.extend(choices.iter().map(|c| [c.header.clone(), c.policy.clone(), words(c), sources.show(c.span)]));
    aligned(&rows, usize::MAX)
}

fn gateway_variables(plan: &Plan) -> String {
    let mut rows = vec![["setting", "set by"].map(str::to_owned)];
    let set_by =
        |variable: &GatewayVariable| format!("{} (named in {})", variable.variable, plan.sources.show(variable.span));
    rows.extend(plan.gateway.variables.iter().map(|variable| [variable.setting.clone(), set_by(variable)]));
    aligned(&rows, usize::MAX)
}

/// The rules of `choose:`, the first match of which applies.
fn chosen_by_request(route: &RoutePlan, sources: &Sources) -> String {
    let mut rows = vec![["if", "policies", "set by"].map(str::to_owned)];
    rows.extend(route.choose.iter().map(|rule| {
        let value = |e: &Entry| format!("{}: {}", e.key, e.value.as_text().unwrap_or_default());
        let policies: Vec<String> = rule.policies.iter().map(value).collect();
        [rule.when.clone(), policies.join(", "), sources.show(rule.span)]
    }));
    aligned(&rows, usize::MAX)
}

fn set_by(setting: &Setting, sources: &Sources) -> String {
    let place = sources.show(setting.span);
    match &setting.by {
        SetBy::Dialect | SetBy::Profile | SetBy::Route | SetBy::Test => place,
        SetBy::UserAgent => format!("{place} (by user agent)"),
        SetBy::Choose => format!("{place} (by the request)"),
        SetBy::Environment(variable) => format!("{variable} (named in {place})"),
        SetBy::Header(header) => format!("header {header} (allowed in {place})"),
    }
}

fn quoted(value: &str) -> &str {
    if value.is_empty() { "\"\"" } else { value }
}

/// Wraps a long list, so that it does not widen the column.
fn wrapped(value: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in value.split_inclusive(", ") {
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.len() + word.trim_end().len() <= MAX_VALUE_WIDTH => {
                line.push_str(word)
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}
