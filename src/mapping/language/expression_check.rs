//! Checks expressions at load. The template engine would find an unknown filter, or a comparison that is never true,
//! only at run time or not at all.

use super::expression_paths::{AccessedPath, Step};
use super::expression_tokens;
use super::expression_tokens::{Call, CallKind, Token, TokenAt};
use super::filters::{FILTERS, TESTS};
use super::scope::VariableScope;
use super::table::Tables;
use crate::diagnostics::{Code, Diagnostic, Span, did_you_mean, or_list};
use crate::domain::variables::VariableType;
use crate::mapping::lint;
use crate::mapping::source::field_reader::LoadContext;
use minijinja::{Error, ErrorKind};

/// Words and operators of an expression. The template engine parses nested operators recursively, so that a longer
/// expression could exhaust the stack.
const MAX_TOKENS: usize = 200;
const MAX_BYTES: usize = 8 << 10;

/// Filters with a result that can be a multiple of their input.
const GROWING_FILTERS: &[&str] = &["json", "join", "replace"];
const MAX_GROWING_FILTERS: usize = 2;

/// The check of one expression.
pub(crate) struct ExpressionCheck<'e> {
    pub text: &'e str,
    /// Its placeholder or scalar.
    pub span: Span,
    pub tokens: Vec<TokenAt<'e>>,
    pub tables: &'e Tables,
    pub scope: &'e VariableScope,
    pub cx: LoadContext<'e>,
}

impl ExpressionCheck<'_> {
    /// Reports an expression with too many tokens.
    pub fn is_too_long(&self) -> bool {
        // A path such as `a[0][0]`, or `a.b.c`, is one word with many steps.
        let steps = self.text.bytes().filter(|b| matches!(b, b'.' | b'[')).count();
        let count = self.tokens.len().max(steps);
        if count > MAX_TOKENS {
            let message = format!("an expression can have at most {MAX_TOKENS} words and operators, not {count}");
            let help = "use a table for a list of cases, or a directive: `$if`, `$switch`";
            self.cx.add(Diagnostic::new(Code::BadExpression, self.span, message).help(help));
        }
        let is_long = self.text.len() > MAX_BYTES;
        if is_long && count <= MAX_TOKENS {
            let message = format!("an expression can have at most {MAX_BYTES} bytes, not {}", self.text.len());
            self.cx.error(Code::BadExpression, self.span, message);
        }
        count > MAX_TOKENS || is_long
    }

    /// Reports an expression with a result that can be many times as large as its inputs: a text or list that is
    /// repeated, or filters that multiply the size of their input again and again.
    pub fn multiplies_text(&self) -> bool {
        let operand = |token: Option<&TokenAt>| match token {
            Some((_, Token::Word(word))) => {
                let is_number = word.starts_with(|c: char| c.is_ascii_digit());
                // An unknown variable is reported later.
                is_number || matches!(self.scope.resolve(word), Ok(VariableType::Int | VariableType::Number) | Err(_))
            }
            _ => false,
        };
        let repeated = self.tokens.iter().enumerate().find(|(i, (_, token))| {
            matches!(token, Token::Symbol("*"))
                && !(operand(i.checked_sub(1).and_then(|before| self.tokens.get(before)))
                    && operand(self.tokens.get(i + 1)))
        });
        if let Some((_, (at, _))) = repeated {
            let message = "`*` multiplies numbers: a number or a numeric variable on each side";
            self.cx.error(Code::BadExpression, self.span_at(*at, "*"), message);
            return true;
        }
        let grows = |call: &&Call| call.kind == CallKind::Filter && GROWING_FILTERS.contains(&call.name);
        let calls = expression_tokens::calls(&self.tokens);
        if let Some(call) = calls.iter().filter(grows).nth(MAX_GROWING_FILTERS) {
            let names = GROWING_FILTERS.join("` and `");
            let message = format!("an expression can use the filters `{names}` at most {MAX_GROWING_FILTERS} times");
            self.cx.error(Code::BadExpression, self.span_at(call.at, call.name), message);
            return true;
        }
        false
    }

    /// The span of a word of the expression.
    fn span_at(&self, at: usize, word: &str) -> Span {
        // YAML escapes shift offsets. Then search for the word instead.
        match self.cx.sources.text(self.span).find(self.text) {
            Some(start) => {
                let start = self.span.start as usize + start + at;
                Span::new(self.span.file, start, start + word.len())
            }
            None => self.cx.sources.within(self.span, word),
        }
    }

    fn whole_span(&self) -> Span {
        self.span_at(0, self.text)
    }

    pub fn report_parse_error(&self, error: &Error) {
        if let Some((at, sign, sentence)) = expression_tokens::foreign_syntax(&self.tokens) {
            self.cx.error(Code::BadExpression, self.span_at(at, sign), sentence);
            return;
        }
        let reason = error.detail().map_or_else(|| error.to_string(), str::to_owned);
        let reason = match reason.as_str() {
            "unexpected input after expression" => "unexpected text after its end".to_owned(),
            other => match other.strip_prefix("unexpected end of input, expected ") {
                Some("expression") => "unexpected end".to_owned(),
                Some(expected) => format!("unexpected end, expected {expected}"),
                None => other.to_owned(),
            },
        };
        self.cx.error(Code::BadExpression, self.whole_span(), format!("invalid expression: {reason}"));
    }

    pub fn resolve_variable(&self, path: &str) -> Option<VariableType> {
        let unknown = match self.scope.resolve(path) {
            Ok(kind) => return Some(kind),
            Err(unknown) => unknown,
        };
        // `created` instead of `turn.created`: the field is right, but the record is missing.
        let field_of = |full: &&str| full.rsplit_once('.').is_some_and(|(of, field)| field == path && of != "policy");
        let near = unknown.candidates.iter().map(String::as_str).find(field_of).filter(|_| unknown.is_root);
        let near = near.or((path == "null").then_some("none"));
        let near = near.or_else(|| did_you_mean(path, unknown.candidates.iter().map(String::as_str)));
        let root = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
        if let Some(fragment) = &self.scope.fragment
            && unknown.is_root
            && near.is_none_or(|near| self.scope.is_local_variable(near) && !fragment.mentions(&root(near)))
        {
            // The fragment is valid elsewhere; here a variable that it reads is not in scope.
            let root = root(path);
            let message = format!(
                "the fragment `{}` reads `{root}`, which is not available in {}",
                fragment.name, self.scope.description
            );
            let help = format!("{}; `with: {{ {root}: … }}` passes another variable", unknown.available);
            let mut diagnostic = Diagnostic::new(Code::UnknownVariable, fragment.span, message).help(help);
            if let Some(near) = near {
                let near = near.split('.').next().unwrap_or_default();
                diagnostic = diagnostic.label(format!("`{near}` is available"));
            }
            self.cx.add(diagnostic);
            return None;
        }
        let is_path = |word: &str| word.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let at = self.tokens.iter().find(|(_, token)| matches!(token, Token::Word(word) if is_path(word)));
        let at = at.map_or_else(|| self.cx.sources.within(self.span, path), |(at, _)| self.span_at(*at, path));
        let (code, message) = match path.strip_prefix("policy.") {
            Some(policy) => (Code::UnknownPolicy, format!("unknown policy `{policy}`")),
            None => (Code::UnknownVariable, format!("unknown variable `{path}` in {}", self.scope.description)),
        };
        let mut diagnostic = Diagnostic::new(code, at, message);
        if let Some(near) = near {
            diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
        } else if code == Code::UnknownVariable && expression_tokens::is_compared(&self.tokens, path) {
            diagnostic = diagnostic.label(format!("write strings in quotes: '{path}'"));
        }
        self.cx.add(diagnostic.help(unknown.available));
        None
    }

    pub fn is_function(&self, name: &str) -> bool {
        expression_tokens::calls(&self.tokens).iter().any(|c| c.kind == CallKind::Function && c.name == name)
    }

    pub fn check_calls(&self) -> bool {
        let mut valid = true;
        for call in expression_tokens::calls(&self.tokens) {
            let at = self.span_at(call.at, call.name);
            let (known, noun): (&[(&str, &str)], &str) = match call.kind {
                CallKind::Filter => (FILTERS, "filter"),
                CallKind::Test => (TESTS, "test"),
                CallKind::Function => {
                    let message = format!(
                        "`{}(…)` is not supported: expressions have filters and tests, but no functions",
                        call.name
                    );
                    self.cx.unknown(Code::UnknownFilter, at, message, call.name, FILTERS.iter().map(|(name, _)| *name));
                    valid = false;
                    continue;
                }
            };
            if !known.iter().any(|(name, _)| *name == call.name) {
                let message = format!("unknown {noun} `{}`", call.name);
                self.cx.unknown(Code::UnknownFilter, at, message, call.name, known.iter().map(|(name, _)| *name));
                valid = false;
            } else if call.kind == CallKind::Filter {
                valid &= self.check_filter_input(&call) && (call.name != "table" || self.check_table(&call));
            }
        }
        valid
    }

    /// Reports a filter for texts or words on a variable that is neither: its result would be the notation of the
    /// template engine.
    fn check_filter_input(&self, call: &Call) -> bool {
        let Some(Ok(kind)) = call.input.map(|input| self.scope.resolve(input)) else { return true };
        let what = match call.name {
            "table" if is_structure(kind) || kind == VariableType::ScalarList => "a table looks up a word",
            "join" if is_structure(kind) => "`join` concatenates texts",
            _ => return true,
        };
        let input = call.input.unwrap_or_default();
        let message = format!("{what}, and `{input}` is {}", described(kind));
        let help = "use one of its fields, `$each`, or the filter `json`";
        self.cx.add(Diagnostic::new(Code::BadExpression, self.span_at(call.at, call.name), message).help(help));
        false
    }

    /// Reports `~` with a record or a list.
    pub fn check_operands(&self) -> bool {
        let word_at = |i: Option<usize>| match self.tokens.get(i?) {
            Some((_, Token::Word(word))) => Some(*word),
            _ => None,
        };
        let joins = self.tokens.iter().enumerate().filter(|(_, (_, token))| *token == Token::Symbol("~"));
        let mut operands = joins.flat_map(|(i, (at, _))| {
            let after = Some(i + 1).filter(|_| !matches!(self.tokens.get(i + 2), Some((_, Token::Symbol("[" | "|")))));
            [word_at(i.checked_sub(1)), word_at(after)].into_iter().flatten().map(|word| (*at, word))
        });
        let found = operands.find_map(|(at, word)| {
            let kind = self.scope.resolve(word).ok()?;
            (is_structure(kind) || kind == VariableType::ScalarList).then_some((at, word, kind))
        });
        let Some((at, word, kind)) = found else { return true };
        let message = format!("`~` concatenates texts, and `{word}` is {}", described(kind));
        let help = "use one of its fields, or the filters `json` or `join`";
        self.cx.add(Diagnostic::new(Code::BadExpression, self.span_at(at, "~"), message).help(help));
        false
    }

    /// Reports fields after an index, and names in brackets, that do not exist.
    pub fn check_steps(&self, accessed: &AccessedPath) -> bool {
        // An unknown variable is reported elsewhere.
        let Ok(mut kind) = self.scope.resolve(accessed.path) else { return true };
        let mut path = accessed.path.to_owned();
        for step in &accessed.steps {
            kind = match *step {
                Step::Slice => kind,
                Step::Element => {
                    path += "[…]";
                    match kind {
                        VariableType::List(record) => VariableType::Record(record),
                        VariableType::Text => VariableType::Text,
                        _ => VariableType::Json,
                    }
                }
                Step::Field { at, name } => match self.field_of(kind, &path, name, at) {
                    Some(kind) => kind,
                    None => return false,
                },
            };
            if let Step::Field { name, .. } = step {
                path = format!("{path}.{name}");
            }
        }
        true
    }

    fn field_of(&self, kind: VariableType, path: &str, name: &str, at: usize) -> Option<VariableType> {
        let fields: Vec<&str> = match kind {
            VariableType::Json => return Some(VariableType::Json),
            VariableType::Record(record) => match record.field(name) {
                Some(kind) => return Some(kind),
                None => record.fields().unwrap_or_default().iter().map(|(field, _)| *field).collect(),
            },
            _ => Vec::new(),
        };
        let message = format!("unknown variable `{path}.{name}` in {}", self.scope.description);
        let mut diagnostic = Diagnostic::new(Code::UnknownVariable, self.span_at(at, name), message);
        if let Some(near) = did_you_mean(name, fields.iter().copied()) {
            diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
        }
        let help = match fields.is_empty() {
            true => format!("`{path}` has no fields"),
            false => format!("fields of `{path}`: {}", fields.join(", ")),
        };
        self.cx.add(diagnostic.help(help));
        None
    }

    /// Reports too few or too many arguments. Other errors may depend on the values.
    pub fn has_valid_arguments(&self, error: ErrorKind) -> bool {
        let how = match error {
            ErrorKind::MissingArgument => "too few",
            ErrorKind::TooManyArguments => "too many",
            _ => return true,
        };
        let called: Vec<&str> = expression_tokens::calls(&self.tokens).iter().map(|c| c.name).collect();
        let message = format!("{how} arguments for {}", or_list(called));
        self.cx.error(Code::BadExpression, self.whole_span(), message);
        false
    }

    fn check_table(&self, call: &Call) -> bool {
        let cx = self.cx;
        let Some((at, name)) = call.argument else {
            let message = "`table` needs the name of a table in quotes: `table('name')`";
            cx.error(Code::UnknownTable, self.span_at(call.at, call.name), message);
            return false;
        };
        let Some(table) = self.tables.get(name) else {
            let message = format!("unknown table `{name}`");
            cx.unknown(Code::UnknownTable, self.span_at(at, name), message, name, self.tables.names());
            return false;
        };
        let input = call.input.unwrap_or_default();
        let Some(words) = self.scope.closed_values(input) else {
            if !self.has_default(call) {
                lint::table_in_expression(table, input, cx);
            }
            return true;
        };
        // A typo in a row: the intended word has no row or gets the default.
        let rowless: Vec<&str> = words.iter().copied().filter(|w| !table.contains(w)).chain(["default"]).collect();
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
        let message = format!("the table `{name}` has no row for {}, which `{input}` can be", missing.join(", "));
        let help = "add a row for each, or `default:` for the rest";
        cx.add(Diagnostic::new(Code::PartialTable, table.span, message).help(help));
        false
    }

    /// Whether `| default(…)` follows this look-up.
    fn has_default(&self, call: &Call) -> bool {
        let mut after = self.tokens.iter().skip_while(|(at, _)| *at <= call.at).map(|(_, token)| *token);
        let closes = after.by_ref().any(|token| token == Token::Symbol(")"));
        closes && after.next() == Some(Token::Symbol("|")) && after.next() == Some(Token::Word("default"))
    }

    /// Reports comparisons with a word that is not a possible value of the variable: they are never true.
    pub fn check_comparisons(&self) -> bool {
        let mut valid = true;
        for comparison in expression_tokens::comparisons(&self.tokens) {
            let Some(words) = self.scope.closed_values(comparison.variable) else { continue };
            if !words.contains(&comparison.word) {
                let (variable, word) = (comparison.variable, comparison.word);
                let code = match variable.starts_with("policy.") {
                    true => Code::BadPolicyValue,
                    false => Code::UnknownValue,
                };
                let message = format!("`{variable}` is never `{word}`");
                self.cx.unknown(code, self.span_at(comparison.at, word), message, word, words);
                valid = false;
            }
        }
        valid
    }
}

fn is_structure(kind: VariableType) -> bool {
    matches!(kind, VariableType::Record(_) | VariableType::List(_))
}

fn described(kind: VariableType) -> &'static str {
    match kind {
        VariableType::List(_) => "a list of records",
        VariableType::ScalarList => "a list",
        _ => "a record",
    }
}
