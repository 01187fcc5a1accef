//! What a record is: the macro that declares all records, their types and their values, and what they have in common.

use super::VariableType;
use super::records::{Record, RecordType};
use crate::domain::{RoleNames, TurnRequest};

/// Declares the records: each is read from a Rust type, with an expression for each field.
macro_rules! records {
    ($(
        $(#[$doc:meta])*
        $record:ident($($subject:ident: $subject_type:ty),+) {
            $($field:ident: $field_type:expr => $value:expr;)*
        }
    )*) => {
        /// A record with named fields.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RecordType {
            $($(#[$doc])* $record,)*
            /// Any JSON object: all field names are allowed.
            Untyped,
        }

        impl RecordType {
            /// `None`: all field names are allowed.
            pub fn fields(self) -> Option<&'static [Variable]> {
                match self {
                    $(RecordType::$record => Some(&[$((stringify!($field), $field_type)),*]),)*
                    RecordType::Untyped => None,
                }
            }
        }

        /// The value of a record.
        #[derive(Clone, Copy, Debug)]
        pub enum Record<'a> {
            $($(#[$doc])* $record($(&'a $subject_type),+),)*
        }

        impl<'a> Record<'a> {
            /// The loader has checked the name.
            pub fn field(self, name: &str) -> Value<'a> {
                match self {
                    $(Record::$record($($subject),+) => match name {
                        $(stringify!($field) => Value::from($value),)*
                        _ => Value::Null,
                    },)*
                }
            }

            /// All fields, with their values.
            pub fn fields(self) -> impl Iterator<Item = (&'static str, Value<'a>)> {
                let names = match self {
                    $(Record::$record(..) => RecordType::$record.fields().unwrap_or_default(),)*
                };
                names.iter().map(move |(name, _)| (*name, self.field(name)))
            }
        }
    };
}

/// A field that only these variants have.
macro_rules! field {
    ($value:expr, $pattern:pat => $field:expr) => {
        match $value {
            $pattern => Some($field),
            _ => None,
        }
    };
}
pub(super) use {field, records};

impl<'a> Record<'a> {
    /// The request as the client sent it, not adapted to a backend.
    pub fn request(request: &'a TurnRequest) -> Record<'a> {
        Record::Request(request, &request.content, RoleNames::IDENTITY)
    }

    /// Whether the whole record as JSON is without the fields that are null: those that a client did not set.
    pub fn omits_null(self) -> bool {
        use Record::{Choice, Fault, Item, Part, Token, Turn, Usage};
        !matches!(self, Turn(_) | Choice(..) | Item(_) | Part(_) | Token(_) | Usage(_) | Fault(_))
    }
}

impl RecordType {
    pub fn field(self, name: &str) -> Option<VariableType> {
        match self.fields() {
            None => Some(VariableType::Json),
            Some(fields) => fields.iter().find(|(n, _)| *n == name).map(|(_, t)| *t),
        }
    }
}
