//! What a test expects, compared with what came: whole names, subsets of values, single values by JSONPath.

use super::case::{Case, Played};
use crate::canon::{Frame, FrameBody, Tree};
use crate::mapping::fields::{Cx, Fields, constant};
use crate::mapping::select::{Cursor, Selector};
use crate::mapping::yaml::Node;

/// What differs, a line each. Mistakes in the expectation itself go to `cx`.
pub fn compare(case: &Case, played: &Played, cx: Cx) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(fields) = Fields::of(&case.expect, "`expect:`", cx) {
        if let Some(node) = fields.get("frames") {
            let got: Vec<&str> = played.frames.iter().map(|(f, _)| &*f.name).collect();
            names("frames", &constant(node), &got, &mut lines);
        }
        if let Some(node) = fields.get("events") {
            let got: Vec<String> = played.events.iter().map(|e| e.brief()).collect();
            let got: Vec<&str> = got.iter().map(String::as_str).collect();
            names("events", &constant(node), &got, &mut lines);
        }
        for node in fields.list("where") {
            single(node, played, cx, &mut lines);
        }
        if let Some(node) = fields.get("body") {
            match &played.body {
                Some(Ok(body)) => subset("body", &constant(node), body, &mut lines),
                Some(Err(fault)) => lines.push(format!("body: there is none, but a fault: {}", fault.message)),
                None => lines.push("body: there is none, for nothing was given".into()),
            }
        }
        if let Some(node) = fields.get("request") {
            match (&played.request, &played.fault) {
                (Some(request), _) => subset("request", &constant(node), request, &mut lines),
                (None, Some(fault)) => lines.push(format!("request: refused: {}", fault.message)),
                (None, None) => lines.push("request: there is none; name a dialect".into()),
            }
        }
        if let Some(node) = fields.get("fault") {
            match &played.fault {
                Some(fault) => {
                    let got = Tree::map([
                        ("kind", Tree::from(fault.kind.word())),
                        ("message", Tree::from(fault.message.as_str())),
                        ("param", fault.param.as_deref().map_or(Tree::Null, Tree::from)),
                        ("code", fault.code.as_deref().map_or(Tree::Null, Tree::from)),
                        ("status", Tree::from(i64::from(fault.status()))),
                    ]);
                    subset("fault", &constant(node), &got, &mut lines);
                }
                None => lines.push("fault: there is none".into()),
            }
        } else if let (Some(fault), true) =
            (&played.fault, fields.get("body").is_none() && fields.get("frames").is_some())
        {
            lines.push(format!("the turn failed: {}", fault.message));
        }
        fields.done();
    }
    lines
}

fn names(what: &str, expected: &Tree, got: &[&str], lines: &mut Vec<String>) {
    let expected: Vec<&str> = expected.as_list().unwrap_or(&[]).iter().filter_map(Tree::as_str).collect();
    if expected == got {
        return;
    }
    let at = expected.iter().zip(got).position(|(e, g)| e != g).unwrap_or(expected.len().min(got.len()));
    let show = |list: &[&str]| list.get(at).map_or("nothing".to_owned(), |n| format!("`{n}`"));
    lines.push(format!("{what}: at {at} expected {}, got {}", show(&expected), show(got)));
}

/// `{ frame: 8, "$.output_index": 1 }`; `frame: last` is the last one.
fn single(node: &Node, played: &Played, cx: Cx, lines: &mut Vec<String>) {
    let Some(fields) = Fields::of(node, "`where:`", cx) else { return };
    let Some(which) = fields.required("frame").map(constant) else { return };
    let found = match which.as_u64() {
        Some(n) => played.frames.get(n as usize),
        None => played.frames.last(),
    };
    let Some((Frame { name, body: FrameBody::Data(data), .. }, span)) = found else {
        lines.push(format!("frame {which}: there is none"));
        return;
    };
    for entry in fields.rest() {
        let Some(selector) = Selector::parse(&entry.key, entry.key_span, cx) else { continue };
        let got = selector.one(&Cursor::new(data)).cloned().unwrap_or_default();
        let expected = constant(&entry.value);
        if got != expected {
            let place = cx.sources.show_short(*span);
            lines.push(format!(
                "frame {which} `{name}` {}: expected {expected}, got {got} (made by {place})",
                entry.key
            ));
        }
    }
}

/// Every member that is expected must be there and equal; lists are compared element by element.
fn subset(path: &str, expected: &Tree, got: &Tree, lines: &mut Vec<String>) {
    match (expected, got) {
        (Tree::Map(members), Tree::Map(_)) => {
            for (key, value) in members {
                match got.get(key) {
                    Some(inner) => subset(&format!("{path}.{key}"), value, inner, lines),
                    None if value.is_null() => {}
                    None => lines.push(format!("{path}.{key}: expected {value}, got nothing")),
                }
            }
        }
        (Tree::List(expected), Tree::List(got)) if expected.len() == got.len() => {
            for (i, (expected, got)) in expected.iter().zip(got).enumerate() {
                subset(&format!("{path}[{i}]"), expected, got, lines);
            }
        }
        _ if expected == got => {}
        _ => lines.push(format!("{path}: expected {expected}, got {got}")),
    }
}
