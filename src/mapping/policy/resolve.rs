//! Resolves policies and records where each is set. Precedence, lowest first: built-in default, dialect, profile,
//! environment variable listed by the profile, route, user-agent rule, rule of `choose:`, header allowed by the route.

use super::owners::DialectIndex;
use crate::diagnostics::{Code, Diagnostic, Span, describe_known, did_you_mean};
use crate::domain::policy::{ALIASES, BUILT_IN, PolicySpec, canonical};
use crate::domain::{Finish, Policies};
use crate::mapping::language::field::scalar_text;
use crate::mapping::language::scope::PolicyWords;
use crate::mapping::source::field_reader::{LoadContext, constant};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};

/// A policy that a dialect declares for its own frames; the first value is the default.
#[derive(Clone, Debug)]
pub struct CustomPolicy {
    pub name: String,
    pub values: Vec<String>,
}

/// A policy value and where it is set.
#[derive(Clone, Debug)]
pub struct Setting {
    pub name: String,
    pub value: String,
    /// The span of the value; for an environment variable or a header, of the line that allows it.
    pub span: Span,
    pub by: SetBy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetBy {
    Dialect,
    Profile,
    /// An environment variable listed by a profile.
    Environment(String),
    Route,
    UserAgent,
    /// A rule of `choose:` of a route.
    Choose,
    /// A request header allowed by a route.
    Header(String),
    /// A test, whatever the others set.
    Test,
}

impl SetBy {
    /// Named if it applies to one dialect only, so that the value must be plain.
    fn single_dialect_setter(&self) -> Option<&'static str> {
        match self {
            SetBy::Dialect => Some("a dialect"),
            SetBy::Route | SetBy::Choose => Some("a route"),
            SetBy::Test => Some("a test"),
            SetBy::Profile | SetBy::Environment(_) | SetBy::UserAgent | SetBy::Header(_) => None,
        }
    }
}

/// The values that a policy can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedValues {
    OneOf(Vec<String>),
    /// A list of finish reasons, highest precedence first.
    FinishList,
}

#[derive(Clone, Debug, Default)]
pub struct ResolvedPolicies {
    pub policies: Policies,
    /// The last setting of each name applies.
    pub settings: Vec<Setting>,
    pub custom: Vec<CustomPolicy>,
}

impl ResolvedPolicies {
    /// The policies of the dialect file itself.
    pub fn dialect(custom: &[Entry], settings: &[Entry], cx: LoadContext) -> ResolvedPolicies {
        let mut resolved = ResolvedPolicies::default();
        for entry in custom {
            let values: Vec<String> = match &entry.value.kind {
                YamlKind::List(items) => items.iter().filter_map(|i| scalar_text(&constant(i))).collect(),
                _ => Vec::new(),
            };
            if values.is_empty() {
                cx.wrong_type(&entry.value, "a list of its values, the default first");
                continue;
            }
            resolved.custom.push(CustomPolicy { name: entry.key.clone(), values });
        }
        let settings = resolved.read(settings, &SetBy::Dialect, cx);
        resolved.with_settings(settings)
    }

    /// The same policies with exactly these settings; a later setting overrides an earlier one.
    pub fn with_settings(&self, settings: Vec<Setting>) -> ResolvedPolicies {
        let mut policies = Policies::default();
        for custom in &self.custom {
            policies.set(&custom.name, custom.values.first().map_or("", String::as_str));
        }
        for setting in &settings {
            match self.allowed(&setting.name) {
                Some(AllowedValues::FinishList) => policies.finish_precedence = finishes(&setting.value),
                Some(AllowedValues::OneOf(_)) | None => policies.set(&setting.name, &setting.value),
            }
        }
        ResolvedPolicies { policies, settings, custom: self.custom.clone() }
    }

    /// Reads a map of policies for this dialect.
    pub fn read(&self, entries: &[Entry], by: &SetBy, cx: LoadContext) -> Vec<Setting> {
        entries.iter().filter_map(|e| self.setting(&e.key, e.key_span, &e.value, by, cx)).collect()
    }

    /// Reads a map of policies that may apply to several dialects: a plain value applies to all of them, a map sets the
    /// value per dialect.
    pub fn read_per_dialect(
        &self,
        dialect: &str,
        dialects: &DialectIndex,
        entries: &[Entry],
        by: &SetBy,
        cx: LoadContext,
    ) -> Vec<Setting> {
        let mut settings = Vec::new();
        for entry in entries {
            let YamlKind::Map(by_dialect) = &entry.value.kind else {
                if self.allowed(&entry.key).is_none() {
                    let value = scalar_text(&constant(&entry.value));
                    dialects.report_not_in_all(&entry.key, value.as_deref(), entry.key_span, self, cx);
                    continue;
                }
                settings.extend(self.setting(&entry.key, entry.key_span, &entry.value, by, cx));
                continue;
            };
            for one in by_dialect {
                if !dialects.check_dialect_name(one, cx) || one.key != dialect {
                    continue;
                }
                if self.allowed(&entry.key).is_none() {
                    dialects.report_not_in(dialect, &entry.key, entry.key_span, self, cx);
                } else {
                    settings.extend(self.setting(&entry.key, entry.key_span, &one.value, by, cx));
                }
            }
        }
        settings
    }

    /// The policies that expressions can read, each with its possible values.
    pub fn words(&self) -> PolicyWords {
        let owned = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect();
        let built_in = BUILT_IN.iter().filter(|p| !p.list).map(|p| (p.name.to_owned(), owned(p.values)));
        built_in.chain(self.custom.iter().map(|p| (p.name.clone(), p.values.clone()))).collect()
    }

    pub fn names(&self) -> Vec<String> {
        let built_in = BUILT_IN.iter().map(|p| p.name.to_owned());
        built_in.chain(self.custom.iter().map(|p| p.name.clone())).collect()
    }

    /// The values of the policy of this name, if it exists.
    pub fn allowed(&self, name: &str) -> Option<AllowedValues> {
        if let Some(custom) = self.custom.iter().find(|p| p.name == name) {
            return Some(AllowedValues::OneOf(custom.values.clone()));
        }
        let spec = PolicySpec::find(name)?;
        Some(match spec.list {
            true => AllowedValues::FinishList,
            false => AllowedValues::OneOf(spec.values.iter().map(|v| (*v).to_owned()).collect()),
        })
    }

    /// Reports an unknown policy name.
    pub fn unknown(&self, name: &str, span: Span, cx: LoadContext) {
        let names = self.names();
        let message = format!("unknown policy `{name}`");
        cx.unknown(Code::UnknownPolicy, span, message, name, names.iter().map(String::as_str));
    }

    /// A complete precedence list: reasons that `order` omits follow in their previous order.
    pub fn precedence(&self, mut order: Vec<Finish>) -> String {
        let rest: Vec<Finish> =
            self.policies.finish_precedence.iter().copied().filter(|f| !order.contains(f)).collect();
        order.extend(rest);
        order.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ")
    }

    fn setting(&self, name: &str, name_span: Span, node: &Node, by: &SetBy, cx: LoadContext) -> Option<Setting> {
        let allowed = self.allowed(name);
        if let (Some(allowed), YamlKind::Map(by_dialect), Some(who)) =
            (&allowed, &node.kind, by.single_dialect_setter())
        {
            cx.add(per_dialect_not_allowed(name, allowed, by_dialect, node.span, who));
            return None;
        }
        let value = match allowed {
            Some(AllowedValues::FinishList) => self.finish_list(name, node, cx)?,
            Some(AllowedValues::OneOf(values)) => {
                let written = scalar_text(&constant(node));
                let shown = written.as_ref().map_or(node.type_name().to_owned(), |word| format!("`{word}`"));
                let word = canonical(name, &written.unwrap_or_default()).to_owned();
                if !values.contains(&word) {
                    let message = format!("`{name}` cannot be {shown}");
                    let near = did_you_mean(&word, values.iter().map(String::as_str));
                    let label = near.map_or(String::new(), |near| format!("did you mean `{near}`?"));
                    let help = describe_known(with_aliases(name, &values).iter().map(String::as_str));
                    cx.add(Diagnostic::new(Code::BadPolicyValue, node.span, message).label(label).help(help));
                    return None;
                }
                word
            }
            None => {
                self.unknown(name, name_span, cx);
                return None;
            }
        };
        Some(Setting { name: name.to_owned(), value, span: node.span, by: by.clone() })
    }

    /// `finish_precedence`: a list of finish reasons, highest precedence first.
    fn finish_list(&self, name: &str, node: &Node, cx: LoadContext) -> Option<String> {
        let YamlKind::List(items) = &node.kind else {
            let message = format!("`{name}` must be a list, not {}", node.type_name());
            let help = "write the finish reasons in `[ … ]`, highest precedence first";
            cx.add(Diagnostic::new(Code::WrongType, node.span, message).help(help));
            return None;
        };
        let mut order: Vec<Finish> = Vec::new();
        for item in items {
            let Some(finish) = item.as_text().and_then(Finish::from_name) else {
                let word = item.as_text().unwrap_or_default();
                let message = format!("`{name}` cannot contain `{word}`");
                cx.unknown(Code::BadPolicyValue, item.span, message, word, Finish::NAMES.iter().copied());
                continue;
            };
            if order.contains(&finish) {
                let message = format!("`{name}` contains `{}` twice", finish.name());
                cx.add(Diagnostic::new(Code::BadPolicyValue, item.span, message).help("only its first place counts"));
                continue;
            }
            order.push(finish);
        }
        Some(self.precedence(order))
    }
}

/// Reports `reasoning: { chat: drop }` where the value must be plain.
fn per_dialect_not_allowed(
    name: &str,
    allowed: &AllowedValues,
    by_dialect: &[Entry],
    span: Span,
    who: &str,
) -> Diagnostic {
    let value = match allowed {
        AllowedValues::OneOf(values) => {
            let mut written = by_dialect.iter().filter_map(|e| scalar_text(&constant(&e.value)));
            written.find(|word| values.contains(word)).or_else(|| values.first().cloned()).unwrap_or_default()
        }
        AllowedValues::FinishList => "[ … ]".to_owned(),
    };
    Diagnostic::new(
        Code::BadPolicyValue,
        span,
        format!("`{name}` must have a plain value in {who}, not one per dialect"),
    )
    .label(format!("write `{name}: {value}`"))
    .help("`{ DIALECT: value }` is for profiles and user-agent rules, which can apply to several dialects")
}

/// The values of a policy for a help text: `as_reported (A)`.
pub fn with_aliases(policy: &str, values: &[String]) -> Vec<String> {
    let shown = |value: &String| match ALIASES.iter().find(|(p, _, v)| *p == policy && v == value) {
        Some((_, alias, _)) => format!("{value} ({alias})"),
        None => value.clone(),
    };
    values.iter().map(shown).collect()
}

fn finishes(list: &str) -> Vec<Finish> {
    list.split(", ").filter_map(Finish::from_name).collect()
}
