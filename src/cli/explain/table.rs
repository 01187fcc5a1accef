//! The table: what came of each raw event, which lines made it, and which policies had a say.

use crate::cli::check::counted;
use crate::diagnostics::{Sources, Span};
use crate::domain::{FrameBody, MomentKind};
use crate::engine::pipeline::Pipeline;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::policy::resolve::Resolved;
use crate::mapping::provenance::policies::{Deciding, How, deciding, denying};
use crate::verify::{Scene, Seen};

const HEAD: [&str; 7] = ["  #  backend event", "event", "rule", "moment", "frame", "rule", "policies"];
/// Longer cells stand out of their column; they are rare.
const WIDEST: usize = 44;

pub fn table(scene: &Scene, seen: &[Seen], resolved: &Resolved, sources: &Sources) -> String {
    let mut rows = Rows {
        sources,
        dialect: &scene.dialect,
        resolved,
        rows: Vec::new(),
        next: Next::default(),
        frames: 0,
        told: Vec::new(),
    };
    seen.iter().for_each(|one| rows.see(one));
    rows.flush();
    let head = HEAD.map(str::to_owned);
    let width = |column: usize| {
        let widths = rows.rows.iter().chain([&head]).map(|r| r[column].chars().count());
        // By the names of its events a backend is known: they have all the room they need.
        widths.max().unwrap_or(0).min(if column == 0 { usize::MAX } else { WIDEST })
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut text = String::new();
    for row in [&head].into_iter().chain(&rows.rows) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Row by row. A column that has not changed since the last row stays empty.
struct Rows<'s> {
    sources: &'s Sources,
    dialect: &'s DialectPlan,
    resolved: &'s Resolved,
    rows: Vec<[String; 7]>,
    next: Next,
    frames: usize,
    /// The frames and moments whose policies stand in an earlier row.
    told: Vec<Span>,
}

/// What the next row begins with.
#[derive(Default)]
struct Next {
    raw: String,
    event: String,
    rule: String,
    moment: String,
    kind: Option<MomentKind>,
}

impl Rows<'_> {
    fn see(&mut self, seen: &Seen) {
        match seen {
            Seen::Raw(raw) => {
                self.flush();
                self.next.raw = format!("{:>3}  {}", raw.number, raw.name);
            }
            Seen::Event(event, span) => {
                self.flush_event();
                self.next.event = event.clone();
                self.next.rule = self.sources.show_short(*span);
            }
            Seen::Dropped(why, rule) => {
                self.next.rule = self.sources.show_short(*rule);
                self.say(format!("dropped: {why}"));
            }
            Seen::Puzzling(what) => self.say(format!("not understood: {what}")),
            Seen::Late => {
                self.next.moment = "–".into();
                self.say("dropped: it came too late".into());
            }
            Seen::Moment(moment, _) => {
                self.flush_moment();
                self.next.moment = moment.kind.word().to_owned();
                self.next.kind = Some(moment.kind);
            }
            Seen::Frame(frame, span) => {
                let name = match &frame.body {
                    FrameBody::Data(_) => {
                        self.frames += 1;
                        format!("{:>3}  {}", self.frames - 1, frame.name)
                    }
                    FrameBody::Text(text) => format!("     {} {text}", frame.name),
                    FrameBody::Comment(text) => format!("     : {text}"),
                };
                let (rule, policies) = (self.sources.show_short(*span), self.policies(frame.moment, *span));
                self.row(name, rule, policies);
            }
            Seen::Breach(breach) => {
                let made = Some(breach.made()).filter(|made| *made != Span::NOWHERE);
                let rule = made.map_or(String::new(), |made| self.sources.show_short(made));
                self.row(format!("breach: {}", breach.says()), rule, String::new());
            }
        }
    }

    /// Those without which the frame would not be there, and others only where somebody chose. Once for each frame: a
    /// stream has hundreds of pieces.
    fn policies(&mut self, moment: MomentKind, made: Span) -> String {
        let Some(plan) = self.dialect.frames(moment).iter().find(|p| p.span == made) else { return String::new() };
        if self.told.contains(&made) {
            return String::new();
        }
        self.told.push(made);
        words(deciding(self.resolved, plan, moment).iter().filter(|d| d.how == How::When || !d.default))
    }

    fn say(&mut self, what: String) {
        self.row(what, String::new(), String::new());
    }

    fn row(&mut self, frame: String, rule: String, policies: String) {
        let Next { raw, event, rule: by, moment, .. } = std::mem::take(&mut self.next);
        self.rows.push([raw, event, by, moment, frame, rule, policies]);
    }

    /// A moment that no frame was written for.
    fn flush_moment(&mut self) {
        if self.next.moment.is_empty() {
            return;
        }
        let silent = self.next.kind.and_then(|kind| self.silent(kind));
        match silent.filter(|(span, _)| !self.told.contains(span)) {
            Some((span, policies)) => {
                self.told.push(span);
                self.row("–".into(), self.sources.show_short(span), policies);
            }
            None => self.say("–".into()),
        }
    }

    /// The frame that a policy turned off, be it for this request only.
    fn silent(&self, kind: MomentKind) -> Option<(Span, String)> {
        let off = denying(self.resolved, self.dialect, kind)
            .into_iter()
            .map(|(span, policies)| (span, words(policies.iter())));
        let asking = self.dialect.frames(kind).iter().map(|plan| {
            let asked = deciding(self.resolved, plan, kind);
            (plan.span, words(asked.iter().filter(|d| d.how == How::When)))
        });
        off.chain(asking.filter(|(_, policies)| !policies.is_empty())).next()
    }

    fn flush_event(&mut self) {
        self.flush_moment();
        if !self.next.event.is_empty() {
            self.say(String::new());
        }
    }

    fn flush(&mut self) {
        self.flush_event();
        if !self.next.raw.is_empty() {
            self.say(String::new());
        }
    }
}

/// `output_index=message_first terminator=typed`
fn words<'d>(policies: impl Iterator<Item = &'d Deciding<'d>>) -> String {
    let value = |value: &str| match value.split_once(", ") {
        // A list has no room in a table.
        Some((first, _)) => format!("{first},…"),
        None if value.is_empty() => "\"\"".to_owned(),
        None => value.to_owned(),
    };
    let mut words: Vec<String> = policies.map(|d| format!("{}={}", d.name, value(&d.value))).collect();
    // A policy may be asked in two places.
    let mut told: Vec<String> = Vec::new();
    words.retain(|word| {
        let new = !told.contains(word);
        told.push(word.clone());
        new
    });
    words.join(" ")
}

/// `7 frames · schema ok · order ok · usage 58+15 · finish tool_calls (backend said stop)`
pub fn summary(pipeline: &Pipeline, seen: &[Seen]) -> String {
    let state = pipeline.state();
    let frames = seen.iter().filter(|s| matches!(s, Seen::Frame(f, _) if matches!(f.body, FrameBody::Data(_)))).count();
    let breaches = seen.iter().filter(|s| matches!(s, Seen::Breach(_))).count();
    let mut parts = vec![counted(frames, "frame")];
    parts.push(match breaches {
        0 => "schema ok".to_owned(),
        1 => "1 breach".to_owned(),
        many => format!("{many} breaches"),
    });
    match &state.error {
        Some(fault) => parts.push(format!("failed: {}", fault.message)),
        None => {
            parts.push("order ok".into());
            parts.extend(state.usage.map(|u| format!("usage {}+{}", u.input.unwrap_or(0), u.output.unwrap_or(0))));
            parts.extend(state.finish.map(|f| format!("finish {}{}", f.word(), other_finish(seen, f.word()))));
        }
    }
    if pipeline.late() > 0 {
        parts.push(format!("{} late", pipeline.late()));
    }
    parts.join(" · ")
}

/// Where the backend's own word did not win.
fn other_finish(seen: &[Seen], won: &str) -> String {
    let said = seen.iter().rev().find_map(|s| match s {
        Seen::Event(event, _) => event.strip_prefix("finish "),
        _ => None,
    });
    said.filter(|s| *s != won).map_or(String::new(), |s| format!(" (the backend said {s})"))
}
