//! Which policies hold, and who said so: built-in < dialect < profile < environment that the profile names < route <
//! user-agent rule < header that the route allows.

use super::owners::Dialects;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::policy::BUILT_IN;
use crate::domain::{Finish, Policies};
use crate::mapping::language::field::scalar_text;
use crate::mapping::source::field_reader::{Cx, constant};
use crate::mapping::source::yaml::{Entry, Kind, Node};

/// A policy that a dialect declares for its own shapes; the first value is its default.
#[derive(Clone, Debug)]
pub struct OwnPolicy {
    pub name: String,
    pub values: Vec<String>,
}

/// A value that somebody set, and where.
#[derive(Clone, Debug)]
pub struct Setting {
    pub name: String,
    pub value: String,
    /// Of the value; of what is set from outside, the line that names the variable or the header.
    pub span: Span,
    pub by: SetBy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetBy {
    Dialect,
    Profile,
    /// A variable that a profile names.
    Environment(String),
    Route,
    UserAgent,
    /// A header that a route allows.
    Header(String),
}

impl SetBy {
    /// Who speaks for one dialect only, and so names a plain value.
    fn of_one_dialect(&self) -> Option<&'static str> {
        match self {
            SetBy::Dialect => Some("a dialect"),
            SetBy::Route => Some("a route"),
            SetBy::Profile | SetBy::Environment(_) | SetBy::UserAgent | SetBy::Header(_) => None,
        }
    }
}

/// What a policy may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    One(Vec<String>),
    /// Finishes, the strongest first.
    List,
}

#[derive(Clone, Debug, Default)]
pub struct Resolved {
    pub policies: Policies,
    /// The last setting of each name is the one that holds.
    pub settings: Vec<Setting>,
    pub own: Vec<OwnPolicy>,
}

impl Resolved {
    /// What stands in the dialect itself.
    pub fn dialect(own: &[Entry], settings: &[Entry], cx: Cx) -> Resolved {
        let mut resolved = Resolved::default();
        for entry in own {
            let values: Vec<String> = match &entry.value.kind {
                Kind::List(items) => items.iter().filter_map(|i| scalar_text(&constant(i))).collect(),
                _ => Vec::new(),
            };
            if values.is_empty() {
                cx.wrong_type(&entry.value, "the list of its values, the default first");
                continue;
            }
            resolved.own.push(OwnPolicy { name: entry.key.clone(), values });
        }
        let settings = resolved.read(settings, &SetBy::Dialect, cx);
        resolved.under(settings)
    }

    /// The same policies, when these are all the settings: a later one comes before an earlier one.
    pub fn under(&self, settings: Vec<Setting>) -> Resolved {
        let mut policies = Policies::default();
        for own in &self.own {
            policies.set(&own.name, own.values.first().map_or("", String::as_str));
        }
        for setting in &settings {
            match self.allowed(&setting.name) {
                Some(Allowed::List) => policies.finish_precedence = finishes(&setting.value),
                Some(Allowed::One(_)) | None => policies.set(&setting.name, &setting.value),
            }
        }
        Resolved { policies, settings, own: self.own.clone() }
    }

    /// A map of policies, for this dialect.
    pub fn read(&self, entries: &[Entry], by: &SetBy, cx: Cx) -> Vec<Setting> {
        entries.iter().filter_map(|e| self.setting(&e.key, e.key_span, &e.value, by, cx)).collect()
    }

    /// The same for several dialects: a policy is set for all of them, or a map gives it for some.
    pub fn read_for(&self, dialect: &str, dialects: &Dialects, entries: &[Entry], by: &SetBy, cx: Cx) -> Vec<Setting> {
        let mut settings = Vec::new();
        for entry in entries {
            let Kind::Map(by_dialect) = &entry.value.kind else {
                if self.allowed(&entry.key).is_none() {
                    let said = scalar_text(&constant(&entry.value));
                    dialects.not_in_all(&entry.key, said.as_deref(), entry.key_span, self, cx);
                    continue;
                }
                settings.extend(self.setting(&entry.key, entry.key_span, &entry.value, by, cx));
                continue;
            };
            for one in by_dialect {
                if !dialects.knows(one, cx) || one.key != dialect {
                    continue;
                }
                if self.allowed(&entry.key).is_none() {
                    dialects.not_in(dialect, &entry.key, entry.key_span, self, cx);
                } else {
                    settings.extend(self.setting(&entry.key, entry.key_span, &one.value, by, cx));
                }
            }
        }
        settings
    }

    /// What expressions may read, each with the words that it can be.
    pub fn words(&self) -> Vec<(String, Vec<String>)> {
        let owned = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect();
        let built_in = BUILT_IN.iter().filter(|p| !p.list).map(|p| (p.name.to_owned(), owned(p.values)));
        built_in.chain(self.own.iter().map(|p| (p.name.clone(), p.values.clone()))).collect()
    }

    pub fn names(&self) -> Vec<String> {
        let built_in = BUILT_IN.iter().map(|p| p.name.to_owned());
        built_in.chain(self.own.iter().map(|p| p.name.clone())).collect()
    }

    /// What the policy of this name may be, if there is one.
    pub fn allowed(&self, name: &str) -> Option<Allowed> {
        if let Some(own) = self.own.iter().find(|p| p.name == name) {
            return Some(Allowed::One(own.values.clone()));
        }
        let spec = BUILT_IN.iter().find(|p| p.name == name)?;
        Some(match spec.list {
            true => Allowed::List,
            false => Allowed::One(spec.values.iter().map(|v| (*v).to_owned()).collect()),
        })
    }

    /// Says that no policy has this name.
    pub fn unknown(&self, name: &str, span: Span, cx: Cx) {
        let names = self.names();
        let message = format!("no policy is called `{name}`");
        cx.unknown(Code::UnknownPolicy, span, message, name, names.iter().map(String::as_str));
    }

    /// A precedence as a whole: what it leaves out keeps its place after.
    pub fn precedence(&self, mut order: Vec<Finish>) -> String {
        let rest: Vec<Finish> =
            self.policies.finish_precedence.iter().copied().filter(|f| !order.contains(f)).collect();
        order.extend(rest);
        order.iter().map(|f| f.word()).collect::<Vec<_>>().join(", ")
    }

    fn setting(&self, name: &str, name_span: Span, node: &Node, by: &SetBy, cx: Cx) -> Option<Setting> {
        let allowed = self.allowed(name);
        if let (Some(allowed), Kind::Map(by_dialect), Some(who)) = (&allowed, &node.kind, by.of_one_dialect()) {
            cx.add(by_dialect_here(name, allowed, by_dialect, node.span, who));
            return None;
        }
        let value = match allowed {
            Some(Allowed::List) => self.listed(name, node, cx)?,
            Some(Allowed::One(values)) => {
                let written = scalar_text(&constant(node));
                let shown = written.as_ref().map_or(node.noun().to_owned(), |said| format!("`{said}`"));
                let said = written.unwrap_or_default();
                if !values.contains(&said) {
                    let message = format!("`{name}` cannot be {shown}");
                    cx.unknown(Code::BadPolicyValue, node.span, message, &said, values.iter().map(String::as_str));
                    return None;
                }
                said
            }
            None => {
                self.unknown(name, name_span, cx);
                return None;
            }
        };
        Some(Setting { name: name.to_owned(), value, span: node.span, by: by.clone() })
    }

    /// `finish_precedence`: a list of finishes, the strongest first.
    fn listed(&self, name: &str, node: &Node, cx: Cx) -> Option<String> {
        let Kind::List(items) = &node.kind else {
            cx.wrong_type(node, "a list, the strongest first");
            return None;
        };
        let mut order: Vec<Finish> = Vec::new();
        for item in items {
            let Some(finish) = item.as_text().and_then(Finish::from_word) else {
                let said = item.as_text().unwrap_or_default();
                let message = format!("`{name}` cannot hold `{said}`");
                cx.unknown(Code::BadPolicyValue, item.span, message, said, Finish::WORDS.iter().copied());
                continue;
            };
            order.push(finish);
        }
        Some(self.precedence(order))
    }
}

/// `reasoning: { chat: drop }` where there is only one dialect.
fn by_dialect_here(name: &str, allowed: &Allowed, by_dialect: &[Entry], span: Span, who: &str) -> Diagnostic {
    let value = match allowed {
        Allowed::One(values) => {
            let mut said = by_dialect.iter().filter_map(|e| scalar_text(&constant(&e.value)));
            said.find(|s| values.contains(s)).or_else(|| values.first().cloned()).unwrap_or_default()
        }
        Allowed::List => "[ … ]".to_owned(),
    };
    Diagnostic::new(Code::BadPolicyValue, span, format!("{who} gives `{name}` a plain value, not one for each dialect"))
        .label(format!("write `{name}: {value}`"))
        .help("`{ DIALECT: value }` is for profiles and rules by user agent, which may be for several dialects")
}

fn finishes(list: &str) -> Vec<Finish> {
    list.split(", ").filter_map(Finish::from_word).collect()
}
