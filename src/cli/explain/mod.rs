//! `reframe explain`: what a dialect makes of a transcript, event by event, with the line that made each frame.

mod policies;

use super::{COULD_NOT_RUN, FINDINGS, FINE, colour};
use crate::canon::{Fault, FrameBody, Tree, TurnRequest};
use crate::diag::{Findings, Sources, one_of, render_all};
use crate::ingress;
use crate::mapping::dialect::DialectPlan;
use crate::mapping::fields::Cx;
use crate::mapping::gateway::Validation;
use crate::mapping::transcript::{self, Transcript};
use crate::mapping::{Overrides, Plan, load_after};
use crate::pipeline::{Answer, Observer, Order, Pipeline, Sight};
use crate::reload::{Layers, read};
use crate::turn::Ids;
use clap::Args;
use policies::{Client, ClientArgs};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

#[derive(Args)]
pub struct ExplainArgs {
    /// A transcript: a folder with events.jsonl (and request.json), a .jsonl file, or a name in the set
    #[arg(required_unless_present = "policies")]
    transcript: Option<PathBuf>,
    /// The dialect to explain it in
    #[arg(long, value_name = "DIALECT", required_unless_present = "route", conflicts_with = "route")]
    to: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
    /// A profile to lay over the dialect
    #[arg(long)]
    profile: Option<String>,
    /// Say which policies hold, and which file and line, variable or header set each
    #[arg(long)]
    policies: bool,
}

pub fn run(args: &ExplainArgs, layers: &Layers, overrides: &Overrides) -> u8 {
    match explain(args, layers, overrides) {
        Ok(true) => FINE,
        Ok(false) => FINDINGS,
        Err(message) => {
            eprintln!("{message}");
            COULD_NOT_RUN
        }
    }
}

fn explain(args: &ExplainArgs, layers: &Layers, overrides: &Overrides) -> Result<bool, String> {
    let files = read(layers).map_err(|refusal| refusal.render(colour()))?;
    let loaded = load_after(&files, None, overrides);
    let Some(plan) = loaded.plan else {
        return Err(render_all(&loaded.diagnostics, &loaded.sources, colour()));
    };
    let dialect = match (&args.client.route, &args.to) {
        (Some(endpoint), _) => {
            let client = Client::new(&args.client, endpoint, &plan)?;
            if args.policies {
                say(&client.told(&plan)?);
            }
            &client.variant()?.plan
        }
        (None, to) => {
            let dialect = named(to.as_deref().unwrap_or_default(), args.profile.as_deref(), &plan)?;
            if args.policies {
                say(&policies::of_pair(dialect, &plan));
            }
            dialect
        }
    };
    let Some(given) = &args.transcript else { return Ok(true) };
    let transcript = find(given, &plan)?;
    let backend = plan.backend(&transcript.backend).ok_or_else(|| {
        format!("error: the transcript names the backend `{}`, which is not in this set", transcript.backend)
    })?;
    let request = request(given, dialect)?;
    let rows = Arc::new(Mutex::new(Rows::new(plan.sources.clone())));
    let mut pipeline = Pipeline::new(Order {
        backend: backend.clone(),
        dialect: dialect.clone(),
        request: Arc::new(request),
        validation: Validation::Strict,
        answer: Answer::Stream,
        masks: Default::default(),
        hidden: None,
        ids: Ids::Counting(0),
        now_ms: 0,
    })
    .observe(Box::new(Watcher(rows.clone())));
    pipeline.play(transcript.lines.iter().map(|l| &l.what), 0);
    let rows = rows.lock().unwrap_or_else(|e| e.into_inner());
    rows.print();
    println!("{}", summary(&pipeline, &rows));
    Ok(rows.breaches == 0 && pipeline.fault().is_none_or(|f| f.kind != crate::canon::FaultKind::Breach))
}

/// Who reads only the first lines closes the pipe; that is no reason to fall over.
fn say(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

/// What a client of this dialect gets, unless another profile is asked for.
fn named<'p>(to: &str, profile: Option<&str>, plan: &'p Plan) -> Result<&'p Arc<DialectPlan>, String> {
    let routed = plan.gateway.routes.iter().find(|r| r.dialect == to).and_then(|r| r.profile.as_deref());
    plan.dialect(to, profile.or(routed)).ok_or_else(|| {
        let mut known: Vec<&str> = plan.dialects().map(|d| d.name.as_str()).collect();
        known.dedup();
        let profile = profile.map(|p| format!(" with profile `{p}`")).unwrap_or_default();
        format!("error: no dialect `{to}`{profile}; there is {}", one_of(known))
    })
}

fn find(given: &Path, plan: &Plan) -> Result<Arc<Transcript>, String> {
    let name = given.to_string_lossy();
    if let Some(found) = plan.transcripts.iter().find(|t| t.name == name) {
        return Ok(found.clone());
    }
    let file = if given.is_dir() { given.join("events.jsonl") } else { given.to_path_buf() };
    let text = std::fs::read_to_string(&file).map_err(|e| {
        let known: Vec<&str> = plan.transcripts.iter().map(|t| t.name.as_str()).collect();
        format!("error: {}: {e}\nthe set has the transcripts {}", file.display(), one_of(known))
    })?;
    let mut sources = Sources::default();
    let id = sources.add(name.as_ref(), file.display().to_string(), Arc::from(text.as_str()));
    let findings = Findings::default();
    let parsed = transcript::parse(&name, id, &text, Cx { sources: &sources, findings: &findings });
    parsed.map(Arc::new).ok_or_else(|| render_all(&findings.into_sorted(), &sources, colour()))
}

/// `request.json` beside the events, if it is there.
fn request(transcript: &Path, dialect: &DialectPlan) -> Result<TurnRequest, String> {
    let file = transcript.join("request.json");
    let Ok(text) = std::fs::read_to_string(&file) else { return Ok(TurnRequest::plain("explained", true)) };
    let show = |why: String| format!("error: {}: {why}", file.display());
    let body = Tree::parse(text.as_bytes()).map_err(|e| show(e.to_string()))?;
    // A transcript's request may have one body for each dialect.
    let body = body.get(&dialect.name).unwrap_or(&body);
    ingress::read_tree(&dialect.request, body).map_err(|f: Fault| show(f.message))
}

struct Watcher(Arc<Mutex<Rows>>);

impl Observer for Watcher {
    fn see(&mut self, sight: Sight) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).see(sight);
    }
}

/// The table, row by row. A column that has not changed since the last row stays empty.
struct Rows {
    sources: Arc<Sources>,
    rows: Vec<[String; 5]>,
    raw: usize,
    raw_shown: String,
    event: String,
    moment: String,
    frames: usize,
    breaches: usize,
}

impl Rows {
    fn new(sources: Arc<Sources>) -> Rows {
        Rows {
            sources,
            rows: Vec::new(),
            raw: 0,
            raw_shown: String::new(),
            event: String::new(),
            moment: String::new(),
            frames: 0,
            breaches: 0,
        }
    }

    fn see(&mut self, sight: Sight) {
        match sight {
            Sight::Raw(raw) => {
                self.flush();
                self.raw += 1;
                self.raw_shown = format!("{:>3}  {}", self.raw, brief(raw));
            }
            Sight::Event(event, _) => {
                self.flush_event();
                self.event = event.brief();
            }
            Sight::Dropped(why) => self.row(String::new(), format!("dropped: {why}"), String::new()),
            Sight::Puzzling(what) => self.row(String::new(), format!("not understood: {what}"), String::new()),
            Sight::Late => self.row("–".into(), "dropped: it came too late".into(), String::new()),
            Sight::Moment(moment, _) => {
                self.flush_moment();
                self.moment = moment.kind.word().to_owned();
            }
            Sight::Frame(frame, span) => {
                let name = match &frame.body {
                    FrameBody::Data(_) => {
                        self.frames += 1;
                        format!("{:>3}  {}", self.frames - 1, frame.name)
                    }
                    FrameBody::Text(text) => format!("     {} {text}", frame.name),
                    FrameBody::Comment(text) => format!("     : {text}"),
                };
                let rule = self.sources.show_short(span);
                let moment = std::mem::take(&mut self.moment);
                self.row(moment, name, rule);
            }
            Sight::Breach(fault, _, broken) => {
                self.breaches += 1;
                let why = broken.map_or(String::new(), |b| format!(": {}", b.breach.message));
                self.row(String::new(), format!("breach: {}{why}", fault.message), String::new());
            }
            Sight::Body(..) => {}
        }
    }

    fn row(&mut self, moment: String, frame: String, rule: String) {
        let raw = std::mem::take(&mut self.raw_shown);
        let event = std::mem::take(&mut self.event);
        self.rows.push([raw, event, moment, frame, rule]);
    }

    /// A moment that no frame was written for.
    fn flush_moment(&mut self) {
        if !self.moment.is_empty() {
            let moment = std::mem::take(&mut self.moment);
            self.row(moment, "–".into(), String::new());
        }
    }

    fn flush_event(&mut self) {
        self.flush_moment();
        if !self.event.is_empty() {
            self.row(String::new(), String::new(), String::new());
        }
    }

    fn flush(&mut self) {
        self.flush_event();
        if !self.raw_shown.is_empty() {
            self.row(String::new(), String::new(), String::new());
        }
    }

    fn print(&self) {
        let head = ["  #  backend event", "event", "moment", "frame", "rule"].map(str::to_owned);
        let width = |column: usize| {
            let widths = self.rows.iter().chain([&head]).map(|r| r[column].chars().count());
            widths.max().unwrap_or(0).min(44)
        };
        let widths: Vec<usize> = (0..5).map(width).collect();
        for row in [&head].into_iter().chain(&self.rows) {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }
}

/// What a person recognises a raw event by: its type or method, else its first keys.
fn brief(raw: &Tree) -> String {
    let named = ["type", "method", "event", "object"].iter().find_map(|k| raw.get(k).and_then(Tree::as_str));
    match (named, raw.as_map()) {
        (Some(name), _) => name.chars().take(32).collect(),
        (None, Some(members)) => {
            let keys: Vec<&str> = members.iter().take(3).map(|(k, _)| &**k).collect();
            format!("{{{}}}", keys.join(", "))
        }
        (None, None) => raw.type_name().to_owned(),
    }
}

fn summary(pipeline: &Pipeline, rows: &Rows) -> String {
    let state = pipeline.state();
    let mut parts = vec![format!("{} frames", rows.frames)];
    parts.push(if rows.breaches == 0 { "schema ok".into() } else { format!("{} breaches", rows.breaches) });
    match &state.error {
        Some(fault) => parts.push(format!("failed: {}", fault.message)),
        None => {
            parts.push("order ok".into());
            parts.extend(state.usage.map(|u| format!("usage {}+{}", u.input.unwrap_or(0), u.output.unwrap_or(0))));
            parts.extend(state.finish.map(|f| format!("finish {}", f.word())));
        }
    }
    if pipeline.late() > 0 {
        parts.push(format!("{} late", pipeline.late()));
    }
    parts.join(" · ")
}
