//! Expressions: Jinja over named variables. Compiled at load. Plain variables and look-ups do not use the template
//! engine.

use super::expression_check::ExpressionCheck;
use super::expression_paths::accessed_paths;
use super::expression_tokens;
use super::scope::VariableScope;
use super::table::{Table, Tables};
use crate::diagnostics::Span;
use crate::domain::Tree;
use crate::domain::emit::scalar_text;
use crate::domain::variables::VariableType;
use crate::mapping::source::field_reader::LoadContext;
use minijinja::value::{Enumerator, Object, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Expression as JinjaExpression, Value};
use std::cell::{self, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A checked expression.
#[derive(Clone, Debug)]
pub enum Expression {
    /// `item.id`
    Variable(VariablePath),
    /// `turn.finish | table('status') | default('x')`: look-ups on a variable. They keep exact values and do not need
    /// the template engine.
    Chain { path: VariablePath, filters: Vec<Filter> },
    /// Any other expression: its index in the [`ExpressionPool`], and the variables that it reads.
    Jinja { id: usize, variables: Vec<VariablePath>, text: Arc<str> },
}

impl Expression {
    /// The variables that it reads.
    pub fn variables(&self) -> &[VariablePath] {
        match self {
            Expression::Variable(path) | Expression::Chain { path, .. } => std::slice::from_ref(path),
            Expression::Jinja { variables, .. } => variables,
        }
    }
}

/// One filter of a chain.
#[derive(Clone, Debug)]
pub enum Filter {
    Table(Arc<Table>),
    /// Replaces null and absent values, but not 0, "" or false.
    Default(Tree),
    /// Prepended to a text that does not begin with it.
    Prefix(String),
}

/// A dotted path of names: `turn.items`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariablePath(pub Vec<Arc<str>>);

impl VariablePath {
    fn parse(text: &str) -> Option<VariablePath> {
        let name = |s: &str| {
            s.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let steps: Vec<&str> = text.split('.').collect();
        let keyword = matches!(text, "true" | "false" | "none" | "True" | "False" | "None");
        (!keyword && steps.iter().all(|s| name(s))).then(|| VariablePath(steps.into_iter().map(Arc::from).collect()))
    }
}

type Compiled<'e> = Vec<JinjaExpression<'e, 'static>>;

self_cell::self_cell!(
    /// The template engine with its compiled expressions, which borrow from it.
    struct Cell {
        owner: Environment<'static>,
        #[not_covariant]
        dependent: Compiled,
    }
);

/// The compiled expressions of one plan.
pub struct ExpressionPool(Cell);

impl std::fmt::Debug for ExpressionPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pool")
    }
}

impl ExpressionPool {
    pub fn eval(&self, id: usize, context: Value) -> Result<Value, Error> {
        self.0.with_dependent(|_, compiled| match compiled.get(id) {
            Some(expression) => expression.eval(context),
            None => Err(Error::new(ErrorKind::InvalidOperation, "no such expression")),
        })
    }
}

/// Collects the expressions of a plan while it is being compiled.
pub struct ExpressionPoolBuilder {
    environment: Environment<'static>,
    tables: Tables,
    /// Policies are constant in a plan, so expressions that read only policies are evaluated at load.
    policies: Vec<(Arc<str>, Tree)>,
    texts: RefCell<Vec<String>>,
    /// The policies read since the last `take_policies_read()`. Evaluation at load removes them from the skeleton, so
    /// they are recorded here.
    policies_read: RefCell<Vec<String>>,
    /// The YAML values that were compiled, with fragments counted at each use.
    compiled_values: cell::Cell<usize>,
}

/// Limit on evaluation steps. A frame's expression needs a handful; this stops a runaway one.
const FUEL: u64 = 20_000;

impl ExpressionPoolBuilder {
    pub fn new(tables: Tables) -> ExpressionPoolBuilder {
        ExpressionPoolBuilder {
            environment: environment(tables.clone()),
            tables,
            policies: Vec::new(),
            texts: RefCell::default(),
            policies_read: RefCell::default(),
            compiled_values: cell::Cell::default(),
        }
    }

    pub fn policies(mut self, policies: &[(Arc<str>, Tree)]) -> ExpressionPoolBuilder {
        self.policies = policies.to_vec();
        self
    }

    /// The policies read by the expressions added since the last call.
    pub fn take_policies_read(&self) -> Vec<String> {
        self.policies_read.take()
    }

    fn record_policy_read(&self, path: &VariablePath) {
        let Some((root, name)) = path.0.split_first() else { return };
        let (name, mut policies_read) = (name.join("."), self.policies_read.borrow_mut());
        if &**root == "policy" && !policies_read.contains(&name) {
            policies_read.push(name);
        }
    }

    /// The value of an expression that reads nothing but policies.
    pub fn constant_value(&self, expr: &Expression) -> Option<Tree> {
        let of = |path: &VariablePath| match path.0.split_first() {
            Some((root, name)) if &**root == "policy" => {
                let name = name.join(".");
                self.policies.iter().find(|(n, _)| **n == *name).map(|(_, v)| (name, v))
            }
            _ => None,
        };
        match expr {
            Expression::Variable(path) => of(path).map(|(_, value)| value.clone()),
            Expression::Chain { .. } => None,
            Expression::Jinja { variables, .. } if variables.is_empty() => None,
            Expression::Jinja { variables, text, .. } => {
                let known: BTreeMap<String, Value> =
                    variables.iter().map(|p| of(p).map(|(n, v)| (n, to_jinja(v)))).collect::<Option<_>>()?;
                let context = BTreeMap::from([("policy".to_owned(), Value::from(known))]);
                let expression = self.environment.compile_expression(text).ok()?;
                expression.eval(Value::from(context)).ok().map(|v| from_jinja(&v))
            }
        }
    }

    /// Checks an expression and adds it. `span` is its placeholder or scalar.
    /// Counts one compiled value. Returns the number so far.
    pub fn count_value(&self) -> usize {
        self.compiled_values.set(self.compiled_values.get() + 1);
        self.compiled_values.get()
    }

    pub fn add(
        &self,
        text: &str,
        span: Span,
        scope: &VariableScope,
        cx: LoadContext,
    ) -> Option<(Expression, VariableType)> {
        let text = text.trim();
        let check =
            ExpressionCheck { text, span, tokens: expression_tokens::tokens(text), tables: &self.tables, scope, cx };
        if check.is_too_long() || check.multiplies_text() {
            return None;
        }
        if let Some(path) = VariablePath::parse(text) {
            let kind = check.resolve_variable(text)?;
            self.record_policy_read(&path);
            return Some((Expression::Variable(path), kind));
        }
        let expression = match self.environment.compile_expression_owned(text.to_owned()) {
            Ok(expression) => expression,
            Err(error) => {
                check.report_parse_error(&error);
                return None;
            }
        };
        let accessed = accessed_paths(&check.tokens);
        // Those of the template engine lack variables in slices.
        let mut names: Vec<String> = expression.undeclared_variables(true).into_iter().collect();
        names.extend(accessed.iter().map(|accessed| accessed.path.to_owned()));
        names.sort();
        names.dedup();
        let mut variables = Vec::new();
        let mut valid = check.check_calls() & check.check_comparisons() & check.check_operands();
        valid &= accessed.iter().all(|accessed| check.check_steps(accessed));
        for name in names.iter().filter(|name| !check.is_function(name)) {
            match check.resolve_variable(name) {
                Some(_) => variables.extend(VariablePath::parse(name)),
                None => valid = false,
            }
        }
        // Without values, the only errors left are those of the calls.
        if let Err(error) = expression.eval(BTreeMap::<String, Value>::new())
            && valid
        {
            valid = check.has_valid_arguments(&error);
        }
        if !valid {
            return None;
        }
        variables.iter().for_each(|path| self.record_policy_read(path));
        if let Some(chain) = self.chain(text) {
            return Some((chain, VariableType::Json));
        }
        let mut texts = self.texts.borrow_mut();
        texts.push(text.to_owned());
        Some((Expression::Jinja { id: texts.len() - 1, variables, text: Arc::from(text) }, VariableType::Json))
    }

    /// A variable followed by `table('x')`, `default(literal)` and `prefix('x')` only.
    fn chain(&self, text: &str) -> Option<Expression> {
        let mut segments = text.split('|').map(str::trim);
        let path = VariablePath::parse(segments.next()?)?;
        let filters = segments.map(|segment| {
            let (name, argument) = segment.strip_suffix(')')?.split_once('(')?;
            match name.trim() {
                "table" => self.tables.get(argument.trim().trim_matches(['\'', '"'])).cloned().map(Filter::Table),
                "default" => literal(argument.trim()).map(Filter::Default),
                "prefix" => Some(Filter::Prefix(literal(argument.trim())?.as_str()?.to_owned())),
                _ => None,
            }
        });
        Some(Expression::Chain { path, filters: filters.collect::<Option<Vec<_>>>()? })
    }

    /// Compiles all expressions. Each compiled in `add`, so this does not fail.
    pub fn build(self) -> Option<ExpressionPool> {
        let texts = self.texts.into_inner();
        Cell::try_new(self.environment, |environment| {
            texts.into_iter().map(|text| environment.compile_expression_owned(text)).collect::<Result<Vec<_>, _>>()
        })
        .ok()
        .map(ExpressionPool)
    }
}

/// Parses a number, a quoted word without escapes, true, false, none, [] or {}.
fn literal(text: &str) -> Option<Tree> {
    let quoted = |q: char| text.strip_prefix(q)?.strip_suffix(q).filter(|t| !t.contains([q, '\\', '|']));
    match text {
        "none" | "None" => Some(Tree::Null),
        _ => match quoted('\'').or_else(|| quoted('"')) {
            Some(word) => Some(Tree::from(word)),
            None if text.starts_with(['"', '\'']) => None,
            None => Tree::parse(text.as_bytes()).ok(),
        },
    }
}

fn environment(tables: Tables) -> Environment<'static> {
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

pub fn to_jinja(tree: &Tree) -> Value {
    match tree {
        Tree::Null => Value::from(()),
        Tree::Bool(b) => Value::from(*b),
        Tree::Num(n) => n.as_i64().map(Value::from).or(n.as_f64().map(Value::from)).unwrap_or_default(),
        Tree::Str(s) => Value::from(s.as_str()),
        Tree::SurrogateString(t) => Value::from(t.to_string_lossy()),
        Tree::List(items) => items.iter().map(to_jinja).collect(),
        Tree::Map(entries) => {
            Value::from_object(OrderedMap(entries.iter().map(|(k, v)| (k.clone(), to_jinja(v))).collect()))
        }
    }
}

/// A map that keeps the order of its keys: what goes through an expression is written like what does not.
#[derive(Debug)]
struct OrderedMap(Vec<(Arc<str>, Value)>);

impl Object for OrderedMap {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|(name, _)| Value::from(&**name)).collect())
    }
}

pub fn from_jinja(value: &Value) -> Tree {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Tree::Null,
        ValueKind::Bool => Tree::from(value.is_true()),
        ValueKind::Number => match i64::try_from(value.clone()) {
            Ok(i) if value.is_integer() => Tree::from(i),
            _ => f64::try_from(value.clone()).map_or(Tree::Null, Tree::from),
        },
        ValueKind::Seq | ValueKind::Iterable => {
            Tree::from(value.try_iter().map(|i| i.map(|v| from_jinja(&v)).collect()).unwrap_or_else(|_| Vec::new()))
        }
        ValueKind::Map => {
            let keys: Vec<Value> = value.try_iter().map(Iterator::collect).unwrap_or_default();
            Tree::map(keys.iter().map(|k| (k.to_string(), value.get_item(k).map_or(Tree::Null, |v| from_jinja(&v)))))
        }
        _ => Tree::from(value.to_string()),
    }
}
