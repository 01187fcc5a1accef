//! Metadata lines: removes lines of a backend's text that repeat metadata, such as `session_id: 7`. A pure pass over
//! events, before inline blocks are searched for.
//!
//! Text is held back only while it can still become a known key, at the beginning of a line or inside it, so that the
//! result does not depend on how the backend splits its text.

use super::choice_text::Target;
use super::logprobs::HeldLogprobs;
use super::metadata_search::{Found, LineSearch};
use super::received::ReceivedText;
use crate::domain::metadata_key::normal_key;
use crate::domain::{Delta, Event, Fault, FaultKind, RemovedMetadata, Tree};
use crate::turn::deltas;
use std::sync::Arc;

/// Choices with a higher index are not searched: the turn rejects them.
const MAX_CHOICES: usize = 128;
/// The beginning of a line that is held back, in bytes. A longer one is text.
const MAX_START: usize = 256;
/// A line with metadata as JSON, in bytes. A longer one is text.
const MAX_JSON: usize = 64 * 1024;
/// Keys that are learned in a turn.
const MAX_LEARNED: usize = 256;
/// What precedes metadata as JSON: `metadata: { … }`.
const METADATA: &str = "metadata";

/// The metadata lines of a turn.
#[derive(Debug)]
pub struct MetadataLines {
    /// In normal form.
    known: Arc<[String]>,
    learned: Vec<String>,
    /// Lines that are a JSON object are removed.
    json_lines: bool,
    choices: Vec<Lines>,
    /// The backend sends snapshots of its text, which are compared with all text so far.
    has_snapshots: bool,
    max_bytes: usize,
    /// A fault was emitted: nothing follows.
    failed: bool,
    removed: RemovedMetadata,
}

/// The text of one choice.
#[derive(Debug, Default)]
struct Lines {
    finished: bool,
    received: ReceivedText,
    surrogate: Option<u16>,
    target: Target,
    logprobs: HeldLogprobs,
    /// The length of the text so far, with what was removed.
    length: usize,
    /// Line breaks that follow the text sent so far. They are sent with the next line.
    breaks: usize,
    /// Text of the line that is not decided yet.
    held: String,
    place: Place,
    /// Of a line that is sent.
    search: LineSearch,
    /// The last line was removed.
    has_removed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Start,
    /// In a line that is sent.
    Kept,
    /// In a line that is removed.
    Removed,
    /// After metadata inside a line: the rest of it is removed.
    Cut,
}

/// What the beginning of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Undecided,
    Keep,
    Remove,
    /// Metadata as JSON follows; the rest of the line decides.
    Json(usize),
}

impl MetadataLines {
    /// `keys`: in normal form. `json_lines`: lines that are a JSON object are removed too.
    pub fn new(keys: Arc<[String]>, json_lines: bool, has_snapshots: bool) -> MetadataLines {
        MetadataLines {
            known: keys,
            learned: Vec::new(),
            json_lines,
            choices: Vec::new(),
            has_snapshots,
            max_bytes: crate::turn::Limits::default().bytes,
            failed: false,
            removed: RemovedMetadata::default(),
        }
    }

    /// What was removed so far.
    pub fn removed(&self) -> &RemovedMetadata {
        &self.removed
    }

    pub fn set_memory_limit(&mut self, bytes: usize) {
        self.max_bytes = bytes;
    }

    /// Appends what `event` becomes to `output`.
    pub fn push(&mut self, event: Event, output: &mut Vec<Event>) {
        match event {
            Event::MetadataKeys { keys, source } => {
                keys.iter().for_each(|key| self.learn(key));
                source.into_iter().for_each(|source| self.removed.add_source(source));
            }
            Event::Text { choice, item, part, delta } if self.is_searched(choice) => {
                self.receive(choice, Target { item, part }, delta, output);
            }
            Event::Logprobs { choice, logprobs, .. } if self.is_searched(choice) => {
                self.choice(choice).logprobs.wait(logprobs);
            }
            // Other output ends the line before it.
            Event::Refusal { choice, .. }
            | Event::Batch { choice, .. }
            | Event::AwaitResults { choice }
            | Event::Close { choice, .. }
            | Event::Reasoning { choice, .. }
            | Event::Tool { choice, .. } => {
                self.flush_choice(choice, output);
                output.push(event);
            }
            Event::Finish { choice, .. } => {
                let finished = choice.map_or(0..self.choices.len(), |one| one..one + 1);
                for choice in finished {
                    self.flush_choice(choice, output);
                    if let Some(lines) = self.choices.get_mut(choice) {
                        lines.finished = true;
                    }
                }
                output.push(event);
            }
            Event::Fault { is_final: true, .. } | Event::End => {
                self.flush(output);
                output.push(event);
            }
            Event::Text { .. } | Event::Logprobs { .. } | Event::Annotation { .. } => output.push(event),
            Event::Start { .. } | Event::Usage { .. } | Event::Extra { .. } => output.push(event),
            Event::FinishHint { .. } | Event::Fault { .. } => output.push(event),
        }
    }

    /// Decides what is held back, at the end of the turn.
    pub fn flush(&mut self, output: &mut Vec<Event>) {
        (0..self.choices.len()).for_each(|choice| self.flush_choice(choice, output));
    }

    fn learn(&mut self, key: &str) {
        let key = normal_key(key);
        if !key.is_empty() && !self.is_key(&key) && self.learned.len() < MAX_LEARNED {
            self.learned.push(key);
        }
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        self.known.iter().chain(&self.learned).map(String::as_str)
    }

    fn is_key(&self, key: &str) -> bool {
        self.keys().any(|known| known == key)
    }

    fn is_searched(&self, choice: usize) -> bool {
        choice < MAX_CHOICES && !self.failed && !self.choices.get(choice).is_some_and(|lines| lines.finished)
    }

    fn choice(&mut self, choice: usize) -> &mut Lines {
        while self.choices.len() <= choice {
            self.choices.push(Lines::default());
        }
        &mut self.choices[choice]
    }

    fn receive(&mut self, choice: usize, target: Target, delta: Delta, output: &mut Vec<Event>) {
        let has_snapshots = self.has_snapshots;
        let lines = self.choice(choice);
        let delta = deltas::join_surrogates(&mut lines.surrogate, delta);
        let text = deltas::new_suffix(delta, || lines.received.of(&target));
        if text.is_empty() {
            return;
        }
        if has_snapshots {
            lines.received.push(&target, &text);
        }
        if lines.target != target {
            self.flush_choice(choice, output);
            self.choice(choice).target = target;
        }
        let lines = self.choice(choice);
        let start = lines.length;
        lines.length += text.len();
        lines.logprobs.arrive(start, lines.length);
        let mut at = start;
        for line in text.split_inclusive('\n') {
            let (content, is_ended) = line.strip_suffix('\n').map_or((line, false), |content| (content, true));
            at += line.len();
            self.add(choice, content, at - usize::from(is_ended), output);
            if is_ended {
                self.end_line(choice, at, output);
            }
        }
        let kept = |lines: &Lines| lines.held.len() + lines.received.bytes + lines.logprobs.bytes;
        if self.choices.iter().map(kept).sum::<usize>() > self.max_bytes {
            self.failed = true;
            let limit = self.max_bytes;
            let message =
                format!("the backend's response needs more than {limit} bytes of memory, the limit of this gateway");
            output.push(Event::Fault { fault: Fault::new(FaultKind::Malformed, message), is_final: true });
        }
    }

    /// Adds text of the current line, which ends at position `at`.
    fn add(&mut self, choice: usize, text: &str, at: usize, output: &mut Vec<Event>) {
        if text.is_empty() {
            return;
        }
        match self.choices[choice].place {
            Place::Kept => self.send_searched(choice, text, at, output),
            Place::Removed | Place::Cut => {}
            Place::Start => {
                self.choices[choice].held.push_str(text);
                match self.verdict(&self.choices[choice].held, false) {
                    Verdict::Undecided | Verdict::Json(_) => {}
                    Verdict::Keep => self.keep(choice, at, output),
                    Verdict::Remove => self.remove(choice),
                }
            }
        }
    }

    fn end_line(&mut self, choice: usize, at: usize, output: &mut Vec<Event>) {
        self.decide(choice, at - 1, output);
        let lines = &mut self.choices[choice];
        lines.search = LineSearch::default();
        if lines.place != Place::Removed {
            lines.breaks += 1;
            lines.has_removed = false;
        }
        lines.place = Place::Start;
    }

    /// Decides the line so far, because nothing follows in it.
    fn decide(&mut self, choice: usize, at: usize, output: &mut Vec<Event>) {
        if self.choices[choice].place == Place::Start && !self.choices[choice].held.is_empty() {
            self.decide_start(choice, at, output);
        }
        // What could have become metadata inside the line.
        let held = std::mem::take(&mut self.choices[choice].held);
        if !held.is_empty() {
            self.send(choice, held, at, output);
        }
    }

    fn decide_start(&mut self, choice: usize, at: usize, output: &mut Vec<Event>) {
        match self.verdict(&self.choices[choice].held, true) {
            Verdict::Remove => self.remove(choice),
            Verdict::Json(start) => {
                let json = Tree::parse(self.choices[choice].held[start..].trim().as_bytes());
                match json.as_ref().ok().and_then(Tree::as_map).filter(|members| !members.is_empty()) {
                    Some(members) => {
                        let keys: Vec<String> = members.iter().map(|(key, _)| key.to_string()).collect();
                        keys.iter().for_each(|key| self.learn(key));
                        self.remove(choice);
                        keys.iter().for_each(|key| self.removed.add_key(normal_key(key)));
                    }
                    None => self.keep(choice, at, output),
                }
            }
            Verdict::Keep | Verdict::Undecided => self.keep(choice, at, output),
        }
    }

    fn verdict(&self, line: &str, is_ended: bool) -> Verdict {
        let start = line.trim_start();
        let is_object = start.starts_with('{');
        if is_object && self.json_lines && line.len() <= MAX_JSON {
            return Verdict::Json(line.len() - start.len());
        }
        let start = start.trim_start_matches('{').trim_start();
        let start = start.trim_start_matches(['"', '\'']);
        let Some(separator) = start.find([':', '=']) else {
            let so_far = normal_key(start);
            let is_possible = self.keys().chain([METADATA]).any(|known| known.starts_with(&so_far));
            return match is_possible && !is_ended && line.len() <= MAX_START {
                true => Verdict::Undecided,
                false => Verdict::Keep,
            };
        };
        let key = normal_key(&start[..separator]);
        if self.is_key(&key) {
            return Verdict::Remove;
        }
        let value = start[separator + 1..].trim_start();
        if is_object || key != METADATA || line.len() > MAX_JSON {
            return Verdict::Keep;
        }
        match value.is_empty() || value.starts_with('{') {
            true => Verdict::Json(line.len() - value.len()),
            false => Verdict::Keep,
        }
    }

    /// Sends the held line, which ends at position `at`.
    fn keep(&mut self, choice: usize, at: usize, output: &mut Vec<Event>) {
        let lines = &mut self.choices[choice];
        lines.place = Place::Kept;
        let held = std::mem::take(&mut lines.held);
        self.send_searched(choice, &held, at, output);
    }

    /// Sends text of a line that is not removed as a whole, up to metadata inside it.
    fn send_searched(&mut self, choice: usize, text: &str, at: usize, output: &mut Vec<Event>) {
        let held = std::mem::take(&mut self.choices[choice].held);
        let text = if held.is_empty() { text.to_owned() } else { held + text };
        let keys = self.known.iter().chain(&self.learned).map(String::as_str);
        let end = match self.choices[choice].search.find(&text, keys) {
            Found::Text => text.len(),
            Found::Metadata(start) => {
                self.choices[choice].place = Place::Cut;
                count(&mut self.removed, &text[start..]);
                start
            }
            Found::Undecided(start) => {
                text[start..].clone_into(&mut self.choices[choice].held);
                start
            }
        };
        if end > 0 {
            self.send(choice, text[..end].to_owned(), at - (text.len() - end), output);
        }
    }

    fn remove(&mut self, choice: usize) {
        let lines = &mut self.choices[choice];
        count(&mut self.removed, &lines.held);
        lines.held.clear();
        lines.place = Place::Removed;
        lines.has_removed = true;
    }

    /// Sends text that ends at position `at`, after the line breaks before it.
    fn send(&mut self, choice: usize, text: String, at: usize, output: &mut Vec<Event>) {
        let lines = &mut self.choices[choice];
        let breaks = std::mem::take(&mut lines.breaks);
        let text = if breaks == 0 { text } else { "\n".repeat(breaks) + &text };
        if text.is_empty() {
            return;
        }
        if let Some(logprobs) = lines.logprobs.take(at.saturating_sub(text.len()), at) {
            output.push(Event::Logprobs { choice, item: lines.target.item.clone(), logprobs });
        }
        let Target { item, part } = lines.target.clone();
        output.push(Event::Text { choice, item, part, delta: Delta::Append(text) });
    }

    fn flush_choice(&mut self, choice: usize, output: &mut Vec<Event>) {
        if choice >= self.choices.len() || !self.is_searched(choice) {
            return;
        }
        let at = self.choices[choice].length;
        self.decide(choice, at, output);
        let lines = &mut self.choices[choice];
        // Line breaks before a removed line are removed with it, if nothing follows.
        if std::mem::take(&mut lines.has_removed) {
            lines.breaks = 0;
        }
        if lines.place != Place::Removed {
            self.send(choice, String::new(), at, output);
        }
        let lines = &mut self.choices[choice];
        (lines.place, lines.search) = (Place::Start, LineSearch::default());
    }
}

/// Counts a line that is removed, from its key on.
fn count(removed: &mut RemovedMetadata, line: &str) {
    removed.lines += 1;
    let key = normal_key(line.split([':', '=']).next().unwrap_or_default());
    if key != METADATA {
        removed.add_key(key);
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/turn_metadata_lines.rs"]
mod tests;
