//! `policies:` of a test: the dialect of the test, compiled with the policies that the test sets.

use super::resolve::SetBy;
use crate::diagnostics::{Findings, Span};
use crate::mapping::config::dialect::{DialectPlan, GivenPolicies};
use crate::mapping::config::test_file::{TestSubject, tests_of};
use crate::mapping::load::TestFile;
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::Node;
use std::sync::Arc;

/// The dialects of the tests that set policies, by the span of the test.
#[derive(Debug, Default)]
pub struct TestDialects(Vec<(Span, Arc<DialectPlan>)>);

impl TestDialects {
    pub fn get(&self, test: Span) -> Option<&Arc<DialectPlan>> {
        self.0.iter().find(|(span, _)| *span == test).map(|(_, dialect)| dialect)
    }

    /// `compile` compiles a dialect and profile with these policies. A mistake in a test is reported when the test is
    /// parsed; until then it has no dialect here.
    pub fn compile(
        files: &[TestFile],
        bases: &[Arc<DialectPlan>],
        compile: &dyn Fn(&DialectPlan, GivenPolicies) -> Option<DialectPlan>,
        cx: LoadContext,
    ) -> TestDialects {
        let mut dialects = Vec::new();
        for file in files {
            for test in tests_of(&file.node) {
                let Some(entries) = test.get("policies").and_then(Node::as_map) else { continue };
                let TestSubject { dialect, profile, .. } = TestSubject::of(test, &file.name);
                let is_base =
                    |d: &&Arc<DialectPlan>| Some(d.name.as_str()) == dialect && d.profile.as_deref() == profile;
                let Some(base) = bases.iter().find(is_base) else { continue };
                let unreported = Findings::default();
                let settings = base.resolved.read(entries, &SetBy::Test, LoadContext { findings: &unreported, ..cx });
                let resolved =
                    base.resolved.with_settings(base.resolved.settings.iter().cloned().chain(settings).collect());
                let plan = match resolved.policies == base.resolved.policies {
                    true => Some(base.with_policies(resolved)),
                    false => compile(base, GivenPolicies { resolved: &resolved, open: &[] }),
                };
                dialects.extend(plan.map(|plan| (test.span, Arc::new(plan))));
            }
        }
        TestDialects(dialects)
    }
}
