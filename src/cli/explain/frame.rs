//! `reframe explain --frame N`: everything about one frame, from the raw event to its bytes.

use crate::cli::columns::aligned;
use crate::diagnostics::schema_message;
use crate::diagnostics::{Sources, Span};
use crate::domain::Tree;
use crate::domain::variables::FrameContext;
use crate::engine::render::Scope;
use crate::engine::sse;
use crate::mapping::config::dialect::{FrameContent, FramePlan};
use crate::mapping::language::expression::VariablePath;
use crate::mapping::language::variables_read::VariablesRead;
use crate::mapping::policy::resolve::ResolvedPolicies;
use crate::mapping::provenance::policies::{InfluenceKind, influencing_policies};
use crate::verify::{FrameTrace, TestTurn, TraceEntry, data_frames};

/// Longer values are truncated; the complete frame is printed below them.
const MAX_WIDTH: usize = 72;

pub fn explain(
    test_turn: &TestTurn,
    trace: &[TraceEntry],
    wanted: usize,
    resolved: &ResolvedPolicies,
    sources: &Sources,
) -> Result<String, String> {
    let frames = data_frames(trace);
    let Some(one) = frames.get(wanted) else {
        return Err(match frames.len() {
            0 => format!("error: no frame {wanted}: the turn has no frames"),
            count => format!("error: no frame {wanted}: the turn has {count}, from 0 to {}", count - 1),
        });
    };
    let dialect = &*test_turn.dialect;
    let plan = dialect.frames(one.frame.moment).iter().find(|p| p.span == one.span);
    let profile = dialect.profile.as_ref().map_or(String::new(), |p| format!("@{p}"));
    let mut report = FrameReport::default();
    report.line(format!("frame {wanted} of {}: {} in {}{profile}", frames.len(), one.frame.name, dialect.name));
    match one.raw {
        Some(raw) => report
            .section(format!("raw event {}: {}", raw.number, raw.name), raw.data.as_ref().map(Tree::to_json_pretty)),
        None => report.section("raw event: none, the backend stream had ended".into(), None),
    }
    if let Some((event, rule)) = one.event {
        report.section(format!("event: {event}"), None);
        report.line(format!("  made by {}", sources.show(rule)));
    }
    report.section(format!("moment: {}", one.frame.moment.name()), None);
    if let Some(plan) = plan {
        report.rows(variables(test_turn, one, plan, wanted as u64));
        report.section(format!("mapping: {}", sources.show(plan.span)), Some(yaml(plan.span, sources)));
        report.section("policies:".into(), None);
        report.rows(policies(resolved, plan, one, sources));
    }
    report.section("frame:".into(), Some(one.data.to_json_pretty()));
    report.section(schema(plan, one.data), None);
    let mut bytes = Vec::new();
    sse::write(one.frame, dialect.encoding.format, &mut bytes);
    report.section("bytes:".into(), Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()));
    Ok(report.0)
}

#[derive(Default)]
struct FrameReport(String);

impl FrameReport {
    fn line(&mut self, text: String) {
        self.0.push_str(&text);
        self.0.push('\n');
    }

    /// A heading with indented text below it.
    fn section(&mut self, heading: String, text: Option<String>) {
        self.0.push('\n');
        self.line(heading);
        for line in text.iter().flat_map(|t| t.lines()) {
            self.line(format!("  {line}"));
        }
    }

    fn rows(&mut self, rows: Vec<Vec<String>>) {
        if rows.is_empty() {
            self.line("  none".into());
        }
        for line in aligned(&rows, usize::MAX).lines() {
            self.line(format!("  {line}"));
        }
    }
}

/// The variables that this frame reads, with their values at its moment.
fn variables(test_turn: &TestTurn, one: &FrameTrace, plan: &FramePlan, seq: u64) -> Vec<Vec<String>> {
    let Some((moment, Some(state))) = one.moment else { return Vec::new() };
    let context = FrameContext { state, moment, request: &test_turn.request, seq, frame: &plan.name };
    let scope = Scope::frame(&test_turn.dialect, &context);
    let (FrameContent::Data(skeleton) | FrameContent::Text(skeleton) | FrameContent::Comment(skeleton)) = &plan.content;
    let mut read = VariablesRead::of(plan.when.as_ref(), skeleton).given;
    read.retain(|path| !path.starts_with("policy."));
    let value = |path: &str| scope.get(&VariablePath::new(path.split('.').map(Into::into).collect())).to_tree();
    read.iter().map(|path| vec![path.clone(), short(&value(path))]).collect()
}

fn policies(resolved: &ResolvedPolicies, plan: &FramePlan, one: &FrameTrace, sources: &Sources) -> Vec<Vec<String>> {
    let rows = influencing_policies(resolved, plan, one.frame.moment).into_iter().map(|d| {
        let how = match d.kind {
            InfluenceKind::When => "read by `when:`",
            InfluenceKind::Shape => "read by the skeleton",
            InfluenceKind::Implicit => "affects its values",
        };
        let by = match d.setting {
            Some(setting) => format!("set at {}", sources.show(setting.span)),
            None => "default".to_owned(),
        };
        vec![d.name, if d.value.is_empty() { "\"\"".into() } else { d.value }, how.to_owned(), by]
    });
    rows.collect()
}

fn schema(plan: Option<&FramePlan>, data: &Tree) -> String {
    match plan.and_then(|p| p.schema.as_ref()) {
        None => "schema: none".to_owned(),
        Some(named) => match named.schema.check(data) {
            Ok(()) => format!("schema: {}, valid", named.name),
            Err(violation) => {
                format!("schema: {}, violated: {}", named.name, schema_message::describe_with_value(&violation, data))
            }
        },
    }
}

/// The YAML of the frame: its line, and the lines below it that are indented further.
fn yaml(span: Span, sources: &Sources) -> String {
    let text = sources.get(span.file).map_or("", |s| &s.text);
    let place = sources.location(span);
    let indent = |line: &str| line.len() - line.trim_start().len();
    // A frame that starts in the middle of a line is printed from the beginning of the line.
    let own = text.lines().nth(place.line - 1).map_or(0, indent).min(place.column - 1);
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().skip(place.line - 1) {
        if !lines.is_empty() && !line.trim().is_empty() && indent(line) <= own {
            break;
        }
        lines.push(line);
    }
    while lines.last().is_some_and(|l| l.trim().is_empty()) {
        lines.pop();
    }
    let cut = |line: &&str| line.get(own.min(indent(line))..).unwrap_or(line).to_owned();
    lines.iter().map(cut).collect::<Vec<_>>().join("\n")
}

fn short(tree: &Tree) -> String {
    let text = tree.to_json();
    if text.chars().count() <= MAX_WIDTH {
        return text;
    }
    text.chars().take(MAX_WIDTH - 1).chain(['…']).collect()
}
