//! Tool calls: which call a piece belongs to, when a call opens, and when it is over.
//!
//! A piece joins the call with its id; else the call with its key, unless it brings a new id; else, when it names
//! nothing, the last open call; else it opens one. A call opens when its name is known. It closes when the backend
//! says so, at the finish, or when another call begins and its own arguments are a whole JSON value.

use super::{At, Tell, Turn, Voice, deltas};
use crate::domain::policy::{EmptyArguments, TerminalOrder, ToolArguments, ToolsOverlap};
use crate::domain::{CallKind, Fault, FaultKind, Item, ItemKind, ItemState, Moment, MomentKind, Piece};

/// How a piece names its call.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub key: Option<String>,
    pub id: Option<String>,
    pub name: Option<String>,
    pub kind: Option<CallKind>,
}

#[derive(Debug, Default)]
pub(super) struct Call {
    named: Named,
    /// All arguments so far, told or not.
    seen: String,
    /// Arguments that were not told yet.
    held: String,
    /// Half a character that waits for its other half.
    half: Option<u16>,
    /// Its item, once it is open.
    item: Option<usize>,
    /// The backend said that it is complete.
    complete: bool,
    closed: bool,
}

impl Turn {
    pub(super) fn tool(&mut self, choice: usize, named: Named, piece: Option<Piece>, tell: &mut Tell) {
        let blank = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
        let named =
            Named { id: named.id.filter(|i| !i.is_empty()), name: named.name.filter(|n| !n.is_empty()), ..named };
        if blank(&named.id) && blank(&named.name) && piece.is_none() {
            return;
        }
        if self.is_late(choice) || !self.reach(choice, tell) {
            return;
        }
        let which = match self.find_call(choice, &named) {
            Some(which) => which,
            None => {
                self.lanes[choice].calls.push(Call::default());
                self.lanes[choice].calls.len() - 1
            }
        };
        let call = &mut self.lanes[choice].calls[which];
        let text =
            piece.map(|p| deltas::news(deltas::mend(&mut call.half, p), || call.seen.as_str())).unwrap_or_default();
        if call.closed {
            self.late += u64::from(!text.trim().is_empty());
            return;
        }
        call.named.key = call.named.key.take().or(named.key);
        call.named.id = call.named.id.take().or(named.id);
        call.named.name = call.named.name.take().or(named.name);
        call.named.kind = call.named.kind.take().or(named.kind);
        call.seen.push_str(&text);
        if call.named.name.is_some() && call.named.name == self.masks.answer {
            // What this tool is given is what the client asked for.
            call.complete = true;
            let said = std::mem::take(&mut call.held) + &text;
            self.text(choice, At { item: None, part: None }, Piece::Delta(said), Voice::Text, tell);
            return;
        }
        call.held.push_str(&text);
        if self.keep(text.len() + 16, tell) {
            self.flush_calls(choice, tell);
        }
    }

    fn find_call(&self, choice: usize, named: &Named) -> Option<usize> {
        let calls = &self.lanes[choice].calls;
        if let Some(id) = &named.id {
            if let Some(found) = calls.iter().position(|c| c.named.id.as_ref() == Some(id)) {
                return Some(found);
            }
            // A new id is a new call, also on a key that was used before; but a call that waits for its id takes it.
            return calls.iter().rposition(|c| {
                !c.closed
                    && c.item.is_none()
                    && c.named.id.is_none()
                    && c.named.key.is_some()
                    && c.named.key == named.key
            });
        }
        if named.key.is_some() {
            let found = calls.iter().rposition(|c| c.named.key == named.key)?;
            // A key that is used again, with a name, after its call was over, is a new call.
            return (!(calls[found].closed && named.name.is_some())).then_some(found);
        }
        let last = calls.iter().rposition(|c| !c.closed)?;
        let other = named.name.is_some() && calls[last].named.name.is_some() && calls[last].named.name != named.name;
        (!other).then_some(last)
    }

    /// Tells what can be told, in the order in which the calls were made.
    fn flush_calls(&mut self, choice: usize, tell: &mut Tell) {
        let serial = self.policies.tools_overlap == ToolsOverlap::Serial;
        for which in 0..self.lanes[choice].calls.len() {
            let call = &self.lanes[choice].calls[which];
            if call.closed || self.is_answer(call) {
                continue;
            }
            if call.named.name.is_none() || (self.is_wrapped(call) && !deltas::is_whole(&call.seen)) {
                if serial { return } else { continue }
            }
            self.tell_call(choice, which, tell);
            let another = which + 1 < self.lanes[choice].calls.len();
            let call = &self.lanes[choice].calls[which];
            let by_item = self.policies.terminal_order == TerminalOrder::ByItem;
            if by_item && (call.complete || (another && deltas::is_whole(&call.seen))) {
                self.close_call(choice, which, ItemState::Done, tell);
            } else if serial {
                return;
            }
        }
    }

    /// Opens the call if it is not open, and tells the arguments that wait.
    fn tell_call(&mut self, choice: usize, which: usize, tell: &mut Tell) {
        if self.is_wrapped(&self.lanes[choice].calls[which]) {
            let call = &mut self.lanes[choice].calls[which];
            call.named.kind = Some(CallKind::Custom);
            call.held = deltas::unwrapped(&call.seen);
        }
        let item = match self.lanes[choice].calls[which].item {
            Some(item) => item,
            None => self.open_call(choice, which, tell),
        };
        let held = std::mem::take(&mut self.lanes[choice].calls[which].held);
        self.tell_arguments(choice, item, held, tell);
    }

    /// A custom tool that travelled as a function; once it is open it is a custom call.
    fn is_wrapped(&self, call: &Call) -> bool {
        call.item.is_none()
            && call.named.kind != Some(CallKind::Custom)
            && call.named.name.as_ref().is_some_and(|n| self.masks.custom.contains(n))
    }

    fn open_call(&mut self, choice: usize, which: usize, tell: &mut Tell) -> usize {
        self.ensure_message(choice, tell);
        self.leave_message(choice, tell);
        self.close_reasoning(choice, ItemState::Done, tell);
        let named = &self.lanes[choice].calls[which].named;
        let (key, id, name) = (named.key.clone(), named.id.clone(), named.name.clone().unwrap_or_default());
        let kind = Item::call_kind(named.kind.unwrap_or(CallKind::Function));
        let item = self.add_item(choice, kind, key.as_deref());
        let call_id = id.unwrap_or_else(|| format!("call_{}", self.ids.next()));
        self.state.items[item].call_id = call_id;
        self.state.items[item].name = name;
        self.lanes[choice].calls[which].item = Some(item);
        tell(&self.state, &Moment::item(MomentKind::ToolOpen, choice, item));
        item
    }

    fn tell_arguments(&mut self, choice: usize, item: usize, text: String, tell: &mut Tell) {
        if text.is_empty() {
            return;
        }
        self.state.items[item].arguments.push_str(&text);
        let text = match self.policies.tool_arguments {
            ToolArguments::Incremental => text,
            ToolArguments::Cumulative => self.state.items[item].arguments.clone(),
        };
        let moment = Moment { text, ..Moment::item(MomentKind::ToolArgs, choice, item) };
        tell(&self.state, &moment);
    }

    fn close_call(&mut self, choice: usize, which: usize, how: ItemState, tell: &mut Tell) {
        let call = &mut self.lanes[choice].calls[which];
        call.closed = true;
        let Some(item) = call.item else { return };
        let empty = self.state.items[item].arguments.is_empty() && self.state.items[item].kind == ItemKind::Function;
        if empty && how == ItemState::Done && self.policies.empty_arguments == EmptyArguments::Object {
            self.tell_arguments(choice, item, "{}".to_owned(), tell);
        }
        self.state.items[item].state = how;
        tell(&self.state, &Moment::item(MomentKind::ToolClose, choice, item));
    }

    /// The calls seen so far are all of this model call.
    pub(super) fn batch(&mut self, choice: usize, ids: &[String], tell: &mut Tell) {
        if self.is_late(choice) || choice >= self.lanes.len() {
            return;
        }
        for call in &mut self.lanes[choice].calls {
            call.complete |= ids.is_empty() || call.named.id.as_ref().is_some_and(|id| ids.contains(id));
        }
        self.flush_calls(choice, tell);
    }

    /// The backend says that an item, or a call, is complete.
    pub(super) fn close(&mut self, choice: usize, item: Option<&str>, key: Option<&str>, tell: &mut Tell) {
        if choice >= self.lanes.len() || self.lanes[choice].finished {
            return;
        }
        if self.policies.terminal_order == TerminalOrder::ByItem {
            let named = item.and_then(|k| self.lanes[choice].item_of(k));
            if named.is_some() && named == self.lanes[choice].message {
                self.close_message(choice, ItemState::Done, tell);
            } else if named.is_some() && named == self.lanes[choice].reasoning {
                self.close_reasoning(choice, ItemState::Done, tell);
            }
        }
        let name = key.or(item);
        for call in &mut self.lanes[choice].calls {
            let named = |n| call.named.key.as_deref() == Some(n) || call.named.id.as_deref() == Some(n);
            call.complete |= name.is_none_or(named);
        }
        if self.policies.terminal_order == TerminalOrder::ByItem {
            self.flush_calls(choice, tell);
        }
    }

    /// The choice is over: every call is told and closed. False when one never got a name, and the turn has failed.
    pub(super) fn close_calls(&mut self, choice: usize, cut: bool, tell: &mut Tell) -> bool {
        let count = self.lanes[choice].calls.len();
        for which in 0..count {
            let call = &self.lanes[choice].calls[which];
            if call.closed || self.is_answer(call) {
                continue;
            }
            if call.named.name.is_none() {
                let fault = Fault::new(FaultKind::Garbled, "the backend sent a tool call without a name");
                self.fail(fault, tell);
                return false;
            }
            self.tell_call(choice, which, tell);
            let last = which + 1 == count;
            let how = if cut && last { ItemState::Cut } else { ItemState::Done };
            self.close_call(choice, which, how, tell);
        }
        true
    }

    pub(super) fn has_calls(&self, choice: usize) -> bool {
        self.lanes.get(choice).is_some_and(|l| l.calls.iter().any(|c| !self.is_answer(c)))
    }

    /// The call of a tool that stands for the form of the answer.
    fn is_answer(&self, call: &Call) -> bool {
        call.named.name.is_some() && call.named.name == self.masks.answer
    }

    /// Has the choice made no calls but those that are its answer?
    pub(super) fn only_answered(&self, choice: usize) -> bool {
        self.lanes.get(choice).is_some_and(|l| !l.calls.is_empty() && l.calls.iter().all(|c| self.is_answer(c)))
    }
}
