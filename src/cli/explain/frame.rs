//! `reframe explain --frame N`: all that is known of one frame, from the raw event to its bytes.

use crate::diagnostics::schema_message;
use crate::diagnostics::{Sources, Span};
use crate::domain::Tree;
use crate::engine::render::Scope;
use crate::engine::sse;
use crate::mapping::config::dialect::{Content, FramePlan};
use crate::mapping::language::expression::Path;
use crate::mapping::language::variables_read::Reads;
use crate::mapping::policy::resolve::Resolved;
use crate::mapping::provenance::policies::{How, deciding};
use crate::verify::{Scene, Seen, Told, told};

/// A value longer than this is cut: the frame itself stands below.
const WIDEST: usize = 72;

pub fn explain(
    scene: &Scene,
    seen: &[Seen],
    wanted: usize,
    resolved: &Resolved,
    sources: &Sources,
) -> Result<String, String> {
    let frames = told(seen);
    let Some(one) = frames.get(wanted) else {
        return Err(match frames.len() {
            0 => format!("error: no frame {wanted}: there are none"),
            count => format!("error: no frame {wanted}: there are {count}, from 0 to {}", count - 1),
        });
    };
    let dialect = &*scene.dialect;
    let plan = dialect.frames(one.frame.moment).iter().find(|p| p.span == one.made);
    let profile = dialect.profile.as_ref().map_or(String::new(), |p| format!("@{p}"));
    let mut page = Page::default();
    page.line(format!("frame {wanted} of {}: {} in {}{profile}", frames.len(), one.frame.name, dialect.name));
    match one.raw {
        Some(raw) => page.part(format!("raw event {}: {}", raw.number, raw.name), raw.data.as_ref().map(pretty)),
        None => page.part("raw event: none, for the backend had ended".into(), None),
    }
    if let Some((event, rule)) = one.event {
        page.part(format!("event: {event}"), None);
        page.line(format!("  made by {}", sources.show(rule)));
    }
    page.part(format!("moment: {}", one.frame.moment.word()), None);
    if let Some(plan) = plan {
        page.rows(variables(scene, one, plan, wanted as u64));
        page.part(format!("mapping: {}", sources.show(plan.span)), Some(yaml(plan.span, sources)));
        page.part("policies:".into(), None);
        page.rows(policies(resolved, plan, one, sources));
    }
    page.part("frame:".into(), Some(pretty(one.data)));
    page.part(schema(plan, one.data), None);
    let mut bytes = Vec::new();
    sse::write(one.frame, dialect.wire.kind, &mut bytes);
    page.part("bytes:".into(), Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()));
    Ok(page.0)
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, text: String) {
        self.0.push_str(&text);
        self.0.push('\n');
    }

    /// A heading, and below it what stands there, line by line.
    fn part(&mut self, heading: String, text: Option<String>) {
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
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &rows {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, w)| format!("{cell:<w$}")).collect();
            self.line(format!("  {}", cells.join("  ").trim_end()));
        }
    }
}

/// The variables that this frame reads, with what they held at its moment.
fn variables(scene: &Scene, one: &Told, plan: &FramePlan, seq: u64) -> Vec<Vec<String>> {
    let Some((moment, Some(state))) = one.moment else { return Vec::new() };
    let scope = Scope::moment(&scene.dialect, state, moment, &scene.request, seq, &plan.name);
    let (Content::Data(skeleton) | Content::Text(skeleton) | Content::Comment(skeleton)) = &plan.content;
    let mut read = Reads::of(plan.when.as_ref(), skeleton).given;
    read.retain(|path| !path.starts_with("policy."));
    let value = |path: &str| scope.get(&Path(path.split('.').map(Into::into).collect())).to_tree();
    read.iter().map(|path| vec![path.clone(), short(&value(path))]).collect()
}

fn policies(resolved: &Resolved, plan: &FramePlan, one: &Told, sources: &Sources) -> Vec<Vec<String>> {
    let rows = deciding(resolved, plan, one.frame.moment).into_iter().map(|d| {
        let how = match d.how {
            How::When => "is asked by when:",
            How::Shape => "is asked by the skeleton",
            How::Behind => "is behind what it tells",
        };
        let by = match d.set {
            Some(setting) => format!("set at {}", sources.show(setting.span)),
            None => "its default".to_owned(),
        };
        vec![d.name, if d.value.is_empty() { "\"\"".into() } else { d.value }, how.to_owned(), by]
    });
    rows.collect()
}

fn schema(plan: Option<&FramePlan>, data: &Tree) -> String {
    match plan.and_then(|p| p.schema.as_ref()) {
        None => "schema: none".to_owned(),
        Some(named) => match named.schema.check(data) {
            Ok(()) => format!("schema: {}, holds", named.name),
            Err(breach) => {
                format!("schema: {}, does not hold: {}", named.name, schema_message::with_value(&breach, data))
            }
        },
    }
}

/// The frame as it is written: its line, and those below it that stand further in.
fn yaml(span: Span, sources: &Sources) -> String {
    let text = sources.get(span.file).map_or("", |s| &s.text);
    let place = sources.place(span);
    let indent = |line: &str| line.len() - line.trim_start().len();
    // What stands in the middle of a line begins with the line.
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

fn pretty(tree: &Tree) -> String {
    tree.to_json_pretty()
}

fn short(tree: &Tree) -> String {
    let text = tree.to_json();
    if text.chars().count() <= WIDEST {
        return text;
    }
    text.chars().take(WIDEST - 1).chain(['…']).collect()
}
