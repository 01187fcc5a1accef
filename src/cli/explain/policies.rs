//! `reframe explain --policies`: which policies hold, who said so, and over whom.

use super::input::{At, Spoken};
use crate::diagnostics::{Sources, one_of};
use crate::mapping::Plan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::route::RoutePlan;
use crate::mapping::policy::resolve::{Resolved, SetBy, Setting};
use crate::mapping::policy::variants::{Choice, USER_AGENT, Variant};
use clap::Args;

/// Which client is meant.
#[derive(Args)]
pub struct ClientArgs {
    /// The route that it asks: "POST /path", or the path alone
    #[arg(long, value_name = "ENDPOINT")]
    pub route: Option<String>,
    /// A header that it sends; may be given more than once
    #[arg(long = "header", value_name = "NAME=VALUE")]
    headers: Vec<String>,
    /// Its user agent
    #[arg(long, value_name = "TEXT")]
    user_agent: Option<String>,
}

impl ClientArgs {
    /// What a client sends means something to a route only.
    pub fn routed(&self) -> Result<(), String> {
        let said = match (&self.route, self.headers.as_slice(), &self.user_agent) {
            (Some(_), ..) | (None, [], None) => return Ok(()),
            (None, [_, ..], _) => "--header",
            (None, [], Some(_)) => "--user-agent",
        };
        Err(format!("error: {said} speaks to a route: name one with --route, in place of --to"))
    }
}

/// A client of a route: what it sends, by names in lower case.
pub struct Client<'p> {
    pub route: &'p RoutePlan,
    sent: Vec<(String, String)>,
}

/// The longest value that stands in one line.
const WIDE: usize = 28;

impl<'p> Client<'p> {
    pub fn new(args: &ClientArgs, endpoint: &str, plan: &'p Plan) -> Result<Client<'p>, String> {
        let route = find(endpoint, &plan.gateway.routes)?;
        let mut sent: Vec<(String, String)> = Vec::new();
        sent.extend(args.user_agent.iter().map(|text| (USER_AGENT.to_owned(), text.clone())));
        for header in &args.headers {
            let (name, value) =
                header.split_once('=').ok_or_else(|| format!("error: --header {header}: write NAME=VALUE"))?;
            sent.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Client { route, sent })
    }

    /// What it gets, or what it is told.
    pub fn variant(&self) -> Result<&'p Variant, String> {
        match self.route.variants.pick(|name| self.says(name)) {
            Some(Ok(variant)) => Ok(variant),
            Some(Err(refused)) => Err(format!("error: the client is refused: {}", refused.fault.message)),
            None => Err("error: the route has no dialect".to_owned()),
        }
    }

    /// What it gets, who set what, and what it may choose.
    pub fn told(&self, plan: &Plan) -> Result<String, String> {
        let (route, variant) = (self.route, self.variant()?);
        let rule = route.variants.rule(|name| self.says(name)).and_then(|at| plan.gateway.by_user_agent.get(at));
        let whence = match (rule.and_then(|r| r.profile.as_ref()), route.profile_span) {
            (Some(_), _) => " (by user agent)",
            (None, None) => " (--profile)",
            (None, Some(_)) => "",
        };
        let (spoken, place) = (spoken(&variant.plan, whence), plan.sources.show(route.span));
        let mut text = format!("{} {} speaks {spoken}: {place}\n", route.method, route.path);
        let choices = route.variants.choices(|name| self.says(name));
        for (name, value) in &self.sent {
            let why = match choices.iter().find(|c| c.header == *name) {
                _ if name == USER_AGENT => match rule {
                    Some(rule) => format!("is known by the rule at {}", plan.sources.show(rule.span)),
                    None => "is known by no rule".to_owned(),
                },
                Some(choice) if value.is_empty() => {
                    format!("says nothing: it is empty, and may choose `{}`", choice.policy)
                }
                Some(choice) => format!("chooses `{}`", choice.policy),
                None => "changes nothing: this route does not allow it".to_owned(),
            };
            text.push_str(&format!("`{name}: {value}` {why}\n"));
        }
        text.push_str(&format!("\n{}", table(&variant.resolved, &plan.sources)));
        if !choices.is_empty() {
            text.push_str(&format!("\na client may choose\n{}", offered(choices, &plan.sources)));
        }
        Ok(text)
    }

    /// A header that is sent twice says both, as on the wire.
    fn says(&self, name: &str) -> Option<String> {
        let values: Vec<&str> = self.sent.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }
}

/// Of what is played, and where it is spoken.
pub fn of_spoken(it: &Spoken, sources: &Sources) -> String {
    let at = match it.at {
        At::Route(route) => format!(", as at {} {}", route.method, route.path),
        At::Nowhere => ", which no route speaks".to_owned(),
        At::Files => ", as the files have it".to_owned(),
    };
    format!("{}{at}\n\n{}", spoken(it.dialect, ""), table(it.resolved, sources))
}

fn find<'p>(endpoint: &str, routes: &'p [RoutePlan]) -> Result<&'p RoutePlan, String> {
    let shown = |r: &RoutePlan| format!("{} {}", r.method, r.path);
    let found: Vec<&RoutePlan> = routes.iter().filter(|r| r.path == endpoint || shown(r) == endpoint).collect();
    match found.as_slice() {
        [route] => Ok(route),
        [] => {
            let known: Vec<String> = routes.iter().map(shown).collect();
            Err(format!("error: no route serves `{endpoint}`; there is {}", one_of(known.iter().map(String::as_str))))
        }
        several => {
            let known: Vec<String> = several.iter().map(|r| shown(r)).collect();
            Err(format!("error: several routes serve `{endpoint}`: say {}", one_of(known.iter().map(String::as_str))))
        }
    }
}

/// `chat with the profile openai`
fn spoken(dialect: &DialectPlan, whence: &str) -> String {
    match &dialect.profile {
        Some(profile) => format!("{} with the profile {profile}{whence}", dialect.name),
        None => format!("{} without a profile", dialect.name),
    }
}

/// Each policy, its value, and who said so; the last word counts.
fn table(resolved: &Resolved, sources: &Sources) -> String {
    let mut rows = vec![["policy", "value", "set by", "over"].map(str::to_owned)];
    for name in resolved.names() {
        let mut said = resolved.settings.iter().rev().filter(|s| s.name == name);
        let own = resolved.own.iter().any(|p| p.name == name);
        let (value, by) = match said.next() {
            Some(setting) => (setting.value.clone(), set_by(setting, sources)),
            None => (default(resolved, &name), if own { "the dialect's own default" } else { "built in" }.to_owned()),
        };
        let over: Vec<String> = said.map(|s| format!("{} {}", set_by(s, sources), quoted(&s.value))).collect();
        let mut lines = wrapped(quoted(&value)).into_iter();
        rows.push([name, lines.next().unwrap_or_default(), by, over.join(", ")]);
        rows.extend(lines.map(|line| [String::new(), line, String::new(), String::new()]));
    }
    aligned(&rows)
}

fn offered(choices: &[Choice], sources: &Sources) -> String {
    let mut rows = vec![["header", "policy", "words", "allowed by"].map(str::to_owned)];
    let words = |choice: &Choice| one_of(choice.words.iter().map(String::as_str));
    rows.extend(choices.iter().map(|c| [c.header.clone(), c.policy.clone(), words(c), sources.show(c.span)]));
    aligned(&rows)
}

fn default(resolved: &Resolved, name: &str) -> String {
    match resolved.policies.word(name) {
        Some(word) => word.as_str().unwrap_or_default().to_owned(),
        None => resolved.policies.finish_precedence.iter().map(|f| f.word()).collect::<Vec<_>>().join(", "),
    }
}

fn set_by(setting: &Setting, sources: &Sources) -> String {
    let place = sources.show(setting.span);
    match &setting.by {
        SetBy::Dialect | SetBy::Profile | SetBy::Route => place,
        SetBy::UserAgent => format!("{place} (by user agent)"),
        SetBy::Environment(variable) => format!("{variable} (named in {place})"),
        SetBy::Header(header) => format!("header {header} (allowed in {place})"),
    }
}

fn quoted(value: &str) -> &str {
    if value.is_empty() { "\"\"" } else { value }
}

/// A long list takes several lines, and not the columns of everybody else.
fn wrapped(value: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in value.split_inclusive(", ") {
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.len() + word.trim_end().len() <= WIDE => line.push_str(word),
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

fn aligned(rows: &[[String; 4]]) -> String {
    let width = |column: usize| rows.iter().map(|r| r[column].trim_end().chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(width).collect();
    let line = |row: &[String; 4]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{:<width$}", cell.trim_end()));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
