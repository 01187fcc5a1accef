//! Sets that a running server must refuse: each has its reason in `/status`, and the next good edit is applied.

use crate::support::{Request, Server, TestDir, chat, edited, eventually, repo, serve};
use serde_json::Value;
use std::fs;

const GATEWAY: &str = "mappings/gateway.yaml";
const CHAT: &str = "mappings/dialects/chat.yaml";

/// Description, change, restore, and the beginning of the reason.
type Refusal = (&'static str, fn(&TestDir), fn(&TestDir), &'static str);

const REFUSALS: &[Refusal] = &[
    (
        "the status document is at the path of a route",
        |dir| dir.save(GATEWAY, &format!("{}\nstatus: /v1/chat/completions\n", repo(GATEWAY))),
        |dir| dir.save(GATEWAY, &repo(GATEWAY)),
        "1 error in ",
    ),
    (
        "the folder of the schemas is gone",
        |dir| fs::rename(dir.path("schemas"), dir.path("away")).unwrap(),
        |dir| fs::rename(dir.path("away"), dir.path("schemas")).unwrap(),
        "1 error (RF001): the set had its own schemas, and they are missing now",
    ),
    (
        "an order cannot be proved",
        |dir| dir.save(CHAT, &with_expensive_order()),
        |dir| dir.save(CHAT, &repo(CHAT)),
        "1 error in ",
    ),
    (
        "a schema multiplies itself",
        |dir| dir.save("schemas/chat/chunk.json", &with_multiplying_schema()),
        |dir| dir.save("schemas/chat/chunk.json", &repo("schemas/chat/chunk.json")),
        "1 error in ",
    ),
];

#[test]
fn a_refused_set_has_its_reason_in_the_status_and_the_next_edit_is_applied() {
    let dir = TestDir::shipped();
    let server = serve().args(["--no-poll", "--mappings"]).arg(dir.path("mappings")).start();
    for (what, damage, restore, reason) in REFUSALS {
        damage(&dir);
        let rejected = eventually(what, || {
            let status = status(&server);
            (status["config_state"] == "rejected").then(|| status["last_rejected"].clone())
        });
        let found = rejected["reason"].as_str().unwrap();
        assert!(found.starts_with(reason), "{what}: {found}");
        assert_eq!(rejected["diagnostics"].as_array().unwrap().len(), 1, "{what}: {rejected}");
        println!("{what}: {found}");
        assert_eq!(server.fetch(chat("Hello!")).status(), 200, "{what}");
        restore(&dir);
        eventually("the files are valid again", || (status(&server)["config_state"] == "applied").then_some(()));
    }
    dir.save(CHAT, &repo(CHAT).replace("system_fingerprint: null\n", "system_fingerprint: later\n"));
    eventually("a later edit", || (server.fetch(chat("Hello!")).json()["system_fingerprint"] == "later").then_some(()));
}

fn status(server: &Server) -> Value {
    server.fetch(Request::get("/status")).json()
}

/// An order that allows everything, and whose proof has a state for each set of its last deltas.
fn with_expensive_order() -> String {
    let delta = "(text.delta | refusal.delta | annotation | thought.delta | tool.open | tool.args)";
    let old = format!("    choice: choice.open {delta}* choice.finish\n");
    let last = ["(text.delta | tool.args)"; 24].join(" ");
    let new = format!("    choice: choice.open {delta}* (text.delta {last})? choice.finish\n");
    edited(&repo(CHAT), &old, &new)
}

fn with_multiplying_schema() -> String {
    let mut schema: Value = serde_json::from_str(&repo("schemas/chat/chunk.json")).unwrap();
    let level = |n: usize| serde_json::json!({ "$ref": format!("#/$defs/level{n}") });
    for n in 0..14 {
        schema["$defs"][format!("level{n}")] = serde_json::json!({ "oneOf": [level(n + 1), level(n + 1)] });
    }
    schema["$defs"]["level14"] = serde_json::json!({ "type": "integer" });
    schema["properties"]["id"] = level(0);
    schema.to_string()
}
