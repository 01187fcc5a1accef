//! Turns YAML parse errors into diagnostics for readers who do not know how a YAML parser works. Points at the mistake
//! itself: a parser notices an unclosed quote or bracket only lines later.

use super::yaml::{MAX_ALIASES, MAX_DEPTH, MAX_NODES, span_of};
use crate::diagnostics::{Code, Diagnostic, FileId, Span};
use serde_yaml::Error;
use serde_yaml::budget::BudgetBreach;

pub(crate) fn explain(error: &Error, file: FileId, text: &str) -> Diagnostic {
    let span = error.location().map_or(Span::new(file, 0, 0), |l| span_of(l, file, text));
    let syntax = |message: &str| Diagnostic::new(Code::Syntax, span, message);
    let limit_exceeded = |message: String| {
        Diagnostic::new(Code::LimitExceeded, span, message).help(format!(
            "a mapping file may have at most {MAX_NODES} values, {MAX_DEPTH} levels and {MAX_ALIASES} aliases"
        ))
    };
    match error {
        // An error inside an anchored value: point at the alias that uses it.
        Error::AliasError { error, .. } => Diagnostic { span, ..explain(error, file, text) },
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("?");
            Diagnostic::new(Code::DuplicateKey, span, format!("duplicate key `{key}` in this map"))
                .label("second occurrence")
                .help("remove one of them; duplicate keys are not merged")
        }
        Error::Budget { breach: limit, .. } => match limit {
            BudgetBreach::Documents { .. } => syntax("a second document starts here; a file must contain exactly one"),
            BudgetBreach::Depth { .. } => limit_exceeded(format!("more than {MAX_DEPTH} levels of maps and lists")),
            BudgetBreach::MergeKeys { .. } => syntax("`<<` merges maps silently, and is not supported")
                .help("write the keys, or use a fragment: `KEY: { $use: NAME }`"),
            BudgetBreach::Aliases { .. } => limit_exceeded(format!("more than {MAX_ALIASES} aliases")),
            _ => limit_exceeded(format!("more than {MAX_NODES} values")),
        },
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            limit_exceeded("the aliases expand to too many values".to_owned())
        }
        Error::MultipleDocuments { .. } => syntax("a second document starts here; a file must contain exactly one"),
        Error::UnknownAnchor { .. } => ScanFailure::new(text, span).unquoted_sign(),
        // The library points at the value after the tag.
        Error::UnsupportedTag { .. } => {
            let at = text[..span.start as usize].rfind('!').unwrap_or(span.start as usize);
            ScanFailure::new(text, Span::new(file, at, at)).unquoted_sign()
        }
        Error::Unexpected { .. } | Error::NullIntoString { .. } => ScanFailure::new(text, span).key_error(),
        Error::NonFiniteFloat { value, .. } => syntax(&format!("`{value}` is not a valid JSON number")),
        other => {
            let message = other.to_string();
            let reason = message.lines().next().and_then(|l| l.split(" at line ").next()).unwrap_or_default();
            ScanFailure::new(text, span).explain(reason.trim())
        }
    }
}

/// A text, and where the parser stopped.
struct ScanFailure<'t> {
    text: &'t str,
    at: usize,
    span: Span,
    /// The quotes and brackets that are open there.
    open: OpenDelimiters,
}

/// The quotes and brackets that are not closed yet at a position of a text.
#[derive(Default)]
struct OpenDelimiters {
    quote: Option<(usize, u8)>,
    brackets: Vec<(usize, u8)>,
    /// Start and end of the last quoted scalar.
    quoted: Option<(usize, usize)>,
}

impl<'t> ScanFailure<'t> {
    fn new(text: &'t str, span: Span) -> ScanFailure<'t> {
        let at = span.start as usize;
        ScanFailure { text, at, span, open: OpenDelimiters::at(text, at) }
    }

    /// The scanner's errors differ only in their texts, so they are recognised by words.
    fn explain(&self, reason: &str) -> Diagnostic {
        let mentions = |words: &[&str]| words.iter().any(|w| reason.contains(w));
        if let Some(colon) = self.colon_without_space() {
            return self.error_at(colon, 1, "a space is missing after this colon");
        }
        if let Some(dash) = self.dash_without_space() {
            return self.error_at(dash, 1, "a space is missing after this dash");
        }
        if mentions(&["tab"]) {
            let from = self.line_start(self.at);
            let tab = self.text[from..].find('\t').map_or(self.at, |n| from + n);
            return self.error_at(tab, 1, "tabs cannot be used for indentation").help("use spaces");
        }
        if mentions(&["escape", "hexadecimal", "surrogate"]) {
            let at = self.bad_escape().unwrap_or(self.at);
            return self
                .error_at(at, 2, "invalid escape sequence")
                .help("in single quotes, a backslash is an ordinary character");
        }
        if mentions(&["quote"]) {
            return self.quote_error();
        }
        if mentions(&["misplaced bracket"]) {
            return self.error_at(self.at, 1, "unmatched closing bracket");
        }
        if mentions(&["bracket", "flow", "illegal placement"]) {
            return self.bracket_error(reason);
        }
        if mentions(&["unexpected character", "anchor or alias", "mapping keys are not allowed"]) {
            return self.unquoted_sign();
        }
        if mentions(&["block scalar"]) {
            return self.error_at(self.at, 1, "unexpected text after `|` or `>` on its line").help(
                "`|` and `>` start a block of text on the next lines; to use them as characters, quote the whole value",
            );
        }
        if mentions(&["comments must"]) {
            return self.error_at(self.at, 1, "a space is missing before this `#`");
        }
        if mentions(&["simple key"]) {
            return self.line_error("this line is neither `key: value` nor a list item");
        }
        let earlier = &self.text[self.line_start(self.at)..self.at];
        if mentions(&["mapping values"]) && earlier.contains(": ") {
            return self
                .error_at(self.at, 1, "a second `: ` in one value")
                .help("text that contains `: ` needs quotes");
        }
        if mentions(&["block mapping"]) && earlier.trim_start().starts_with('-') {
            return self.line_error("unexpected list item among the keys of a map");
        }
        if mentions(&["block", "indent", "mapping values"]) {
            return self
                .line_error("inconsistent indentation")
                .help("all keys of a map, and all items of a list, must start in the same column");
        }
        self.error_at(self.at, self.span.end as usize - self.at, format!("invalid YAML: {reason}"))
    }

    fn error_at(&self, at: usize, length: usize, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Code::Syntax, Span::new(self.span.file, at, at + length), message)
    }

    /// An error about the current line.
    fn line_error(&self, message: &str) -> Diagnostic {
        let start = self.line_start(self.at);
        let line = self.text[start..].lines().next().unwrap_or_default();
        let indent = line.len() - line.trim_start().len();
        self.error_at(start + indent, without_comment(line).trim().len(), message)
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |n| n + 1)
    }

    /// `body:{ … }`, on the current line or on the one before, which the parser took for the start of a value.
    fn colon_without_space(&self) -> Option<usize> {
        let here = self.line_start(self.at);
        let before = self.line_start(here.saturating_sub(1));
        [here, before].into_iter().find_map(|start| {
            let line = self.text[start..].lines().next()?;
            let key = line.trim_start().trim_start_matches("- ");
            let colon = key.find(|c: char| !(c.is_alphanumeric() || "_.$-".contains(c)))?;
            let mut rest = key[colon..].chars();
            let no_space = rest.next() == Some(':') && rest.next().is_some_and(|c| !c.is_whitespace() && c != ':');
            (no_space && colon > 0).then(|| start + (line.len() - key.len()) + colon)
        })
    }

    /// `-{ … }`
    fn dash_without_space(&self) -> Option<usize> {
        let start = self.line_start(self.at);
        let line = self.text[start..].lines().next()?;
        let entry = line.trim_start();
        ["-{", "-[", "-\""].iter().any(|begin| entry.starts_with(begin)).then(|| start + line.len() - entry.len())
    }

    /// A quote that is closed by the next one, lines later, or never.
    fn quote_error(&self) -> Diagnostic {
        let in_placeholder = self.open.quoted.filter(|(open, close)| {
            let text = &self.text[*open..*close];
            text.rfind("{{") > text.rfind("}}") && self.line_start(*open) == self.line_start(self.at)
        });
        if let Some((_, close)) = in_placeholder.filter(|_| self.open.quote.is_none()) {
            return self
                .error_at(close, 1, "this quote ends the string inside a placeholder")
                .help("inside double quotes, use single quotes in placeholders: `\"{{ text | default('') }}\"`");
        }
        let multiline = self.open.quoted.filter(|(open, close)| self.text[*open..*close].contains('\n'));
        match self.open.quote.map(|(open, _)| open).or(multiline.map(|(open, _)| open)) {
            Some(open) => self.error_at(open, 1, "this quote is not closed on its line"),
            None if !self.open.brackets.is_empty() => self.error_at(self.at, 1, "a `,` is missing before this"),
            None => self
                .error_at(self.at, 1, "unexpected text after the closing quote")
                .help("quote the whole value; inside, write a quote as `\\\"`"),
        }
    }

    fn bad_escape(&self) -> Option<usize> {
        let rest = &self.text.as_bytes()[self.at..];
        let mut at = 0;
        while at + 1 < rest.len() {
            if rest[at] != b'\\' {
                at += 1;
                continue;
            }
            let hex = match rest[at + 1] {
                b'x' => 2,
                b'u' => 4,
                b'U' => 8,
                other if b"0abt\tnvfre \"/\\N_LP\r\n".contains(&other) => 0,
                _ => return Some(self.at + at),
            };
            let digits = rest.get(at + 2..at + 2 + hex).unwrap_or_default();
            if digits.len() < hex || !digits.iter().all(u8::is_ascii_hexdigit) {
                return Some(self.at + at);
            }
            at += 2 + hex;
        }
        None
    }

    fn bracket_error(&self, reason: &str) -> Diagnostic {
        // For these two errors the parser's position is the bracket itself.
        let quoted = |n: usize| reason.split('\'').nth(n).unwrap_or_default();
        if reason.starts_with("unclosed bracket") {
            return self.not_closed_error(self.at, quoted(1));
        }
        if reason.starts_with("mismatched bracket") {
            return self.error_at(self.at, 1, format!("this `{}` is closed by a `{}`", quoted(1), quoted(3)));
        }
        if let Some((open, sign)) = self.open.brackets.last()
            && self.line_start(*open) != self.line_start(self.at)
        {
            return self.not_closed_error(*open, &char::from(*sign).to_string());
        }
        let (before, after) = self.text.split_at(self.at);
        if after.starts_with("{{") {
            return self.unquoted_placeholder(self.at);
        }
        if after.starts_with('[') && before.ends_with(|c: char| !c.is_whitespace()) {
            let word = before.len() - before.rsplit([' ', ',', '{', '[']).next().map_or(0, str::len);
            let length = self.text[word..].find([' ', ',', '}']).unwrap_or(self.text.len() - word);
            let written = &self.text[word..word + length];
            // Quotes would not help: the directive would reject the index.
            if before[..word].trim_end().ends_with("$each:") {
                return self.error_at(word, length, "`$each` takes a variable, and a variable has no brackets").help(
                    "go over the list that contains the element: `$each: turn.choices`, and then over its lists",
                );
            }
            return self
                .error_at(word, length, "inside `{ … }`, text with brackets needs quotes")
                .label(format!("write \"{written}\""));
        }
        // A key without a comma before it: the parser notices at the colon.
        let word = before.len() - before.rsplit([' ', ',', '{', '[']).next().map_or(0, str::len);
        self.error_at(word, (self.at - word).max(1), "a `,` is missing before this")
    }

    fn not_closed_error(&self, at: usize, sign: &str) -> Diagnostic {
        let diagnostic = self.error_at(at, 1, format!("this `{sign}` is not closed"));
        let line = self.text[at..].lines().next().unwrap_or_default();
        match line.split_once(" #") {
            Some((_, comment)) if comment.contains(if sign == "{" { '}' } else { ']' }) => {
                diagnostic.help("` #` starts a comment; text that contains it needs quotes")
            }
            _ => diagnostic,
        }
    }

    /// A key that is not a scalar. Most often it is an unquoted placeholder.
    fn key_error(&self) -> Diagnostic {
        if self.text[..self.at].ends_with('{') && self.text[self.at..].starts_with('{') {
            return self.unquoted_placeholder(self.at - 1);
        }
        self.error_at(self.at, 1, "a key must be a string")
    }

    fn unquoted_placeholder(&self, at: usize) -> Diagnostic {
        let length = self.text[at..].lines().next().and_then(|l| l.find("}}")).map_or(2, |n| n + 2);
        Diagnostic::new(
            Code::BadPlaceholder,
            Span::new(self.span.file, at, at + length),
            "a value with a placeholder needs quotes",
        )
        .help("write `\"{{ … }}\"`: without quotes, YAML parses nested maps")
    }

    /// Text that begins with a sign that YAML reserves.
    fn unquoted_sign(&self) -> Diagnostic {
        let rest = &self.text[self.at..];
        let word = rest.split([' ', ',', '}', ']', '\r', '\n']).next().unwrap_or_default();
        // The colon after a key is not part of it.
        let word = word.strip_suffix(':').unwrap_or(word);
        match rest.chars().next() {
            Some('!') => self
                .error_at(self.at, word.len(), "text that begins with `!` needs quotes")
                .help("in expressions, write `not`"),
            Some(sign) if !sign.is_control() => self
                .error_at(self.at, word.len(), format!("text that begins with `{sign}` needs quotes"))
                .label(format!("write \"{word}\"")),
            _ => self.error_at(self.at, 1, "this character is not allowed in YAML"),
        }
    }
}

impl OpenDelimiters {
    /// Scans up to `end`. An approximation that is good enough for a message: block scalars are not recognised.
    fn at(text: &str, end: usize) -> OpenDelimiters {
        let bytes = &text.as_bytes()[..end];
        let mut open = OpenDelimiters::default();
        let mut i = 0;
        while i < bytes.len() {
            let starts = bytes[..i].last().is_none_or(|b| b" \n\t[{,".contains(b));
            match (open.quote, bytes[i]) {
                (Some((_, b'"')), b'\\') => i += 1,
                (Some((_, b'\'')), b'\'') if bytes.get(i + 1) == Some(&b'\'') => i += 1,
                (Some((from, quote)), b) if b == quote => {
                    open.quoted = Some((from, i));
                    open.quote = None;
                }
                (Some(_), _) => {}
                (None, b'#') if starts => i += bytes[i..].iter().take_while(|b| **b != b'\n').count(),
                (None, b @ (b'"' | b'\'')) if starts => open.quote = Some((i, b)),
                (None, b @ (b'{' | b'[')) if starts || !open.brackets.is_empty() => open.brackets.push((i, b)),
                (None, b'}' | b']') => {
                    open.brackets.pop();
                }
                (None, _) => {}
            }
            i += 1;
        }
        open
    }
}

/// The line up to its comment. A `#` between quotes begins none.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            // A line that is nothing but a comment is shown.
            (None, '#') if before == ' ' && !line[..at].trim().is_empty() => return &line[..at],
            (None | Some(_), _) => {}
        }
        before = c;
    }
    line
}
