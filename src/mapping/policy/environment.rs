//! `environment:` of a profile: environment variables that set policies.

use super::owners::DialectIndex;
use super::resolve::{AllowedValues, ResolvedPolicies, SetBy, Setting, with_aliases};
use crate::diagnostics::{Code, Diagnostic, did_you_mean, or_list};
use crate::domain::Finish;
use crate::domain::policy::canonical;
use crate::mapping::config::profile_environment::{Variable, VariableTarget, VariableValue};
use crate::mapping::grammar::notation::Spanned;
use crate::mapping::language::field::scalar_text;
use crate::mapping::source::field_reader::{LoadContext, constant};
use crate::mapping::source::yaml::Entry;
use std::fmt;

/// The environment variables at process start. The loader never reads them from the process: callers pass them in.
#[derive(Clone, Default)]
pub struct Environment(Vec<(String, String)>);

/// Reads the settings that environment variables make for one dialect.
#[derive(Clone, Copy)]
pub struct EnvironmentReader<'r> {
    pub dialect: &'r str,
    /// All dialects of the set.
    pub dialects: &'r DialectIndex<'r>,
    pub environment: &'r Environment,
}

impl Environment {
    /// An empty variable counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Environment {
        Environment(variables.into_iter().collect())
    }
}

/// Prints no values: API keys are among them.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

impl EnvironmentReader<'_> {
    /// The settings of the variables that a profile lists. The policy names are checked even if the variable is not
    /// set.
    pub fn read(&self, entries: &[Entry], base: &ResolvedPolicies, cx: LoadContext) -> Vec<Setting> {
        let mut settings = Vec::new();
        for entry in entries {
            let Some(variable) = Variable::read(entry, cx) else { continue };
            let VariableTarget::Policy(policies) = &variable.target else { continue };
            // One of them at most is a policy of this dialect.
            let Some(name) = policies.iter().find_map(|policy| self.policy(policy, base, cx)) else { continue };
            let mut valid = true;
            for node in variable.values_of_profile() {
                let word = scalar_text(&constant(node)).unwrap_or_default();
                if let Err(InvalidValue { word, known }) = parse_value(name, &word, base) {
                    let message = format!("`{name}` cannot be `{word}`");
                    cx.unknown(Code::BadPolicyValue, node.span, message, &word, known.iter().map(String::as_str));
                    valid = false;
                }
            }
            let text = variable.text(|name| self.environment.get(name)).filter(|_| valid);
            let Some(text) = text else { continue };
            let text = match variable.value(text) {
                VariableValue::OfProfile(node) => scalar_text(&constant(node)).unwrap_or_default(),
                VariableValue::Text(text) => text,
            };
            match parse_value(name, &text, base) {
                Ok(value) => settings.push(Setting {
                    name: name.to_owned(),
                    value,
                    span: entry.key_span,
                    by: SetBy::Environment(entry.key.clone()),
                }),
                Err(InvalidValue { word, known }) => {
                    let near = did_you_mean(&word, known.iter().map(String::as_str));
                    let allowed = with_aliases(name, &known);
                    // The variable may hold a secret if the wrong one is listed, so its value is not printed.
                    let message = format!(
                        "the value of the environment variable `{}` is invalid for the policy `{name}`",
                        entry.key
                    );
                    let near = near.map(|near| format!("did you mean `{near}`?"));
                    cx.add(
                        Diagnostic::new(Code::BadPolicyValue, entry.key_span, message)
                            .label(near.unwrap_or_default())
                            .help(format!("set it to {}, or unset it", or_list(allowed.iter().map(String::as_str)))),
                    );
                }
            }
        }
        settings
    }

    /// `usage`, or `usage.DIALECT`. A policy name may itself contain dots, so the whole text is tried first.
    fn policy<'t>(&self, node: &'t Spanned<String>, base: &ResolvedPolicies, cx: LoadContext) -> Option<&'t str> {
        let text = node.value.as_str();
        if base.allowed(text).is_some() {
            return Some(text);
        }
        match text.rsplit_once('.') {
            Some((name, dialect)) if self.dialects.names.contains(&dialect) => {
                if dialect != self.dialect {
                    return None;
                }
                if base.allowed(name).is_none() {
                    self.dialects.report_not_in(dialect, name, cx.sources.within(node.span, name), base, cx);
                    return None;
                }
                Some(name)
            }
            Some((name, dialect)) if base.allowed(name).is_some() => {
                let message = format!("unknown dialect `{dialect}`");
                let known = self.dialects.names.iter().copied();
                cx.unknown(Code::UnknownReference, cx.sources.within(node.span, dialect), message, dialect, known);
                None
            }
            Some(_) | None => {
                self.dialects.report_not_for_variable(text, node.span, base, cx);
                None
            }
        }
    }
}

/// A value that a policy cannot have, and the values that it can have.
struct InvalidValue {
    word: String,
    known: Vec<String>,
}

fn parse_value(name: &str, text: &str, base: &ResolvedPolicies) -> Result<String, InvalidValue> {
    let text = canonical(name, text);
    match base.allowed(name) {
        Some(AllowedValues::FinishList) => {
            let read = |word: &str| {
                let known = || Finish::NAMES.iter().map(|w| (*w).to_owned()).collect();
                Finish::from_name(word).ok_or_else(|| InvalidValue { word: word.to_owned(), known: known() })
            };
            let order: Result<Vec<Finish>, InvalidValue> = text.split(',').map(|word| read(word.trim())).collect();
            order.map(|order| base.precedence(order))
        }
        Some(AllowedValues::OneOf(values)) if values.iter().any(|v| v == text) => Ok(text.to_owned()),
        // An empty variable counts as not set, so the empty value is not suggested.
        Some(AllowedValues::OneOf(values)) => {
            Err(InvalidValue { word: text.to_owned(), known: values.into_iter().filter(|v| !v.is_empty()).collect() })
        }
        None => Err(InvalidValue { word: text.to_owned(), known: Vec::new() }),
    }
}

/// Untrusted text for a message: truncated, and without control characters so that it stays on one line.
pub fn truncate_for_message(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    let printable = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let start: String = text.chars().take(MAX_CHARS).map(printable).collect();
    if start.chars().count() < text.chars().count() { format!("{start}…") } else { start }
}

#[cfg(test)]
#[path = "../../../tests/unit/mapping_policy_environment.rs"]
mod tests;
