//! Unit tests of `engine::render::target`: the text of a skeleton is that of its draft.

use super::super::Scope;
use super::super::interpreter::{RenderError, draft, write};
use crate::domain::Tree;
use crate::domain::TurnRequest;
use crate::mapping::language::expression::{Expression, ExpressionPoolBuilder, VariablePath};
use crate::mapping::language::skeleton::{Skeleton, TextSegment};
use crate::mapping::language::table::Tables;
use std::sync::Arc;

fn variable(path: &str) -> Expression {
    Expression::Variable(VariablePath::new(path.split('.').map(Into::into).collect()))
}

fn value(path: &str, optional: bool) -> Skeleton {
    Skeleton::Placeholder { expression: variable(path), optional }
}

fn when(path: &str, then: Skeleton, otherwise: Option<Skeleton>) -> Skeleton {
    Skeleton::If { condition: variable(path), then: Arc::new(then), otherwise: otherwise.map(Arc::new) }
}

fn each(list: &str, filter: Option<&str>, body: Skeleton) -> Skeleton {
    Skeleton::Each { list: variable(list), name: "e".into(), filter: filter.map(variable), body: Arc::new(body) }
}

fn map(entries: Vec<(&str, Skeleton)>) -> Skeleton {
    Skeleton::Map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

fn constant() -> Skeleton {
    Skeleton::Constant(Tree::parse(br#"{"c":[1.0,"\u0001"]}"#).unwrap())
}

#[test]
fn a_written_skeleton_is_its_draft() {
    let mut request = TurnRequest::minimal("m", true);
    request.raw = Tree::parse(br#"{"a":[{"x":1},{"x":null},{"x":"\"t"}],"s":"w","n":null,"e":[]}"#).unwrap();
    let text =
        || Skeleton::Text([TextSegment::Text("a ".into()), TextSegment::Placeholder(variable("request.raw.s"))].into());
    let switch = |on: &str, default: Option<Skeleton>| Skeleton::Switch {
        on: variable(on),
        cases: [("w".into(), constant()), ("v".into(), value("request.n", false))].into(),
        default: default.map(Arc::new),
    };
    let skeletons = [
        constant(),
        text(),
        value("request.raw", false),
        value("request.raw.n", false),
        value("request.raw.n", true),
        when("request.raw.s", constant(), None),
        when("request.raw.n", constant(), None),
        when("request.raw.n", constant(), Some(text())),
        switch("request.raw.s", None),
        switch("request.raw.n", None),
        switch("request.raw.n", Some(constant())),
        each("request.raw.a", None, value("e.x", true)),
        each("request.raw.a", None, value("e.x", false)),
        each("request.raw.a", Some("e.x"), map(vec![("k", value("e.x", true)), ("l", value("e", false))])),
        each("request.raw.e", None, constant()),
        Skeleton::With {
            name: "w".into(),
            value: variable("request.raw.a"),
            body: Arc::new(each("w", None, value("e.x", true))),
        },
        Skeleton::Merge([constant(), map(vec![("c", text())]), value("request.raw.n", false)].into()),
    ];
    let pool = ExpressionPoolBuilder::new(Tables::default()).build();
    let all = |make: &dyn Fn(Skeleton) -> Skeleton| skeletons.iter().cloned().map(make).collect::<Vec<_>>();
    let mut nested = all(&|skeleton| skeleton);
    nested.push(Skeleton::List(all(&|skeleton| skeleton).into()));
    nested.push(Skeleton::List(all(&|skeleton| Skeleton::List([skeleton].into())).into()));
    nested.push(Skeleton::List(all(&|skeleton| map(vec![("\"first", skeleton.clone()), ("last", skeleton)])).into()));
    for skeleton in &nested {
        let mut written = b"before".to_vec();
        let is_written = write(skeleton, &mut Scope::request(&request), &pool, &mut written).unwrap();
        let draft = draft(skeleton, &mut Scope::request(&request), &pool).unwrap().map(|draft| draft.to_json());
        assert_eq!(is_written, draft.is_some(), "{skeleton:?}");
        assert_eq!(String::from_utf8(written).unwrap(), format!("before{}", draft.unwrap_or_default()), "{skeleton:?}");
    }
}

#[test]
fn a_rejection_is_an_error() {
    let message = || Arc::new(Skeleton::Constant(Tree::from("no")));
    let rejected = Skeleton::List([Skeleton::Reject { message: message(), param: Some(message()) }].into());
    let pool = ExpressionPoolBuilder::new(Tables::default()).build();
    let request = TurnRequest::minimal("m", true);
    let error = write(&rejected, &mut Scope::request(&request), &pool, &mut Vec::new()).unwrap_err();
    assert_eq!(error, RenderError::Rejected { message: "no".into(), param: Some("no".into()) });
}
