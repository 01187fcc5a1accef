//! What a record is: the macro that declares all records, their types and their values, and what they have in common.

use super::VariableType;
use super::records::{Record, RecordType};
use crate::domain::{RoleNames, TurnRequest};

/// The name of a field of a record, as the number that all fields of this name have: it is looked up at load, so that
/// reading a field compares no texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldName(usize);

impl FieldName {
    /// The position of the name among all; their number if no record has a field of this name.
    pub(super) const fn of(name: &str, all: &[&str]) -> FieldName {
        let mut at = 0;
        while at < all.len() && !is_same(all[at].as_bytes(), name.as_bytes()) {
            at += 1;
        }
        FieldName(at)
    }
}

const fn is_same(left: &[u8], right: &[u8]) -> bool {
    let mut at = 0;
    while at < left.len() && at < right.len() && left[at] == right[at] {
        at += 1;
    }
    at == left.len() && at == right.len()
}

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

        /// The names of all fields of all records.
        const FIELD_NAMES: &[&str] = &[$($(stringify!($field),)*)*];

        impl<'a> Record<'a> {
            /// The loader has checked the name.
            pub fn field(self, name: FieldName) -> Value<'a> {
                match self {
                    // Comparisons with constants: a jump, however many fields there are.
                    $(Record::$record($($subject),+) => {
                        $(if name == const { FieldName::of(stringify!($field), FIELD_NAMES) } {
                            return Value::from($value);
                        })*
                        Value::Null
                    })*
                }
            }

            /// All fields, with their values.
            pub fn fields(self) -> impl Iterator<Item = (&'static str, Value<'a>)> {
                let names: &[(&str, FieldName)] = match self {
                    $(Record::$record(..) => const {
                        &[$((stringify!($field), FieldName::of(stringify!($field), FIELD_NAMES))),*]
                    },)*
                };
                names.iter().map(move |(name, field)| (*name, self.field(*field)))
            }
        }

        impl FieldName {
            /// The loader has checked the name. Members of JSON may have any.
            pub fn find(name: &str) -> FieldName {
                FieldName::of(name, FIELD_NAMES)
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
