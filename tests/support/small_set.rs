//! A set of one's own, as small as can be, so that it loads in no time. Its mark is in every frame.

use super::{Disk, repo};
use std::fs;

/// A word every so many milliseconds.
pub fn tiny(pace: u32) -> Disk {
    let disk = Disk::empty();
    disk.write(
        "mappings/gateway.yaml",
        "backends: { demo: { use: replay, script: demo } }\n\
         models: [ { id: demo, backend: demo } ]\n\
         routes: [ { endpoint: POST /v1/chat/completions, dialect: tiny } ]\n",
    );
    disk.write("mappings/backends/replay.yaml", &repo("mappings/backends/replay.yaml"));
    disk.write(
        "mappings/backends/tiny.yaml",
        "backend: tiny\n\
         transport: http\n\
         events:\n\
         \x20 framing: { sse: { end: end } }\n\
         \x20 rules:\n\
         \x20   - { name: a word, where: { $.say: string }, emit: [ text: { delta: $.say } ] }\n\
         \x20   - { name: the end, where: { $.stop: string }, emit: [ finish: { reason: $.stop } ] }\n",
    );
    let script = format!("script: demo\npace: {{ fixed: {pace} }}\nsteps:\n{}", STEPS);
    disk.write("mappings/scripts/demo.yaml", &script);
    let words = (0..TINY_WORDS).map(|word| format!("{{\"raw\":{{\"say\":\"{word}\"}}}}\n"));
    let words: String = words.collect();
    disk.write(
        "mappings/transcripts/words.jsonl",
        &format!("{{\"transcript\":\"tiny\"}}\n{words}{{\"raw\":{{\"stop\":\"stop\"}}}}\n{{\"end\":true}}\n"),
    );
    // Without a folder of its own it would take the schemas that are compiled in.
    fs::create_dir(disk.path("schemas")).unwrap();
    disk.write("mappings/dialects/tiny.yaml", &tiny_dialect(1));
    disk
}

/// Who is called quick need not wait.
const STEPS: &str = "  - { when: request.user == 'quick', play: words, pace: none }\n  - { play: words }\n";

pub const TINY_WORDS: usize = 20;

pub fn tiny_dialect(number: usize) -> String {
    format!(
        r#"dialect: tiny
request: {{ model: $.model, user: $.user, stream: {{ from: $.stream, default: false }} }}
stream:
  framing: {{ data: json }}
  base: {{ mark: g{number} }}
  frames:
    text.delta: {{ text: {{ data: {{ text: "{{{{ text }}}}", too: g{number} }} }} }}
    turn.end: {{ done: {{ data: {{ done: g{number} }} }} }}
  order:
    turn: turn.open choice.open choice.finish turn.finish usage? turn.end
    choice: choice.open text.delta* choice.finish
    item: text.delta+
body: {{ mark: g{number} }}
errors: {{ error: "{{{{ fault.message }}}}" }}
"#
    )
}

/// What a client of that generation gets, frame by frame.
pub fn tiny_frames(mark: &str) -> Vec<String> {
    let word = |word| format!("{{\"mark\":\"{mark}\",\"text\":\"{word}\",\"too\":\"{mark}\"}}");
    let end = format!("{{\"mark\":\"{mark}\",\"done\":\"{mark}\"}}");
    (0..TINY_WORDS).map(word).chain([end]).collect()
}
