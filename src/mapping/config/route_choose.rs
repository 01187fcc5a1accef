//! `choose:` of a route: policies that depend on what a client requests.

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::variables;
use crate::mapping::grammar::collections::Entries;
use crate::mapping::grammar::notation::Spanned;
use crate::mapping::grammar::policies::DialectPolicies;
use crate::mapping::grammar::section;
use crate::mapping::grammar::unparsed::ExpressionNode;
use crate::mapping::language::expression::{Expression, ExpressionPool, ExpressionPoolBuilder};
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::table::Tables;
use crate::mapping::policy::resolve::ResolvedPolicies;
use crate::mapping::source::field_reader::{LoadContext, text_of};
use crate::mapping::source::yaml::Entry;

section! {
    /// Policies for requests with a certain content.
    #[subject = "a rule of `choose:`"]
    #[title = "choose rule"]
    pub struct ChooseEntry<'n> {
        /// A condition. It sees `request`, `path`, `query`, `headers` and `policy`.
        when: Spanned<ExpressionNode<'n>>,
        /// Policies of the route's dialect. They take precedence over all others, except those of a header.
        policies: Entries<'n, DialectPolicies>,
    }
}

/// A rule as written.
#[derive(Clone, Debug)]
pub struct ChooseRule {
    pub when: String,
    pub span: Span,
    /// Unparsed.
    pub policies: Vec<Entry>,
}

/// The conditions of all rules, for one profile.
#[derive(Debug)]
pub struct ChooseConditions {
    /// In the order of the rules.
    pub conditions: Vec<Expression>,
    pub pool: ExpressionPool,
}

impl ChooseRule {
    pub(super) fn new(entry: &ChooseEntry, cx: LoadContext) -> Option<ChooseRule> {
        let when = text_of(entry.when.0, cx)?.to_owned();
        if entry.policies.is_empty() {
            let message = "this rule of `choose:` sets no policy";
            cx.add(Diagnostic::new(Code::MissingKey, entry.when.span, message).help("write them in `policies:`"));
        }
        Some(ChooseRule { when, span: entry.when.span, policies: entry.policies.to_vec() })
    }
}

impl ChooseConditions {
    /// Compiles the conditions of rules. `None`: there are none, or one is wrong and was reported.
    pub fn compile(
        rules: &[ChooseRule],
        resolved: &ResolvedPolicies,
        tables: &Tables,
        cx: LoadContext,
    ) -> Option<ChooseConditions> {
        if rules.is_empty() {
            return None;
        }
        let pool = ExpressionPoolBuilder::new(tables.clone());
        let visible = [variables::REQUEST, variables::PATH, variables::QUERY, variables::HEADERS];
        let scope = VariableScope::new("`choose:`", visible).policies(resolved.words());
        let conditions: Vec<Option<Expression>> =
            rules.iter().map(|rule| Some(pool.add(&rule.when, rule.span, &scope, cx)?.0)).collect();
        Some(ChooseConditions { conditions: conditions.into_iter().collect::<Option<_>>()?, pool: pool.build() })
    }
}
