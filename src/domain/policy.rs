//! Policies: named settings with a closed set of values. Those that affect the state of a turn are built in and
//! implemented by `turn/`. A dialect can declare further ones, which only its expressions read, as `policy.NAME`.

use super::{Finish, MomentKind, NamedEnum, Tree, named_enum};
use std::sync::Arc;

named_enum! {
    /// Are argument pieces what is new, or all so far?
    pub enum ToolArguments { Incremental = "incremental", Cumulative = "cumulative" }
}
named_enum! {
    /// A: as reported. B: zeros when nobody counted. Or an estimate, characters / 4.
    pub enum UsagePolicy { AsReported = "as_reported", Zeros = "zeros", Estimate = "estimate" }
}
named_enum! {
    /// Where an item stands in the output.
    pub enum OutputIndex { Position = "position", MessageFirst = "message_first", Choice = "choice" }
}
named_enum! {
    /// Which items of a choice can be open at the same time: any except two calls, any, or only one.
    pub enum ItemsOverlap { SerialTools = "serial_tools", Interleaved = "interleaved", Serial = "serial" }
}
named_enum! {
    /// Whether reasoning is an item of the response. Dropped reasoning takes no index.
    pub enum ReasoningPolicy { Keep = "keep", Drop = "drop" }
}
named_enum! {
    /// Are the frames that open and finish choices written for each, or once for all?
    pub enum ChoiceFrames { Each = "each", Together = "together" }
}
named_enum! {
    /// Is a message item opened although the answer has no text?
    pub enum EmptyMessageItem { Omit = "omit", Always = "always" }
}
named_enum! {
    /// Does an item close when the next one opens, or do message and calls close together, text first, at the finish?
    pub enum CloseItems { WhenComplete = "when_complete", AtFinish = "at_finish" }
}
named_enum! {
    /// Has a call one id, or its own beside the one that the result refers to?
    pub enum ToolIds { Split = "split", Same = "same" }
}
named_enum! {
    /// What a call without arguments has.
    pub enum EmptyArguments { Object = "{}", Nothing = "" }
}
named_enum! {
    /// Is an answer that was cut short still a completed one?
    pub enum Truncation { Incomplete = "incomplete", Completed = "completed" }
}
named_enum! {
    /// How a stream says that it is over.
    pub enum Terminator { Bare = "bare", Typed = "typed", None = "none" }
}
named_enum! {
    /// When the response head leaves.
    pub enum StreamStart { FirstEvent = "first_event", Immediately = "immediately" }
}
named_enum! {
    /// When a stream tells the usage.
    pub enum UsageStream { RequestedOnly = "requested_only", Always = "always", Never = "never" }
}

named_enum! {
    /// Whose ids does a client see: ours, or the backend's where it gives some?
    pub enum IdsPolicy { Own = "own", Backend = "backend" }
}
named_enum! {
    /// A JSON answer to which the backend said nothing at all.
    pub enum OnEmpty { Error = "error", Completed = "completed", Failed = "failed" }
}
named_enum! {
    /// A JSON answer of which only a part came.
    pub enum OnPartial { Error = "error", Failed = "failed", Incomplete = "incomplete" }
}
named_enum! {
    /// A piece of a backend's stream that cannot be read.
    pub enum OnMalformed { Skip = "skip", Fail = "fail" }
}
named_enum! {
    /// The usage of a JSON answer that nobody counted.
    pub enum AggregateUsage { AsStream = "as_stream", Zeros = "zeros" }
}
named_enum! {
    /// A stream whose backend fell silent.
    pub enum OnIdle { Error = "error", FinishLength = "finish_length" }
}

/// The values of all policies: typed for the built-in ones, and by name for expressions.
#[derive(Clone, Debug, PartialEq)]
pub struct Policies {
    pub tool_arguments: ToolArguments,
    pub usage: UsagePolicy,
    pub output_index: OutputIndex,
    pub items_overlap: ItemsOverlap,
    pub reasoning: ReasoningPolicy,
    pub choice_frames: ChoiceFrames,
    pub empty_message_item: EmptyMessageItem,
    pub close_items: CloseItems,
    pub empty_arguments: EmptyArguments,
    pub stream_start: StreamStart,
    pub ids: IdsPolicy,
    pub on_empty: OnEmpty,
    pub on_partial: OnPartial,
    pub on_malformed: OnMalformed,
    pub aggregate_usage: AggregateUsage,
    pub on_idle: OnIdle,
    pub finish_precedence: Vec<Finish>,
    /// Name and value for `policy.NAME`: the built-in and the custom policies.
    pub values: Vec<(Arc<str>, Tree)>,
}

/// The declaration of a built-in policy. The first value is the default.
pub struct PolicySpec {
    pub name: &'static str,
    pub values: &'static [&'static str],
    pub list: bool,
    /// For the generated schema and reference.
    pub description: &'static str,
    pub effect: PolicyEffect,
}

/// Where a client can observe the value of a policy, apart from expressions that read `policy.NAME`.
#[derive(Clone, Copy, Debug)]
pub enum PolicyEffect {
    /// Only in those expressions.
    Expressions,
    /// In the values of these variables.
    Variables(&'static [&'static str]),
    /// In whether and when these moments occur, and therefore in how the items of a response are listed and numbered.
    Moments(&'static [MomentKind]),
    /// In every dialect: in the response headers, or in how a response ends.
    Anywhere,
}

/// A policy with exactly one value of a closed set.
const fn single<T: NamedEnum>(name: &'static str, effect: PolicyEffect) -> PolicySpec {
    PolicySpec { name, values: T::NAMES, list: false, description: T::DESCRIPTION, effect }
}

pub const BUILT_IN: &[PolicySpec] = &[
    single::<ToolArguments>("tool_arguments", PolicyEffect::Variables(&["args"])),
    single::<UsagePolicy>("usage", PolicyEffect::Variables(&["usage", "turn.usage"])),
    single::<UsageStream>("usage_stream", PolicyEffect::Expressions),
    single::<OutputIndex>("output_index", PolicyEffect::Variables(&["item.index"])),
    single::<ItemsOverlap>(
        "items_overlap",
        PolicyEffect::Moments(&[MomentKind::ToolOpen, MomentKind::ToolArgs, MomentKind::ToolClose]),
    ),
    single::<ReasoningPolicy>(
        "reasoning",
        PolicyEffect::Moments(&[
            MomentKind::ReasoningOpen,
            MomentKind::SummaryDelta,
            MomentKind::ThoughtDelta,
            MomentKind::ReasoningClose,
        ]),
    ),
    single::<ChoiceFrames>("choice_frames", PolicyEffect::Moments(&[MomentKind::ChoiceOpen])),
    single::<EmptyMessageItem>(
        "empty_message_item",
        PolicyEffect::Moments(&[MomentKind::MessageOpen, MomentKind::MessageClose]),
    ),
    single::<CloseItems>(
        "close_items",
        PolicyEffect::Moments(&[
            MomentKind::MessageOpen,
            MomentKind::MessageClose,
            MomentKind::PartClose,
            MomentKind::ToolOpen,
            MomentKind::ToolClose,
        ]),
    ),
    single::<ToolIds>("tool_ids", PolicyEffect::Expressions),
    single::<EmptyArguments>("empty_arguments", PolicyEffect::Variables(&["args", "item.arguments"])),
    single::<Truncation>("truncation", PolicyEffect::Expressions),
    single::<Terminator>("terminator", PolicyEffect::Expressions),
    single::<StreamStart>("stream_start", PolicyEffect::Anywhere),
    single::<IdsPolicy>("ids", PolicyEffect::Variables(&["turn.id", "turn.created", "item.id"])),
    single::<OnIdle>("on_idle", PolicyEffect::Anywhere),
    single::<OnEmpty>("aggregate.on_empty", PolicyEffect::Anywhere),
    single::<OnPartial>("aggregate.on_partial", PolicyEffect::Anywhere),
    single::<OnMalformed>("aggregate.on_malformed", PolicyEffect::Anywhere),
    single::<AggregateUsage>("aggregate.usage", PolicyEffect::Variables(&["usage", "turn.usage"])),
    PolicySpec {
        name: "finish_precedence",
        values: Finish::NAMES,
        list: true,
        description: "Which finish holds when a choice has several: the strongest first. What is left out keeps its place after.",
        effect: PolicyEffect::Variables(&["choice.finish", "turn.finish", "turn.state", "turn.truncated"]),
    },
];

/// Alternative names of values: policy, alias, value. They are accepted wherever a value can be set; output shows the value.
pub const ALIASES: &[(&str, &str, &str)] = &[("usage", "A", "as_reported"), ("usage", "B", "zeros")];

/// Resolves an alias; any other value is returned as it is.
pub fn canonical<'v>(policy: &str, value: &'v str) -> &'v str {
    ALIASES.iter().find(|(p, alias, _)| *p == policy && *alias == value).map_or(value, |(_, _, value)| value)
}

impl Policies {
    /// Whether an item closes as soon as it is complete. `items_overlap: serial` implies it: the next item needs the slot.
    pub fn closes_when_complete(&self) -> bool {
        self.close_items == CloseItems::WhenComplete || self.items_overlap == ItemsOverlap::Serial
    }
}

impl Default for Policies {
    fn default() -> Self {
        let values = BUILT_IN.iter().filter(|p| !p.list).map(|p| (Arc::from(p.name), Tree::from(p.values[0])));
        Policies {
            tool_arguments: ToolArguments::Incremental,
            usage: UsagePolicy::AsReported,
            output_index: OutputIndex::Position,
            items_overlap: ItemsOverlap::SerialTools,
            reasoning: ReasoningPolicy::Keep,
            choice_frames: ChoiceFrames::Each,
            empty_message_item: EmptyMessageItem::Omit,
            close_items: CloseItems::WhenComplete,
            empty_arguments: EmptyArguments::Object,
            stream_start: StreamStart::FirstEvent,
            ids: IdsPolicy::Own,
            on_empty: OnEmpty::Error,
            on_partial: OnPartial::Error,
            on_malformed: OnMalformed::Skip,
            aggregate_usage: AggregateUsage::AsStream,
            on_idle: OnIdle::Error,
            finish_precedence: vec![
                Finish::Error,
                Finish::ContentFilter,
                Finish::Length,
                Finish::ToolCalls,
                Finish::FunctionCall,
                // Below the tool calls: a backend that is interrupted after its calls were accepted has made calls.
                Finish::Cancelled,
                Finish::Stop,
            ],
            values: values.collect(),
        }
    }
}

impl Policies {
    /// Sets a policy by name. The loader has checked name and value against [`BUILT_IN`] or the custom policies.
    pub fn set(&mut self, name: &str, value: &str) {
        macro_rules! typed {
            ($($name:literal $field:ident: $kind:ident),*) => {
                match name {
                    $($name => if let Some(v) = $kind::from_name(value) { self.$field = v },)*
                    _ => {}
                }
            };
        }
        typed!(
            "tool_arguments" tool_arguments: ToolArguments,
            "usage" usage: UsagePolicy,
            "output_index" output_index: OutputIndex,
            "items_overlap" items_overlap: ItemsOverlap,
            "reasoning" reasoning: ReasoningPolicy,
            "choice_frames" choice_frames: ChoiceFrames,
            "empty_message_item" empty_message_item: EmptyMessageItem,
            "close_items" close_items: CloseItems,
            "empty_arguments" empty_arguments: EmptyArguments,
            "stream_start" stream_start: StreamStart,
            "ids" ids: IdsPolicy,
            "on_idle" on_idle: OnIdle,
            "aggregate.on_empty" on_empty: OnEmpty,
            "aggregate.on_partial" on_partial: OnPartial,
            "aggregate.on_malformed" on_malformed: OnMalformed,
            "aggregate.usage" aggregate_usage: AggregateUsage
        );
        match self.values.iter_mut().find(|(n, _)| &**n == name) {
            Some((_, v)) => *v = Tree::from(value),
            None => self.values.push((Arc::from(name), Tree::from(value))),
        }
    }

    pub fn value(&self, name: &str) -> Option<&Tree> {
        self.values.iter().find(|(n, _)| &**n == name).map(|(_, v)| v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_names_a_value_and_is_none_itself() {
        for (policy, alias, value) in ALIASES {
            let values = BUILT_IN.iter().find(|spec| spec.name == *policy).map_or(&[] as &[&str], |spec| spec.values);
            assert!(values.contains(value) && !values.contains(alias), "{policy}: {alias}");
            assert_eq!(canonical(policy, alias), *value);
        }
        assert_eq!(canonical("usage", "estimate"), "estimate");
        assert_eq!(canonical("terminator", "A"), "A");
    }
}
