//! Unit tests of `engine::render::interpreter`.

use super::*;
use crate::domain::TurnRequest;
use crate::domain::variables;
use crate::mapping::language::expression::ExpressionPoolBuilder;
use crate::mapping::language::scope::VariableScope;
use crate::mapping::language::table::Tables;
use crate::testing::fuzz::with_context;

/// The condition of an expression, by the plain condition and by the template engine.
fn both(text: &str, request: &TurnRequest) -> (Option<bool>, bool) {
    let mut found = None;
    with_context(text, |span, cx| {
        let pool = ExpressionPoolBuilder::new(Tables::default());
        let scope = VariableScope::new("a test", [variables::REQUEST]);
        let (expression, _) = pool.add(text, span, &scope, cx).unwrap();
        let pool = pool.build();
        let scope = Scope::request(request);
        let Expression::Jinja { condition, .. } = &expression else { panic!("{text} is not evaluated") };
        let plain = condition.as_ref().and_then(|plain| is_met(plain, &scope));
        found = Some((plain, run(&expression, &scope, &pool).unwrap().is_true()));
    });
    found.unwrap()
}

#[test]
fn a_plain_condition_has_the_result_of_the_template_engine() {
    let values = ["null", "0", "1", "2", "1.0", "2.5", "true", "false", r#""""#, r#""a""#, r#""\ud83d""#, "[]", "{}"];
    let plain = [
        "request.raw.x == 'a'",
        "'a' != request.raw.x",
        "request.raw.x != 'a' and request.raw.y",
        "not request.raw.x",
        "not request.raw.x == 'a' or request.raw.y > 1",
        "request.raw.x is none or (request.raw.y and not request.raw.x == 'b')",
        "request.raw.x is not none",
        "request.raw.x >= 1",
        "request.raw.x < 2",
        "request.raw.x == 1",
        "(request.raw.x or request.raw.y) and request.raw.x != 'b'",
    ];
    let mut evaluated = 0;
    for text in plain {
        for (x, y) in values.iter().flat_map(|x| values.iter().map(move |y| (x, y))) {
            let raw = Tree::parse(format!(r#"{{"x":{x},"y":{y}}}"#).as_bytes()).unwrap();
            // Numbers are compared with numbers only: the loader rejects nothing here, because the types are not known.
            let is_compared = text.contains(['<', '>']) && ![x, y].iter().all(|value| value.parse::<f64>().is_ok());
            if is_compared {
                continue;
            }
            let mut request = TurnRequest::minimal("m", true);
            request.raw = raw;
            let (plain, engine) = both(text, &request);
            evaluated += usize::from(plain.is_some());
            assert!(plain.is_none_or(|plain| plain == engine), "{text} with x = {x}, y = {y}");
        }
    }
    assert!(evaluated > 500, "only {evaluated} were evaluated without the template engine");
}

#[test]
fn other_expressions_are_left_to_the_template_engine() {
    let request = TurnRequest::minimal("m", true);
    let others = [
        "request.raw.x | length > 1",
        "request.raw.x == request.raw.y",
        "request.raw.x in ['a']",
        "request.raw.x == 'a' == 'b'",
        "(request.raw.x) == 'a'",
        "request.raw.x == 'a\\'b'",
        "request.raw.x is string",
        "request.raw.x + 1 > 2",
        "'a' if request.raw.x else 'b'",
    ];
    for text in others {
        assert_eq!(both_or_plain(text, &request), None, "{text}");
    }
}

fn both_or_plain(text: &str, request: &TurnRequest) -> Option<bool> {
    let mut found = None;
    with_context(text, |span, cx| {
        let pool = ExpressionPoolBuilder::new(Tables::default());
        let scope = VariableScope::new("a test", [variables::REQUEST]);
        if let Some((Expression::Jinja { condition: Some(plain), .. }, _)) = pool.add(text, span, &scope, cx) {
            found = Some(is_met(&plain, &Scope::request(request)).unwrap_or_default());
        }
    });
    found
}
