//! The life of one choice, from what follows its `choice.open` to its `choice.finish`: which items may be open beside
//! each other, and what closes them. Read it beside `turn/`: each kind of step is one way through the code there.

use super::Life;
use super::items::{Message, Reasoning};
use crate::domain::MomentKind as M;
use crate::domain::policy::{EmptyMessageItem, TerminalOrder, ToolsOverlap};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    phase: Phase,
    message: Message,
    /// There has been a message: policy `empty_message_item` asks.
    spoken: bool,
    reasoning: Reasoning,
    calls: Calls,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Phase {
    #[default]
    Speaking,
    /// Message and reasoning are closed; the calls that are left come one after the other.
    Closing,
    Finished,
}

/// How many calls are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Calls {
    #[default]
    None,
    One,
    Many,
}

type Steps = Vec<(Vec<M>, Lane)>;

impl Lane {
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// What is left of it is told at once.
    pub fn is_closing(&self) -> bool {
        self.phase == Phase::Closing
    }

    pub fn steps(&self, life: &Life) -> Steps {
        let mut steps = Vec::new();
        match self.phase {
            Phase::Speaking => {
                self.speak(life, &mut steps);
                self.think(life, &mut steps);
                self.call(life, &mut steps);
                self.close(life, &mut steps);
                steps.push(self.finish(life));
            }
            Phase::Closing => self.close_calls(life, &mut steps),
            Phase::Finished => {}
        }
        steps
    }

    /// Text, a refusal, an annotation.
    fn speak(&self, life: &Life, steps: &mut Steps) {
        for (told, message) in self.message.hear(life.can) {
            steps.push((told, Lane { message, ..*self }));
        }
        // With `at_end` all that is said belongs to one message, however the backend names it.
        if self.message == Message::Closed || life.by_item() {
            let (opening, opened) = self.open_message();
            for (told, message) in opened.message.hear(life.can) {
                steps.push(([opening.as_slice(), &told].concat(), Lane { message, ..opened }));
            }
        }
    }

    fn open_message(&self) -> (Vec<M>, Lane) {
        let told = [self.message.close(), self.reasoning.close(), &[M::MessageOpen]].concat();
        (told, Lane { message: Message::Empty, spoken: true, reasoning: Reasoning::Closed, ..*self })
    }

    /// Policy `empty_message_item`.
    fn ensure_message(&self, life: &Life) -> (Vec<M>, Lane) {
        let wanted = life.policies.empty_message_item == EmptyMessageItem::Always;
        if wanted && !self.spoken { self.open_message() } else { (Vec::new(), *self) }
    }

    /// Policy `terminal_order`: another kind of item ends the message, or does not.
    fn leave_message(&self, life: &Life) -> (Vec<M>, Lane) {
        match life.policies.terminal_order {
            TerminalOrder::ByItem => (self.message.close().to_vec(), Lane { message: Message::Closed, ..*self }),
            TerminalOrder::AtEnd => (Vec::new(), *self),
        }
    }

    fn think(&self, life: &Life, steps: &mut Steps) {
        for (told, reasoning) in self.reasoning.hear(life.can) {
            steps.push((told, Lane { reasoning, ..*self }));
        }
        let (leaving, left) = self.leave_message(life);
        let opening = [self.reasoning.close(), &leaving, &[M::ReasoningOpen]].concat();
        if life.can.sealed {
            steps.push((opening.clone(), Lane { reasoning: Reasoning::Sealed, ..left }));
        }
        for (told, reasoning) in Reasoning::Sealed.hear(life.can) {
            steps.push(([opening.as_slice(), &told].concat(), Lane { reasoning, ..left }));
        }
    }

    fn call(&self, life: &Life, steps: &mut Steps) {
        if !life.can.tools {
            return;
        }
        if self.calls == Calls::None || life.policies.tools_overlap == ToolsOverlap::Interleaved {
            let (ensuring, ensured) = self.ensure_message(life);
            let (leaving, left) = ensured.leave_message(life);
            let told = [&ensuring, &leaving, left.reasoning.close(), &[M::ToolOpen]].concat();
            let calls = if self.calls == Calls::None { Calls::One } else { Calls::Many };
            steps.push((told, Lane { reasoning: Reasoning::Closed, calls, ..left }));
        }
        if self.calls != Calls::None {
            steps.push((vec![M::ToolArgs], *self));
        }
        if life.by_item() {
            for calls in self.calls.less() {
                steps.push((vec![M::ToolClose], Lane { calls: *calls, ..*self }));
            }
        }
    }

    /// The backend says that an item is complete.
    fn close(&self, life: &Life, steps: &mut Steps) {
        if !life.by_item() {
            return;
        }
        if self.message != Message::Closed {
            steps.push((self.message.close().to_vec(), Lane { message: Message::Closed, ..*self }));
        }
        if self.reasoning != Reasoning::Closed {
            steps.push((self.reasoning.close().to_vec(), Lane { reasoning: Reasoning::Closed, ..*self }));
        }
    }

    fn finish(&self, life: &Life) -> (Vec<M>, Lane) {
        let (ensuring, ensured) = self.ensure_message(life);
        let told = [&ensuring, ensured.reasoning.close(), ensured.message.close()].concat();
        let (message, reasoning) = (Message::Closed, Reasoning::Closed);
        (told, Lane { phase: Phase::Closing, message, reasoning, ..ensured })
    }

    fn close_calls(&self, life: &Life, steps: &mut Steps) {
        for calls in self.calls.less() {
            let closed = Lane { calls: *calls, ..*self };
            steps.push((vec![M::ToolClose], closed));
            steps.push((vec![M::ToolArgs, M::ToolClose], closed));
        }
        // A call that had to wait comes in its turn: after the one that is open, where one at a time may be.
        let waits = life.policies.tools_overlap == ToolsOverlap::Serial && self.calls != Calls::None;
        if life.can.tools && !waits {
            steps.push((vec![M::ToolOpen, M::ToolClose], *self));
            steps.push((vec![M::ToolOpen, M::ToolArgs, M::ToolClose], *self));
        }
        if self.calls == Calls::None {
            steps.push((vec![M::ChoiceFinish], Lane { phase: Phase::Finished, ..Lane::default() }));
        }
    }
}

impl Calls {
    /// What may be left when one of them closes.
    fn less(self) -> &'static [Calls] {
        match self {
            Calls::None => &[],
            Calls::One => &[Calls::None],
            Calls::Many => &[Calls::One, Calls::Many],
        }
    }
}
