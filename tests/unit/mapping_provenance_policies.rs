//! Unit tests of `mapping::provenance::policies`.

use super::*;
use crate::domain::variables::variables_at;
use crate::mapping::language::scope::VariableScope;

#[test]
fn the_variables_that_policies_affect_exist() {
    let scope = VariableScope::new("a frame", MomentKind::ALL.iter().flat_map(|moment| variables_at(*moment)));
    for spec in BUILT_IN {
        let PolicyEffect::Variables(variables) = spec.effect else { continue };
        for path in variables {
            assert!(scope.resolve(path).is_ok(), "{}: {path}", spec.name);
        }
    }
}
