//! Those who run a gateway: the admin listener, SIGHUP, /status, and what takes a restart.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value, json};
use std::fs;
use support::admin_client::TOKEN;
use support::small_set::{tiny, tiny_dialect};
use support::{
    Answer, Backend, Client, Disk, Launch, Operator, Request, Server, chat, edited, eventually, repo, serve,
};

const DIALECT: &str = "mappings/dialects/tiny.yaml";
const GATEWAY: &str = "mappings/gateway.yaml";

// ---- the listener

#[test]
fn without_being_asked_for_there_is_no_admin_listener() {
    let server = serve().start();
    assert!(!server.banner.contains("admin"), "{}", server.banner);
    assert_eq!(server.ask(Request::new("POST", "/admin/reload")).status(), 404);
}

#[test]
fn only_the_token_opens_it() {
    let (_disk, server) = operated();
    let addr = server.operator().addr;
    for shown in [None, Some("Bearer wrong"), Some("Basic open sesame"), Some(TOKEN), Some("Bearer")] {
        for path in ["/admin/reload", "/status", "/metrics", "/nothing"] {
            let request = Request::new("POST", path);
            let request = shown.iter().fold(request, |r, shown| r.header("authorization", shown));
            let reply = Client::connect(addr).ask(request);
            assert_eq!(reply.status(), 401, "{shown:?} {path}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=\"admin\""));
        }
    }
    let operator = server.operator();
    assert_eq!(operator.reload().0, 200);
    assert_eq!(operator.ask(Request::get("/nothing")).status(), 404);
    let wrong = operator.ask(Request::get("/admin/reload"));
    assert_eq!((wrong.status(), wrong.header("allow")), (405, Some("POST")));
    // And the clients' door does not know it.
    assert_eq!(server.ask(Request::new("POST", "/admin/reload")).status(), 404);
}

#[test]
fn it_does_not_open_without_a_token_of_its_own_or_on_another_address() {
    let refused = |launch: Launch| {
        let exit = launch.args(["--admin", "127.0.0.1:0"]).refused();
        assert_eq!(exit.code, Some(2), "{exit:?}");
        exit.stderr
    };
    let said = refused(serve());
    assert!(said.contains("needs a token, and the environment has no REFRAME_ADMIN_TOKEN"), "{said}");
    let said = refused(serve().env("REFRAME_ADMIN_TOKEN", ""));
    assert!(said.contains("needs a token"), "{said}");
    let said = refused(serve().env("REFRAME_ADMIN_TOKEN", "same").env("REFRAME_API_KEY", "same"));
    assert!(said.contains("is also a client's key"), "{said}");
    assert!(!said.contains("same\n") && !said.contains("`same`"), "{said}");
    let exit = serve().args(["--admin", "0.0.0.0:0"]).env("REFRAME_ADMIN_TOKEN", TOKEN).refused();
    assert_eq!(exit.code, Some(2));
    assert!(exit.stderr.contains("it listens on this machine only"), "{}", exit.stderr);
}

#[test]
fn a_file_may_ask_for_it_too() {
    let disk = tiny(1);
    let token = disk.path("token");
    fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let admin = format!("admin: {{ listen: \"127.0.0.1:0\", token: {{ file: {} }} }}\n", token.display());
    disk.write(GATEWAY, &(disk.read(GATEWAY) + &admin));
    let server = serve().arg("--mappings").arg(disk.path("mappings")).start();
    assert_eq!(server.operator().reload().1["outcome"], "unchanged");
}

// ---- a reload

#[test]
fn a_reload_says_what_came_of_it() {
    let (disk, server) = operated();
    let operator = server.operator();
    let (status, told) = operator.reload();
    assert_eq!((status, &told["outcome"], &told["generation"]["number"]), (200, &json!("unchanged"), &json!(1)));

    disk.save(DIALECT, &tiny_dialect(2));
    let (status, told) = asked(&operator, "applied");
    assert_eq!((status, &told["generation"]["number"]), (200, &json!(2)));
    assert_eq!(mark(&server), "g2");

    let bad = edited(&tiny_dialect(3), "{{ fault.message }}", "{{ fault.mesage }}");
    disk.save(DIALECT, &bad);
    let (status, told) = asked(&operator, "refused");
    assert_eq!((status, &told["generation"]["number"]), (422, &json!(2)));
    let finding = &told["refused"]["diagnostics"][0];
    let (line, column) = place(&bad, "fault.mesage");
    assert_eq!(finding["code"], "RF104");
    assert_eq!(finding["file"], disk.path(DIALECT).display().to_string());
    assert_eq!((&finding["line"], &finding["column"]), (&json!(line), &json!(column)));
    assert_eq!(finding["label"], "did you mean `fault.message`?");
    assert_eq!(mark(&server), "g2");
}

#[test]
fn a_refusal_is_in_the_log_in_the_status_and_in_a_metric_until_it_is_mended() {
    let (disk, server) = operated();
    let operator = server.operator();
    let good = disk.read(DIALECT);
    let bad = edited(&good, "turn.end: {", "turn.ends: {");
    disk.save(DIALECT, &bad);
    server.wait_for_log("reload refused, still on generation 1: 1 error in ");
    let (line, column) = place(&bad, "turn.ends");
    let path = disk.path(DIALECT).display().to_string();
    server.wait_for_log(&format!("--> {path}:{line}:{column}"));

    // For clients too, at their own door.
    for status in [operator.status(), server.ask(Request::get("/status")).json()] {
        assert_eq!(status["files"], "refused");
        let refused = &status["last_refused"];
        assert_eq!(refused["diagnostics"][0]["line"], line);
        assert_eq!(refused["mended_at"], Value::Null);
        let reason = refused["reason"].as_str().unwrap();
        assert!(reason.contains(&format!("RF122 at {line}:{column}")), "{reason}");
    }
    let metrics = operator.metrics();
    let told = format!("reload_refused{{code=\"RF122\",file=\"{path}\",line=\"{line}\",column=\"{column}\"}} 1\n");
    assert!(metrics.contains(&told), "{metrics}");
    assert!(metrics.contains("reloads_total{outcome=\"refused\"} 1\n"), "{metrics}");
    assert!(metrics.contains("\ngeneration 1\n"), "{metrics}");

    disk.save(DIALECT, &good);
    eventually("it is mended", || (operator.status()["files"] == "applied").then_some(()));
    let status = operator.status();
    assert!(status["last_refused"]["mended_at"].is_string(), "{status}");
    assert_eq!(status["generation"]["number"], 1);
    assert!(!operator.metrics().contains("reload_refused{"), "{}", operator.metrics());
}

#[cfg(unix)]
#[test]
fn a_hangup_reloads_and_says_so() {
    let (disk, server) = operated();
    server.hang_up();
    server.wait_for_log("generation 1 stays: its files have not changed");
    // What the watch has refused once, a hangup tells again.
    disk.save(DIALECT, "dialect: [");
    server.wait_for_log("cause=watch");
    server.hang_up();
    server.wait_for_log("cause=signal");
    disk.save(DIALECT, &tiny_dialect(2));
    server.hang_up();
    eventually("the new mark", || (mark(&server) == "g2").then_some(()));
}

#[cfg(unix)]
#[test]
fn a_hangup_while_it_starts_does_not_end_it() {
    let disk = Disk::shipped();
    let mut launch = std::process::Command::new(env!("CARGO_BIN_EXE_reframe"));
    launch.args(["serve", "--listen", "127.0.0.1:0", "--mappings"]).arg(disk.path("mappings"));
    let mut child = launch.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    // From its first instruction the signal is the system's; a program that begins needs some time to hear it.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let hang_up = || std::process::Command::new("kill").arg("-HUP").arg(child.id().to_string()).status().unwrap();
    assert!(hang_up().success());
    let mut said = String::new();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
    while !said.contains("listening on") && std::io::BufRead::read_line(&mut lines, &mut said).unwrap() > 0 {}
    let _ = child.kill();
    let _ = child.wait();
    assert!(said.contains("listening on"), "it ended: {said}");
}

#[test]
fn what_is_taken_back_is_told_too() {
    let (disk, server) = operated();
    disk.save(DIALECT, "dialect: [");
    server.wait_for_log("reload refused");
    disk.save(DIALECT, &tiny_dialect(1));
    server.wait_for_log("generation 1 stays: its files are as they were");
}

#[test]
fn a_byte_that_is_no_text_has_its_place_everywhere_and_is_told_once() {
    let (disk, server) = operated();
    let operator = server.operator();
    let file = disk.path("mappings/profiles/latin.yaml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, b"profile: latin\n# caf\xe9\n").unwrap();
    server.wait_for_log(&format!("(RF001 at 2:6): {} is not UTF-8 text", file.display()));
    let finding = operator.status()["last_refused"]["diagnostics"][0].clone();
    assert_eq!((&finding["line"], &finding["column"]), (&json!(2), &json!(6)));
    assert!(operator.metrics().contains("line=\"2\",column=\"6\"} 1\n"), "{}", operator.metrics());
    for number in 0..3 {
        disk.write("mappings/scratch.txt", &number.to_string());
        std::thread::sleep(std::time::Duration::from_millis(60));
    }
    assert_eq!(operator.status()["reloads"]["refused"], 1);
}

#[test]
fn a_set_that_loses_its_schemas_is_not_served_with_others() {
    let disk = Disk::shipped();
    // Not those in the binary.
    disk.write("schemas/chat/chunk.json", &(disk.read("schemas/chat/chunk.json") + "\n"));
    let server = serve().arg("--mappings").arg(disk.path("mappings")).operated().start();
    let operator = server.operator();
    fs::rename(disk.path("schemas"), disk.path("elsewhere")).unwrap();
    let (status, told) = asked(&operator, "refused");
    assert_eq!(status, 422);
    let message = &told["refused"]["diagnostics"][0]["message"];
    assert_eq!(message, "the set had schemas of its own, and has none any more");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", disk.path("schemas")).unwrap();
        let (_, told) = asked(&operator, "refused");
        let reason = told["refused"]["reason"].as_str().unwrap();
        assert!(reason.contains("it is a link to nothing"), "{reason}");
        fs::remove_file(disk.path("schemas")).unwrap();
    }
    fs::rename(disk.path("elsewhere"), disk.path("schemas")).unwrap();
    assert_eq!(operator.reload().1["outcome"], "unchanged");
}

// ---- the status

#[test]
fn the_status_tells_the_generation_its_files_and_the_turns_of_each() {
    let disk = tiny(100);
    let server = serve().arg("--mappings").arg(disk.path("mappings")).operated().start();
    let operator = server.operator();
    let status = operator.status();
    let generation = &status["generation"];
    assert_eq!(generation["hash"].as_str().map(str::len), Some(16));
    assert!(is_time(&generation["applied_at"]) && is_time(&status["started_at"]), "{status}");
    let files: Vec<&str> = generation["files"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
    let expected = ["backends/replay.yaml", "backends/tiny.yaml", "dialects/tiny.yaml", "gateway.yaml"];
    for file in expected {
        assert!(files.contains(&disk.path(&format!("mappings/{file}")).display().to_string().as_str()), "{files:?}");
    }
    assert_eq!((&generation["cause"], &status["turns"]), (&json!("start"), &json!(0)));

    let mut first = server.stream(chat("Hello!"));
    first.next().unwrap();
    disk.save(DIALECT, &tiny_dialect(2));
    asked(&operator, "applied");
    let mut second = server.stream(chat("Hello!"));
    second.next().unwrap();
    let turns = |status: &Value| -> Vec<(u64, u64)> {
        let all = status["generations"].as_array().unwrap().iter();
        all.map(|g| (g["number"].as_u64().unwrap(), g["turns"].as_u64().unwrap())).collect()
    };
    assert_eq!(turns(&operator.status()), [(1, 1), (2, 1)]);
    assert!(server.log().contains("1 running turn stays on the generation it began with"), "{}", server.log());
    assert!(operator.metrics().contains("\ngenerations 2\n"));

    first.rest();
    eventually("the first generation is freed", || (turns(&operator.status()) == [(2, 1)]).then_some(()));
    drop(second);
    eventually("nothing runs", || (turns(&operator.status()) == [(2, 0)]).then_some(()));
    assert!(operator.metrics().contains("\ngenerations 1\n"));
}

#[test]
fn the_status_is_for_those_who_may_ask() {
    let closed = serve().env("REFRAME_API_KEY", "key").start();
    assert_eq!(closed.ask(Request::get("/status")).status(), 401);
    assert_eq!(closed.ask(Request::get("/status").header("authorization", "Bearer key")).status(), 200);
    assert_eq!(closed.ask(Request::get("/status").header("authorization", "Bearer other")).status(), 401);

    let with = |line: &str| {
        let disk = tiny(1);
        disk.write(GATEWAY, &(disk.read(GATEWAY) + line));
        let server = serve().arg("--mappings").arg(disk.path("mappings")).start();
        (disk, server)
    };
    let status = |server: &Server, path: &str| server.ask(Request::get(path)).status();
    let (_disk, open) = with("");
    assert_eq!(status(&open, "/status"), 200);
    assert_eq!(open.ask(Request::new("POST", "/status")).status(), 405);
    // A page of another host can make its own name lead here, but not the address itself.
    let named = |name: &str| open.ask(Request::get("/status").header("host", name)).status();
    assert_eq!((named("evil.example:8080"), named("localhost:8080"), named("[::1]:8080")), (401, 200, 200));
    let metrics =
        closed.ask(Request::get("/metrics").header("host", "evil.example").header("authorization", "Bearer key"));
    assert_eq!(metrics.status(), 200);
    // Where anybody may ask, it is told only if somebody wanted it.
    let (_disk, anybody) = with("auth: none\n");
    assert_eq!(status(&anybody, "/status"), 404);
    let (_disk, wanted) = with("auth: none\nstatus: /how\n");
    assert_eq!((status(&wanted, "/status"), status(&wanted, "/how")), (404, 200));
    let (_disk, off) = with("status: off\n");
    assert_eq!(status(&off, "/status"), 404);
}

// ---- what is reloaded, and what is not

#[test]
fn sockets_and_keys_stay_as_they_were_and_the_rest_is_applied() {
    let disk = tiny(1);
    let gateway = disk.read(GATEWAY) + "listen: \"127.0.0.1:0\"\nkeys: [ { name: mine, secret: { env: MINE } } ]\n";
    disk.write(GATEWAY, &gateway);
    let launch = Launch::new().arg("serve").arg("--mappings").arg(disk.path("mappings"));
    let server = launch.env("MINE", "key").env("OTHER", "other").operated().start();
    let operator = server.operator();
    let ask = |key: &str| server.ask(chat("Hello!").header("authorization", &format!("Bearer {key}"))).status();
    assert_eq!((ask("key"), ask("other")), (200, 401));

    let next = edited(&gateway, "127.0.0.1:0", "127.0.0.1:1");
    let next = edited(&next, "env: MINE", "env: OTHER");
    let next = edited(&next, "/v1/chat/completions", "/v2/chat/completions");
    disk.save(GATEWAY, &(next.clone() + "auth: none\nadmin: { listen: \"127.0.0.1:2\" }\n"));
    let (_, told) = asked(&operator, "applied");
    let needs: Vec<(&str, &str, &str)> = told["needs_restart"].as_array().unwrap().iter().map(need).collect();
    assert_eq!(
        needs,
        [
            ("listen", "127.0.0.1:0", "127.0.0.1:1"),
            ("keys", "mine (the variable MINE)", "mine (the variable OTHER)"),
            ("auth", "keys", "none"),
        ]
    );
    let (line, column) = place(&next, "\"127.0.0.1:1\"");
    let place = format!("{}:{line}:{column}", disk.path(GATEWAY).display());
    assert_eq!(told["needs_restart"][0]["place"], place.as_str());
    assert_eq!(operator.status()["needs_restart"], told["needs_restart"]);
    server.wait_for_log("leaves out what is read at the start only: `listen` at ");

    // The route moved, the keys did not.
    let there = |key: &str| {
        let request = chat("Hello!").header("authorization", &format!("Bearer {key}"));
        server.ask(support::Request::from(request).at("/v2/chat/completions")).status()
    };
    assert_eq!((there("key"), there("other"), ask("key")), (200, 401, 404));

    // Taken back, nothing waits for a restart.
    disk.save(GATEWAY, &gateway);
    let (_, told) = asked(&operator, "applied");
    assert_eq!(told["needs_restart"], json!([]));
}

#[test]
fn a_limit_a_model_and_an_address_of_a_backend_are_reloaded() {
    let (first, second) = (saying("one"), saying("two"));
    let disk = Disk::shipped();
    let gateway = |url: &str, more: &str| {
        let text = repo(GATEWAY);
        let text = edited(
            &text,
            "  demo: { use: replay, script: demo }\n",
            &format!("  far: {{ use: openai-chat, url: \"{url}\" }}\n"),
        );
        edited(&text, "  - { id: demo, backend: demo }\n", &format!("  - {{ id: demo, backend: far }}\n{more}"))
    };
    disk.write(GATEWAY, &gateway(&first.url(), ""));
    let server = serve().arg("--mappings").arg(disk.path("mappings")).operated().start();
    let says = |model: &str| {
        let reply = server.ask(chat("Hello!").with("model", model));
        (reply.status(), reply.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!((says("demo"), says("more").0), ((200, "one".to_owned()), 404));
    let next = gateway(&second.url(), "  - { id: more, backend: far }\n");
    disk.save(GATEWAY, &edited(&next, "body_bytes: 16MiB", "body_bytes: 200"));
    asked(&server.operator(), "applied");
    assert_eq!((says("demo"), says("more")), ((200, "two".to_owned()), (200, "two".to_owned())));
    assert_eq!(server.ask(chat(&"long ".repeat(100))).status(), 413);
}

#[test]
fn a_key_is_shown_only_where_the_file_says_so() {
    let (first, second) = (saying("one"), saying("two"));
    let disk = Disk::shipped();
    let gateway = |url: &str, key: &str| {
        let backend = format!("  far: {{ use: openai-chat, url: \"{url}\", key: {{ env: {key} }} }}\n");
        let text = edited(&repo(GATEWAY), "  demo: { use: replay, script: demo }\n", &backend);
        edited(&text, "  - { id: demo, backend: demo }\n", "  - { id: demo, backend: far }\n")
    };
    disk.write(GATEWAY, &gateway(&first.url(), "FIRST"));
    let launch = serve().arg("--mappings").arg(disk.path("mappings")).operated();
    let server = launch.env("FIRST", "first-key").env("SECOND", "second-key").start();
    let operator = server.operator();
    assert_eq!(server.ask(chat("Hello!")).status(), 200);
    assert_eq!(shown(&first).as_deref(), Some("Bearer first-key"));

    // The same host with another key: it goes on with the one from the start.
    disk.save(GATEWAY, &gateway(&first.url(), "SECOND"));
    let (_, told) = asked(&operator, "applied");
    assert_eq!(need(&told["needs_restart"][0]), ("backends.far.key", "the variable FIRST", "the variable SECOND"));
    assert_eq!(server.ask(chat("Hello!")).status(), 200);
    assert_eq!(shown(&first).as_deref(), Some("Bearer first-key"));

    // Another host and another key: nothing is sent there before the restart.
    disk.save(GATEWAY, &gateway(&second.url(), "SECOND"));
    let (_, told) = asked(&operator, "applied");
    assert_eq!(need(&told["needs_restart"][0]).1, "without a key");
    assert_eq!(server.ask(chat("Hello!")).status(), 500);
    assert_eq!(second.seen().len(), 0);
    server.wait_for_log("SECOND was not read at the start: restart the gateway");

    // Another host with a key from the start: the file says so, and addresses are reloaded.
    disk.save(GATEWAY, &gateway(&second.url(), "FIRST"));
    let (_, told) = asked(&operator, "applied");
    assert_eq!(told["needs_restart"], json!([]));
    assert_eq!(server.ask(chat("Hello!")).status(), 200);
    assert_eq!(shown(&second).as_deref(), Some("Bearer first-key"));

    // The token of the admin listener is nobody's key.
    let before = second.seen().len();
    disk.save(GATEWAY, &gateway(&second.url(), "REFRAME_ADMIN_TOKEN"));
    let (_, told) = asked(&operator, "applied");
    assert_eq!(need(&told["needs_restart"][0]).2, "the variable REFRAME_ADMIN_TOKEN");
    assert_eq!((server.ask(chat("Hello!")).status(), second.seen().len()), (500, before));
}

// ---- the words of these stories

fn operated() -> (Disk, Server) {
    let disk = tiny(1);
    let server = serve().arg("--mappings").arg(disk.path("mappings")).operated().start();
    (disk, server)
}

/// A backend that says one word.
fn saying(word: &'static str) -> Backend {
    Backend::start(move |_| {
        let message = json!({ "role": "assistant", "content": word });
        let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
        Answer::json(200, &json!({ "id": "1", "model": "m", "choices": [choice] }).to_string())
    })
}

/// The key that it was shown last.
fn shown(backend: &Backend) -> Option<String> {
    backend.seen().last().and_then(|seen| seen.header("authorization").map(str::to_owned))
}

/// The watch may be faster than the one who asks; then there is nothing left to do, but the outcome is in the status.
fn asked(operator: &Operator, wanted: &str) -> (u16, Value) {
    let (status, told) = operator.reload();
    if wanted == "applied" && told["outcome"] == "unchanged" {
        return (status, told);
    }
    assert_eq!(told["outcome"], wanted, "{told}");
    (status, told)
}

fn mark(server: &Server) -> String {
    server.ask(chat("Hello!")).json()["mark"].as_str().unwrap_or_default().to_owned()
}

fn need(told: &Value) -> (&str, &str, &str) {
    let text = |key: &str| told[key].as_str().unwrap();
    (text("what"), text("running"), text("wanted"))
}

fn is_time(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.len() == "2026-01-01T00:00:00.000Z".len() && text.ends_with('Z') && text.starts_with("20")
}

/// Line and column, counted from one, of a text that stands there once.
fn place(text: &str, wanted: &str) -> (usize, usize) {
    let at = text.find(wanted).unwrap();
    let line = text[..at].matches('\n').count() + 1;
    (line, at - text[..at].rfind('\n').map_or(0, |end| end + 1) + 1)
}
