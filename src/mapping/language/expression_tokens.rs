//! Tokens of an expression, with offsets. The template engine has the parser. The checks use tokens to find calls,
//! comparisons and common mistakes, and to point at them.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'t> {
    /// `item.id`, `and`, `12`
    Word(&'t str),
    /// A quoted text, without its quotes.
    Text(&'t str),
    /// `==`, `(`, `|`
    Symbol(&'t str),
}

/// A token and its offset in the expression.
pub type TokenAt<'t> = (usize, Token<'t>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    Filter,
    Test,
    Function,
}

#[derive(Debug)]
pub struct Call<'t> {
    pub kind: CallKind,
    pub name: &'t str,
    pub at: usize,
    /// The first argument and its offset, if it is a quoted word.
    pub argument: Option<(usize, &'t str)>,
    /// The input of a filter, if it is a plain variable.
    pub input: Option<&'t str>,
}

/// `policy.usage == 'zeros'`
#[derive(Debug)]
pub struct Comparison<'t> {
    pub variable: &'t str,
    pub word: &'t str,
    /// Offset of the word.
    pub at: usize,
}

pub const KEYWORDS: &[&str] = &["and", "or", "not", "in", "if", "else", "is"];

pub fn tokens(text: &str) -> Vec<TokenAt<'_>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let length = match first {
            '\'' | '"' => {
                let inner = closing(&rest[1..], first);
                found.push((at + 1, Token::Text(&rest[1..1 + inner])));
                (inner + 2).min(rest.len())
            }
            c if in_word(c) => {
                let length = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
                found.push((at, Token::Word(&rest[..length])));
                length
            }
            c => {
                let two = ["==", "!=", "<=", ">=", "&&", "||", "//", "**", "{{", "}}"];
                let length = two.iter().find(|s| rest.starts_with(**s)).map_or(c.len_utf8(), |s| s.len());
                found.push((at, Token::Symbol(&rest[..length])));
                length
            }
        };
        rest = rest[length..].trim_start();
    }
    found
}

/// The offset of the closing quote.
fn closing(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at,
            _ => {}
        }
    }
    text.len()
}

/// `| name(…)`, `is name(…)` and `name(…)`.
pub fn calls<'t>(tokens: &[TokenAt<'t>]) -> Vec<Call<'t>> {
    let mut found = Vec::new();
    for (i, (at, token)) in tokens.iter().enumerate() {
        let Token::Word(name) = *token else { continue };
        if KEYWORDS.contains(&name) {
            continue;
        }
        let before = |n: usize| i.checked_sub(n).and_then(|j| tokens.get(j)).map(|(_, t)| *t);
        let opens = matches!(tokens.get(i + 1), Some((_, Token::Symbol("("))));
        let negated = before(1) == Some(Token::Word("not")) && before(2) == Some(Token::Word("is"));
        let kind = match before(1) {
            Some(Token::Symbol("|")) => CallKind::Filter,
            Some(Token::Word("is")) => CallKind::Test,
            _ if negated => CallKind::Test,
            _ if opens => CallKind::Function,
            _ => continue,
        };
        let argument = match tokens.get(i + 2) {
            Some((at, Token::Text(text))) if opens => Some((*at, *text)),
            _ => None,
        };
        let input = match before(2) {
            Some(Token::Word(input)) if kind == CallKind::Filter => Some(input),
            _ => None,
        };
        found.push(Call { kind, name, at: *at, argument, input });
    }
    found
}

pub fn comparisons<'t>(tokens: &[TokenAt<'t>]) -> Vec<Comparison<'t>> {
    let compares = |token: &Token| matches!(token, Token::Symbol("==" | "!="));
    tokens
        .windows(3)
        .filter_map(|three| match three {
            [(_, Token::Word(variable)), (_, symbol), (at, Token::Text(word))]
            | [(at, Token::Text(word)), (_, symbol), (_, Token::Word(variable))]
                if compares(symbol) =>
            {
                Some(Comparison { variable, word, at: *at })
            }
            _ => None,
        })
        .collect()
}

/// Whether the word is one side of a comparison.
pub fn is_compared(tokens: &[TokenAt], word: &str) -> bool {
    tokens.windows(2).any(|two| match two {
        [(_, Token::Symbol("==" | "!=")), (_, Token::Word(w))]
        | [(_, Token::Word(w)), (_, Token::Symbol("==" | "!="))] => *w == word,
        _ => false,
    })
}

/// A symbol of another language, and the message about it.
pub fn foreign_syntax<'t>(tokens: &[TokenAt<'t>]) -> Option<(usize, &'t str, &'static str)> {
    tokens.iter().enumerate().find_map(|(i, (at, token))| {
        let Token::Symbol(symbol) = *token else { return None };
        let of_filter = i >= 2 && matches!(tokens[i - 2].1, Token::Symbol("|"));
        let message = match symbol {
            ":" if of_filter => "put the arguments of a filter in parentheses: `prefix('x')`",
            "=" => "`=` is not supported: write `==` to compare",
            "&&" => "write `and` instead of `&&`",
            "||" => "write `or` instead of `||`",
            "!" => "write `not` instead of `!`",
            "?" => "write `a if condition else b` instead of `condition ? a : b`",
            "{{" | "}}" => "this is already an expression: remove the braces",
            _ => return None,
        };
        Some((*at, symbol, message))
    })
}
