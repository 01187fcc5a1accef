//! The text of one choice: what is text, what is the content of a block, and what is not decided yet.

use super::call::read_calls;
use super::logprobs::HeldLogprobs;
use super::received::ReceivedText;
use super::tags::{ClosingTag, MoreText, Opening, find_from, possible_tag};
use super::{BlockCounts, InlineEvent, Search};
use crate::domain::inline::{BlockContent, CallBlock, CallFormat, InlineBlock, StrictCalls, UnclosedBlock};
use crate::domain::request_item::Derived;
use crate::domain::{CallIdentity, Delta, Event, Fault, FaultKind, ReasoningKind};
use crate::turn::deltas;

/// White space at the start of a text that is dropped if a block follows, in bytes. More of it is text.
const MAX_SPACE: usize = 256;

/// The item and part of a text, in the backend's numbering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    pub item: Option<String>,
    pub part: Option<usize>,
}

#[derive(Debug)]
pub(super) struct ChoiceText {
    pub finished: bool,
    pub logprobs: HeldLogprobs,
    received: ReceivedText,
    /// A high surrogate at the end of the last delta.
    surrogate: Option<u16>,
    /// Of the last delta.
    target: Target,
    /// The end of the text so far that is not decided yet; inside a call, its content.
    held: String,
    /// The length of the text so far, with its blocks.
    length: usize,
    place: Place,
    /// Text was emitted.
    has_text: bool,
    /// White space that follows a tag is dropped.
    skips_space: bool,
    /// Of the blocks so far: each is an item of its own.
    blocks: usize,
    calls: usize,
    pub counts: BlockCounts,
}

/// Where the held text is.
#[derive(Debug)]
enum Place {
    Text,
    Reasoning {
        block: usize,
        /// The text began inside the block, and may nevertheless begin with the tag.
        may_repeat_tag: bool,
    },
    Call {
        block: usize,
        closing: ClosingTag,
    },
}

/// Whether to continue with the rest of the held text.
#[derive(PartialEq, Eq)]
enum Next {
    Continue,
    Wait,
}

/// One pass over the held text.
struct Pass<'p> {
    choice: usize,
    search: &'p Search,
    more: MoreText,
    output: &'p mut Vec<InlineEvent>,
}

impl ChoiceText {
    pub fn new(search: &Search) -> ChoiceText {
        let starts_open =
            search.blocks().find(|(_, b)| matches!(b.content, BlockContent::Reasoning { starts_open: true }));
        let place = match starts_open {
            Some((block, _)) => Place::Reasoning { block, may_repeat_tag: true },
            None => Place::Text,
        };
        ChoiceText {
            finished: false,
            logprobs: HeldLogprobs::default(),
            received: ReceivedText::default(),
            surrogate: None,
            target: Target::default(),
            held: String::new(),
            length: 0,
            place,
            has_text: false,
            skips_space: false,
            blocks: 0,
            calls: 0,
            counts: BlockCounts::default(),
        }
    }

    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    pub fn kept_bytes(&self) -> usize {
        self.held.len() + self.received.bytes + self.logprobs.bytes
    }

    /// A backend that separates reasoning and calls itself does not begin its text inside a block.
    pub fn on_structured_output(&mut self) {
        if self.length == 0 {
            self.place = Place::Text;
        }
    }

    pub fn receive(
        &mut self,
        choice: usize,
        target: Target,
        delta: Delta,
        search: &Search,
        output: &mut Vec<InlineEvent>,
    ) {
        let delta = deltas::join_surrogates(&mut self.surrogate, delta);
        // A snapshot contains the blocks, so it is compared with what was received, not with what was sent.
        let text = deltas::new_suffix(delta, || self.received.of(&target));
        if text.is_empty() {
            return;
        }
        if search.has_snapshots {
            self.received.push(&target, &text);
        }
        if self.target != target {
            self.flush(choice, search, output);
            self.target = target;
        }
        let start = self.length;
        self.length += text.len();
        self.logprobs.arrive(start, self.length);
        match self.held.is_empty() {
            true => self.held = text,
            false => self.held.push_str(&text),
        }
        self.decide(Pass { choice, search, more: MoreText::Possible, output });
    }

    /// Decides all that is held back, because other output follows or the choice ends.
    pub fn flush(&mut self, choice: usize, search: &Search, output: &mut Vec<InlineEvent>) {
        if self.length > 0 {
            self.decide(Pass { choice, search, more: MoreText::Ended, output });
        }
    }

    fn decide(&mut self, mut pass: Pass) {
        let mut text = std::mem::take(&mut self.held);
        let mut at = 0;
        while self.decide_next(&text, &mut at, &mut pass) == Next::Continue {}
        text.drain(..at);
        self.held = text;
    }

    /// Decides the text from `at` to the next tag.
    fn decide_next(&mut self, text: &str, at: &mut usize, pass: &mut Pass) -> Next {
        let rest = &text[*at..];
        let start = self.length - rest.len();
        match &mut self.place {
            Place::Text => self.decide_text(rest, start, at, pass),
            Place::Reasoning { block, may_repeat_tag } => {
                let Some(tags) = pass.search.block(*block) else { return Next::Wait };
                if *may_repeat_tag {
                    let space = leading_space(rest);
                    let (is_short, after) = (space <= MAX_SPACE, &rest[space..]);
                    if is_short && pass.more == MoreText::Possible && tags.open.starts_with(after) && tags.open != after
                    {
                        return Next::Wait;
                    }
                    if is_short && after.starts_with(&tags.open) {
                        *at += space + tags.open.len();
                    }
                    *may_repeat_tag = false;
                    self.skips_space = true;
                    return Next::Continue;
                }
                let block = *block;
                let end = find_from(rest, &tags.close, 0);
                let held = match (end, pass.more) {
                    (None, MoreText::Possible) => possible_tag(rest, &tags.close),
                    (Some(_), _) | (None, MoreText::Ended) => 0,
                };
                let length = end.unwrap_or(rest.len() - held);
                self.emit_reasoning(&rest[..length], block, pass);
                *at += length;
                if end.is_none() {
                    return Next::Wait;
                }
                *at += tags.close.len();
                self.leave_block();
                Next::Continue
            }
            Place::Call { block, closing } => {
                let block = *block;
                let Some((tags, call)) = pass.search.block(block).and_then(as_call) else { return Next::Wait };
                let in_json = matches!(call.format, CallFormat::Json { .. });
                match closing.find(rest, &tags.close, in_json, call.max_bytes) {
                    Some(end) => {
                        *at += end + tags.close.len();
                        self.emit_calls(&rest[..end], &tags.close, (block, tags, call), start, pass);
                        Next::Continue
                    }
                    None if rest.len() >= call.max_bytes + tags.close.len() => {
                        let end = char_boundary_before(rest, call.max_bytes);
                        *at += end;
                        self.place = Place::Text;
                        let began = start - tags.open.len();
                        self.emit_text(format!("{}{}", tags.open, &rest[..end]), began, start + end, Some(block), pass);
                        Next::Continue
                    }
                    None if pass.more == MoreText::Ended && call.unclosed == UnclosedBlock::Text => {
                        *at += rest.len();
                        self.place = Place::Text;
                        let (began, end) = (start - tags.open.len(), start + rest.len());
                        self.emit_text(format!("{}{rest}", tags.open), began, end, Some(block), pass);
                        Next::Wait
                    }
                    None if pass.more == MoreText::Ended => {
                        *at += rest.len();
                        self.emit_calls(rest, "", (block, tags, call), start, pass);
                        Next::Wait
                    }
                    None => Next::Wait,
                }
            }
        }
    }

    fn decide_text(&mut self, rest: &str, start: usize, at: &mut usize, pass: &mut Pass) -> Next {
        let space = leading_space(rest);
        let is_start = !self.has_text && space <= MAX_SPACE;
        let opening = pass.search.opening(rest, is_start.then_some(space), pass.more);
        let (length, opened) = match opening {
            Opening::Found { at, block, length } => (at, Some((block, length))),
            Opening::Possible { at } => (at, None),
            Opening::None => (rest.len(), None),
        };
        let text = &rest[..length];
        let dropped = if self.skips_space { space.min(length) } else { 0 };
        // White space before a block is no message.
        let is_only_space = is_start && !self.skips_space && length <= space;
        if is_only_space && opened.is_none() && pass.more == MoreText::Possible {
            return Next::Wait;
        }
        *at += length;
        if dropped < length && !(is_only_space && opened.is_some()) {
            self.emit_text(text[dropped..].to_owned(), start + dropped, start + length, None, pass);
        }
        let Some((block, tag)) = opened else { return Next::Wait };
        *at += tag;
        self.enter_block(block, pass);
        Next::Continue
    }

    fn enter_block(&mut self, block: usize, pass: &Pass) {
        self.blocks += 1;
        self.skips_space = true;
        self.place = match pass.search.block(block).and_then(as_call) {
            Some(_) => {
                self.counts.opened += 1;
                Place::Call { block, closing: ClosingTag::default() }
            }
            None => Place::Reasoning { block, may_repeat_tag: false },
        };
    }

    fn leave_block(&mut self) {
        self.place = Place::Text;
        self.skips_space = true;
    }

    /// `block`: the text is a block that could not be read.
    fn emit_text(&mut self, text: String, start: usize, end: usize, block: Option<usize>, pass: &mut Pass) {
        self.has_text = true;
        self.skips_space = false;
        self.counts.kept_as_text += usize::from(block.is_some());
        let choice = pass.choice;
        if let Some(logprobs) = self.logprobs.take(start, end) {
            pass.output.push((Event::Logprobs { choice, item: self.target.item.clone(), logprobs }, None));
        }
        let Target { item, part } = self.target.clone();
        pass.output.push((Event::Text { choice, item, part, delta: Delta::Append(text) }, block));
    }

    fn emit_reasoning(&mut self, text: &str, block: usize, pass: &mut Pass) {
        let text = if self.skips_space { text.trim_start() } else { text };
        if text.is_empty() {
            return;
        }
        self.skips_space = false;
        let event = Event::Reasoning {
            choice: pass.choice,
            // Each block is an item of its own. The space keeps the key from being used as an id.
            item: Some(format!("inline {}", self.blocks)),
            kind: ReasoningKind::Raw,
            part: None,
            delta: Some(Delta::Append(text.to_owned())),
            encrypted: None,
        };
        pass.output.push((event, Some(block)));
    }

    /// Emits the calls of a block, or its text if it cannot be read. `close` is its tag, if there is one.
    fn emit_calls(
        &mut self,
        content: &str,
        close: &str,
        (block, tags, call): (usize, &InlineBlock, &CallBlock),
        start: usize,
        pass: &mut Pass,
    ) {
        self.place = Place::Text;
        let Some(calls) = read_calls(content, tags, call, &pass.search.tools) else {
            let (began, end) = (start - tags.open.len(), start + content.len() + close.len());
            self.emit_text(format!("{}{content}{close}", tags.open), began, end, Some(block), pass);
            return;
        };
        self.counts.read += 1;
        // A list of calls is one text.
        let mut literal = Some(format!("{}{content}{close}", tags.open));
        for read in calls {
            let choice = pass.choice;
            if call.strict == StrictCalls::PerTool
                && let Some(argument) = pass.search.tools.missing_argument(&read)
            {
                let message = format!("the call of `{}` in the text has no argument `{argument}`", read.name);
                let fault = Fault::new(FaultKind::Malformed, message);
                pass.output.push((Event::Fault { fault, is_final: true }, Some(block)));
                return;
            }
            let ordinal = self.calls;
            self.calls += 1;
            let key = format!("inline call {ordinal}");
            let template = call.id.as_ref().map(|id| id.id(choice, ordinal));
            let tool = Event::Tool {
                choice,
                key: Some(key.clone()),
                id: read.id.or(template),
                name: Some(read.name),
                kind: None,
                by: Derived(CallIdentity::Key),
                legacy: false,
                literal: Derived(literal.take()),
                delta: read.arguments.map(Delta::Append),
            };
            pass.output.push((tool, Some(block)));
            pass.output.push((Event::Close { choice, item: None, key: Some(key) }, Some(block)));
        }
        self.leave_block();
    }
}

fn as_call(block: &InlineBlock) -> Option<(&InlineBlock, &CallBlock)> {
    match &block.content {
        BlockContent::Call(call) => Some((block, call)),
        BlockContent::Reasoning { .. } => None,
    }
}

fn leading_space(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

fn char_boundary_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
