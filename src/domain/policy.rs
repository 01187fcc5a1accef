//! Named choices. Those that need memory are built in and obeyed by `turn/`; a dialect may declare further ones
//! of its own (`own_policies:`), which only choose among shapes and are read by its expressions as `policy.NAME`.

use super::{Closed, Finish, MomentKind, Tree, words};
use std::sync::Arc;

words! {
    /// Are argument pieces what is new, or all so far?
    pub enum ToolArguments { Incremental = "incremental", Cumulative = "cumulative" }
}
words! {
    /// A: as reported. B: zeros when nobody counted. Or an estimate, characters / 4.
    pub enum UsagePolicy { AsReported = "as_reported", Zeros = "zeros", Estimate = "estimate" }
}
words! {
    /// Where an item stands in the output.
    pub enum OutputIndex { Position = "position", MessageFirst = "message_first", Choice = "choice" }
}
words! {
    /// May two calls be open at a time?
    pub enum ToolsOverlap { Serial = "serial", Interleaved = "interleaved" }
}
words! {
    /// Are the frames that open and finish choices written for each, or once for all?
    pub enum ChoiceFrames { Each = "each", Together = "together" }
}
words! {
    /// Is a message item opened although the answer has no text?
    pub enum EmptyMessageItem { Omit = "omit", Always = "always" }
}
words! {
    /// Does an item close when the next one opens, or do message and calls close together, text first, at the finish?
    pub enum TerminalOrder { ByItem = "by_item", AtEnd = "at_end" }
}
words! {
    /// Has a call one id, or its own beside the one that the result refers to?
    pub enum ToolIds { Split = "split", Same = "same" }
}
words! {
    /// What a call without arguments has.
    pub enum EmptyArguments { Object = "{}", Nothing = "" }
}
words! {
    /// Is an answer that was cut short still a completed one?
    pub enum Truncation { Incomplete = "incomplete", Completed = "completed" }
}
words! {
    /// How a stream says that it is over.
    pub enum Terminator { Bare = "bare", Typed = "typed", None = "none" }
}
words! {
    /// When the response head leaves.
    pub enum Head { FirstEvent = "first_event", AtOnce = "at_once" }
}
words! {
    /// When a stream tells the usage.
    pub enum UsageStream { RequestedOnly = "requested_only", Always = "always", Never = "never" }
}

words! {
    /// Whose ids does a client see: ours, or the backend's where it gives some?
    pub enum IdsPolicy { Own = "own", Backend = "backend" }
}
words! {
    /// A JSON answer to which the backend said nothing at all.
    pub enum OnEmpty { Error = "error502", Completed = "completed", Failed = "failed" }
}
words! {
    /// A JSON answer of which only a part came.
    pub enum OnPartial { Error = "error502", Failed = "failed", Incomplete = "incomplete" }
}
words! {
    /// A piece of a backend's stream that cannot be read.
    pub enum OnMalformed { Skip = "skip", Fail = "fail" }
}
words! {
    /// The usage of a JSON answer that nobody counted.
    pub enum BodyUsage { AsStream = "as_stream", Zeros = "zeros" }
}
words! {
    /// A stream whose backend fell silent.
    pub enum IdleResult { Error = "error", FinishLength = "finish_length" }
}

/// What `turn/` obeys, typed; and every policy as a word for expressions.
#[derive(Clone, Debug, PartialEq)]
pub struct Policies {
    pub tool_arguments: ToolArguments,
    pub usage: UsagePolicy,
    pub output_index: OutputIndex,
    pub tools_overlap: ToolsOverlap,
    pub choice_frames: ChoiceFrames,
    pub empty_message_item: EmptyMessageItem,
    pub terminal_order: TerminalOrder,
    pub empty_arguments: EmptyArguments,
    pub head: Head,
    pub ids: IdsPolicy,
    pub on_empty: OnEmpty,
    pub on_partial: OnPartial,
    pub on_malformed: OnMalformed,
    pub body_usage: BodyUsage,
    pub stream_idle_result: IdleResult,
    pub finish_precedence: Vec<Finish>,
    /// Name → value, for `policy.NAME`: the built-in ones and the dialect's own.
    pub words: Vec<(Arc<str>, Tree)>,
}

/// A built-in policy, as `check` knows it. The first value is the built-in default.
pub struct PolicySpec {
    pub name: &'static str,
    pub values: &'static [&'static str],
    pub list: bool,
    /// What it chooses.
    pub about: &'static str,
    pub shows: Shows,
}

/// Where a client can see what a policy chose, apart from expressions that read `policy.NAME`.
#[derive(Clone, Copy, Debug)]
pub enum Shows {
    /// Only in those expressions.
    WhereRead,
    /// In these variables, and what they hold.
    In(&'static [&'static str]),
    /// In whether and when these moments come, and so also in how the items of an answer are listed and numbered.
    At(&'static [MomentKind]),
    /// Whatever the dialect frames: in the head, or in how an answer ends.
    Anywhere,
}

/// One word of a closed set.
const fn one<T: Closed>(name: &'static str, shows: Shows) -> PolicySpec {
    PolicySpec { name, values: T::WORDS, list: false, about: T::ABOUT, shows }
}

pub const BUILT_IN: &[PolicySpec] = &[
    one::<ToolArguments>("tool_arguments", Shows::In(&["args"])),
    one::<UsagePolicy>("usage", Shows::In(&["usage", "turn.usage"])),
    one::<UsageStream>("usage_stream", Shows::WhereRead),
    one::<OutputIndex>("output_index", Shows::In(&["item.index"])),
    one::<ToolsOverlap>(
        "tools_overlap",
        Shows::At(&[MomentKind::ToolOpen, MomentKind::ToolArgs, MomentKind::ToolClose]),
    ),
    one::<ChoiceFrames>("choice_frames", Shows::At(&[MomentKind::ChoiceOpen])),
    one::<EmptyMessageItem>("empty_message_item", Shows::At(&[MomentKind::MessageOpen, MomentKind::MessageClose])),
    one::<TerminalOrder>(
        "terminal_order",
        Shows::At(&[
            MomentKind::MessageOpen,
            MomentKind::MessageClose,
            MomentKind::PartClose,
            MomentKind::ToolOpen,
            MomentKind::ToolClose,
        ]),
    ),
    one::<ToolIds>("tool_ids", Shows::WhereRead),
    one::<EmptyArguments>("empty_arguments", Shows::In(&["args", "item.arguments"])),
    one::<Truncation>("truncation", Shows::WhereRead),
    one::<Terminator>("terminator", Shows::WhereRead),
    one::<Head>("head", Shows::Anywhere),
    one::<IdsPolicy>("ids", Shows::In(&["turn.id", "turn.created", "item.id"])),
    one::<IdleResult>("stream_idle_result", Shows::Anywhere),
    one::<OnEmpty>("stream2json.on_empty", Shows::Anywhere),
    one::<OnPartial>("stream2json.on_partial", Shows::Anywhere),
    one::<OnMalformed>("stream2json.on_malformed", Shows::Anywhere),
    one::<BodyUsage>("stream2json.usage", Shows::In(&["usage", "turn.usage"])),
    PolicySpec {
        name: "finish_precedence",
        values: Finish::WORDS,
        list: true,
        about: "Which finish holds when a choice has several: the strongest first. What is left out keeps its place after.",
        shows: Shows::In(&["choice.finish", "turn.finish", "turn.state", "turn.cut"]),
    },
];

impl Default for Policies {
    fn default() -> Self {
        let words = BUILT_IN.iter().filter(|p| !p.list).map(|p| (Arc::from(p.name), Tree::from(p.values[0])));
        Policies {
            tool_arguments: ToolArguments::Incremental,
            usage: UsagePolicy::AsReported,
            output_index: OutputIndex::Position,
            tools_overlap: ToolsOverlap::Serial,
            choice_frames: ChoiceFrames::Each,
            empty_message_item: EmptyMessageItem::Omit,
            terminal_order: TerminalOrder::ByItem,
            empty_arguments: EmptyArguments::Object,
            head: Head::FirstEvent,
            ids: IdsPolicy::Own,
            on_empty: OnEmpty::Error,
            on_partial: OnPartial::Error,
            on_malformed: OnMalformed::Skip,
            body_usage: BodyUsage::AsStream,
            stream_idle_result: IdleResult::Error,
            finish_precedence: vec![
                Finish::Error,
                Finish::ContentFilter,
                Finish::Length,
                Finish::ToolCalls,
                Finish::FunctionCall,
                // A backend that is interrupted because its calls were taken has made calls.
                Finish::Cancelled,
                Finish::Stop,
            ],
            words: words.collect(),
        }
    }
}

impl Policies {
    /// Sets a policy by name; the loader has checked name and value against [`BUILT_IN`] or the dialect's own list.
    pub fn set(&mut self, name: &str, value: &str) {
        macro_rules! typed {
            ($($word:literal $field:ident: $kind:ident),*) => {
                match name {
                    $($word => if let Some(v) = $kind::from_word(value) { self.$field = v },)*
                    _ => {}
                }
            };
        }
        typed!(
            "tool_arguments" tool_arguments: ToolArguments,
            "usage" usage: UsagePolicy,
            "output_index" output_index: OutputIndex,
            "tools_overlap" tools_overlap: ToolsOverlap,
            "choice_frames" choice_frames: ChoiceFrames,
            "empty_message_item" empty_message_item: EmptyMessageItem,
            "terminal_order" terminal_order: TerminalOrder,
            "empty_arguments" empty_arguments: EmptyArguments,
            "head" head: Head,
            "ids" ids: IdsPolicy,
            "stream_idle_result" stream_idle_result: IdleResult,
            "stream2json.on_empty" on_empty: OnEmpty,
            "stream2json.on_partial" on_partial: OnPartial,
            "stream2json.on_malformed" on_malformed: OnMalformed,
            "stream2json.usage" body_usage: BodyUsage
        );
        match self.words.iter_mut().find(|(n, _)| &**n == name) {
            Some((_, v)) => *v = Tree::from(value),
            None => self.words.push((Arc::from(name), Tree::from(value))),
        }
    }

    pub fn word(&self, name: &str) -> Option<&Tree> {
        self.words.iter().find(|(n, _)| &**n == name).map(|(_, v)| v)
    }
}
