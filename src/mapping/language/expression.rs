//! Expressions: Jinja over named variables. Compiled at load; a plain variable never reaches the engine.

use super::expression_check::Check;
use super::expression_tokens;
use super::scope::Env;
use super::table::{Table, Tables};
use crate::diagnostics::Span;
use crate::domain::Tree;
use crate::domain::variables::Type;
use crate::mapping::source::field_reader::Cx;
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Expression, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An expression after its check.
#[derive(Clone, Debug)]
pub enum Expr {
    /// `item.id`
    Variable(Path),
    /// `turn.finish | table('status') | default('x')`: look-ups on a variable, which keep exact values and need no engine.
    Chain { path: Path, links: Vec<Link> },
    /// Anything else: its place in the [`Pool`], and the variables that it reads.
    Engine { id: usize, reads: Vec<Path>, text: Arc<str> },
}

/// One look-up of a chain.
#[derive(Clone, Debug)]
pub enum Link {
    Table(Arc<Table>),
    /// Stands in for null and absent, never for 0, "" or false.
    Default(Tree),
    /// Stands before a text that does not begin with it.
    Prefix(String),
}

/// A dotted path of names: `turn.items`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(pub Vec<Arc<str>>);

impl Path {
    fn parse(text: &str) -> Option<Path> {
        let name = |s: &str| {
            s.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let steps: Vec<&str> = text.split('.').collect();
        let keyword = matches!(text, "true" | "false" | "none" | "True" | "False" | "None");
        (!keyword && steps.iter().all(|s| name(s))).then(|| Path(steps.into_iter().map(Arc::from).collect()))
    }
}

type Compiled<'e> = Vec<Expression<'e, 'static>>;

self_cell::self_cell!(
    /// The engine with its compiled expressions, which borrow from it.
    struct Cell {
        owner: Environment<'static>,
        #[not_covariant]
        dependent: Compiled,
    }
);

/// The compiled expressions of one plan.
pub struct Pool(Cell);

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pool")
    }
}

impl Pool {
    pub fn eval(&self, id: usize, context: Value) -> Result<Value, Error> {
        self.0.with_dependent(|_, compiled| match compiled.get(id) {
            Some(expression) => expression.eval(context),
            None => Err(Error::new(ErrorKind::InvalidOperation, "no such expression")),
        })
    }
}

/// Collects the expressions of a plan while it is being compiled.
pub struct PoolBuilder {
    environment: Environment<'static>,
    tables: Tables,
    /// Known when the plan is made, so what only reads them is decided then.
    policies: Vec<(Arc<str>, Tree)>,
    texts: RefCell<Vec<String>>,
    /// The policies that were asked since the last `asked()`: once they have decided, nothing else remembers them.
    asked: RefCell<Vec<String>>,
}

/// A frame's expression does a handful of steps; a runaway one is stopped.
const FUEL: u64 = 20_000;

impl PoolBuilder {
    pub fn new(tables: Tables) -> PoolBuilder {
        PoolBuilder {
            environment: environment(tables.clone()),
            tables,
            policies: Vec::new(),
            texts: RefCell::default(),
            asked: RefCell::default(),
        }
    }

    pub fn policies(mut self, policies: &[(Arc<str>, Tree)]) -> PoolBuilder {
        self.policies = policies.to_vec();
        self
    }

    /// Which policies the expressions asked that were added since the last call.
    pub fn asked(&self) -> Vec<String> {
        self.asked.take()
    }

    fn note(&self, path: &Path) {
        let Some((root, name)) = path.0.split_first() else { return };
        let (name, mut asked) = (name.join("."), self.asked.borrow_mut());
        if &**root == "policy" && !asked.contains(&name) {
            asked.push(name);
        }
    }

    /// The value of an expression that reads nothing but policies.
    pub fn settled(&self, expr: &Expr) -> Option<Tree> {
        let of = |path: &Path| match path.0.split_first() {
            Some((root, name)) if &**root == "policy" => {
                let name = name.join(".");
                self.policies.iter().find(|(n, _)| **n == *name).map(|(_, v)| (name, v))
            }
            _ => None,
        };
        match expr {
            Expr::Variable(path) => of(path).map(|(_, value)| value.clone()),
            Expr::Chain { .. } => None,
            Expr::Engine { reads, .. } if reads.is_empty() => None,
            Expr::Engine { reads, text, .. } => {
                let known: BTreeMap<String, Value> =
                    reads.iter().map(|p| of(p).map(|(n, v)| (n, to_jinja(v)))).collect::<Option<_>>()?;
                let context = BTreeMap::from([("policy".to_owned(), Value::from(known))]);
                let expression = self.environment.compile_expression(text).ok()?;
                expression.eval(Value::from(context)).ok().map(|v| from_jinja(&v))
            }
        }
    }

    /// Checks an expression and adds it. `span` is where it stands: a hole, or a scalar.
    pub fn add(&self, text: &str, span: Span, env: &Env, cx: Cx) -> Option<(Expr, Type)> {
        let text = text.trim();
        let check = Check { text, span, tokens: expression_tokens::tokens(text), tables: &self.tables, env, cx };
        if let Some(path) = Path::parse(text) {
            let kind = check.variable(text)?;
            self.note(&path);
            return Some((Expr::Variable(path), kind));
        }
        let expression = match self.environment.compile_expression_owned(text.to_owned()) {
            Ok(expression) => expression,
            Err(error) => {
                check.does_not_parse(&error);
                return None;
            }
        };
        let mut names: Vec<String> = expression.undeclared_variables(true).into_iter().collect();
        names.sort();
        let mut reads = Vec::new();
        let mut sound = check.calls() & check.comparisons();
        for name in names.iter().filter(|name| !check.is_function(name)) {
            match check.variable(name) {
                Some(_) => reads.extend(Path::parse(name)),
                None => sound = false,
            }
        }
        // With nothing to read, what is left to go wrong are the calls themselves.
        if let Err(error) = expression.eval(BTreeMap::<String, Value>::new())
            && sound
        {
            sound = check.is_called_well(&error);
        }
        if !sound {
            return None;
        }
        reads.iter().for_each(|path| self.note(path));
        if let Some(chain) = self.chain(text) {
            return Some((chain, Type::Json));
        }
        let mut texts = self.texts.borrow_mut();
        texts.push(text.to_owned());
        Some((Expr::Engine { id: texts.len() - 1, reads, text: Arc::from(text) }, Type::Json))
    }

    /// A variable followed by `table('x')`, `default(literal)` and `prefix('x')` only.
    fn chain(&self, text: &str) -> Option<Expr> {
        let mut pieces = text.split('|').map(str::trim);
        let path = Path::parse(pieces.next()?)?;
        let links = pieces.map(|piece| {
            let (name, argument) = piece.strip_suffix(')')?.split_once('(')?;
            match name.trim() {
                "table" => self.tables.get(argument.trim().trim_matches(['\'', '"'])).cloned().map(Link::Table),
                "default" => literal(argument.trim()).map(Link::Default),
                "prefix" => Some(Link::Prefix(literal(argument.trim())?.as_str()?.to_owned())),
                _ => None,
            }
        });
        Some(Expr::Chain { path, links: links.collect::<Option<Vec<_>>>()? })
    }

    /// Every text compiled before, so it compiles again.
    pub fn build(self) -> Option<Pool> {
        let texts = self.texts.into_inner();
        Cell::try_new(self.environment, |environment| {
            texts.into_iter().map(|text| environment.compile_expression_owned(text)).collect::<Result<Vec<_>, _>>()
        })
        .ok()
        .map(Pool)
    }
}

/// A number, a quoted word without escapes, true, false, none, [] or {}.
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
    // Ours: it replaces null and absent, never 0, "" or false.
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
        tables.get(&name).and_then(|t| t.get(&word)).map_or_else(|| Value::from(()), to_jinja)
    });
    env.add_filter("prefix", |value: Value, prefix: String| on_text(value, |t| prefixed(t, &prefix)));
    env.add_filter("lower", |value: Value| on_text(value, |t| t.to_lowercase()));
    env.add_filter("upper", |value: Value| on_text(value, |t| t.to_uppercase()));
    env.add_filter("trim", |value: Value| on_text(value, |t| t.trim().to_owned()));
    env.add_filter("length", |value: Value| value.len().unwrap_or(0));
    env.add_filter("json", |value: Value| from_jinja(&value).to_json());
    env.add_filter("join", |value: Value, between: Option<String>| {
        let items: Vec<String> = value.try_iter().map(|i| i.map(|v| v.to_string()).collect()).unwrap_or_default();
        items.join(between.as_deref().unwrap_or(""))
    });
    env.add_filter("first", |value: Value| value.try_iter().ok().and_then(|mut i| i.next()).unwrap_or(Value::from(())));
    env.add_filter("last", |value: Value| value.try_iter().ok().and_then(|i| i.last()).unwrap_or(Value::from(())));
    env.add_test("none", |value: Value| value.is_none() || value.is_undefined());
    env.add_test("startingwith", |value: Value, start: String| value.as_str().is_some_and(|t| t.starts_with(&start)));
    env.add_test("endingwith", |value: Value, end: String| value.as_str().is_some_and(|t| t.ends_with(&end)));
    env
}

/// A prefix that is there already is not put there again.
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
        Tree::Torn(t) => Value::from(t.lossy()),
        Tree::List(items) => items.iter().map(to_jinja).collect(),
        Tree::Map(entries) => {
            let fields: BTreeMap<String, Value> = entries.iter().map(|(k, v)| (k.to_string(), to_jinja(v))).collect();
            Value::from(fields)
        }
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
