//! Memory after many reloads: what a generation needs is reused by the next one.

use crate::support::{TestDir, chat, edited, serve};

const CHAT: &str = "mappings/dialects/chat.yaml";
const RELOADS: usize = 40;
/// After these, the memory for a generation and the load of the next one is there.
const FIRST_RELOADS: usize = 10;

#[test]
fn the_memory_does_not_grow_with_the_number_of_reloads() {
    let dir = TestDir::shipped();
    let server = serve().args(["--no-poll", "--mappings"]).arg(dir.path("mappings")).with_admin().start();
    let admin = server.admin();
    let good = dir.read(CHAT);
    assert_eq!(server.fetch(chat("Hello!")).status(), 200);
    let before = crate::resident(&server);
    let mut after_first = before;
    for number in 1..=RELOADS {
        let mark = format!("prefix('chatcmpl-{number}-') }}}}\"\n  object: chat.completion\n");
        dir.save(CHAT, &edited(&good, "prefix('chatcmpl-') }}\"\n  object: chat.completion\n", &mark));
        // Applied by this reload, or by the watcher just before it.
        let outcome = admin.reload().1["outcome"].clone();
        assert!(outcome == "applied" || outcome == "unchanged", "{outcome}");
        if number == FIRST_RELOADS {
            after_first = crate::resident(&server);
        }
    }
    let status = admin.status();
    assert_eq!(status["generation"]["number"], RELOADS + 1, "{status}");
    let after = crate::resident(&server);
    let [before, after_first, after] = [before, after_first, after].map(|bytes| bytes >> 20);
    let memory = format!("{before} MiB before, {after_first} after {FIRST_RELOADS} reloads, {after} after {RELOADS}");
    println!("{memory}");
    assert!(after <= after_first * 11 / 10 && after * 2 <= before * 3, "{memory}");
}
