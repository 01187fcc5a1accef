//! Unit tests of `domain::emit`.

use super::*;

#[test]
fn the_payload_consists_of_fields() {
    for kind in [&EVENTS, &ITEMS, &PARTS, &TOOLS, &OBSERVATIONS].into_iter().flat_map(|grammar| grammar.kinds) {
        let is_field = |name: &&str| kind.fields.iter().any(|field| field.name == *name);
        assert!(kind.payload.iter().all(is_field), "{}: {:?}", kind.name, kind.payload);
    }
}
