//! Unit tests of `domain::policy`.

use super::*;

#[test]
fn an_alias_names_a_value_and_is_none_itself() {
    for (policy, alias, value) in ALIASES {
        let values = PolicySpec::find(policy).map_or(&[] as &[&str], |spec| spec.values);
        assert!(values.contains(value) && !values.contains(alias), "{policy}: {alias}");
        assert_eq!(canonical(policy, alias), *value);
    }
    assert_eq!(canonical("usage", "estimate"), "estimate");
    assert_eq!(canonical("terminator", "A"), "A");
}
