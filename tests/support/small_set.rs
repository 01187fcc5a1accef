//! A minimal mapping set that loads fast. Every frame contains a mark that identifies the generation.

use super::{TestDir, repo};
use std::fs;

/// `pace`: milliseconds between two words.
pub fn small_set(pace: u32) -> TestDir {
    let dir = TestDir::empty();
    dir.write(
        "mappings/gateway.yaml",
        "backends: { demo: { use: replay, script: demo } }\n\
         models: [ { id: demo, backend: demo } ]\n\
         routes: [ { endpoint: POST /v1/chat/completions, dialect: tiny } ]\n",
    );
    dir.write("mappings/backends/replay.yaml", &repo("mappings/backends/replay.yaml"));
    dir.write(
        "mappings/backends/tiny.yaml",
        "backend: tiny\n\
         transport: http\n\
         events:\n\
         \x20 framing: { sse: { end: end } }\n\
         \x20 rules:\n\
         \x20   - { name: a word, where: { $.word: string }, emit: [ text: { delta: $.word } ] }\n\
         \x20   - { name: the end, where: { $.stop: string }, emit: [ finish: { reason: $.stop } ] }\n",
    );
    let script = format!("script: demo\npace: {{ fixed: {pace} }}\nsteps:\n{}", STEPS);
    dir.write("mappings/scripts/demo.yaml", &script);
    let words = (0..WORD_COUNT).map(|word| format!("{{\"raw\":{{\"word\":\"{word}\"}}}}\n"));
    let words: String = words.collect();
    dir.write(
        "mappings/transcripts/words.jsonl",
        &format!("{{\"transcript\":\"tiny\"}}\n{words}{{\"raw\":{{\"stop\":\"stop\"}}}}\n{{\"end\":true}}\n"),
    );
    // Without its own folder the set would use the embedded schemas.
    fs::create_dir(dir.path("schemas")).unwrap();
    dir.write("mappings/dialects/tiny.yaml", &small_dialect(1));
    dir
}

/// The user `quick` gets the words without delay.
const STEPS: &str = "  - { when: request.user == 'quick', play: words, pace: none }\n  - { play: words }\n";

pub const WORD_COUNT: usize = 20;

pub fn small_dialect(number: usize) -> String {
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

/// The frames that a client of the generation with this mark receives.
pub fn expected_frames(mark: &str) -> Vec<String> {
    let word = |word| format!("{{\"mark\":\"{mark}\",\"text\":\"{word}\",\"too\":\"{mark}\"}}");
    let end = format!("{{\"mark\":\"{mark}\",\"done\":\"{mark}\"}}");
    (0..WORD_COUNT).map(word).chain([end]).collect()
}
