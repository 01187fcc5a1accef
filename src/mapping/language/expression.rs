//! Expressions: Jinja over named variables. Compiled at load. Plain variables and look-ups do not use the template
//! engine.

use super::expression_check::ExpressionCheck;
use super::expression_paths::accessed_paths;
use super::expression_tokens;
use super::filters::environment;
use super::jinja_values::{from_jinja, to_jinja};
use super::parsed_expressions::ParsedExpressions;
use super::plain_condition::{PlainChoice, PlainCondition};
use super::scope::{VariableScope, VisibleVariables};
use super::table::{Table, Tables};
pub use super::variable_path::VariablePath;
use crate::diagnostics::Span;
use crate::domain::variables::VariableType;
use crate::domain::{Text, Tree};
use crate::mapping::source::field_reader::LoadContext;
use minijinja::{Environment, Error, ErrorKind, Expression as JinjaExpression, Value};
use std::cell::{self, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// A checked expression.
#[derive(Clone, Debug)]
pub enum Expression {
    /// `item.id`
    Variable(VariablePath),
    /// `turn.finish | table('status') | default('x')`: look-ups on a variable. They keep exact values and do not need
    /// the template engine.
    Chain { path: VariablePath, filters: Vec<Filter>, variables: Vec<VariablePath> },
    /// Any other expression: its index in the [`ExpressionPool`], and the variables that it reads.
    /// As a condition, or as a choice between two values, it may not need the template engine.
    Jinja {
        id: usize,
        variables: Vec<VariablePath>,
        text: Arc<str>,
        condition: Option<Arc<PlainCondition>>,
        choice: Option<Arc<PlainChoice>>,
    },
}

impl Expression {
    /// The variables that it reads.
    pub fn variables(&self) -> &[VariablePath] {
        match self {
            Expression::Variable(path) => std::slice::from_ref(path),
            Expression::Chain { variables, .. } | Expression::Jinja { variables, .. } => variables,
        }
    }
}

/// One filter of a chain.
#[derive(Clone, Debug)]
pub enum Filter {
    Table(Arc<Table>),
    /// Replaces null and absent values, but not 0, "" or false.
    Default(Tree),
    /// The same, by the value of another variable.
    DefaultVariable(VariablePath),
    /// Prepended to a text that does not begin with it.
    Prefix(String),
}

type Compiled<'e> = Vec<OnceLock<JinjaExpression<'e, 'static>>>;

self_cell::self_cell!(
    /// The template engine with its compiled expressions, which borrow from it.
    struct Cell {
        owner: Environment<'static>,
        #[not_covariant]
        dependent: Compiled,
    }
);

/// The expressions of one plan. Each was compiled once at load, to check it. It is compiled again when it is first
/// evaluated, because most are never: they are conditions that do not need the template engine, or are in frames that no
/// client asks for.
pub struct ExpressionPool {
    cell: Cell,
    texts: Vec<Arc<str>>,
}

impl std::fmt::Debug for ExpressionPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pool")
    }
}

impl ExpressionPool {
    pub fn eval(&self, id: usize, context: Value) -> Result<Value, Error> {
        self.cell.with_dependent(|environment, compiled| {
            let (Some(expression), Some(text)) = (compiled.get(id), self.texts.get(id)) else {
                return Err(Error::new(ErrorKind::InvalidOperation, "no such expression"));
            };
            if let Some(expression) = expression.get() {
                return expression.eval(context);
            }
            let compiled = environment.compile_expression_owned(text.to_string())?;
            expression.get_or_init(|| compiled).eval(context)
        })
    }
}

/// An expression that was checked.
struct KnownExpression {
    /// What it was checked against.
    visible: VisibleVariables,
    expression: Expression,
    kind: VariableType,
}

/// Collects the expressions of a plan while it is being compiled.
pub struct ExpressionPoolBuilder {
    environment: Environment<'static>,
    tables: Tables,
    /// Policies are constant in a plan, so expressions that read only policies are evaluated at load.
    policies: Vec<(Text, Tree)>,
    /// The expressions of the pool, with their ids.
    pooled: RefCell<HashMap<Arc<str>, usize>>,
    /// The valid expressions so far: fragments repeat them.
    known: RefCell<HashMap<Arc<str>, Vec<KnownExpression>>>,
    /// The policies read since the last `take_policies_read()`. Evaluation at load removes them from the skeleton, so
    /// they are recorded here.
    policies_read: RefCell<Vec<String>>,
    parsed: Rc<ParsedExpressions>,
    /// The YAML values that were compiled, with fragments counted at each use.
    compiled_values: cell::Cell<usize>,
}

impl ExpressionPoolBuilder {
    pub fn new(tables: Tables) -> ExpressionPoolBuilder {
        ExpressionPoolBuilder {
            environment: environment(tables.clone()),
            tables,
            policies: Vec::new(),
            pooled: RefCell::default(),
            known: RefCell::default(),
            policies_read: RefCell::default(),
            parsed: Rc::default(),
            compiled_values: cell::Cell::default(),
        }
    }

    /// Shares what was parsed with others.
    pub fn parsed(self, parsed: &Rc<ParsedExpressions>) -> ExpressionPoolBuilder {
        ExpressionPoolBuilder { parsed: parsed.clone(), ..self }
    }

    pub fn policies(mut self, policies: &[(Text, Tree)]) -> ExpressionPoolBuilder {
        self.policies = policies.to_vec();
        self
    }

    /// The policies read by the expressions added since the last call.
    pub fn take_policies_read(&self) -> Vec<String> {
        self.policies_read.take()
    }

    /// Compiles something, and returns the policies that it read.
    pub fn with_policies_read<T>(&self, compile: impl FnOnce() -> T) -> (T, Vec<String>) {
        let before = self.policies_read.take();
        let compiled = compile();
        let read = self.policies_read.replace(before);
        self.add_policies_read(&read);
        (compiled, read)
    }

    pub fn add_policies_read(&self, names: &[String]) {
        let mut policies_read = self.policies_read.borrow_mut();
        for name in names {
            if !policies_read.contains(name) {
                policies_read.push(name.clone());
            }
        }
    }

    fn record_policy_read(&self, path: &VariablePath) {
        if let Some((root, name)) = path.0.split_first()
            && &**root == "policy"
        {
            self.add_policies_read(&[name.join(".")]);
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

    /// Counts compiled values. Returns the number so far.
    pub fn count_values(&self, values: usize) -> usize {
        self.compiled_values.set(self.compiled_values.get() + values);
        self.compiled_values.get()
    }

    /// Checks an expression and adds it. `span` is its placeholder or scalar.
    pub fn add(
        &self,
        text: &str,
        span: Span,
        scope: &VariableScope,
        cx: LoadContext,
    ) -> Option<(Expression, VariableType)> {
        let text = text.trim();
        if let Some(known) = self.known.borrow().get(text)
            && let Some(known) = known.iter().find(|known| known.visible == *scope.visible())
        {
            known.expression.variables().iter().for_each(|path| self.record_policy_read(path));
            return Some((known.expression.clone(), known.kind));
        }
        let (expression, kind) = self.check(text, span, scope, cx)?;
        let known = KnownExpression { visible: scope.visible().clone(), expression: expression.clone(), kind };
        self.known.borrow_mut().entry(Arc::from(text)).or_default().push(known);
        Some((expression, kind))
    }

    fn check(
        &self,
        text: &str,
        span: Span,
        scope: &VariableScope,
        cx: LoadContext,
    ) -> Option<(Expression, VariableType)> {
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
        let parsed = match self.parsed.get(text, &self.environment) {
            Ok(parsed) => parsed,
            Err(error) => {
                check.report_parse_error(&error);
                return None;
            }
        };
        let accessed = accessed_paths(&check.tokens);
        // Those of the template engine lack variables in slices.
        let mut names = parsed.variables.clone();
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
        if let Some(error) = parsed.error.filter(|_| valid) {
            valid = check.has_valid_arguments(error);
        }
        if !valid {
            return None;
        }
        variables.iter().for_each(|path| self.record_policy_read(path));
        if let Some(chain) = self.chain(text) {
            return Some((chain, VariableType::Json));
        }
        let (id, text) = self.pooled(text);
        let condition = PlainCondition::parse(&check.tokens).map(Arc::new);
        let choice = PlainChoice::parse(&check.tokens).map(Arc::new);
        Some((Expression::Jinja { id, variables, text, condition, choice }, VariableType::Json))
    }

    /// The id of an expression in the pool. The same text in another place may read other variables.
    fn pooled(&self, text: &str) -> (usize, Arc<str>) {
        let mut pooled = self.pooled.borrow_mut();
        if let Some((text, id)) = pooled.get_key_value(text) {
            return (*id, text.clone());
        }
        let (id, text) = (pooled.len(), Arc::<str>::from(text));
        pooled.insert(text.clone(), id);
        (id, text)
    }

    /// A variable followed by `table('x')`, `default(literal)`, `default(variable)` and `prefix('x')` only.
    fn chain(&self, text: &str) -> Option<Expression> {
        let mut segments = text.split('|').map(str::trim);
        let path = VariablePath::parse(segments.next()?)?;
        let filters = segments.map(|segment| {
            let (name, argument) = segment.strip_suffix(')')?.split_once('(')?;
            match name.trim() {
                "table" => self.tables.get(argument.trim().trim_matches(['\'', '"'])).cloned().map(Filter::Table),
                "default" => match VariablePath::parse(argument.trim()) {
                    Some(path) => Some(Filter::DefaultVariable(path)),
                    None => literal(argument.trim()).map(Filter::Default),
                },
                "prefix" => Some(Filter::Prefix(literal(argument.trim())?.as_str()?.to_owned())),
                _ => None,
            }
        });
        let filters = filters.collect::<Option<Vec<_>>>()?;
        let others = filters.iter().filter_map(|filter| match filter {
            Filter::DefaultVariable(path) => Some(path.clone()),
            Filter::Table(_) | Filter::Default(_) | Filter::Prefix(_) => None,
        });
        let variables = [path.clone()].into_iter().chain(others).collect();
        Some(Expression::Chain { path, filters, variables })
    }

    pub fn build(self) -> ExpressionPool {
        let mut pooled: Vec<(Arc<str>, usize)> = self.pooled.into_inner().into_iter().collect();
        pooled.sort_unstable_by_key(|(_, id)| *id);
        let texts: Vec<Arc<str>> = pooled.into_iter().map(|(text, _)| text).collect();
        let cell = Cell::new(self.environment, |_| texts.iter().map(|_| OnceLock::new()).collect());
        ExpressionPool { cell, texts }
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
