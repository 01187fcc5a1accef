//! The types that the fields of an emission can have: their type in `emit:`, and how their value is read.

use super::{FieldSpec, FieldType};
use crate::domain::{NamedEnum, Tree};
use std::borrow::Cow;

/// The fields that a rule set, by name; absent ones are left out. The loader has checked their names, and the rule has
/// converted their values to the types of the fields.
pub type EmittedFields = Vec<(&'static str, Tree)>;

/// The type of a field of an emission, or of several fields that are read as one value.
pub trait EmitField: Sized {
    const SPEC: EmitSpec;

    /// `None` if it is required and absent.
    fn take(name: &str, fields: &mut EmittedFields) -> Option<Self>;
}

/// How a value is written in `emit:`.
#[derive(Clone, Copy)]
pub enum EmitSpec {
    /// As one field, with the name of the declaration.
    One(FieldType),
    /// As these fields.
    Group(&'static [FieldSpec]),
}

pub fn take(name: &str, fields: &mut EmittedFields) -> Option<Tree> {
    let at = fields.iter().position(|(n, _)| *n == name)?;
    Some(fields.swap_remove(at).1)
}

/// The text of a scalar. Numbers and booleans are converted: an id may be a number.
pub fn scalar_text(value: &Tree) -> Option<String> {
    match value {
        Tree::Str(text) => Some(text.to_string()),
        Tree::SurrogateString(string) => Some(string.to_string_lossy()),
        Tree::Num(_) | Tree::Bool(_) => Some(value.to_json()),
        Tree::Null | Tree::List(_) | Tree::Map(_) => None,
    }
}

/// The same, borrowed if it is a text.
pub fn scalar_str(value: &Tree) -> Option<Cow<'_, str>> {
    match value {
        Tree::Str(text) => Some(Cow::Borrowed(text)),
        other => scalar_text(other).map(Cow::Owned),
    }
}

/// The same, without a copy of the text.
pub fn into_text(value: Tree) -> Option<String> {
    match value {
        Tree::Str(text) => Some(text.into_string()),
        other => scalar_text(&other),
    }
}

macro_rules! emit_fields {
    ($($kind:ty: $field_type:ident, $value:ident => $read:expr;)*) => {
        $(impl EmitField for $kind {
            const SPEC: EmitSpec = EmitSpec::One(FieldType::$field_type);

            fn take(name: &str, fields: &mut EmittedFields) -> Option<Self> {
                let $value = take(name, fields)?;
                $read
            }
        })*
    };
}

emit_fields! {
    String: Text, value => into_text(value);
    i64: Int, value => value.as_i64();
    u64: Int, value => value.as_u64();
    usize: Int, value => value.as_u64().map(|n| n as usize);
    u16: Int, value => value.as_u64().and_then(|n| u16::try_from(n).ok());
    bool: Bool, value => value.as_bool();
    Tree: Json, value => Some(value);
    Vec<String>: TextOrList, value => {
        Some(value.as_list().unwrap_or_default().iter().filter_map(|item| item.as_str().map(str::to_owned)).collect())
    };
}

impl<E: NamedEnum> EmitField for E {
    const SPEC: EmitSpec = EmitSpec::One(FieldType::Enum(E::NAMES));

    fn take(name: &str, fields: &mut EmittedFields) -> Option<Self> {
        E::from_name(take(name, fields)?.as_str()?)
    }
}

impl<F: EmitField> EmitField for Option<F> {
    const SPEC: EmitSpec = F::SPEC;

    fn take(name: &str, fields: &mut EmittedFields) -> Option<Self> {
        Some(F::take(name, fields))
    }
}

/// The fields of a declaration as a constant slice: `specs!(id: String, ..)`, with `as "key"` after a name that differs.
macro_rules! specs {
    ($($field:ident $(as $key:literal)?: $kind:ty),* $(,)?) => {{
        use $crate::domain::emit;
        const SPECS: &[(&str, emit::EmitSpec)] =
            &[$((emit::field_name!($field $(as $key)?), <$kind as emit::EmitField>::SPEC)),*];
        const FIELDS: [emit::FieldSpec; emit::flat_len(SPECS)] = emit::flat(SPECS);
        &FIELDS
    }};
}
pub(crate) use specs;

macro_rules! field_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident as $key:literal) => {
        $key
    };
}
pub(crate) use field_name;

pub const fn flat_len(specs: &[(&str, EmitSpec)]) -> usize {
    let (mut len, mut at) = (0, 0);
    while at < specs.len() {
        len += match specs[at].1 {
            EmitSpec::One(_) => 1,
            EmitSpec::Group(fields) => fields.len(),
        };
        at += 1;
    }
    len
}

/// The fields of all specs in one array; `N` is their `flat_len`.
pub const fn flat<const N: usize>(specs: &[(&'static str, EmitSpec)]) -> [FieldSpec; N] {
    let mut all = [FieldSpec { name: "", field_type: FieldType::Json }; N];
    let (mut len, mut at) = (0, 0);
    while at < specs.len() {
        match specs[at] {
            (name, EmitSpec::One(field_type)) => {
                all[len] = FieldSpec { name, field_type };
                len += 1;
            }
            (_, EmitSpec::Group(fields)) => {
                let mut inner = 0;
                while inner < fields.len() {
                    all[len] = fields[inner];
                    (len, inner) = (len + 1, inner + 1);
                }
            }
        }
        at += 1;
    }
    all
}
