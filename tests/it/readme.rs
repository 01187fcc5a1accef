//! The transcripts of the README: its `curl` commands are run, and their output is compared.

use crate::support::{TestDir, eventually, repo, serve};
use std::path::Path;
use std::process::Command;

/// A command of a transcript and the lines that it prints.
struct Entry {
    command: String,
    output: Vec<String>,
}

/// The commands of all transcripts, in order.
fn entries(readme: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for block in readme.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        let mut lines = block.lines();
        let mut is_first = true;
        while let Some(line) = lines.next() {
            match line.strip_prefix("$ ") {
                Some(command) => {
                    let mut command = command.to_owned();
                    while command.ends_with('\\') {
                        command = format!("{command}\n{}", lines.next().unwrap());
                    }
                    entries.push(Entry { command, output: Vec::new() });
                    is_first = false;
                }
                // A block without a command is the log of the server.
                None if is_first => break,
                None => entries.last_mut().unwrap().output.push(line.to_owned()),
            }
        }
    }
    entries
}

fn run(folder: &Path, script: &str) -> String {
    let output = Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Whether the lines match: `…` is any text, and alone on a line any lines.
fn matches(expected: &[String], got: &[&str]) -> bool {
    match expected.split_first() {
        None => got.is_empty(),
        Some((line, rest)) if line == "…" => (0..=got.len()).any(|skipped| matches(rest, &got[skipped..])),
        Some((line, rest)) => {
            got.split_first().is_some_and(|(first, more)| is_like(line, first) && matches(rest, more))
        }
    }
}

fn is_like(expected: &str, got: &str) -> bool {
    let parts: Vec<String> = expected.split('…').map(regex::escape).collect();
    regex::Regex::new(&format!("^{}$", parts.join(".*"))).unwrap().is_match(got)
}

#[test]
fn the_curl_transcripts_of_the_readme_are_true() {
    let dir = TestDir::shipped();
    let folder = dir.path("");
    let server = serve().in_folder(&folder).start();
    let readme = repo("README.md").replace("127.0.0.1:8080", &server.addr().to_string());
    let mut definitions = String::new();
    let mut compared = 0;
    for Entry { command, output } in entries(&readme) {
        if command.starts_with("chat() {") {
            definitions = format!("{command}\n");
        } else if command.starts_with("perl ") {
            run(&folder, &command.replace("sleep 1", "true"));
        } else if command.starts_with("curl ") || command.starts_with("chat ") {
            let script = format!("{definitions}{}", command.replace("curl ", "curl -s "));
            // A changed file is applied within a second, on a machine that has the time.
            eventually(&format!("{command} prints what the README shows"), || {
                let printed = run(&folder, &script);
                let lines: Vec<&str> = printed.trim_end().lines().collect();
                matches(&output, &lines).then_some(())
            });
            compared += 1;
        }
    }
    assert_eq!(compared, 4, "the commands of the README");
}
