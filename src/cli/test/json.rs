//! The JSON report of the tests.

use super::human::command;
use super::{TestReport, TestRun};
use crate::diagnostics::Sources;
use crate::domain::Tree;
use crate::reload::Layers;
use crate::verify::{Difference, DifferenceKind};
use std::time::Duration;

pub fn report(report: &TestReport, layers: &Layers) -> String {
    let files = report.files.iter().map(|file| {
        let tests = file.tests.iter().map(|t| test(t, &report.sources, layers));
        let errors = file.mistakes.iter().map(|m| {
            let place = report.sources.location(m.span);
            Tree::map([
                ("code", m.code.as_str().into()),
                ("message", m.message.as_str().into()),
                ("line", number(place.line)),
                ("column", number(place.column)),
            ])
        });
        Tree::map([
            ("file", file.shown.as_str().into()),
            ("passed", number(file.passed())),
            ("failed", number(file.failed())),
            ("duration_ms", ms(file.duration())),
            ("tests", tests.collect::<Vec<_>>().into()),
            ("errors", errors.collect::<Vec<_>>().into()),
        ])
    });
    let files: Vec<Tree> = files.collect();
    let report = Tree::map([
        ("passed", number(report.passed())),
        ("failed", number(report.failed())),
        ("duration_ms", ms(report.duration)),
        ("files", files.into()),
    ]);
    report.to_json_pretty() + "\n"
}

fn test(test: &TestRun, sources: &Sources, layers: &Layers) -> Tree {
    let place = sources.location(test.case.span);
    let differences = test.differences.iter().map(|d| difference(d, sources));
    let mut tree = Tree::map([
        ("name", test.case.name.as_str().into()),
        ("line", number(place.line)),
        ("column", number(place.column)),
        ("passed", test.differences.is_empty().into()),
        ("duration_ms", ms(test.duration)),
        ("differences", differences.collect::<Vec<_>>().into()),
    ]);
    if let Some(command) = command(test, sources, layers).filter(|_| !test.differences.is_empty()) {
        tree.insert("explain", command.as_str().into());
    }
    tree
}

fn difference(difference: &Difference, sources: &Sources) -> Tree {
    let mut tree =
        Tree::map([("path", difference.path.as_str().into()), ("message", difference.brief().as_str().into())]);
    let names = |list: &[String]| Tree::from(list.iter().map(|n| Tree::from(n.as_str())).collect::<Vec<_>>());
    match &difference.kind {
        DifferenceKind::Value { expected, got, .. } => {
            tree.insert("expected", expected.clone());
            tree.insert("got", got.clone().unwrap_or_default());
        }
        DifferenceKind::Names { expected, got } => {
            tree.insert("expected", names(expected));
            tree.insert("got", names(got));
        }
        DifferenceKind::Kind { got, .. } => tree.insert("got", got.clone().unwrap_or_default()),
        DifferenceKind::Unexpected(got) => tree.insert("got", got.clone()),
        DifferenceKind::Message(_) => {}
    }
    if let Some(source) = &difference.source {
        tree.insert("made_by", sources.show(source.span).as_str().into());
        if let Some(frame) = source.frame {
            tree.insert("frame", number(frame));
        }
        if let Some(moment) = source.moment {
            tree.insert("moment", moment.into());
        }
        if let Some((event, _)) = &source.raw {
            tree.insert("event", number(*event));
        }
    }
    tree
}

fn number(n: usize) -> Tree {
    Tree::from(n as i64)
}

fn ms(time: Duration) -> Tree {
    Tree::from((time.as_secs_f64() * 1e6).round() / 1e3)
}
