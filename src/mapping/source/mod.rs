//! The files of a mapping set: layout, YAML with positions, and reading maps field by field.

pub mod field_reader;
pub(in crate::mapping) mod files;
pub mod layout;
pub(in crate::mapping) mod parse_files;
pub mod renamed_schemas;
mod simple_yaml;
pub mod yaml;
pub mod yaml_errors;
