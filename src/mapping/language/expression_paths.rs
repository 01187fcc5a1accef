//! The variables of an expression with what follows them: `usage['input']`, `turn.choices[0].text`, `turn.id[0:3]`. The
//! template engine does not report variables in slices, and does not know which fields a record has.

use super::expression_tokens::{KEYWORDS, Token, TokenAt};

/// A variable, and the steps after it.
#[derive(Debug, PartialEq, Eq)]
pub struct AccessedPath<'t> {
    pub path: &'t str,
    pub steps: Vec<Step<'t>>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Step<'t> {
    /// `.name` or `['name']`, with the offset of the name.
    Field { at: usize, name: &'t str },
    /// `[0]` or `[index]`.
    Element,
    /// `[0:3]`
    Slice,
}

pub fn accessed_paths<'t>(tokens: &[TokenAt<'t>]) -> Vec<AccessedPath<'t>> {
    let variables = (0..tokens.len()).filter_map(|i| Some((i, variable(tokens, i)?)));
    variables.map(|(i, path)| AccessedPath { path, steps: steps(tokens, i + 1) }).collect()
}

/// The word at `i`, if it is a variable: no keyword, number, filter, test, function or argument name.
fn variable<'t>(tokens: &[TokenAt<'t>], i: usize) -> Option<&'t str> {
    let Token::Word(word) = tokens[i].1 else { return None };
    let before = |n: usize| i.checked_sub(n).map(|j| tokens[j].1);
    let is_test = match before(1) {
        Some(Token::Word("is")) => true,
        Some(Token::Word("not")) => before(2) == Some(Token::Word("is")),
        _ => false,
    };
    let is_called = matches!(tokens.get(i + 1), Some((_, Token::Symbol("(" | "="))));
    let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_literal = matches!(word, "true" | "false" | "none" | "True" | "False" | "None");
    let other = KEYWORDS.contains(&word) || is_literal || is_test || is_called || before(1) == Some(Token::Symbol("|"));
    (is_name && !other).then_some(word)
}

/// The steps that begin at the token `i`.
fn steps<'t>(tokens: &[TokenAt<'t>], mut i: usize) -> Vec<Step<'t>> {
    let mut steps = Vec::new();
    while let Some((at, token)) = tokens.get(i) {
        match token {
            Token::Symbol("[") => {
                let Some(end) = closing_bracket(tokens, i) else { break };
                let inner = &tokens[i + 1..end];
                steps.push(match inner {
                    [(at, Token::Text(name))] => Step::Field { at: *at, name },
                    _ if is_slice(inner) => Step::Slice,
                    _ => Step::Element,
                });
                i = end + 1;
            }
            // Fields follow their variable directly: `a[0].b`.
            Token::Word(fields) if fields.starts_with('.') => {
                let mut offset = at + 1;
                for name in fields[1..].split('.') {
                    steps.push(Step::Field { at: offset, name });
                    offset += name.len() + 1;
                }
                i += 1;
            }
            Token::Word(_) | Token::Text(_) | Token::Symbol(_) => break,
        }
    }
    steps
}

fn closing_bracket(tokens: &[TokenAt], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().enumerate().skip(open).find_map(|(i, (_, token))| {
        match token {
            Token::Symbol("[") => depth += 1,
            Token::Symbol("]") => depth -= 1,
            Token::Word(_) | Token::Text(_) | Token::Symbol(_) => {}
        }
        (depth == 0).then_some(i)
    })
}

fn is_slice(inner: &[TokenAt]) -> bool {
    let mut depth = 0_usize;
    inner.iter().any(|(_, token)| {
        match token {
            Token::Symbol("[" | "(" | "{") => depth += 1,
            Token::Symbol("]" | ")" | "}") => depth = depth.saturating_sub(1),
            Token::Symbol(_) | Token::Word(_) | Token::Text(_) => {}
        }
        depth == 0 && *token == Token::Symbol(":")
    })
}

#[cfg(test)]
#[path = "../../../tests/unit/language_expression_paths.rs"]
mod tests;
