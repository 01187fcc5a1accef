//! Unit tests of `engine::render::interpreter`.

use super::super::conditions::{chosen, is_met};
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
            // Numbers are compared with numbers and null only: the loader rejects nothing here, because the types are not known.
            let is_compared = text.contains(['<', '>'])
                && ![x, y].iter().all(|value| **value == "null" || value.parse::<f64>().is_ok());
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
fn an_element_of_a_list_is_read_as_by_the_template_engine() {
    let mut evaluated = 0;
    for list in ["[]", "[0]", "[1]", "[{}]", r#"[{"y":null}]"#, r#"[{"y":1},2]"#, "[[]]", r#"["a"]"#] {
        for text in [
            "request.raw.x and request.raw.x[0]",
            "request.raw.x and request.raw.x[0].y",
            "request.raw.x and not request.raw.x[0].y",
        ] {
            let mut request = TurnRequest::minimal("m", true);
            request.raw = Tree::parse(format!(r#"{{"x":{list}}}"#).as_bytes()).unwrap();
            let (plain, engine) = both(text, &request);
            evaluated += usize::from(plain.is_some());
            assert!(plain.is_none_or(|plain| plain == engine), "{text} with x = {list}");
        }
    }
    assert_eq!(evaluated, 24);
}

/// The value of an expression, by the plain choice and by the template engine.
fn both_values(text: &str, request: &TurnRequest) -> (Option<String>, String) {
    let mut found = None;
    with_context(text, |span, cx| {
        let pool = ExpressionPoolBuilder::new(Tables::default());
        let scope = VariableScope::new("a test", [variables::REQUEST]);
        let (expression, _) = pool.add(text, span, &scope, cx).unwrap();
        let pool = pool.build();
        let scope = Scope::request(request);
        let Expression::Jinja { choice, .. } = &expression else { panic!("{text} is not evaluated") };
        let plain = choice.as_ref().and_then(|choice| chosen(choice, &scope)).map(|value| value.to_json());
        found = Some((plain, from_jinja(&run(&expression, &scope, &pool).unwrap()).to_json()));
    });
    found.unwrap()
}

#[test]
fn a_plain_choice_has_the_value_of_the_template_engine() {
    let mut evaluated = 0;
    let texts = [
        "request.raw.x if request.raw.y == 1 else none",
        "'a' if request.raw.x else 'b'",
        "12 if request.raw.x is none",
        "true if request.raw.x and request.raw.y else request.raw.x",
        "request.raw.x if (request.raw.x or request.raw.y == 'a') else request.raw.y",
    ];
    let values = ["null", "0", "1", "2.5", "true", r#""""#, r#""a""#, "[]", "[1]", r#"{"b":1,"a":2}"#];
    for text in texts {
        for (x, y) in values.iter().flat_map(|x| values.iter().map(move |y| (x, y))) {
            let mut request = TurnRequest::minimal("m", true);
            request.raw = Tree::parse(format!(r#"{{"x":{x},"y":{y}}}"#).as_bytes()).unwrap();
            let (plain, engine) = both_values(text, &request);
            evaluated += usize::from(plain.is_some());
            assert!(plain.as_ref().is_none_or(|plain| *plain == engine), "{text} with x = {x}, y = {y}: {plain:?}");
        }
    }
    assert!(evaluated > 300, "only {evaluated} were evaluated without the template engine");
    let request = TurnRequest::minimal("m", true);
    for text in
        ["'a' if request.raw.x else 'b' if request.raw.y else 'c'", "'a\\'b' if request.raw.x", "'a' ~ 'b' if true"]
    {
        assert_eq!(both_values(text, &request).0, None, "{text}");
    }
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
