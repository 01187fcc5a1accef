//! Policies: named settings with a closed set of values. Those that affect the state of a turn are built in and
//! implemented by `turn/`. A dialect can declare further ones, which only its expressions read, as `policy.NAME`.

pub use super::policy_values::*;

use super::{Finish, MomentKind, NamedEnum, Text, Tree};
use std::sync::Arc;

/// The declaration of a built-in policy. The first value is the default.
pub struct PolicySpec {
    pub name: &'static str,
    pub values: &'static [&'static str],
    pub list: bool,
    /// For the generated schema and reference.
    pub description: &'static str,
    pub effect: PolicyEffect,
}

impl PolicySpec {
    /// The built-in policy of this name.
    pub fn find(name: &str) -> Option<&'static PolicySpec> {
        BUILT_IN.iter().find(|spec| spec.name == name)
    }

    /// Whether only expressions read the policy of this name: a custom one, or one without an effect of its own.
    pub fn is_read_by_expressions_only(name: &str) -> bool {
        PolicySpec::find(name).is_none_or(|spec| matches!(spec.effect, PolicyEffect::Expressions))
    }

    /// False for a list: it has no default value, only an order.
    pub fn is_default(&self, value: &str) -> bool {
        !self.list && self.values.first() == Some(&value)
    }
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

/// Declares the built-in policies, each once: the name in YAML, the field of [`Policies`] if Rust code reads the value, the
/// enum of its values (the first is the default), and its effect.
macro_rules! built_in_policies {
    ($($name:literal $(in $field:ident)?: $kind:ident, $effect:expr;)*) => {
        pub const BUILT_IN: &[PolicySpec] = &[
            $(PolicySpec {
                name: $name,
                values: $kind::NAMES,
                list: false,
                description: <$kind as NamedEnum>::DESCRIPTION,
                effect: $effect,
            },)*
            FINISH_PRECEDENCE,
        ];

        /// The values of all policies: typed where Rust code reads them, and by name for expressions.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Policies {
            $($(pub $field: $kind,)?)*
            pub finish_precedence: Vec<Finish>,
            /// Name and value for `policy.NAME`: the built-in and the custom policies.
            /// Shared, because every turn has a copy of the policies.
            pub values: Arc<Vec<(Text, Tree)>>,
        }

        impl Default for Policies {
            fn default() -> Self {
                Policies {
                    $($($field: $kind::ALL[0],)?)*
                    finish_precedence: DEFAULT_FINISH_PRECEDENCE.to_vec(),
                    values: Arc::new(vec![$((Text::from($name), Tree::from($kind::NAMES[0]))),*]),
                }
            }
        }

        impl Policies {
            /// Sets a policy by name. The loader has checked name and value against [`BUILT_IN`] or the custom policies.
            pub fn set(&mut self, name: &str, value: &str) {
                match name {
                    $($($name => if let Some(v) = $kind::from_name(value) { self.$field = v },)?)*
                    // An expression reads it by name.
                    _ => {}
                }
                let values = Arc::make_mut(&mut self.values);
                match values.iter_mut().find(|(n, _)| &**n == name) {
                    Some((_, v)) => *v = Tree::from(value),
                    None => values.push((Text::from(name), Tree::from(value))),
                }
            }
        }
    };
}

use MomentKind as M;
use PolicyEffect::{Anywhere, Expressions, Moments, Variables};

built_in_policies! {
    "tool_arguments" in tool_arguments: ToolArguments, Variables(&["args"]);
    "usage" in usage: UsagePolicy, Variables(&["usage", "turn.usage"]);
    "usage_stream": UsageStream, Expressions;
    "output_tokens" in output_tokens: OutputTokens, Variables(&["usage", "turn.usage"]);
    "output_index" in output_index: OutputIndex, Variables(&["item.index"]);
    "items_overlap" in items_overlap: ItemsOverlap, Moments(&[M::ToolOpen, M::ToolArgs, M::ToolClose]);
    "reasoning" in reasoning: ReasoningPolicy,
        Moments(&[M::ReasoningOpen, M::SummaryDelta, M::ThoughtDelta, M::ReasoningClose]);
    "choice_frames" in choice_frames: ChoiceFrames, Moments(&[M::ChoiceOpen]);
    "empty_message_item" in empty_message_item: EmptyMessageItem, Moments(&[M::MessageOpen, M::MessageClose]);
    "close_items" in close_items: CloseItems,
        Moments(&[M::MessageOpen, M::MessageClose, M::PartClose, M::ToolOpen, M::ToolClose]);
    "tool_ids": ToolIds, Expressions;
    "tool_first_delta_args" in tool_first_delta_args: ToolFirstArguments, Expressions;
    "stop_after_tools" in stop_after_tools: StopAfterTools, Anywhere;
    "tail_after_tools" in tail_after_tools: TailAfterTools, Anywhere;
    "errors_after_tools" in errors_after_tools: ErrorsAfterTools, Anywhere;
    "duplicate_calls" in duplicate_calls: DuplicateCalls, Moments(&[M::ToolOpen, M::ToolClose]);
    "tool_order" in tool_order: ToolOrder, Moments(&[M::ToolOpen, M::ToolClose]);
    "call_blocks" in call_blocks: CallBlocks, Moments(&[M::TextDelta]);
    "call_block_text" in call_block_text: CallBlockText, Moments(&[M::TextDelta]);
    "call_block_keys" in call_block_keys: CallBlockKeys, Moments(&[M::TextDelta]);
    "call_block_arguments" in call_block_arguments: CallBlockArguments, Moments(&[M::TextDelta]);
    "empty_arguments" in empty_arguments: EmptyArguments, Variables(&["args", "item.arguments"]);
    "invalid_arguments" in invalid_arguments: InvalidArguments, Variables(&["item.input"]);
    "non_object_arguments" in non_object_arguments: NonObjectArguments, Variables(&["item.input"]);
    "legacy_function_call" in legacy_function_call: LegacyFunctionCall, Variables(&["item.legacy"]);
    "truncation": Truncation, Expressions;
    "terminator": Terminator, Expressions;
    "terminator_after_failure": TerminatorAfterFailure, Expressions;
    "timeout_code": TimeoutCode, Expressions;
    "model_echo" in model_echo: ModelEcho, Variables(&["turn.model"]);
    "stream_start" in stream_start: StreamStart, Anywhere;
    "ids" in ids: IdsPolicy, Variables(&["turn.id", "turn.created", "item.id"]);
    "on_idle" in on_idle: OnIdle, Anywhere;
    "disconnect" in disconnect: Disconnect, Anywhere;
    "finish_without_calls" in finish_without_calls: FinishWithoutCalls, Anywhere;
    "empty_completion" in empty_completion: EmptyCompletion, Anywhere;
    "finish_debug" in finish_debug: FinishDebug, Anywhere;
    "unknown_finish" in unknown_finish: UnknownFinish, Anywhere;
    "malformed_extras" in malformed_extras: MalformedExtras, Anywhere;
    "aggregate.on_empty" in on_empty: OnEmpty, Anywhere;
    "aggregate.on_partial" in on_partial: OnPartial, Anywhere;
    "aggregate.on_malformed" in on_malformed: OnMalformed, Anywhere;
}

/// The only policy with a list of values.
const FINISH_PRECEDENCE: PolicySpec = PolicySpec {
    name: "finish_precedence",
    values: Finish::NAMES,
    list: true,
    description: "Which finish reason applies if a choice has several, strongest first. \
                  Omitted reasons follow in the default order.",
    effect: Variables(&["choice.finish", "turn.finish", "turn.state", "turn.truncated"]),
};

const DEFAULT_FINISH_PRECEDENCE: &[Finish] = &[
    Finish::Error,
    Finish::ContentFilter,
    Finish::Length,
    Finish::ToolCalls,
    Finish::FunctionCall,
    // Below the tool calls: a backend that is interrupted after its calls were accepted has made calls.
    Finish::Cancelled,
    Finish::Stop,
];

/// Alternative names of values: policy, alias, value. They are accepted wherever a value can be set; output shows the
/// value.
pub const ALIASES: &[(&str, &str, &str)] = &[("usage", "A", "as_reported"), ("usage", "B", "zeros")];

/// Resolves an alias; any other value is returned as it is.
pub fn canonical<'v>(policy: &str, value: &'v str) -> &'v str {
    ALIASES.iter().find(|(p, alias, _)| *p == policy && *alias == value).map_or(value, |(_, _, value)| value)
}

impl Policies {
    /// Whether an item closes as soon as it is complete. `items_overlap: serial` implies it: the next item needs the
    /// slot.
    pub fn closes_when_complete(&self) -> bool {
        self.close_items == CloseItems::WhenComplete || self.items_overlap == ItemsOverlap::Serial
    }

    /// Whether the policies are equal, apart from those with these names, which only expressions read.
    pub fn is_equal_except(&self, other: &Policies, names: &[String]) -> bool {
        let mut same = self.clone();
        for name in names {
            same.set(name, &other.text(name));
        }
        same == *other
    }

    pub fn value(&self, name: &str) -> Option<&Tree> {
        self.values.iter().find(|(n, _)| &**n == name).map(|(_, v)| v)
    }

    /// The value as in a mapping file; the only policy that is a list is `finish_precedence`.
    pub fn text(&self, name: &str) -> String {
        match self.value(name) {
            Some(value) => value.as_str().unwrap_or_default().to_owned(),
            None => self.finish_precedence.iter().map(|f| f.name()).collect::<Vec<_>>().join(", "),
        }
    }
}

#[cfg(test)]
#[path = "../../tests/unit/domain_policy.rs"]
mod tests;
