//! The grammar of mapping files: a section is declared once, as a struct with typed fields, and read, checked and
//! documented from that declaration.

pub mod collections;
pub mod notation;
pub mod policies;
pub mod section;
pub mod unparsed;

pub(crate) use section::section;
pub use section::{At, Field, FromNode, Named, Quoted, Required, Section, Subject, object_schema};
