//! Why the files of a set cannot be read.

use super::set_reader::display_path;
use crate::diagnostics::Code;
use std::io;
use std::path::Path;
use std::string::FromUtf8Error;

/// Why a set could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadError {
    pub code: Code,
    /// The file or folder, in display form; `None` if the set as a whole is the problem.
    pub path: Option<String>,
    pub message: String,
    /// What to show of the file, and the offset of the problem in it. Empty if the file was not read.
    pub excerpt: (String, usize),
}

impl ReadError {
    pub(super) fn new(code: Code, path: Option<String>, message: String) -> ReadError {
        ReadError { code, path, message, excerpt: (String::new(), 0) }
    }

    pub(super) fn unreadable(path: &Path, why: &str) -> ReadError {
        let shown = display_path(path);
        let message = format!("cannot read {shown}: {why}");
        ReadError::new(Code::Unreadable, Some(shown), message)
    }

    pub(super) fn io(path: &Path, error: &io::Error) -> ReadError {
        match error.kind() {
            io::ErrorKind::NotFound if path.is_symlink() => ReadError::unreadable(path, "it is a dangling symlink"),
            io::ErrorKind::NotFound => ReadError::unreadable(path, "no such file or folder"),
            io::ErrorKind::PermissionDenied => ReadError::unreadable(path, "permission denied"),
            io::ErrorKind::NotADirectory => ReadError::unreadable(path, "it is not a folder"),
            _ => ReadError::unreadable(path, &error.to_string()),
        }
    }

    /// Shows the first line that is not valid UTF-8, decoded lossily, at its line number.
    pub(super) fn not_utf8(path: String, error: &FromUtf8Error) -> ReadError {
        let (before, after) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let end = after.iter().position(|byte| *byte == b'\n').unwrap_or(after.len());
        let mut text = "\n".repeat(line - 1) + &String::from_utf8_lossy(&before[begin..]);
        let at = text.len();
        text.push_str(&String::from_utf8_lossy(&after[..end]));
        let message = format!("{path} is not UTF-8 text: see line {line}");
        ReadError { excerpt: (text, at), ..ReadError::new(Code::Unreadable, Some(path), message) }
    }
}
