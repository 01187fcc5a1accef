//! Compiles the dialects of a reload on two threads, ahead of the load. That is possible if all schemas are compiled
//! already. A dialect with a finding is compiled again in its turn, so that findings do not depend on threads.

use super::config::dialect;
use super::config::dialect::{DialectContext, DialectPlan, GivenPolicies};
use super::config::profile::Profile;
use super::config::profile_patch::PatchedDialect;
use super::config::schemas::{CompiledSchemas, SchemaCache};
use super::language::table::Tables;
use super::policy::owners::DialectIndex;
use super::policy::resolve::ResolvedPolicies;
use super::source::field_reader::LoadContext;
use super::source::yaml::Entry;
use super::two_threads;
use crate::diagnostics::{Findings, Sources};
use crate::domain::WorkBudget;
use reframe_json::SchemaSet;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// What dialects are compiled from.
pub struct DialectInputs<'c> {
    pub sources: &'c Sources,
    pub budget: &'c WorkBudget,
    pub shared_tables: &'c Tables,
    pub shared_fragments: &'c [Entry],
    pub dialects: &'c DialectIndex<'c>,
    pub schema_documents: &'c [(String, Value)],
    pub schema_names: &'c [&'c str],
    pub unreadable_schemas: &'c [String],
    /// Of the generation before.
    pub schemas: &'c CompiledSchemas,
}

/// A dialect with a profile, and what it is compiled with.
pub struct DialectJob<'c> {
    pub source: &'c PatchedDialect,
    pub profiles: &'c [&'c Profile<'c>],
    pub resolved: &'c ResolvedPolicies,
    pub open: Vec<String>,
}

/// The compiled dialects by the positions of their jobs, without those that had a finding. None if they are too much
/// work. `schemas`: gets the schemas that had to be compiled nevertheless.
pub fn compile(jobs: &[DialectJob], inputs: &DialectInputs, schemas: &SchemaCache) -> HashMap<usize, DialectPlan> {
    // All profiles of a dialect on one thread: they share what they have in common.
    let mut dialects: Vec<(&str, Vec<usize>)> = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        match dialects.iter_mut().find(|(name, _)| *name == job.source.dialect) {
            Some((_, same)) => same.push(at),
            None => dialects.push((&job.source.dialect, vec![at])),
        }
    }
    // The one with the most to do first, so that both threads end at about the same time.
    let size = |at: &usize| jobs[*at].source.node.span.end;
    dialects.sort_by_key(|(_, same)| std::cmp::Reverse(same.iter().map(size).sum::<u32>()));
    let compiled = two_threads::results(dialects.len(), |at| compile_dialect(&dialects[at].1, jobs, inputs));
    let compiled = compiled.unwrap_or_default();
    let spent = compiled.iter().map(|compiled| compiled.spent).sum::<u64>();
    if spent > inputs.budget.left() {
        return HashMap::new();
    }
    inputs.budget.spend(spent);
    compiled.iter().for_each(|compiled| schemas.reuse(&compiled.schemas));
    compiled.into_iter().flat_map(|compiled| compiled.plans).collect()
}

/// A dialect with some profiles.
struct CompiledJobs {
    plans: Vec<(usize, DialectPlan)>,
    schemas: CompiledSchemas,
    spent: u64,
}

fn compile_dialect(same: &[usize], jobs: &[DialectJob], inputs: &DialectInputs) -> CompiledJobs {
    let budget = WorkBudget::new(inputs.budget.left());
    let findings = Findings::default();
    let cx =
        LoadContext { sources: inputs.sources, findings: &findings, budget: &budget, selectors: Default::default() };
    let set = SchemaSet::new(inputs.schema_documents.iter().cloned());
    let schemas = SchemaCache::new(&set, inputs.schema_names.to_vec(), inputs.unreadable_schemas);
    schemas.reuse(inputs.schemas);
    let context = DialectContext {
        cx,
        shared_tables: inputs.shared_tables,
        shared_fragments: inputs.shared_fragments,
        schemas: &schemas,
        dialects: inputs.dialects,
        expressions: Rc::default(),
        shared: RefCell::default(),
    };
    let mut plans = Vec::new();
    for at in same {
        let DialectJob { source, profiles, resolved, open } = &jobs[*at];
        let before = findings.count();
        let plan = dialect::compile(source, profiles, GivenPolicies { resolved, open }, &context);
        let is_clean = findings.count() == before && budget.exhausted().is_none();
        plans.extend(plan.filter(|_| is_clean).map(|plan| (*at, plan)));
    }
    CompiledJobs { plans, schemas: schemas.into_compiled(inputs.schemas.hash), spent: budget.spent() }
}
