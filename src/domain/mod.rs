//! Domain types: the client's request, the backend's events, the state of the turn, and the frames sent to the client.
//!
//! All closed lists of names are defined here, so that `check` and the run time use the same tables.

pub mod call_block;
pub mod call_id;
mod content_media;
pub mod emit;
pub mod event;
pub mod extras;
pub mod fault;
pub mod finish;
pub mod frame;
pub mod health;
pub mod index_law;
pub mod inline;
pub mod log_line;
pub mod logprobs;
pub mod metadata_key;
pub mod metric_name;
pub mod moment;
pub mod policy;
mod policy_values;
pub mod request;
pub mod request_head;
pub mod request_item;
pub mod turn_state;
pub mod usage;
pub mod usage_report;
pub mod variables;
pub mod work_budget;

pub use event::{
    Annotation, AnnotationKind, CallIdentity, CallKind, Delta, Event, EventKind, HintStrength, ReasoningKind, StreamEnd,
};
pub use extras::{ExtraKind, MalformedExtra};
pub use fault::{Fault, FaultKind, FaultReporter, Redactor};
pub use finish::Finish;
pub use frame::{Frame, FrameBody, StreamFormat};
pub use health::{BackendHealth, Health, WorkerHealth};
pub use index_law::{IndexConflict, IndexLaw, SentItems};
pub use log_line::{HttpExchange, LogMoment, LogTime, RemovedMetadata, TurnSummary};
pub use logprobs::{Logprobs, TokenLogprob};
pub use metric_name::{MetricName, ResettableMetric};
pub use moment::{Moment, MomentKind, Scope};
pub use policy::Policies;
pub use reframe_json::{Draft, Text, Tree};
pub use request::{RequestContent, RoleNames, ToolAliases, TurnRequest, UnknownValue};
pub use request_head::RequestHead;
pub use request_item::Derived;
pub use turn_state::{Choice, Item, ItemKind, ItemState, Part, PartAnnotation, PartKind, TurnState};
pub use usage::{Merge, Usage};
pub use usage_report::{UsageBucket, UsageGroup, UsageReport, UsageSum};
pub use work_budget::WorkBudget;

/// An enum with a closed set of names, for readers of YAML and the generated schema and reference.
pub trait NamedEnum: Copy {
    fn as_name(self) -> &'static str;
    const NAMES: &'static [&'static str];
    /// What the enum selects.
    const DESCRIPTION: &'static str;
    /// The description of each value; empty where the name is self-explanatory.
    const VALUE_DESCRIPTIONS: &'static [&'static str];

    fn from_name(name: &str) -> Option<Self>;
}

/// Declares an enum together with the names of its values in YAML. Its doc comments become the descriptions in the
/// generated schema and reference, which editors show.
macro_rules! named_enum {
    ($(#[doc = $description:literal])* $vis:vis enum $name:ident {
        $($(#[doc = $value_description:literal])* $variant:ident = $value:literal),* $(,)?
    }) => {
        $(#[doc = $description])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(dead_code, reason = "some values are only named in YAML expressions")]
        $vis enum $name { $($(#[doc = $value_description])* $variant),* }

        #[allow(dead_code, reason = "not every enum needs every function")]
        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            pub const NAMES: &'static [&'static str] = &[$($value),*];

            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $value),* }
            }

            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($value => Some($name::$variant),)* _ => None }
            }
        }

        impl $crate::domain::NamedEnum for $name {
            fn as_name(self) -> &'static str {
                self.name()
            }

            const NAMES: &'static [&'static str] = $name::NAMES;
            const DESCRIPTION: &'static str = concat!($($description),*).trim_ascii();
            const VALUE_DESCRIPTIONS: &'static [&'static str] = &[$(concat!($($value_description),*).trim_ascii()),*];

            fn from_name(name: &str) -> Option<$name> {
                $name::from_name(name)
            }
        }
    };
}
pub(crate) use named_enum;
