//! The nouns: what a request asks, what a backend said, where the turn stands, what a client is told.
//!
//! Closed lists live here and nowhere else; `check` reads the same tables that the run time uses.

pub mod event;
pub mod fault;
pub mod finish;
pub mod frame;
pub mod moment;
pub mod policy;
pub mod request;
pub mod shape;
pub mod state;
pub mod usage;
pub mod vocabulary;

pub use event::{CallKind, Ended, Event, Piece, ReasoningKind};
pub use fault::{Fault, FaultKind, Hidden};
pub use finish::Finish;
pub use frame::{Frame, FrameBody, WireKind};
pub use moment::{Moment, MomentKind, Scope};
pub use policy::Policies;
pub use reframe_frame::Tree;
pub use request::{Masks, TurnRequest};
pub use state::{Choice, Item, ItemKind, ItemState, Part, PartKind, TurnState};
pub use usage::{Merge, Usage};

/// Declares a closed set of words: an enum, its spelling in YAML, and the list for `check`.
macro_rules! words {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $name { $($(#[$vmeta])* $variant),* }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            pub fn from_word(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)* _ => None }
            }
        }
    };
}
pub(crate) use words;
