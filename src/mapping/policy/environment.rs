//! `environment:` of a profile: variables of the process that set policies.

use super::owners::Dialects;
use super::resolve::{Allowed, Resolved, SetBy, Setting};
use crate::diagnostics::{Code, Diagnostic, did_you_mean, one_of};
use crate::domain::Finish;
use crate::mapping::source::field_reader::{Cx, text_of};
use crate::mapping::source::yaml::{Entry, Node};
use std::fmt;

/// The variables of the process, as they were when it started. The core never asks for them: it is given them.
#[derive(Clone, Default)]
pub struct Environment(Vec<(String, String)>);

/// Who is read for.
#[derive(Clone, Copy)]
pub struct Reader<'r> {
    pub dialect: &'r str,
    /// All there are.
    pub dialects: &'r Dialects<'r>,
    pub environment: &'r Environment,
}

impl Environment {
    /// One that is empty sets nothing.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Environment {
        Environment(variables.into_iter().collect())
    }
}

/// Keys are among them.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

impl Reader<'_> {
    /// What the variables set that a profile names. The names are checked also for those that are not set.
    pub fn read(&self, entries: &[Entry], base: &Resolved, cx: Cx) -> Vec<Setting> {
        let mut settings = Vec::new();
        for entry in entries {
            let Some(name) = self.policy(&entry.value, base, cx) else { continue };
            let Some(said) = self.environment.get(&entry.key) else { continue };
            match value(name, said, base) {
                Ok(value) => settings.push(Setting {
                    name: name.to_owned(),
                    value,
                    span: entry.key_span,
                    by: SetBy::Environment(entry.key.clone()),
                }),
                Err(Wrong { word, known }) => {
                    let known = known.iter().map(String::as_str);
                    let near = did_you_mean(&word, known.clone());
                    // Who names the wrong variable may have named a secret: only a slip is shown, by what it was to be.
                    let message = format!("the variable `{}` says what `{name}` cannot be", entry.key);
                    let near = near.map(|near| format!("it is near `{near}`"));
                    cx.add(
                        Diagnostic::new(Code::BadPolicyValue, entry.key_span, message)
                            .label(near.unwrap_or_default())
                            .help(format!("set it to {}, or unset it", one_of(known))),
                    );
                }
            }
        }
        settings
    }

    /// `usage`, or `usage.DIALECT`. The name of a policy may have dots of its own, so the longest one is tried first.
    fn policy<'n>(&self, node: &'n Node, base: &Resolved, cx: Cx) -> Option<&'n str> {
        let text = text_of(node, cx)?;
        if base.allowed(text).is_some() {
            return Some(text);
        }
        match text.rsplit_once('.') {
            Some((name, dialect)) if self.dialects.names.contains(&dialect) => {
                if dialect != self.dialect {
                    return None;
                }
                if base.allowed(name).is_none() {
                    self.dialects.not_in(dialect, name, cx.sources.within(node.span, name), base, cx);
                    return None;
                }
                Some(name)
            }
            Some((name, dialect)) if base.allowed(name).is_some() => {
                let message = format!("no dialect is called `{dialect}`");
                let known = self.dialects.names.iter().copied();
                cx.unknown(Code::UnknownReference, cx.sources.within(node.span, dialect), message, dialect, known);
                None
            }
            Some(_) | None => {
                self.dialects.not_for_a_variable(text, node.span, base, cx);
                None
            }
        }
    }
}

/// A word that a policy cannot be, and those that it can.
struct Wrong {
    word: String,
    known: Vec<String>,
}

fn value(name: &str, said: &str, base: &Resolved) -> Result<String, Wrong> {
    match base.allowed(name) {
        Some(Allowed::List) => {
            let read = |word: &str| {
                let known = || Finish::WORDS.iter().map(|w| (*w).to_owned()).collect();
                Finish::from_word(word).ok_or_else(|| Wrong { word: word.to_owned(), known: known() })
            };
            let order: Result<Vec<Finish>, Wrong> = said.split(',').map(|word| read(word.trim())).collect();
            order.map(|order| base.precedence(order))
        }
        Some(Allowed::One(values)) if values.iter().any(|v| v == said) => Ok(said.to_owned()),
        // Nothing is no value here, so it is not offered.
        Some(Allowed::One(values)) => {
            Err(Wrong { word: said.to_owned(), known: values.into_iter().filter(|v| !v.is_empty()).collect() })
        }
        None => Err(Wrong { word: said.to_owned(), known: Vec::new() }),
    }
}

/// What somebody else wrote, short enough for a message and in one line.
pub fn shorten(text: &str) -> String {
    const MOST: usize = 40;
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let cut: String = text.chars().take(MOST).map(plain).collect();
    if cut.chars().count() < text.chars().count() { format!("{cut}…") } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_of_an_environment_holds_no_value() {
        let environment: Environment = [("KEY".to_owned(), "secret".to_owned())].into_iter().collect();
        assert_eq!(format!("{environment:?}"), "Environment(1 variables)");
        assert_eq!(environment.get("KEY"), Some("secret"));
    }

    #[test]
    fn a_long_value_is_cut_and_stays_in_one_line() {
        assert_eq!(shorten("a\nb"), "a\u{fffd}b");
        assert_eq!(shorten(&"x".repeat(41)), format!("{}…", "x".repeat(40)));
    }
}
