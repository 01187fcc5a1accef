//! Plain conditions: variables, and comparisons of variables with constants, joined by `and`, `or` and `not`. They are
//! evaluated without the template engine, with the same result.

use super::expression::VariablePath;
use super::expression_tokens::{Token, TokenAt};
use std::cmp::Ordering;

#[derive(Clone, Debug)]
pub enum PlainCondition {
    IsTrue(VariablePath),
    IsNone(VariablePath),
    /// The variable has this text.
    HasText(VariablePath, Box<str>),
    /// How the variable compares with the number.
    Compares(VariablePath, &'static [Ordering], i64),
    Not(Box<PlainCondition>),
    And(Box<PlainCondition>, Box<PlainCondition>),
    Or(Box<PlainCondition>, Box<PlainCondition>),
}

impl PlainCondition {
    /// `None` if the expression has anything else.
    pub fn parse(tokens: &[TokenAt]) -> Option<PlainCondition> {
        let mut parser = Parser { tokens };
        let condition = parser.or()?;
        parser.tokens.is_empty().then_some(condition)
    }
}

struct Parser<'t, 's> {
    tokens: &'t [TokenAt<'s>],
}

impl<'s> Parser<'_, 's> {
    fn or(&mut self) -> Option<PlainCondition> {
        let mut left = self.and()?;
        while self.take(Token::Word("or")) {
            left = PlainCondition::Or(Box::new(left), Box::new(self.and()?));
        }
        Some(left)
    }

    fn and(&mut self) -> Option<PlainCondition> {
        let mut left = self.not()?;
        while self.take(Token::Word("and")) {
            left = PlainCondition::And(Box::new(left), Box::new(self.not()?));
        }
        Some(left)
    }

    fn not(&mut self) -> Option<PlainCondition> {
        if self.take(Token::Word("not")) {
            return Some(PlainCondition::Not(Box::new(self.not()?)));
        }
        if self.take(Token::Symbol("(")) {
            let inner = self.or()?;
            // After a parenthesis, the rest could compare its value.
            return (self.take(Token::Symbol(")")) && self.is_at_end_of_operand()).then_some(inner);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Option<PlainCondition> {
        let Token::Word(word) = self.next()? else { return None };
        let path = VariablePath::parse(word)?;
        let condition = match self.tokens.first().map(|(_, token)| *token) {
            Some(Token::Symbol(symbol @ ("==" | "!=" | "<" | ">" | "<=" | ">="))) => {
                self.next();
                compared(path, symbol, self.next()?)?
            }
            Some(Token::Word("is")) => {
                self.next();
                let negated = self.take(Token::Word("not"));
                let is_none = self.take(Token::Word("none")).then_some(PlainCondition::IsNone(path))?;
                if negated { PlainCondition::Not(Box::new(is_none)) } else { is_none }
            }
            _ => PlainCondition::IsTrue(path),
        };
        self.is_at_end_of_operand().then_some(condition)
    }

    fn is_at_end_of_operand(&self) -> bool {
        let next = self.tokens.first().map(|(_, token)| *token);
        matches!(next, None | Some(Token::Word("and" | "or") | Token::Symbol(")")))
    }

    fn next(&mut self) -> Option<Token<'s>> {
        let ((_, token), rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(*token)
    }

    fn take(&mut self, token: Token) -> bool {
        let found = self.tokens.first().is_some_and(|(_, next)| *next == token);
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }
}

fn compared(path: VariablePath, symbol: &str, constant: Token) -> Option<PlainCondition> {
    use Ordering::{Equal, Greater, Less};
    match (constant, symbol) {
        (Token::Text(text), "==") if !text.contains('\\') => Some(PlainCondition::HasText(path, text.into())),
        (Token::Text(text), "!=") if !text.contains('\\') => {
            Some(PlainCondition::Not(Box::new(PlainCondition::HasText(path, text.into()))))
        }
        (Token::Word(number), _) => {
            let orderings: &[Ordering] = match symbol {
                "==" => &[Equal],
                "!=" => &[Less, Greater],
                "<" => &[Less],
                ">" => &[Greater],
                "<=" => &[Less, Equal],
                ">=" => &[Greater, Equal],
                _ => return None,
            };
            let is_plain = number.len() <= 18 && number.bytes().all(|byte| byte.is_ascii_digit());
            let number = is_plain.then(|| number.parse().ok()).flatten()?;
            Some(PlainCondition::Compares(path, orderings, number))
        }
        (Token::Text(_) | Token::Symbol(_), _) => None,
    }
}
