//! Which policies hold, and who said so: built-in < dialect < profile.

use super::fields::{Cx, constant};
use super::read::scalar_text;
use super::yaml::{Entry, Kind, Node};
use crate::canon::policy::{BUILT_IN, PolicySpec};
use crate::canon::{Finish, Policies};
use crate::diag::{Code, Span};

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
    pub span: Span,
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
            let Some(first) = values.first() else {
                cx.wrong_type(&entry.value, "the list of its values, the default first");
                continue;
            };
            resolved.policies.set(&entry.key, first);
            resolved.own.push(OwnPolicy { name: entry.key.clone(), values });
        }
        for entry in settings {
            resolved.set(&entry.key, entry.key_span, &entry.value, cx);
        }
        resolved
    }

    /// A profile sets a policy for all dialects, or a map gives it for some.
    pub fn profile(&mut self, dialect: &str, dialects: &[&str], settings: &[Entry], cx: Cx) {
        for entry in settings {
            match &entry.value.kind {
                Kind::Map(by_dialect) => {
                    for one in by_dialect {
                        if !dialects.contains(&one.key.as_str()) {
                            let message = format!("no dialect is called `{}`", one.key);
                            cx.unknown(
                                Code::UnknownReference,
                                one.key_span,
                                message,
                                &one.key,
                                dialects.iter().copied(),
                            );
                        } else if one.key == dialect {
                            self.set(&entry.key, entry.key_span, &one.value, cx);
                        }
                    }
                }
                _ => self.set(&entry.key, entry.key_span, &entry.value, cx),
            }
        }
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

    fn set(&mut self, name: &str, name_span: Span, node: &Node, cx: Cx) {
        let own = self.own.iter().find(|p| p.name == name);
        let built_in = BUILT_IN.iter().find(|p| p.name == name);
        let values: Vec<String> = match (own, built_in) {
            (Some(own), _) => own.values.clone(),
            (None, Some(PolicySpec { list: true, .. })) => return self.set_precedence(name, node, cx),
            (None, Some(spec)) => spec.values.iter().map(|v| (*v).to_owned()).collect(),
            (None, None) => {
                let names = self.names();
                let message = format!("no policy is called `{name}`");
                cx.unknown(Code::UnknownPolicy, name_span, message, name, names.iter().map(String::as_str));
                return;
            }
        };
        let said = scalar_text(&constant(node)).unwrap_or_default();
        if !values.contains(&said) {
            let message = format!("`{name}` cannot be `{said}`");
            cx.unknown(Code::BadPolicyValue, node.span, message, &said, values.iter().map(String::as_str));
            return;
        }
        self.policies.set(name, &said);
        self.settings.push(Setting { name: name.to_owned(), value: said, span: node.span });
    }

    /// `finish_precedence`: a list of finishes, the strongest first. What it leaves out keeps its built-in order after.
    fn set_precedence(&mut self, name: &str, node: &Node, cx: Cx) {
        let Kind::List(items) = &node.kind else {
            cx.wrong_type(node, "a list, the strongest first");
            return;
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
        let rest: Vec<Finish> =
            self.policies.finish_precedence.iter().copied().filter(|f| !order.contains(f)).collect();
        order.extend(rest);
        let value = order.iter().map(|f| f.word()).collect::<Vec<_>>().join(", ");
        self.policies.finish_precedence = order;
        self.settings.push(Setting { name: name.to_owned(), value, span: node.span });
    }
}
