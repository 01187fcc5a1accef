//! The filters and tests of expressions: their names with their meaning, and what they do.

use super::jinja_values::{from_jinja, to_jinja};
use super::table::Tables;
use crate::domain::Tree;
use crate::domain::emit::scalar_text;
use minijinja::{Environment, Error, ErrorKind, Value};

/// The filters that an expression may use, with their meaning.
pub const FILTERS: &[(&str, &str)] = &[
    ("default", "`a | default(b)`: `b` if the value is null"),
    ("table", "`a | table('NAME')`: the value of a row of a table"),
    ("prefix", "`a | prefix('x-')`: the text with this text before it, if it does not begin with it"),
    ("lower", "the text in lower case"),
    ("upper", "the text in upper case"),
    ("trim", "the text without white space at its ends"),
    ("length", "the number of characters, elements or members"),
    ("json", "the value as JSON text"),
    ("parse_json", "the value of a JSON text; null if it is not JSON"),
    ("join", "`a | join(', ')`: the elements of a list as one text"),
    ("first", "the first element"),
    ("last", "the last element"),
    ("rfc3339", "a time in seconds as a date and time: `2026-01-31T12:00:00Z`"),
    ("split", "`a | split(',')`: the parts of a text, as a list"),
    ("replace", "`a | replace('x', 'y')`: the text with `y` instead of every `x`"),
    ("any", "`a | any`: whether an element of a list is true; `a | any('role', 'tool')`: has this value in this field"),
    (
        "all",
        "`a | all`: whether every element of a list is true; `a | all('role', 'tool')`: has this value in this field",
    ),
];
/// The tests that an expression may use, with their meaning.
pub const TESTS: &[(&str, &str)] = &[
    ("none", "`a is none`: the value is null"),
    ("startingwith", "`a is startingwith('x')`: the text begins with this text"),
    ("endingwith", "`a is endingwith('x')`: the text ends with this text"),
];

/// Limit on evaluation steps. A frame's expression needs a handful; this stops a runaway one.
const FUEL: u64 = 20_000;

/// The template engine with the filters and tests above.
pub(super) fn environment(tables: Tables) -> Environment<'static> {
    let mut env = Environment::empty();
    env.set_fuel(Some(FUEL));
    env.set_undefined_behavior(minijinja::UndefinedBehavior::Chainable);
    // Unlike Jinja's filter: it replaces null and absent, but not 0, "" or false.
    env.add_filter(
        "default",
        |value: Value, other: Value| {
            if value.is_undefined() || value.is_none() { other } else { value }
        },
    );
    env.add_filter("table", move |value: Value, name: String| {
        if value.is_undefined() || value.is_none() {
            return Value::from(());
        }
        let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        tables.get(&name).and_then(|t| t.get(&word)).map_or_else(|| Value::from(()), |value| to_jinja(&value))
    });
    env.add_filter("prefix", |value: Value, prefix: String| on_text(value, |t| prefixed(t, &prefix)));
    env.add_filter("lower", |value: Value| on_text(value, |t| t.to_lowercase()));
    env.add_filter("upper", |value: Value| on_text(value, |t| t.to_uppercase()));
    env.add_filter("trim", |value: Value| on_text(value, |t| t.trim().to_owned()));
    env.add_filter("length", |value: Value| value.len().unwrap_or(0));
    env.add_filter("json", |value: Value| from_jinja(&value).to_json());
    env.add_filter("parse_json", |value: Value| {
        value
            .as_str()
            .and_then(|text| Tree::parse(text.as_bytes()).ok())
            .map_or(Value::from(()), |tree| to_jinja(&tree))
    });
    env.add_filter("join", |value: Value, between: Option<String>| {
        let text = |value: Value| {
            let tree = from_jinja(&value);
            scalar_text(&tree).unwrap_or_else(|| if tree.is_null() { String::new() } else { tree.to_json() })
        };
        let items: Vec<String> = value.try_iter().map(|items| items.map(text).collect()).unwrap_or_default();
        items.join(between.as_deref().unwrap_or(""))
    });
    env.add_filter("first", |value: Value| value.try_iter().ok().and_then(|mut i| i.next()).unwrap_or(Value::from(())));
    env.add_filter("last", |value: Value| value.try_iter().ok().and_then(|i| i.last()).unwrap_or(Value::from(())));
    env.add_filter("rfc3339", |value: Value| match f64::try_from(value.clone()) {
        Ok(seconds) => rfc3339(seconds).map_or_else(|| Value::from(()), Value::from),
        Err(_) => value,
    });
    env.add_filter("split", |value: Value, at: String| match value.as_str() {
        Some(text) if !at.is_empty() => text.split(at.as_str()).map(Value::from).collect(),
        _ => value,
    });
    env.add_filter("replace", |value: Value, old: String, new: String| match value.as_str() {
        Some(text) if !old.is_empty() => {
            let growth = new.len().saturating_sub(old.len()).saturating_mul(text.matches(&*old).count());
            if growth > text.len() + MAX_GROWTH {
                return Err(Error::new(ErrorKind::InvalidOperation, "the result of `replace` is too large"));
            }
            Ok(Value::from(text.replace(&*old, &new)))
        }
        _ => Ok(value),
    });
    env.add_filter("any", |list: Value, field: Option<String>, wanted: Option<Value>| {
        list.try_iter().is_ok_and(|mut list| list.any(|element| holds(&element, field.as_deref(), wanted.as_ref())))
    });
    env.add_filter("all", |list: Value, field: Option<String>, wanted: Option<Value>| {
        list.try_iter().is_ok_and(|mut list| list.all(|element| holds(&element, field.as_deref(), wanted.as_ref())))
    });
    env.add_test("none", |value: Value| value.is_none() || value.is_undefined());
    env.add_test("startingwith", |value: Value, start: String| value.as_str().is_some_and(|t| t.starts_with(&start)));
    env.add_test("endingwith", |value: Value, end: String| value.as_str().is_some_and(|t| t.ends_with(&end)));
    env
}

/// By how many bytes `replace` may make a text longer than twice its length.
const MAX_GROWTH: usize = 64 << 10;

/// Whether an element, or one of its fields, has a value, or is true if none is given.
fn holds(element: &Value, field: Option<&str>, wanted: Option<&Value>) -> bool {
    let value = match field {
        Some(field) => element.get_attr(field).unwrap_or_default(),
        None => element.clone(),
    };
    wanted.map_or_else(|| value.is_true(), |wanted| value == *wanted)
}

/// `2026-01-01T00:00:00Z`, for seconds since 1970.
fn rfc3339(seconds: f64) -> Option<String> {
    // Milliseconds are exact enough: clocks of backends are not better.
    let time = jiff::Timestamp::from_millisecond((seconds * 1000.0).round() as i64).ok()?;
    Some(time.to_string())
}

/// Adds a prefix, unless the text already begins with it.
pub fn prefixed(text: &str, prefix: &str) -> String {
    if text.starts_with(prefix) { text.to_owned() } else { format!("{prefix}{text}") }
}

fn on_text(value: Value, change: impl Fn(&str) -> String) -> Value {
    match value.as_str() {
        Some(text) => Value::from(change(text)),
        None => value,
    }
}
