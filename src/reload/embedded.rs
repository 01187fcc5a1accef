//! The set that is compiled into the binary: the default when a folder says nothing else.

use crate::mapping::FileText;
use std::sync::Arc;

/// Before the path of such a file, where a person reads it.
pub const SHOWN: &str = "(embedded) ";

/// (name, shown, text)
const FILES: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

pub fn files() -> Vec<FileText> {
    FILES
        .iter()
        .map(|(name, shown, text)| FileText {
            name: (*name).to_owned(),
            shown: format!("{SHOWN}{shown}"),
            text: Arc::from(*text),
        })
        .collect()
}
