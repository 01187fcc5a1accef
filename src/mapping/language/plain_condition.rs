//! Plain conditions: variables, and comparisons of variables with constants, joined by `and`, `or` and `not`; and plain
//! choices between two values by such a condition. They are evaluated without the template engine, with the same result,
//! except that a chosen number or text stays exactly as it is.

use super::expression::VariablePath;
use super::expression_tokens::{Token, TokenAt};
use crate::domain::Tree;
use crate::domain::variables::FieldName;
use std::cmp::Ordering;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum PlainCondition {
    IsTrue(VariablePath),
    /// `choice.calls[0].legacy`
    IsElementTrue {
        list: VariablePath,
        at: usize,
        field: Option<(Arc<str>, FieldName)>,
    },
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

/// `a if condition else b`. Without `else` it is null.
#[derive(Clone, Debug)]
pub struct PlainChoice {
    pub condition: PlainCondition,
    pub then: PlainValue,
    pub otherwise: PlainValue,
}

#[derive(Clone, Debug)]
pub enum PlainValue {
    Variable(VariablePath),
    Constant(Tree),
}

impl PlainChoice {
    /// `None` if the expression has anything else.
    pub fn parse(tokens: &[TokenAt]) -> Option<PlainChoice> {
        let ((_, then), rest) = tokens.split_first()?;
        let (condition, otherwise) = match rest {
            [(_, Token::Word("if")), condition @ .., (_, Token::Word("else")), (_, otherwise)] => {
                (condition, PlainValue::parse(*otherwise)?)
            }
            [(_, Token::Word("if")), condition @ ..] => (condition, PlainValue::Constant(Tree::Null)),
            _ => return None,
        };
        let condition = PlainCondition::parse(condition)?;
        Some(PlainChoice { condition, then: PlainValue::parse(*then)?, otherwise })
    }
}

impl PlainValue {
    fn parse(token: Token) -> Option<PlainValue> {
        let constant = match token {
            Token::Text(text) => Tree::from(plain_text(text)?),
            Token::Word("none" | "None") => Tree::Null,
            Token::Word("true" | "True") => Tree::Bool(true),
            Token::Word("false" | "False") => Tree::Bool(false),
            Token::Word(word) => match plain_number(word) {
                Some(number) => Tree::from(number),
                None => return VariablePath::parse(word).map(PlainValue::Variable),
            },
            Token::Symbol(_) => return None,
        };
        Some(PlainValue::Constant(constant))
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
            Some(Token::Symbol("[")) => {
                self.next();
                self.element(path)?
            }
            _ => PlainCondition::IsTrue(path),
        };
        self.is_at_end_of_operand().then_some(condition)
    }

    /// After the opening bracket.
    fn element(&mut self, list: VariablePath) -> Option<PlainCondition> {
        let Token::Word(number) = self.next()? else { return None };
        let at = usize::try_from(plain_number(number)?).ok()?;
        if !self.take(Token::Symbol("]")) {
            return None;
        }
        let field = match self.tokens.first().map(|(_, token)| *token) {
            Some(Token::Word(word)) if word.starts_with('.') => {
                self.next();
                let name = word.strip_prefix('.').filter(|name| !name.contains('.'))?;
                Some((Arc::from(name), FieldName::find(name)))
            }
            _ => None,
        };
        Some(PlainCondition::IsElementTrue { list, at, field })
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
        (Token::Text(text), "==") => Some(PlainCondition::HasText(path, plain_text(text)?.into())),
        (Token::Text(text), "!=") => {
            Some(PlainCondition::Not(Box::new(PlainCondition::HasText(path, plain_text(text)?.into()))))
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
            Some(PlainCondition::Compares(path, orderings, plain_number(number)?))
        }
        (Token::Text(_) | Token::Symbol(_), _) => None,
    }
}

/// A text without escapes.
fn plain_text(text: &str) -> Option<&str> {
    (!text.contains('\\')).then_some(text)
}

fn plain_number(word: &str) -> Option<i64> {
    let is_plain = word.len() <= 18 && word.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| word.parse().ok()).flatten()
}
