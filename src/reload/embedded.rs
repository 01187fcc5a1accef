//! The mapping set compiled into the binary: the default when no folder is given.

use crate::mapping::SourceFile;
use std::sync::Arc;

/// Prefix of the displayed path of an embedded file.
pub const PATH_PREFIX: &str = "(embedded) ";

/// (name, displayed path, text)
const FILES: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

pub fn files() -> Vec<SourceFile> {
    FILES
        .iter()
        .map(|(name, shown, text)| SourceFile {
            name: (*name).to_owned(),
            shown: format!("{PATH_PREFIX}{shown}"),
            layer: 0,
            text: Arc::from(*text),
        })
        .collect()
}
