//! Unit tests of `mapping::source::layout`.

use super::*;

#[test]
fn a_file_is_known_by_its_path() {
    let known = [
        ("gateway.yaml", SetFile::Gateway),
        ("shared.yaml", SetFile::Shared),
        ("dialects/chat.yaml", SetFile::Dialect),
        ("dialects/chat.test.yaml", SetFile::Test),
        ("schemas/chat/chunk.json", SetFile::Schema),
        ("transcripts/codex/tool/events.jsonl", SetFile::Transcript),
    ];
    for (path, kind) in known {
        assert_eq!(SetFile::of(path), Some(kind), "{path}");
    }
    for path in ["chat.yaml", "gateway.yml", "dialect/chat.yaml", "dialects/a/b.yaml", "dialects/chat.yml"] {
        assert_eq!(SetFile::of(path), None, "{path}");
    }
}

#[test]
fn tests_are_next_to_their_mapping() {
    assert_eq!(tests_of("dialects/chat.yaml").as_deref(), Some("dialects/chat.test.yaml"));
    assert_eq!(tests_of("dialects/chat.test.yaml"), None);
    assert_eq!(tested_by("dialects/chat.test.yaml"), Some((SetFile::Dialect, "chat")));
}
