//! What is wrong with an expression, before it ever runs: the engine finds an unknown filter or a word that a variable
//! never is only when it runs into it, or not at all.

use super::expression_tokens;
use super::expression_tokens::{Call, CallKind, Placed, Token};
use super::scope::Env;
use super::table::Tables;
use crate::diagnostics::{Code, Diagnostic, Span, did_you_mean, one_of};
use crate::domain::variables::Type;
use crate::mapping::lint;
use crate::mapping::source::field_reader::Cx;
use minijinja::{Error, ErrorKind};

/// The closed lists of what an expression may call.
const FILTERS: &[&str] =
    &["default", "table", "prefix", "lower", "upper", "trim", "length", "json", "join", "first", "last"];
const TESTS: &[&str] = &["none", "startingwith", "endingwith"];

/// One expression at one place.
pub(crate) struct Check<'e> {
    pub text: &'e str,
    /// The hole or the scalar that it stands in.
    pub span: Span,
    pub tokens: Vec<Placed<'e>>,
    pub tables: &'e Tables,
    pub env: &'e Env,
    pub cx: Cx<'e>,
}

impl Check<'_> {
    /// Where a word of the expression stands in its file.
    fn at(&self, at: usize, word: &str) -> Span {
        // An escape in the YAML moves everything behind it; then the word is looked for.
        match self.cx.sources.text(self.span).find(self.text) {
            Some(start) => {
                let start = self.span.start as usize + start + at;
                Span::new(self.span.file, start, start + word.len())
            }
            None => self.cx.sources.within(self.span, word),
        }
    }

    fn whole(&self) -> Span {
        self.at(0, self.text)
    }

    pub fn does_not_parse(&self, error: &Error) {
        if let Some((at, sign, sentence)) = expression_tokens::foreign(&self.tokens) {
            self.cx.error(Code::BadExpression, self.at(at, sign), sentence);
            return;
        }
        let reason = error.detail().map_or_else(|| error.to_string(), str::to_owned);
        let reason = match reason.as_str() {
            "unexpected input after expression" => "it goes on after its end".to_owned(),
            other => match other.strip_prefix("unexpected end of input, expected ") {
                Some("expression") => "it breaks off".to_owned(),
                Some(expected) => format!("it breaks off where {expected} should follow"),
                None => other.to_owned(),
            },
        };
        self.cx.error(Code::BadExpression, self.whole(), format!("this expression cannot be read: {reason}"));
    }

    pub fn variable(&self, path: &str) -> Option<Type> {
        let unknown = match self.env.resolve(path) {
            Ok(kind) => return Some(kind),
            Err(unknown) => unknown,
        };
        // `created` for `turn.created`: the word is right, and what it belongs to is missing.
        let field_of = |full: &&str| full.rsplit_once('.').is_some_and(|(of, field)| field == path && of != "policy");
        let near = unknown.near.iter().map(String::as_str).find(field_of).filter(|_| unknown.root);
        let near = near.or_else(|| did_you_mean(path, unknown.near.iter().map(String::as_str)));
        let root = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
        if let Some(part) = &self.env.part
            && unknown.root
            && near.is_none_or(|near| self.env.is_named_here(near) && !part.speaks_of(&root(near)))
        {
            // The part is right where it has what it reads; here it has not.
            let root = root(path);
            let message = format!("the part `{}` reads `{root}`, which is not in {}", part.name, self.env.place);
            let help = format!("{}; `with: {{ {root}: … }}` gives it another one", unknown.offered);
            let mut diagnostic = Diagnostic::new(Code::UnknownVariable, part.span, message).help(help);
            if let Some(near) = near {
                let near = near.split('.').next().unwrap_or_default();
                diagnostic = diagnostic.label(format!("there is `{near}` instead"));
            }
            self.cx.add(diagnostic);
            return None;
        }
        let is_it = |word: &str| word.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let at = self.tokens.iter().find(|(_, token)| matches!(token, Token::Word(word) if is_it(word)));
        let at = at.map_or_else(|| self.cx.sources.within(self.span, path), |(at, _)| self.at(*at, path));
        let (code, message) = match path.strip_prefix("policy.") {
            Some(policy) => (Code::UnknownPolicy, format!("no policy is called `{policy}`")),
            None => (Code::UnknownVariable, format!("no variable `{path}` in {}", self.env.place)),
        };
        let mut diagnostic = Diagnostic::new(code, at, message);
        if let Some(near) = near {
            diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
        } else if expression_tokens::is_compared(&self.tokens, path) {
            diagnostic = diagnostic.label(format!("a word is in quotes: '{path}'"));
        }
        self.cx.add(diagnostic.help(unknown.offered));
        None
    }

    pub fn is_function(&self, name: &str) -> bool {
        expression_tokens::calls(&self.tokens).iter().any(|c| c.kind == CallKind::Function && c.name == name)
    }

    pub fn calls(&self) -> bool {
        let mut sound = true;
        for call in expression_tokens::calls(&self.tokens) {
            let at = self.at(call.at, call.name);
            let (known, noun): (&[&str], &str) = match call.kind {
                CallKind::Filter => (FILTERS, "filter"),
                CallKind::Test => (TESTS, "test"),
                CallKind::Function => {
                    let message = format!("`{}(…)` is a function, and there are none", call.name);
                    self.cx.unknown(Code::UnknownFilter, at, message, call.name, FILTERS.iter().copied());
                    sound = false;
                    continue;
                }
            };
            if !known.contains(&call.name) {
                let message = format!("no {noun} is called `{}`", call.name);
                self.cx.unknown(Code::UnknownFilter, at, message, call.name, known.iter().copied());
                sound = false;
            } else if call.name == "table" && call.kind == CallKind::Filter {
                sound &= self.table(&call);
            }
        }
        sound
    }

    /// Too few or too many arguments; anything else may be a matter of the values.
    pub fn is_called_well(&self, error: &Error) -> bool {
        let how = match error.kind() {
            ErrorKind::MissingArgument => "too few",
            ErrorKind::TooManyArguments => "too many",
            _ => return true,
        };
        let called: Vec<&str> = expression_tokens::calls(&self.tokens).iter().map(|c| c.name).collect();
        let message = format!("{how} arguments for {}", one_of(called));
        self.cx.error(Code::BadExpression, self.whole(), message);
        false
    }

    fn table(&self, call: &Call) -> bool {
        let cx = self.cx;
        let Some((at, name)) = call.argument else {
            let message = "`table` wants the name of a table, in quotes: `table('name')`";
            cx.error(Code::UnknownTable, self.at(call.at, call.name), message);
            return false;
        };
        let Some(table) = self.tables.get(name) else {
            let message = format!("no table is called `{name}`");
            cx.unknown(Code::UnknownTable, self.at(at, name), message, name, self.tables.names());
            return false;
        };
        let input = call.input.unwrap_or_default();
        let Some(words) = self.env.words(input) else {
            if !self.has_default(call) {
                lint::table_in_expression(table, input, cx);
            }
            return true;
        };
        // A slip in a row leaves a word without its row, or under the default.
        let rowless: Vec<&str> = words.iter().copied().filter(|w| !table.names(w)).chain(["default"]).collect();
        for (row, span) in table.rows().filter(|(row, _)| !words.contains(row)) {
            if let Some(near) = did_you_mean(row, rowless.iter().copied()) {
                let message = format!("`{input}` is never `{row}`");
                let label = format!("did you mean `{near}`?");
                cx.add(Diagnostic::new(Code::UnknownValue, span, message).label(label));
                return false;
            }
        }
        let missing = table.missing(&words);
        if missing.is_empty() {
            return true;
        }
        let message = format!("the table `{name}` lacks {}, and `{input}` can be that", missing.join(", "));
        let help = "add a row for each, or `default:` for the rest";
        cx.add(Diagnostic::new(Code::PartialTable, table.span, message).help(help));
        false
    }

    /// Does `| default(…)` follow this look-up?
    fn has_default(&self, call: &Call) -> bool {
        let mut after = self.tokens.iter().skip_while(|(at, _)| *at <= call.at).map(|(_, token)| *token);
        let closes = after.by_ref().any(|token| token == Token::Sign(")"));
        closes && after.next() == Some(Token::Sign("|")) && after.next() == Some(Token::Word("default"))
    }

    /// A comparison with a word that the variable never is holds never, and nobody notices.
    pub fn comparisons(&self) -> bool {
        let mut sound = true;
        for comparison in expression_tokens::comparisons(&self.tokens) {
            let Some(words) = self.env.words(comparison.variable) else { continue };
            if !words.contains(&comparison.word) {
                let (variable, word) = (comparison.variable, comparison.word);
                let code = match variable.starts_with("policy.") {
                    true => Code::BadPolicyValue,
                    false => Code::UnknownValue,
                };
                let message = format!("`{variable}` is never `{word}`");
                self.cx.unknown(code, self.at(comparison.at, word), message, word, words);
                sound = false;
            }
        }
        sound
    }
}
