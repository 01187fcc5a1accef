//! `reframe test --watch` as a real process with real files.

use crate::support::{TIMEOUT, temp_sets};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

const TEST: &str = "dialects/chat.test.yaml";
const PASSING_TEST: &str =
    "tests: [ { name: it greets, transcript: greeting, expect: { frames: [ text, finish ] } } ]\n";

/// A running command and the lines of its output.
struct TestWatch {
    child: Child,
    lines: Receiver<String>,
}

impl TestWatch {
    fn start(folder: &Path) -> TestWatch {
        // Both outputs go into one pipe, to keep the order of their lines.
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$0" test --watch --mappings "$1" 2>&1"#, env!("CARGO_BIN_EXE_reframe")])
            .arg(folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let printed = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || printed.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        TestWatch { child, lines }
    }

    fn wait_for(&self, wanted: &str) {
        let until = Instant::now() + TIMEOUT;
        let mut received = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if line.contains(wanted) {
                return;
            }
            received.push(line);
        }
        panic!("`{wanted}` never came, but\n{}", received.join("\n"));
    }

    /// Sends SIGINT, as Ctrl-C does.
    fn stop(mut self) -> Option<i32> {
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        self.child.wait().unwrap().code()
    }
}

#[test]
fn tests_run_again_on_every_save_and_survive_a_set_that_does_not_load() {
    let folder = tempfile::tempdir().unwrap();
    temp_sets::copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics/mappings"), folder.path());
    let save = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
    save(TEST, PASSING_TEST);
    let watching = TestWatch::start(folder.path());
    watching.wait_for("1 passed, 0 failed in");
    watching.wait_for("watching");

    save(TEST, &PASSING_TEST.replace("finish", "finale"));
    watching.wait_for("FAILED");
    watching.wait_for("0 passed, 1 failed in");

    let dialect = fs::read_to_string(folder.path().join("dialects/chat.yaml")).unwrap();
    save("dialects/chat.yaml", &dialect.replace("{{ text }}", "{{ txt }}"));
    watching.wait_for("error[RF104]");
    watching.wait_for("the mappings do not load");

    save("dialects/chat.yaml", &dialect);
    watching.wait_for("0 passed, 1 failed in");
    watching.wait_for("watching");
    assert_eq!(watching.stop(), Some(1), "as the last run");
}
