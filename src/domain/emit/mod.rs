//! What rules can `emit:`, with the fields of each kind. Rules of backends emit events; rules of dialects emit the
//! items of a request, and observations about captured frames.

mod capture;
mod fields;
mod request;

pub use super::event::EVENTS;
pub use super::request_item::{ITEMS, PARTS};
pub use capture::{
    DeltaKind, ItemFacts, ItemRef, OBSERVATIONS, Observation, ObservationKind, ObservedItem, ObservedPart, ObservedText,
};
pub use fields::{EmitField, EmitSpec, EmittedFields, flat, flat_len, into_text, scalar_str, scalar_text, take};
pub(crate) use fields::{field_name, specs};
pub use request::*;

/// The type of a field that a rule sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A string; numbers and booleans are converted to text.
    Text,
    Int,
    Number,
    Bool,
    /// One of a closed set of names.
    Enum(&'static [&'static str]),
    /// One string or a list of them.
    TextOrList,
    /// Any JSON, with key order and exact numbers preserved.
    Json,
    /// A list of content parts, built by the named rules after `use:`.
    ContentParts,
}

#[derive(Clone, Copy, Debug)]
pub struct FieldSpec {
    pub name: &'static str,
    pub field_type: FieldType,
}

/// One kind of thing that a rule can emit.
#[derive(Debug)]
pub struct EmitKind {
    pub name: &'static str,
    /// For the generated schema and reference.
    pub description: &'static str,
    pub fields: &'static [FieldSpec],
    /// Nothing is emitted if all of these fields are absent. If the list is empty, it is always emitted.
    pub payload: &'static [&'static str],
}

/// The kinds that one category of rules can emit.
#[derive(Debug)]
pub struct EmitGrammar {
    /// The noun for one of its kinds in diagnostics.
    pub noun: &'static str,
    /// Treat empty strings as absent: an empty delta of a stream carries nothing, an empty message of a request does.
    pub skip_empty: bool,
    pub kinds: &'static [EmitKind],
}

impl EmitGrammar {
    pub fn find(&self, name: &str) -> Option<&'static EmitKind> {
        self.kinds.iter().find(|w| w.name == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.iter().map(|w| w.name)
    }
}

/// Declares what the rules of one category can emit, each kind once: a variant of the enum of emitted values, its name
/// and fields in `emit:`, and the fields of which one must be present (`if a | b`; otherwise nothing is emitted). A
/// field has a Rust type, which determines its type in `emit:`, and may have a default. The doc comment of a kind is its
/// description in the generated schema and reference.
macro_rules! emissions {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident, $kind:ident, $grammar:ident {
            noun: $noun:literal,
            skip_empty: $skip_empty:literal,
            $(
                $(#[doc = $description:literal])+
                $variant:ident = $yaml:literal $({
                    $($field:ident $(as $key:literal)?: $type:ty $(= $default:expr)?),* $(,)?
                })? $(if $($payload:ident)|+)?;
            )*
        }
    ) => {
        $(#[$attribute])*
        pub enum $name {
            $($(#[doc = $description])+ $variant $({ $($field: $type),* })?,)*
        }

        $crate::domain::named_enum! {
            pub enum $kind { $($variant = $yaml),* }
        }

        pub static $grammar: $crate::domain::emit::EmitGrammar = $crate::domain::emit::EmitGrammar {
            noun: $noun,
            skip_empty: $skip_empty,
            kinds: &[$($crate::domain::emit::EmitKind {
                name: $yaml,
                description: concat!($($description),+).trim_ascii(),
                fields: $crate::domain::emit::specs!($($($field $(as $key)?: $type),*)?),
                payload: &[$($(stringify!($payload)),+)?],
            }),*],
        };

        impl $name {
            #[allow(dead_code, reason = "not every enum needs every function")]
            pub fn kind(&self) -> $kind {
                match self { $($name::$variant { .. } => $kind::$variant),* }
            }

            /// `None` if a required field is absent.
            pub fn from_emission(name: &str, mut fields: $crate::domain::emit::EmittedFields) -> Option<$name> {
                use $crate::domain::emit::{EmitField, field_name};
                let fields = &mut fields;
                Some(match $kind::from_name(name)? {
                    $($kind::$variant => $name::$variant $({
                        $($field: <$type as EmitField>::take(field_name!($field $(as $key)?), fields)
                            $(.or_else(|| Some($default)))? ?,)*
                    })?,)*
                })
            }
        }
    };
}
pub(crate) use emissions;

/// Declares a struct that several fields of an emission are read into, one for each of its members.
macro_rules! emit_group {
    ($(#[$attribute:meta])* pub struct $name:ident {
        $($field:ident $(as $key:literal)?: $type:ty $(= $default:expr)?),* $(,)?
    }) => {
        $(#[$attribute])*
        pub struct $name {
            $(pub $field: $type,)*
        }

        impl $crate::domain::emit::EmitField for $name {
            const SPEC: $crate::domain::emit::EmitSpec =
                $crate::domain::emit::EmitSpec::Group($crate::domain::emit::specs!($($field $(as $key)?: $type),*));

            fn take(_: &str, fields: &mut $crate::domain::emit::EmittedFields) -> Option<$name> {
                use $crate::domain::emit::{EmitField, field_name};
                Some($name {
                    $($field: <$type as EmitField>::take(field_name!($field $(as $key)?), fields)
                        $(.or_else(|| Some($default)))? ?,)*
                })
            }
        }
    };
}
pub(crate) use emit_group;

const fn field(name: &'static str, field_type: FieldType) -> FieldSpec {
    FieldSpec { name, field_type }
}

#[cfg(test)]
#[path = "../../../tests/unit/domain_emit.rs"]
mod tests;
