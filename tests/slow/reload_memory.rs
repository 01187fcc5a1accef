//! Memory after many reloads: what a generation needs is reused by the next one.

use crate::support::{TestDir, chat, edited, serve};

const CHAT: &str = "mappings/dialects/chat.yaml";
const RELOADS: usize = 40;

#[test]
fn the_memory_after_many_reloads_is_within_one_and_a_half_times_of_before() {
    let dir = TestDir::shipped();
    let server = serve().args(["--no-poll", "--mappings"]).arg(dir.path("mappings")).with_admin().start();
    let admin = server.admin();
    let good = dir.read(CHAT);
    assert_eq!(server.fetch(chat("Hello!")).status(), 200);
    let before = crate::resident(&server);
    for number in 1..=RELOADS {
        let mark = format!("prefix('chatcmpl-{number}-') }}}}\"\n  object: chat.completion\n");
        dir.save(CHAT, &edited(&good, "prefix('chatcmpl-') }}\"\n  object: chat.completion\n", &mark));
        // Applied by this reload, or by the watcher just before it.
        let outcome = admin.reload().1["outcome"].clone();
        assert!(outcome == "applied" || outcome == "unchanged", "{outcome}");
    }
    let status = admin.status();
    assert_eq!(status["generation"]["number"], RELOADS + 1, "{status}");
    let after = crate::resident(&server);
    println!("{} MiB before, {} MiB after {RELOADS} reloads", before >> 20, after >> 20);
    assert!(after <= before * 3 / 2, "{} MiB before, {} MiB after {RELOADS} reloads", before >> 20, after >> 20);
}
