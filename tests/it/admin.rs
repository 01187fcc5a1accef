//! Administration: the admin listener, SIGHUP, /status, and settings that need a restart.

use crate::support::admin_client::TOKEN;
use crate::support::small_set::{small_dialect, small_set};
use crate::support::{
    AdminClient, Client, Launch, MockBackend, MockResponse, Request, Server, TestDir, chat, edited, eventually, ms,
    repo, serve,
};
use serde_json::{Value, json};
use std::fs;

const DIALECT: &str = "mappings/dialects/tiny.yaml";
const GATEWAY: &str = "mappings/gateway.yaml";

// ---- the listener

#[test]
fn the_admin_listener_is_off_by_default() {
    let server = serve().start();
    assert!(!server.banner.contains("admin"), "{}", server.banner);
    assert_eq!(server.fetch(Request::new("POST", "/admin/reload")).status(), 404);
}

#[test]
fn the_admin_listener_requires_its_token() {
    let (_dir, server) = server_with_admin();
    let addr = server.admin().addr;
    for shown in [None, Some("Bearer wrong"), Some("Basic open sesame"), Some(TOKEN), Some("Bearer")] {
        for path in ["/admin/reload", "/status", "/metrics", "/nothing"] {
            let request = Request::new("POST", path);
            let request = shown.iter().fold(request, |r, shown| r.header("authorization", shown));
            let reply = Client::connect(addr).fetch(request);
            assert_eq!(reply.status(), 401, "{shown:?} {path}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=\"admin\""));
            let message = match shown {
                Some("Bearer wrong") => "invalid admin token",
                _ => "the admin token is required: `Authorization: Bearer TOKEN`",
            };
            assert_eq!(reply.json()["error"]["message"], message, "{shown:?} {path}");
        }
    }
    let admin = server.admin();
    assert_eq!(admin.reload().0, 200);
    assert_eq!(admin.fetch(Request::get("/nothing")).status(), 404);
    let wrong = admin.fetch(Request::get("/admin/reload"));
    assert_eq!((wrong.status(), wrong.header("allow")), (405, Some("POST")));
    // The client listener does not serve it.
    assert_eq!(server.fetch(Request::new("POST", "/admin/reload")).status(), 404);
}

#[test]
fn the_admin_listener_requires_its_own_token_and_a_local_address() {
    let start_and_fail = |launch: Launch| {
        let exit = launch.args(["--admin", "127.0.0.1:0"]).run_with_timeout();
        assert_eq!(exit.code, Some(2), "{exit:?}");
        exit.stderr
    };
    let output = start_and_fail(serve());
    assert!(
        output.contains("needs a token, but the environment variable REFRAME_ADMIN_TOKEN is not set or empty"),
        "{output}"
    );
    let output = start_and_fail(serve().env("REFRAME_ADMIN_TOKEN", ""));
    assert!(output.contains("needs a token"), "{output}");
    let output = start_and_fail(serve().env("REFRAME_ADMIN_TOKEN", "same").env("REFRAME_API_KEY", "same"));
    assert!(output.contains("is also a client API key"), "{output}");
    assert!(!output.contains("same\n") && !output.contains("`same`"), "{output}");
    let exit = serve().args(["--admin", "0.0.0.0:0"]).env("REFRAME_ADMIN_TOKEN", TOKEN).run_with_timeout();
    assert_eq!(exit.code, Some(2));
    assert!(exit.stderr.contains("it must listen on a loopback address"), "{}", exit.stderr);
}

#[test]
fn the_admin_listener_can_be_configured_in_gateway_yaml() {
    let dir = small_set(1);
    let token = dir.path("token");
    fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let admin = format!("admin: {{ listen: \"127.0.0.1:0\", token: {{ file: {} }} }}\n", token.display());
    dir.write(GATEWAY, &(dir.read(GATEWAY) + &admin));
    let server = serve().arg("--mappings").arg(dir.path("mappings")).start();
    assert_eq!(server.admin().reload().1["outcome"], "unchanged");
}

// ---- a reload

#[test]
fn a_reload_returns_its_outcome() {
    let (dir, server) = server_with_admin();
    let admin = server.admin();
    let (status, response) = admin.reload();
    assert_eq!(
        (status, &response["outcome"], &response["generation"]["number"]),
        (200, &json!("unchanged"), &json!(1))
    );

    dir.save(DIALECT, &small_dialect(2));
    let (status, response) = reload_expecting(&admin, "applied");
    assert_eq!((status, &response["generation"]["number"]), (200, &json!(2)));
    assert_eq!(mark(&server), "g2");

    let bad = edited(&small_dialect(3), "{{ fault.message }}", "{{ fault.mesage }}");
    dir.save(DIALECT, &bad);
    let (status, response) = reload_expecting(&admin, "rejected");
    assert_eq!((status, &response["generation"]["number"]), (422, &json!(2)));
    let finding = &response["rejected"]["diagnostics"][0];
    let (line, column) = location(&bad, "fault.mesage");
    assert_eq!(finding["code"], "RF104");
    assert_eq!(finding["file"], dir.path(DIALECT).display().to_string());
    assert_eq!((&finding["line"], &finding["column"]), (&json!(line), &json!(column)));
    assert_eq!(finding["label"], "did you mean `fault.message`?");
    assert_eq!(mark(&server), "g2");
}

#[test]
fn a_rejection_is_in_the_log_the_status_and_a_metric_until_it_is_resolved() {
    let (dir, server) = server_with_admin();
    let admin = server.admin();
    let good = dir.read(DIALECT);
    let bad = edited(&good, "turn.end: {", "turn.ends: {");
    dir.save(DIALECT, &bad);
    server.wait_for_log("reload rejected, still on generation 1: 1 error in ");
    let (line, column) = location(&bad, "turn.ends");
    let path = dir.path(DIALECT).display().to_string();
    server.wait_for_log(&format!("--> {path}:{line}:{column}"));

    // /status is also available on the client listener.
    for status in [admin.status(), server.fetch(Request::get("/status")).json()] {
        assert_eq!(status["config_state"], "rejected");
        let rejected = &status["last_rejected"];
        assert_eq!(rejected["diagnostics"][0]["line"], line);
        assert_eq!(rejected["resolved_at"], Value::Null);
        let reason = rejected["reason"].as_str().unwrap();
        assert!(reason.contains(&format!("RF122 at {line}:{column}")), "{reason}");
    }
    let metrics = admin.metrics();
    let response =
        format!("reframe_config_rejected{{code=\"RF122\",file=\"{path}\",line=\"{line}\",column=\"{column}\"}} 1\n");
    assert!(metrics.contains(&response), "{metrics}");
    assert!(metrics.contains("reframe_config_reloads_total{outcome=\"rejected\"} 1\n"), "{metrics}");
    assert!(metrics.contains("\nreframe_config_generation 1\n"), "{metrics}");

    dir.save(DIALECT, &good);
    eventually("the rejection is resolved", || (admin.status()["config_state"] == "applied").then_some(()));
    let status = admin.status();
    assert!(status["last_rejected"]["resolved_at"].is_string(), "{status}");
    assert_eq!(status["generation"]["number"], 1);
    assert!(!admin.metrics().contains("reframe_config_rejected{"), "{}", admin.metrics());
}

#[cfg(unix)]
#[test]
fn sighup_reloads_and_logs_it() {
    let (dir, server) = server_with_admin();
    server.sighup();
    let before = server.wait_for_log("generation 1 unchanged: its files have not changed cause=signal").len();
    // A set that the watcher already rejected is reported again on SIGHUP.
    dir.save(DIALECT, "dialect: [");
    server.wait_for_log_from(before, "cause=watch");
    server.sighup();
    server.wait_for_log_from(before, "cause=signal");
    dir.save(DIALECT, &small_dialect(2));
    server.sighup();
    eventually("the new mark", || (mark(&server) == "g2").then_some(()));
}

#[cfg(target_os = "linux")]
#[test]
fn sighup_during_start_does_not_kill_the_process() {
    let dir = TestDir::shipped();
    let mut launch = std::process::Command::new(env!("CARGO_BIN_EXE_reframe"));
    launch.args(["serve", "--listen", "127.0.0.1:0", "--mappings"]).arg(dir.path("mappings"));
    let mut child = launch.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    // Until the process has installed its handler, the signal has its default effect: bit 0 of the caught signals.
    let status = format!("/proc/{}/status", child.id());
    eventually("the handler is installed", || {
        let status = fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        (u64::from_str_radix(caught.trim(), 16).unwrap() & 1 == 1).then_some(())
    });
    let sighup = || std::process::Command::new("kill").arg("-HUP").arg(child.id().to_string()).status().unwrap();
    assert!(sighup().success());
    let mut output = String::new();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap());
    while !output.contains("listening on") && std::io::BufRead::read_line(&mut lines, &mut output).unwrap() > 0 {}
    let _ = child.kill();
    let _ = child.wait();
    assert!(output.contains("listening on"), "it ended: {output}");
}

#[test]
fn reverting_a_bad_edit_is_reported() {
    let (dir, server) = server_with_admin();
    dir.save(DIALECT, "dialect: [");
    server.wait_for_log("reload rejected");
    dir.save(DIALECT, &small_dialect(1));
    server.wait_for_log("generation 1 unchanged: the files are valid again");
}

#[test]
fn invalid_utf8_is_reported_once_with_its_location() {
    let (dir, server) = server_with_admin();
    let admin = server.admin();
    let file = dir.path("mappings/profiles/latin.yaml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, b"profile: latin\n# caf\xe9\n").unwrap();
    server.wait_for_log(&format!("(RF001 at 2:6): {} is not UTF-8 text", file.display()));
    let finding = admin.status()["last_rejected"]["diagnostics"][0].clone();
    assert_eq!((&finding["line"], &finding["column"]), (&json!(2), &json!(6)));
    assert!(admin.metrics().contains("line=\"2\",column=\"6\"} 1\n"), "{}", admin.metrics());
    for number in 0..3 {
        dir.write("mappings/scratch.txt", &number.to_string());
        std::thread::sleep(ms(60));
    }
    // The watcher reports in order: when it has noticed the fix, it has noticed the scratch files too.
    fs::remove_file(&file).unwrap();
    server.wait_for_log("the files are valid again");
    assert_eq!(admin.status()["reloads"]["rejected"], 1);
}

#[test]
fn a_set_that_loses_its_schemas_is_rejected() {
    let dir = TestDir::shipped();
    // Makes them differ from the embedded schemas.
    dir.write("schemas/chat/chunk.json", &(dir.read("schemas/chat/chunk.json") + "\n"));
    let server = serve().arg("--mappings").arg(dir.path("mappings")).with_admin().start();
    let admin = server.admin();
    fs::rename(dir.path("schemas"), dir.path("elsewhere")).unwrap();
    let (status, response) = reload_expecting(&admin, "rejected");
    assert_eq!(status, 422);
    let message = &response["rejected"]["diagnostics"][0]["message"];
    assert_eq!(message, "the set had its own schemas, and they are missing now");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", dir.path("schemas")).unwrap();
        let (_, response) = reload_expecting(&admin, "rejected");
        let reason = response["rejected"]["reason"].as_str().unwrap();
        assert!(reason.contains("it is a dangling symlink"), "{reason}");
        fs::remove_file(dir.path("schemas")).unwrap();
    }
    fs::rename(dir.path("elsewhere"), dir.path("schemas")).unwrap();
    assert_eq!(admin.reload().1["outcome"], "unchanged");
}

// ---- the status

#[test]
fn the_status_lists_generations_files_and_turns_in_flight() {
    let dir = small_set(100);
    let server = serve().arg("--mappings").arg(dir.path("mappings")).with_admin().start();
    let admin = server.admin();
    let status = admin.status();
    let generation = &status["generation"];
    assert_eq!(generation["hash"].as_str().map(str::len), Some(16));
    assert!(is_time(&generation["applied_at"]) && is_time(&status["started_at"]), "{status}");
    let files: Vec<&str> = generation["files"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
    let expected = ["backends/replay.yaml", "backends/tiny.yaml", "dialects/tiny.yaml", "gateway.yaml"];
    for file in expected {
        assert!(files.contains(&dir.path(&format!("mappings/{file}")).display().to_string().as_str()), "{files:?}");
    }
    assert_eq!((&generation["cause"], &status["turns_in_flight"]), (&json!("start"), &json!(0)));

    let mut first = server.stream(chat("Hello!"));
    first.next().unwrap();
    // The second turn is not over before its client disconnects, however slow the machine is.
    let script = fs::read_to_string(dir.path("mappings/scripts/demo.yaml")).unwrap();
    dir.save("mappings/scripts/demo.yaml", &script.replace("fixed: 100", "fixed: 60000"));
    reload_expecting(&admin, "applied");
    let mut second = server.stream(chat("Hello!"));
    second.next().unwrap();
    let turns = |status: &Value| -> Vec<(u64, u64)> {
        let all = status["generations"].as_array().unwrap().iter();
        all.map(|g| (g["number"].as_u64().unwrap(), g["turns_in_flight"].as_u64().unwrap())).collect()
    };
    assert_eq!(turns(&admin.status()), [(1, 1), (2, 1)]);
    server.wait_for_log("1 turn in flight stays on its generation");
    assert!(admin.metrics().contains("\nreframe_config_generations_in_memory 2\n"));

    first.rest();
    eventually("the first generation is freed", || (turns(&admin.status()) == [(2, 1)]).then_some(()));
    drop(second);
    eventually("nothing runs", || (turns(&admin.status()) == [(2, 0)]).then_some(()));
    assert!(admin.metrics().contains("\nreframe_config_generations_in_memory 1\n"));
}

#[test]
fn the_status_requires_authentication() {
    let closed = serve().env("REFRAME_API_KEY", "key").start();
    assert_eq!(closed.fetch(Request::get("/status")).status(), 401);
    assert_eq!(closed.fetch(Request::get("/status").header("authorization", "Bearer key")).status(), 200);
    assert_eq!(closed.fetch(Request::get("/status").header("authorization", "Bearer other")).status(), 401);

    let with = |line: &str| {
        let dir = small_set(1);
        dir.write(GATEWAY, &(dir.read(GATEWAY) + line));
        let server = serve().arg("--mappings").arg(dir.path("mappings")).start();
        (dir, server)
    };
    let status = |server: &Server, path: &str| server.fetch(Request::get(path)).status();
    let (_dir, open) = with("");
    assert_eq!(status(&open, "/status"), 200);
    assert_eq!(open.fetch(Request::new("POST", "/status")).status(), 405);
    // DNS rebinding: a web page can point its own hostname here, but it cannot send a local hostname.
    let named = |name: &str| open.fetch(Request::get("/status").header("host", name)).status();
    assert_eq!((named("evil.example:8080"), named("localhost:8080"), named("[::1]:8080")), (401, 200, 200));
    let metrics =
        closed.fetch(Request::get("/metrics").header("host", "evil.example").header("authorization", "Bearer key"));
    assert_eq!(metrics.status(), 200);
    // With `auth: none` the status is served only if it is configured.
    let (_dir, anybody) = with("auth: none\n");
    assert_eq!(status(&anybody, "/status"), 404);
    let (_dir, wanted) = with("auth: none\nstatus: /how\n");
    assert_eq!((status(&wanted, "/status"), status(&wanted, "/how")), (404, 200));
    let (_dir, off) = with("status: off\n");
    assert_eq!(status(&off, "/status"), 404);
}

// ---- what is reloaded, and what is not

#[test]
fn sockets_and_keys_need_a_restart_and_other_changes_are_applied() {
    let dir = small_set(1);
    let gateway = dir.read(GATEWAY) + "listen: \"127.0.0.1:0\"\napi_keys: [ { name: mine, secret: { env: MINE } } ]\n";
    dir.write(GATEWAY, &gateway);
    let launch = Launch::new().arg("serve").arg("--mappings").arg(dir.path("mappings"));
    let server = launch.env("MINE", "key").env("OTHER", "other").with_admin().start();
    let admin = server.admin();
    let fetch = |key: &str| server.fetch(chat("Hello!").header("authorization", &format!("Bearer {key}"))).status();
    assert_eq!((fetch("key"), fetch("other")), (200, 401));

    let next = edited(&gateway, "127.0.0.1:0", "127.0.0.1:1");
    let next = edited(&next, "env: MINE", "env: OTHER");
    let next = edited(&next, "/v1/chat/completions", "/v2/chat/completions");
    dir.save(GATEWAY, &(next.clone() + "auth: none\nadmin: { listen: \"127.0.0.1:2\" }\n"));
    let (_, response) = reload_expecting(&admin, "applied");
    let needs: Vec<(&str, &str, &str)> =
        response["needs_restart"].as_array().unwrap().iter().map(restart_entry).collect();
    assert_eq!(
        needs,
        [
            ("listen", "127.0.0.1:0", "127.0.0.1:1"),
            ("api_keys", "mine (the variable MINE)", "mine (the variable OTHER)"),
            ("auth", "keys", "none"),
        ]
    );
    let (line, column) = location(&next, "\"127.0.0.1:1\"");
    let location = format!("{}:{line}:{column}", dir.path(GATEWAY).display());
    assert_eq!(response["needs_restart"][0]["location"], location.as_str());
    assert_eq!(admin.status()["needs_restart"], response["needs_restart"]);
    server.wait_for_log("does not apply a setting that needs a restart: `listen` at ");

    // The route is changed, the keys are not.
    let there = |key: &str| {
        let request = chat("Hello!").header("authorization", &format!("Bearer {key}"));
        server.fetch(crate::support::Request::from(request).at("/v2/chat/completions")).status()
    };
    assert_eq!((there("key"), there("other"), fetch("key")), (200, 401, 404));

    // After reverting, nothing needs a restart.
    dir.save(GATEWAY, &gateway);
    let (_, response) = reload_expecting(&admin, "applied");
    assert_eq!(response["needs_restart"], json!([]));
}

#[test]
fn limits_models_and_backend_addresses_are_reloaded() {
    let (first, second) = (backend_with_text("one"), backend_with_text("two"));
    let dir = TestDir::shipped();
    let gateway = |url: &str, more: &str| {
        let text = repo(GATEWAY);
        let text = edited(
            &text,
            "  demo: { use: replay, script: demo }\n",
            &format!("  far: {{ use: openai-chat, url: \"{url}\" }}\n"),
        );
        edited(&text, "  - { id: demo, backend: demo }\n", &format!("  - {{ id: demo, backend: far }}\n{more}"))
    };
    dir.write(GATEWAY, &gateway(&first.url(), ""));
    let server = serve().arg("--mappings").arg(dir.path("mappings")).with_admin().start();
    let reply_text = |model: &str| {
        let reply = server.fetch(chat("Hello!").with("model", model));
        (reply.status(), reply.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!((reply_text("demo"), reply_text("more").0), ((200, "one".to_owned()), 404));
    let next = gateway(&second.url(), "  - { id: more, backend: far }\n");
    dir.save(GATEWAY, &edited(&next, "body_bytes: 16MiB", "body_bytes: 200"));
    reload_expecting(&server.admin(), "applied");
    assert_eq!((reply_text("demo"), reply_text("more")), ((200, "two".to_owned()), (200, "two".to_owned())));
    assert_eq!(server.fetch(chat(&"long ".repeat(100))).status(), 413);
}

#[test]
fn a_backend_key_is_sent_only_to_its_configured_host() {
    let (first, second) = (backend_with_text("one"), backend_with_text("two"));
    let dir = TestDir::shipped();
    let gateway = |url: &str, key: &str| {
        let backend = format!("  far: {{ use: openai-chat, url: \"{url}\", api_key: {{ env: {key} }} }}\n");
        let text = edited(&repo(GATEWAY), "  demo: { use: replay, script: demo }\n", &backend);
        edited(&text, "  - { id: demo, backend: demo }\n", "  - { id: demo, backend: far }\n")
    };
    dir.write(GATEWAY, &gateway(&first.url(), "FIRST"));
    let launch = serve().arg("--mappings").arg(dir.path("mappings")).with_admin();
    let server = launch.env("FIRST", "first-key").env("SECOND", "second-key").start();
    let admin = server.admin();
    assert_eq!(server.fetch(chat("Hello!")).status(), 200);
    assert_eq!(last_authorization(&first).as_deref(), Some("Bearer first-key"));

    // The same host with another key: the key from the start stays in use.
    dir.save(GATEWAY, &gateway(&first.url(), "SECOND"));
    let (_, response) = reload_expecting(&admin, "applied");
    assert_eq!(
        restart_entry(&response["needs_restart"][0]),
        ("backends.far.api_key", "the variable FIRST", "the variable SECOND")
    );
    assert_eq!(server.fetch(chat("Hello!")).status(), 200);
    assert_eq!(last_authorization(&first).as_deref(), Some("Bearer first-key"));

    // Another host and another key: no request is sent before the restart.
    dir.save(GATEWAY, &gateway(&second.url(), "SECOND"));
    let (_, response) = reload_expecting(&admin, "applied");
    assert_eq!(restart_entry(&response["needs_restart"][0]).1, "without a key");
    assert_eq!(server.fetch(chat("Hello!")).status(), 500);
    assert_eq!(second.requests().len(), 0);
    server.wait_for_log("SECOND was not read at startup; restart the gateway");

    // Another host with a key that was loaded at start: applied, because addresses are reloaded.
    dir.save(GATEWAY, &gateway(&second.url(), "FIRST"));
    let (_, response) = reload_expecting(&admin, "applied");
    assert_eq!(response["needs_restart"], json!([]));
    assert_eq!(server.fetch(chat("Hello!")).status(), 200);
    assert_eq!(last_authorization(&second).as_deref(), Some("Bearer first-key"));

    // The admin token cannot be used as a backend key.
    let before = second.requests().len();
    dir.save(GATEWAY, &gateway(&second.url(), "REFRAME_ADMIN_TOKEN"));
    let (_, response) = reload_expecting(&admin, "applied");
    assert_eq!(restart_entry(&response["needs_restart"][0]).2, "the variable REFRAME_ADMIN_TOKEN");
    assert_eq!((server.fetch(chat("Hello!")).status(), second.requests().len()), (500, before));
}

// ---- helpers

fn server_with_admin() -> (TestDir, Server) {
    let dir = small_set(1);
    let server = serve().arg("--mappings").arg(dir.path("mappings")).with_admin().start();
    (dir, server)
}

/// A backend that responds with this text.
fn backend_with_text(word: &'static str) -> MockBackend {
    MockBackend::start(move |_| {
        let message = json!({ "role": "assistant", "content": word });
        let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
        MockResponse::json(200, &json!({ "id": "1", "model": "m", "choices": [choice] }).to_string())
    })
}

/// The authorization header of its last request.
fn last_authorization(backend: &MockBackend) -> Option<String> {
    backend.requests().last().and_then(|request| request.header("authorization").map(str::to_owned))
}

/// Reloads and asserts the outcome. If the watcher already applied the set, the outcome is `unchanged`.
fn reload_expecting(admin: &AdminClient, wanted: &str) -> (u16, Value) {
    let (status, response) = admin.reload();
    if wanted == "applied" && response["outcome"] == "unchanged" {
        return (status, response);
    }
    assert_eq!(response["outcome"], wanted, "{response}");
    (status, response)
}

fn mark(server: &Server) -> String {
    server.fetch(chat("Hello!")).json()["mark"].as_str().unwrap_or_default().to_owned()
}

fn restart_entry(response: &Value) -> (&str, &str, &str) {
    let text = |key: &str| response[key].as_str().unwrap();
    (text("setting"), text("running"), text("configured"))
}

fn is_time(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.len() == "2026-01-01T00:00:00.000Z".len() && text.ends_with('Z') && text.starts_with("20")
}

/// Line and column, counted from one, of a text that occurs once.
fn location(text: &str, wanted: &str) -> (usize, usize) {
    let at = text.find(wanted).unwrap();
    let line = text[..at].matches('\n').count() + 1;
    (line, at - text[..at].rfind('\n').map_or(0, |end| end + 1) + 1)
}
