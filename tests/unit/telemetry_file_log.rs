use super::*;
use crate::telemetry::usage_reader::{ReadExtent, ReadLimits, read_lines};
use serde_json::{Value, json};

const LIMITS: ReadLimits = ReadLimits { log_bytes: 1 << 20, line_bytes: 1 << 10 };

fn log_in(dir: &tempfile::TempDir, max_bytes: u64) -> LogFile {
    LogFile { path: dir.path().join("usage.ndjson"), max_bytes }
}

fn numbers_within(log: &LogFile, limits: ReadLimits) -> (Vec<i64>, ReadExtent) {
    let mut numbers = Vec::new();
    let extent = read_lines(log, limits, |line| {
        numbers.extend(serde_json::from_slice::<Value>(line).ok().and_then(|record| record["n"].as_i64()));
    });
    (numbers, extent.unwrap())
}

fn numbers(log: &LogFile) -> Vec<i64> {
    numbers_within(log, LIMITS).0
}

#[test]
fn records_are_appended_and_read_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_in(&dir, 1 << 20);
    assert_eq!(numbers(&log), [] as [i64; 0]);
    let mut open = None;
    for n in 0..3 {
        append(&mut open, &QueuedLine { to: log.clone(), is_file: false, line: format!("{}\n", json!({ "n": n })) })
            .unwrap();
    }
    assert_eq!(numbers_within(&log, LIMITS), (vec![0, 1, 2], ReadExtent::Complete));
}

#[test]
fn a_full_file_is_renamed_and_read_first() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_in(&dir, 20);
    let mut open = None;
    for n in 0..5 {
        append(&mut open, &QueuedLine { to: log.clone(), is_file: false, line: format!("{}\n", json!({ "n": n })) })
            .unwrap();
    }
    assert_eq!(numbers(&log), [2, 3, 4], "two records fit in a file, and the file before the current one is kept");
}

#[test]
fn a_file_that_was_moved_away_is_created_again() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_in(&dir, 1 << 20);
    let mut open = None;
    append(&mut open, &QueuedLine { to: log.clone(), is_file: false, line: "{\"n\":1}\n".to_owned() }).unwrap();
    fs::remove_file(&log.path).unwrap();
    append(&mut open, &QueuedLine { to: log.clone(), is_file: false, line: "{\"n\":2}\n".to_owned() }).unwrap();
    assert_eq!(numbers(&log), [2]);
}

#[test]
fn of_a_large_log_the_newest_part_is_read_and_no_part_of_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_in(&dir, 1 << 20);
    // Eight bytes each.
    fs::write(log.earlier(), "{\"n\":1}\n{\"n\":2}\n").unwrap();
    fs::write(&log.path, "{\"n\":3}\n{\"n\":4}\n").unwrap();
    let within = |log_bytes| numbers_within(&log, ReadLimits { log_bytes, ..LIMITS });
    assert_eq!(within(32), (vec![1, 2, 3, 4], ReadExtent::Complete));
    assert_eq!(within(20), (vec![3, 4], ReadExtent::NewestPart), "four bytes of the second record");
    assert_eq!(within(15), (vec![4], ReadExtent::NewestPart));
    assert_eq!(within(0), (vec![], ReadExtent::NewestPart));
}

#[test]
fn a_line_that_is_too_long_is_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let log = log_in(&dir, 1 << 20);
    let long = format!("{{\"n\":1,\"text\":\"{}\"}}\n", "x".repeat(5000));
    fs::write(&log.path, format!("{long}{{\"n\":2}}\n{long}{{\"n\":3}}")).unwrap();
    assert_eq!(numbers(&log), [2, 3]);
}

#[cfg(unix)]
#[test]
fn a_device_is_not_read() {
    let log = LogFile { path: PathBuf::from("/dev/zero"), max_bytes: 1 << 20 };
    assert_eq!(numbers_within(&log, LIMITS), (vec![], ReadExtent::Complete));
}

#[test]
fn several_files_are_written_and_lines_that_cannot_be_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| LogFile { path: dir.path().join(name), max_bytes: 1 << 20 };
    let log = FileLog::start("test");
    for n in 0..3 {
        log.write(file("a"), format!("a{n}"));
        log.write(file("b"), format!("b{n}"));
    }
    log.write(file("missing/c"), "c".to_owned());
    log.write(file("a"), "x".repeat(MAX_LINE));
    log.flush();
    assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "a0\na1\na2\n");
    assert_eq!(fs::read_to_string(dir.path().join("b")).unwrap(), "b0\nb1\nb2\n");
    assert_eq!(log.dropped(), 2, "one without a folder, and one that is too long");
}

#[test]
fn a_file_of_its_own_is_new_and_private() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("folder/1.json");
    let log = FileLog::start("test");
    log.write_file(path.clone(), "{}".to_owned());
    log.write_file(path.clone(), "another".to_owned());
    log.flush();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), log.dropped()), ("{}\n", 1));
    #[cfg(unix)]
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777, 0o600);
}
