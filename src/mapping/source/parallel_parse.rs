//! Parses the YAML files of a set on two threads: parsing takes a third of a reload.

use super::yaml::{self, Node};
use crate::diagnostics::{Diagnostic, FileId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

/// Of the second thread. The depth of a file is limited, and needs a small part of this.
const STACK_BYTES: usize = 32 * 1024 * 1024;

/// Fewer bytes are parsed sooner than a thread is started.
const WORTH_A_THREAD: usize = 16 * 1024;

/// The parsed files, by id.
pub type ParsedFiles = HashMap<FileId, Result<Node, Diagnostic>>;

pub fn parse(files: &[(FileId, &str)]) -> ParsedFiles {
    // The largest first, so that both threads end at the same time.
    let mut files = files.to_vec();
    files.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
    let next = AtomicUsize::new(0);
    let work = || -> Vec<(FileId, Result<Node, Diagnostic>)> {
        let parse = |(file, text): &(FileId, &str)| (*file, yaml::try_parse(*file, text));
        std::iter::from_fn(|| files.get(next.fetch_add(1, Ordering::Relaxed)).map(parse)).collect()
    };
    if files.iter().map(|(_, text)| text.len()).sum::<usize>() < WORTH_A_THREAD {
        return work().into_iter().collect();
    }
    let parsed = thread::scope(|scope| {
        let second = thread::Builder::new().name("parse".to_owned()).stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let mut parsed = work();
        // Without a second thread, this one has parsed all.
        if let Ok(second) = second {
            parsed.extend(second.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
        }
        parsed
    });
    parsed.into_iter().collect()
}
