//! Numbers that keep their exact spelling.

use std::fmt;

/// A number with its exact spelling: an `i64`, or the token.
///
/// `Token` contains the text of one JSON number. The parser uses `Int` only for tokens that the `i64` formats back to,
/// so `1.0`, `1e3`, `-0` and twenty-digit ids are written as they were read.
#[derive(Clone, Debug)]
pub enum Num {
    /// An integer that fits into 64 bits.
    Int(i64),
    /// Any other number, as it was written.
    Token(Box<str>),
}

/// Error: the float is infinite or NaN, which JSON cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFinite;

impl Num {
    /// The number of a JSON token. The caller guarantees that the token is valid.
    pub(crate) fn from_token(token: &str) -> Num {
        if is_plain_integer(token)
            && let Ok(int) = token.parse()
        {
            return Num::Int(int);
        }
        Num::Token(token.into())
    }

    /// The same for a token without fraction and exponent.
    pub(crate) fn from_integer(token: &str) -> Num {
        let (digits, sign) = token.strip_prefix('-').map_or((token, 1), |digits| (digits, -1));
        // Eighteen digits always fit.
        if digits.len() > 18 || token == "-0" {
            return Num::from_token(token);
        }
        Num::Int(sign * digits.bytes().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
    }

    /// The value of an integer token that fits; `None` for `1.0` and `-0`.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Num::Int(int) => Some(*int),
            Num::Token(token) => is_plain_integer(token).then(|| token.parse().ok()).flatten(),
        }
    }

    /// Like [`as_i64`](Num::as_i64), for non-negative numbers.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Num::Int(int) => u64::try_from(*int).ok(),
            Num::Token(token) => is_plain_integer(token).then(|| token.parse().ok()).flatten(),
        }
    }

    /// The value of a whole number that fits, regardless of its spelling: also of `1.0` and `1e3`.
    pub fn as_whole(&self) -> Option<i64> {
        match self {
            Num::Int(int) => Some(*int),
            Num::Token(token) => Decimal::of(token)?.as_i64(),
        }
    }

    /// The nearest float; `None` if it would be infinite.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Num::Int(int) => Some(*int as f64),
            Num::Token(token) => token.parse().ok().filter(|float: &f64| float.is_finite()),
        }
    }

    /// True if the value is an integer, regardless of spelling: `1.0` and `10e-1` are, `1.5` is not.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Num::Int(_) => true,
            Num::Token(token) => Decimal::of(token).is_some_and(|decimal| decimal.exponent >= 0),
        }
    }
}

impl PartialEq for Num {
    /// By exact value: `1`, `1.0` and `10e-1` are equal, and nothing is rounded. Numbers with exponents beyond `i64`
    /// are compared by spelling.
    fn eq(&self, other: &Num) -> bool {
        match (self, other) {
            (Num::Int(left), Num::Int(right)) => left == right,
            (Num::Token(left), Num::Token(right)) => left == right || same_value(left, right),
            (Num::Int(int), Num::Token(token)) | (Num::Token(token), Num::Int(int)) => {
                same_value(&int.to_string(), token)
            }
        }
    }
}

impl Eq for Num {}

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Num::Int(int) => fmt::Display::fmt(int, f),
            Num::Token(token) => f.write_str(token),
        }
    }
}

impl From<i64> for Num {
    fn from(int: i64) -> Num {
        Num::Int(int)
    }
}

impl From<u64> for Num {
    fn from(int: u64) -> Num {
        i64::try_from(int).map_or_else(|_| Num::Token(int.to_string().into()), Num::Int)
    }
}

impl TryFrom<f64> for Num {
    type Error = NotFinite;

    /// The shortest token that parses to the same float; `1.0` stays `1.0`.
    fn try_from(float: f64) -> Result<Num, NotFinite> {
        serde_json::Number::from_f64(float).map(|number| Num::Token(number.to_string().into())).ok_or(NotFinite)
    }
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON cannot represent infinity or NaN")
    }
}

impl std::error::Error for NotFinite {}

/// A token in canonical form: digits without leading and trailing zeros, times a power of ten. Zero has no digits, no
/// sign and exponent 0.
#[derive(PartialEq)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// `None` if the exponent does not fit an `i64`.
    fn of(token: &str) -> Option<Decimal> {
        let (negative, magnitude) = match token.strip_prefix('-') {
            Some(magnitude) => (true, magnitude),
            None => (false, token),
        };
        let (mantissa, power) = match magnitude.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, power),
            None => (magnitude, "0"),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let written = whole.bytes().chain(fraction.bytes());
        let mut digits: Vec<u8> = written.skip_while(|digit| *digit == b'0').collect();
        let significant = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        if significant == 0 {
            return Some(Decimal { negative: false, digits: Vec::new(), exponent: 0 });
        }
        let dropped = digits.len() - significant;
        digits.truncate(significant);
        let power: i64 = power.parse().ok()?;
        let exponent =
            power.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(i64::try_from(dropped).ok()?)?;
        Some(Decimal { negative, digits, exponent })
    }
}

impl Decimal {
    /// `None` if it has a fraction or does not fit.
    fn as_i64(&self) -> Option<i64> {
        let power = 10i64.checked_pow(u32::try_from(self.exponent).ok()?)?;
        let sign = if self.negative { -1 } else { 1 };
        let add = |value: i64, digit: &u8| value.checked_mul(10)?.checked_add(sign * i64::from(digit - b'0'));
        self.digits.iter().try_fold(0, add)?.checked_mul(power)
    }
}

/// True for a token of digits with an optional sign, except `-0`, which other JSON implementations treat as a float.
fn is_plain_integer(token: &str) -> bool {
    token != "-0" && !token.contains(['.', 'e', 'E'])
}

fn same_value(left: &str, right: &str) -> bool {
    match (Decimal::of(left), Decimal::of(right)) {
        (Some(left), Some(right)) => left == right,
        (None, _) | (_, None) => left == right,
    }
}
