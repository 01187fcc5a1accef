//! The nouns: what a request asks, what a backend said, where the turn stands, what a client is told.
//!
//! Closed lists live here and nowhere else; `check` reads the same tables that the run time uses.

pub mod emit;
pub mod event;
pub mod fault;
pub mod finish;
pub mod frame;
pub mod moment;
pub mod policy;
pub mod request;
pub mod turn_state;
pub mod usage;
pub mod variables;

pub use event::{CallKind, Ended, Event, Piece, ReasoningKind};
pub use fault::{Fault, FaultKind, Hidden};
pub use finish::Finish;
pub use frame::{Frame, FrameBody, WireKind};
pub use moment::{Moment, MomentKind, Scope};
pub use policy::Policies;
pub use reframe_json::Tree;
pub use request::{Masks, TurnRequest};
pub use turn_state::{Choice, Item, ItemKind, ItemState, Part, PartKind, TurnState};
pub use usage::{Merge, Usage};

/// A closed set of words, for what tells people about it.
pub trait Closed {
    const WORDS: &'static [&'static str];
    /// What is chosen.
    const ABOUT: &'static str;
    /// What each word means, where its name does not say it.
    const MEANINGS: &'static [&'static str];
}

/// Declares a closed set of words: an enum, its spelling in YAML, and the list for `check`. Its comments are what an
/// editor shows.
macro_rules! words {
    ($(#[doc = $about:literal])* $vis:vis enum $name:ident {
        $($(#[doc = $meaning:literal])* $variant:ident = $word:literal),* $(,)?
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        $vis enum $name { $($(#[doc = $meaning])* $variant),* }

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

        impl $crate::domain::Closed for $name {
            const WORDS: &'static [&'static str] = $name::WORDS;
            const ABOUT: &'static str = concat!($($about),*).trim_ascii();
            const MEANINGS: &'static [&'static str] = &[$(concat!($($meaning),*).trim_ascii()),*];
        }
    };
}
pub(crate) use words;
