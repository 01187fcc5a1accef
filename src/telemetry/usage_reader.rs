//! Reads the lines of a usage log, within limits: of a large log only its newest part, and no line that is too long.

use super::file_log::LogFile;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The limits of one read.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// Bytes of the log, the newest ones.
    pub log_bytes: u64,
    /// Longer lines are skipped.
    pub line_bytes: usize,
}

/// Whether the whole log was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadExtent {
    Complete,
    NewestPart,
}

/// Calls `on_line` for the lines of the log, the oldest first. A missing file has none.
pub fn read_lines(log: &LogFile, limits: ReadLimits, mut on_line: impl FnMut(&[u8])) -> io::Result<ReadExtent> {
    let (earlier, current) = (log.earlier(), log.path.as_path());
    let (earlier_size, current_size) = (file_size(&earlier)?, file_size(current)?);
    let of_current = current_size.min(limits.log_bytes);
    let of_earlier = earlier_size.min(limits.log_bytes - of_current);
    for (path, size, read) in [(&*earlier, earlier_size, of_earlier), (current, current_size, of_current)] {
        if read > 0 {
            read_end_of_file(path, size - read, limits.line_bytes, &mut on_line)?;
        }
    }
    let is_complete = of_earlier == earlier_size && of_current == current_size;
    Ok(if is_complete { ReadExtent::Complete } else { ReadExtent::NewestPart })
}

/// The size of a regular file; 0 if there is none. To open a pipe or a device could block.
fn file_size(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(if metadata.is_file() { metadata.len() } else { 0 }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

fn read_end_of_file(path: &Path, from: u64, max_line: usize, on_line: &mut impl FnMut(&[u8])) -> io::Result<()> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        // It was renamed meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    // In the middle of a line, its rest is no record.
    let mut is_partial = from > 0;
    loop {
        line.clear();
        reader.by_ref().take(max_line as u64 + 1).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let is_whole = line.pop_if(|byte| *byte == b'\n').is_some();
        if !is_partial && (is_whole || line.len() <= max_line) {
            on_line(&line);
        }
        is_partial = !is_whole;
    }
}
