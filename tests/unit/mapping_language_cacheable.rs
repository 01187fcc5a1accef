//! Unit tests of `mapping::language::cacheable`.

use super::*;
use crate::domain::MomentKind;
use crate::domain::variables::variables_at;
use crate::mapping::language::scope::VariableScope;

#[test]
fn the_listed_variables_exist() {
    let variables = variables_at(MomentKind::TextDelta).chain(variables_at(MomentKind::ToolArgs));
    let scope = VariableScope::new("a delta", variables);
    for path in STABLE.iter().chain(DELTAS).chain([&RARE]) {
        assert!(scope.resolve(path).is_ok(), "{path}");
    }
}
