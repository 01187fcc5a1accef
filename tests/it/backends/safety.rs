//! Security: API keys, backend addresses, and injection by clients and backends.

use super::backend_streams::HelloStream;
use super::gateway_fixture::GatewayFixture;
use super::received::{Dialect, Form, Received};
use super::transport::yaml_backend;
use crate::support::{Client, Exit, Launch, MockBackend, MockResponse, Reply, Request, Server, TestDir, repo, serve};
use serde_json::{Value, json};
use std::sync::MutexGuard;

const BACKEND_KEY: &str = "sk-backend-0123456789abcdef";
const CLIENT_KEY: &str = "sk-client-0123456789abcdef";

fn with_backend_key(name: &str) -> MutexGuard<'static, GatewayFixture> {
    let start = || {
        GatewayFixture::launched(name, |launch| {
            launch.env("REFRAME_BACKEND_KEY", BACKEND_KEY).env("REFRAME_LOG", "trace")
        })
    };
    GatewayFixture::shared(&format!("{name} with a key"), start)
}

fn complete_hello() -> Received {
    Received::Complete("Hello".to_owned())
}

// ---- backend keys

#[test]
fn the_backend_key_is_sent_in_one_header_only() {
    for name in ["openai-chat", "openai-responses"] {
        let (hello, fixture) = (HelloStream::of(name), with_backend_key(name));
        for dialect in Dialect::ALL {
            for form in [Form::Stream, Form::Json] {
                assert_eq!(
                    dialect.read(form, &fixture.set_response(hello.stream()).fetch(dialect.request(form))),
                    complete_hello()
                );
                let seen = fixture.last();
                assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {BACKEND_KEY}")));
                let with_key: Vec<&str> =
                    seen.headers.iter().filter(|(_, v)| v.contains(BACKEND_KEY)).map(|(n, _)| &**n).collect();
                assert_eq!(with_key, ["authorization"]);
                assert!(!String::from_utf8_lossy(&seen.body).contains(BACKEND_KEY) && !seen.path.contains(BACKEND_KEY));
            }
        }
        let pages = ["/v1/models", "/v1/models/demo", "/metrics"].map(|path| fixture.fetch(Request::get(path)).text());
        assert!(pages.iter().all(|text| !text.contains(BACKEND_KEY)), "{pages:?}");
        let log = fixture.server.wait_for_log("/metrics");
        assert!(log.contains("TRACE"), "the log level is not trace");
        assert!(!log.contains(BACKEND_KEY), "{}", lines_with_key(&log));
        assert!(!fixture.server.banner.contains(BACKEND_KEY));
    }
}

fn lines_with_key(log: &str) -> String {
    log.lines().filter(|line| line.contains(BACKEND_KEY)).collect::<Vec<_>>().join("\n")
}

/// The status, headers and body that each client receives for this backend response.
fn visible_output(fixture: &GatewayFixture, answer: MockResponse) -> Vec<(u16, String)> {
    fixture.set_response(answer);
    let all = Dialect::ALL.into_iter().flat_map(|d| [Form::Stream, Form::Json].map(|f| (d, f)));
    all.map(|(dialect, form)| fixture.fetch(dialect.request(form)))
        .map(|reply| (reply.status(), full_text(&reply)))
        .collect()
}

fn full_text(reply: &Reply) -> String {
    format!("{:?}\n{}", reply.head, reply.text())
}

/// As a JSON encoder may write it.
fn escaped(key: &str) -> String {
    let escape = |c: char| if c.is_alphanumeric() { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) };
    key.chars().map(escape).collect()
}

#[test]
fn the_backend_key_is_redacted_in_backend_errors() {
    let fixture = with_backend_key("openai-chat");
    let message = format!("Incorrect API key provided: {BACKEND_KEY}.");
    let body =
        json!({ "error": { "message": message, "type": "x", "param": null, "code": "invalid_api_key" } }).to_string();
    let escaped_message = message.replace(BACKEND_KEY, &escaped(BACKEND_KEY));
    for (answer, message) in [
        (MockResponse::json(401, &body), "Incorrect API key provided: [redacted]."),
        (MockResponse::sse(&[&body]).status(401), "Incorrect API key provided: [redacted]."),
        (
            MockResponse::new(401).bytes(&message),
            "the backend responded with 401: Incorrect API key provided: [redacted].",
        ),
        (
            MockResponse::json(401, &body.replace("provided: ", "provided: Bearer%20")),
            "Incorrect API key provided: Bearer%20[redacted].",
        ),
        // An unknown body is quoted as it is, with escapes.
        (
            MockResponse::new(401).bytes(&escaped_message),
            "the backend responded with 401: Incorrect API key provided: [redacted].",
        ),
        (MockResponse::json(401, &body).header("x-key", BACKEND_KEY).gzip(), "Incorrect API key provided: [redacted]."),
    ] {
        for (status, text) in visible_output(&fixture, answer) {
            assert_eq!(status, 401);
            assert!(text.contains(&format!("\"message\":\"{message}\"")), "{text}");
            assert!(!text.contains(BACKEND_KEY) && !text.contains(&escaped(BACKEND_KEY)), "{text}");
        }
    }
    let log = fixture.server.complete_log();
    assert!(log.contains("TRACE"), "the log level is not trace");
    assert!(!log.contains(BACKEND_KEY), "{}", lines_with_key(&log));
}

#[test]
fn the_backend_key_is_redacted_in_stream_errors() {
    let (hello, fixture) = (HelloStream::of("openai-chat"), with_backend_key("openai-chat"));
    let error = |message: &str, code: &str| json!({ "error": { "message": message, "code": code } }).to_string();
    let in_message = error(&format!("bad key {BACKEND_KEY}"), "nope");
    for answer in [
        MockResponse::sse(&[&in_message]),
        MockResponse::json(200, &in_message),
        hello.half().event(&in_message),
        MockResponse::json(401, &error("bad key", BACKEND_KEY)),
        MockResponse::json(401, &json!({ "error": { "message": "bad", "param": BACKEND_KEY } }).to_string()),
    ] {
        for (_, text) in visible_output(&fixture, answer) {
            assert!(!text.contains(BACKEND_KEY), "{text}");
        }
    }
    let log = fixture.server.complete_log();
    assert!(log.contains("TRACE"), "the log level is not trace");
    assert!(!log.contains(BACKEND_KEY), "{}", lines_with_key(&log));
}

#[test]
fn the_backend_key_is_redacted_in_the_log() {
    let (hello, fixture) = (HelloStream::of("openai-chat"), with_backend_key("openai-chat"));
    for answer in [
        hello.ended(MockResponse::sse(&[
            &format!("{{\"oops {BACKEND_KEY}"),
            &format!("{{\"what\":\"{BACKEND_KEY}\"}}"),
            BACKEND_KEY,
        ])),
        MockResponse::json(200, &format!("{{\"{BACKEND_KEY}")),
        MockResponse::new(200).bytes(format!("<html>{BACKEND_KEY}</html>")),
        MockResponse::new(500).bytes(format!("<html>{BACKEND_KEY}</html>")),
        MockResponse::garbage(format!("HTTP/1.1 {BACKEND_KEY}\r\n\r\n")),
        MockResponse::new(302).header("location", &format!("http://127.0.0.1:1/{BACKEND_KEY}")),
    ] {
        for (status, text) in visible_output(&fixture, answer) {
            assert!(status >= 500 && !text.contains(BACKEND_KEY), "{text}");
        }
    }
    let log = fixture.server.complete_log();
    assert!(log.contains("TRACE"), "the log level is not trace");
    assert!(!log.contains(BACKEND_KEY), "{}", lines_with_key(&log));
}

#[test]
fn without_a_backend_key_no_authorization_is_sent_and_the_clients_is_not_forwarded() {
    let hello = HelloStream::of("openai-chat");
    let launches: [fn(Launch) -> Launch; 2] =
        [|l| l.env("REFRAME_BACKEND_KEY", ""), |l| l.env("REFRAME_API_KEY", CLIENT_KEY)];
    for with in launches {
        let fixture = GatewayFixture::launched("openai-chat", with);
        let request = Dialect::Chat.request_with(Form::Json, json!({ "user": "u" }));
        let request = [
            ("authorization", &*format!("Bearer {CLIENT_KEY}")),
            ("x-api-key", CLIENT_KEY),
            ("api-key", CLIENT_KEY),
            ("openai-organization", CLIENT_KEY),
            ("cookie", "a=b"),
            ("x-forwarded-for", "10.0.0.1"),
        ]
        .into_iter()
        .fold(request, |request, (name, value)| request.header(name, value));
        assert_eq!(
            Dialect::Chat.read(Form::Json, &fixture.set_response(hello.json()).fetch(request)),
            complete_hello()
        );
        let seen = fixture.last();
        let names: Vec<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "accept", "accept-encoding", "user-agent", "host", "content-length"]);
        assert!(!format!("{seen:?}").contains(CLIENT_KEY));
        assert!(!String::from_utf8(seen.body).unwrap().contains(CLIENT_KEY));
    }
}

/// A gateway.yaml with one backend and this source of its key.
fn with_key_source(key: &str, backend: &MockBackend) -> TestDir {
    let entry = format!("backends:\n  b: {{ use: openai-chat, url: \"{}\", api_key: {key} }}\n", backend.url());
    let dir = TestDir::empty().with_edit("gateway.yaml", "backends:\n  demo: { use: replay, script: demo }\n", &entry);
    let text = dir.read("layer/gateway.yaml").replace("{ id: demo, backend: demo }", "{ match: \"*\", backend: b }");
    dir.write("layer/gateway.yaml", &text);
    dir
}

#[test]
fn a_backend_key_can_be_read_from_a_file() {
    let backend = MockBackend::start(|_| HelloStream::of("openai-chat").json());
    let keys = TestDir::empty();
    keys.write("key", &format!("{BACKEND_KEY}\n"));
    let key_source = format!("{{ file: \"{}\" }}", keys.path("key").display());
    let server = serve().add(with_key_source(&key_source, &backend)).start();
    assert_eq!(Dialect::Chat.read(Form::Json, &server.fetch(Dialect::Chat.request(Form::Json))), complete_hello());
    assert_eq!(backend.requests()[0].header("authorization"), Some(&*format!("Bearer {BACKEND_KEY}")));
}

#[test]
fn a_missing_backend_key_is_an_error() {
    let backend = MockBackend::start(|_| HelloStream::of("openai-chat").json());
    for (key_source, hint) in [("{ file: /nowhere/key }", "/nowhere/key"), ("{ env: NO_SUCH_KEY }", "NO_SUCH_KEY")] {
        let server = serve().add(with_key_source(key_source, &backend)).start();
        let reply = server.fetch(Dialect::Chat.request(Form::Stream));
        let message = "the API key of the backend `b` is missing".to_owned();
        let expected = Received::HttpError { status: 500, message, code: None, retry_after: None };
        assert_eq!(Dialect::Chat.read(Form::Stream, &reply), expected);
        server.wait_for_log(hint);
    }
    assert_eq!(backend.requests(), []);
}

// ---- client keys

fn unauthorized(reply: &Reply, message: &str) {
    let expected = Received::HttpError {
        status: 401,
        message: message.to_owned(),
        code: Some("invalid_api_key".to_owned()),
        retry_after: None,
    };
    assert_eq!(Dialect::Chat.read(Form::Json, reply), expected);
    assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=\"api\""));
}

/// Asserts that every endpoint requires the key and rejects every kind of wrong key.
fn assert_key_required(server: &Server, key: &str) {
    const NEEDED: &str = "an API key is required: `Authorization: Bearer KEY`";
    const UNKNOWN: &str = "invalid API key";
    const WRONG_SCHEME: &str = "expected `Authorization: Bearer KEY`";
    let places = || {
        let turns = Dialect::ALL.into_iter().flat_map(|d| [Form::Stream, Form::Json].map(|f| d.request(f)));
        turns.chain(["/v1/models", "/v1/models/demo", "/metrics"].map(Request::get)).collect::<Vec<_>>()
    };
    for request in places() {
        unauthorized(&server.fetch(request), NEEDED);
    }
    let near =
        [&key[..key.len() - 1], &format!("{key}x"), &key.to_uppercase(), "", "null", "undefined"].map(str::to_owned);
    let wrong_keys = near.map(|key| format!("Bearer {key}")).into_iter();
    let wrong_keys = wrong_keys.chain(["Bearer".to_owned(), format!("Bearer {key} {key}")]);
    let wrong_schemes = [format!("Basic {key}"), key.to_owned(), format!("Bearer{key}")].into_iter();
    for (authorization, message) in wrong_keys.map(|k| (k, UNKNOWN)).chain(wrong_schemes.map(|s| (s, WRONG_SCHEME))) {
        for request in places() {
            unauthorized(&server.fetch(request.header("authorization", &authorization)), message);
        }
    }
    unauthorized(&server.fetch(Request::get("/v1/models").header("authorization", "")), NEEDED);
    unauthorized(&server.fetch(Request::get(&format!("/v1/models?api_key={key}")).header("x-other-key", key)), NEEDED);
    for scheme in ["Bearer", "bearer", "BEARER", "Bearer  "] {
        for path in ["/v1/models", "/v1/models/demo", "/metrics"] {
            let authorization = format!("{scheme} {key}");
            assert_eq!(
                server.fetch(Request::get(path).header("authorization", &authorization)).status(),
                200,
                "{path} {authorization:?}"
            );
        }
    }
    assert_eq!(server.fetch(Request::get("/nowhere")).status(), 404);
}

#[test]
fn a_configured_key_is_required() {
    let hello = HelloStream::of("openai-chat");
    let fixture = GatewayFixture::launched("openai-chat", |launch| launch.env("REFRAME_API_KEY", CLIENT_KEY));
    fixture.set_response(hello.json());
    assert_key_required(&fixture.server, CLIENT_KEY);
    let request_count = fixture.backend.requests().iter().filter(|seen| seen.method == "POST").count();
    assert_eq!(request_count, 0, "the backend received a request without a key");
    for dialect in Dialect::ALL {
        let request = dialect.request(Form::Json).header("authorization", &format!("bearer {CLIENT_KEY}"));
        assert_eq!(dialect.read(Form::Json, &fixture.fetch(request)), complete_hello());
    }
    let log = fixture.server.complete_log();
    assert!(!log.contains(CLIENT_KEY), "{log}");
}

#[test]
fn the_key_is_checked_before_the_body_is_read() {
    let fixture = GatewayFixture::launched("openai-chat", |launch| launch.env("REFRAME_API_KEY", CLIENT_KEY));
    unauthorized(&fixture.fetch(Request::post("{")), "an API key is required: `Authorization: Bearer KEY`");
}

fn with_client_keys(keys: &str) -> TestDir {
    let shipped = repo("mappings/gateway.yaml");
    let key = shipped.lines().find(|line| line.contains("name: default")).unwrap();
    TestDir::empty().with_edit("gateway.yaml", &format!("{key}\n"), keys)
}

#[test]
fn client_keys_can_be_read_from_files() {
    let dir =
        with_client_keys("  - { name: one, secret: { file: KEYS/one } }\n  - { name: two, secret: { env: SECOND } }\n");
    dir.write("one", &format!("  {CLIENT_KEY}\r\n"));
    dir.edit("layer/gateway.yaml", "KEYS", &dir.path("").display().to_string());
    let server = serve().add(dir).env("SECOND", "sk-second-key").start();
    assert_key_required(&server, CLIENT_KEY);
    assert_key_required(&server, "sk-second-key");
}

#[test]
fn an_unreadable_key_file_rejects_every_request() {
    let server = serve().add(with_client_keys("  - { name: one, secret: { file: /nowhere/key } }\n")).start();
    for authorization in [None, Some("Bearer "), Some("Bearer x")] {
        let request = Request::get("/v1/models");
        let request = authorization.into_iter().fold(request, |request, value| request.header("authorization", value));
        assert_eq!(server.fetch(request).status(), 401, "{authorization:?}");
    }
    server.wait_for_log("/nowhere/key");
}

#[test]
fn without_a_configured_key_local_requests_are_accepted() {
    for server in [serve().start(), serve().env("REFRAME_API_KEY", "  ").start()] {
        assert_eq!(server.fetch(Request::get("/v1/models")).status(), 200);
        assert_eq!(server.fetch(Request::get("/v1/models").header("authorization", "Bearer x")).status(), 200);
    }
}

#[test]
fn a_non_local_address_requires_a_key() {
    for (addr, key) in [("0.0.0.0:0", Some("")), ("[::]:0", None)] {
        let launch = Launch::new().args(["serve", "--listen", addr]);
        let exit = key.into_iter().fold(launch, |launch, key| launch.env("REFRAME_API_KEY", key)).run_with_timeout();
        let expected = format!(
            "error: {addr} is not a local address and no API key is configured\n\
             help: set REFRAME_API_KEY, or set `auth: none` in gateway.yaml to accept requests without a key\n"
        );
        assert_eq!((exit.code, exit.stdout.as_str(), exit.stderr), (Some(2), "", expected));
    }
    let with_key = Launch::new().args(["serve", "--listen", "0.0.0.0:0"]).env("REFRAME_API_KEY", CLIENT_KEY).start();
    unauthorized(
        &local(&with_key).fetch(Request::get("/v1/models")),
        "an API key is required: `Authorization: Bearer KEY`",
    );
    let dir = TestDir::empty().with_edit("gateway.yaml", "listen: 127.0.0.1:8080\n", "auth: none\n");
    let open = Launch::new().args(["serve", "--listen", "0.0.0.0:0"]).add(dir).start();
    assert_eq!(local(&open).fetch(Request::get("/v1/models")).status(), 200);
}

fn local(server: &Server) -> Client {
    Client::connect(([127, 0, 0, 1], server.addr().port()).into())
}

// ---- addresses

/// `reframe check` of a gateway.yaml with a backend for each URL.
fn check(urls: &[&str]) -> Exit {
    let entries = urls.iter().enumerate().map(|(n, url)| format!("  b{n}: {{ use: openai-chat, url: \"{url}\" }}\n"));
    let demo = "  demo: { use: replay, script: demo }\n";
    let dir = TestDir::empty().with_edit("gateway.yaml", demo, &format!("{demo}{}", entries.collect::<String>()));
    Launch::new().args(["check"]).add(dir).run()
}

/// Asserts that each URL is an error in a file, and the first one also on the command line.
fn assert_rejected(cases: &[(&str, &str, &str)]) {
    let exit = check(&cases.iter().map(|(url, ..)| *url).collect::<Vec<_>>());
    assert_eq!(exit.code, Some(1), "{exit:?}");
    let output = exit.stdout + &exit.stderr;
    let after =
        |mark: &str| output.lines().filter_map(|l| l.trim().strip_prefix(mark)).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(after("error[RF013]: "), cases.iter().map(|(_, message, _)| *message).collect::<Vec<_>>(), "{output}");
    assert_eq!(after("= help: "), cases.iter().map(|(.., help)| *help).collect::<Vec<_>>(), "{output}");
    let (url, message, help) = cases[0];
    let exit = serve().arg("--backend").arg(format!("openai-chat={url}")).run_with_timeout();
    let expected = format!(
        "error[RF013]: --backend: {message}\n |\n = help: {help}\n\nerror: the mappings do not load, so there is nothing to serve\n"
    );
    assert_eq!((exit.code, exit.stdout.as_str(), exit.stderr), (Some(2), "", expected));
}

#[test]
fn metadata_addresses_are_rejected_in_every_notation() {
    let help = "if this is intended, add it to `allow_addresses:`";
    let cases = [
        ("http://169.254.169.254/v1", "169.254.169.254"),
        ("http://169.254.0.1:9000/v1", "169.254.0.1"),
        ("https://169.254.169.254", "169.254.169.254"),
        ("http://2852039166/v1", "169.254.169.254"),
        ("http://0xa9.0xfe.0xa9.0xfe/v1", "169.254.169.254"),
        ("http://0251.0376.0251.0376/v1", "169.254.169.254"),
        ("http://169.254.43518/v1", "169.254.169.254"),
        ("http://１６９.254.169.254/v1", "169.254.169.254"),
        ("http://[::ffff:169.254.169.254]/v1", "::ffff:169.254.169.254"),
        ("http://[::ffff:a9fe:a9fe]:80/v1", "::ffff:169.254.169.254"),
        ("http://[fe80::1]/v1", "fe80::1"),
        ("http://[fd00:ec2::254]/v1", "fd00:ec2::254"),
        ("http://100.100.100.200/v1", "100.100.100.200"),
        ("http://0.0.0.0:9000/v1", "0.0.0.0"),
        ("http://0:9000/v1", "0.0.0.0"),
        ("http://[::]:9000/v1", "::"),
    ];
    let cases = cases.map(|(url, address)| (url, format!("{address} is a link-local or metadata address")));
    assert_rejected(&cases.each_ref().map(|(url, message)| (*url, message.as_str(), help)));
}

#[test]
fn metadata_addresses_embedded_in_others_are_rejected() {
    for host in ["[::169.254.169.254]", "[64:ff9b::169.254.169.254]", "[2002:a9fe:a9fe::]", "192.0.0.192"] {
        assert_eq!(check(&[&format!("http://{host}/v1")]).code, Some(1), "{host}");
    }
}

#[test]
fn a_base_url_has_only_a_host_and_a_path() {
    let (key, more) =
        ("set the key with `api_key: { env: NAME }`", "the backend file defines the rest of the request URL");
    let (full_text, hello) = ("write the full URL: http://127.0.0.1:9000/v1", "use http or https");
    assert_rejected(&[
        ("http://user:pass@127.0.0.1/v1", "a URL must not contain credentials", key),
        ("http://user@127.0.0.1/v1", "a URL must not contain credentials", key),
        ("http://:pass@127.0.0.1/v1", "a URL must not contain credentials", key),
        ("http://127.0.0.1/v1?a=b", "the URL must not have a query or a fragment", more),
        ("http://127.0.0.1/v1#a", "the URL must not have a query or a fragment", more),
        ("ftp://127.0.0.1/v1", "unsupported URL scheme `ftp`", hello),
        ("file:///etc/passwd", "unsupported URL scheme `file`", hello),
        ("ws://127.0.0.1/v1", "unsupported URL scheme `ws`", hello),
        ("127.0.0.1:9000", "invalid URL", full_text),
        ("http://", "invalid URL", full_text),
        ("http:///v1", "this URL has no host", full_text),
    ]);
}

#[test]
fn unknown_names_are_rejected_with_the_known_ones() {
    let exit = serve().args(["--backend", "openai-caht=http://127.0.0.1:9/v1"]).run_with_timeout();
    assert_eq!(exit.code, Some(2));
    let first = exit.stderr.lines().next().unwrap();
    assert_eq!(first, "error[RF020]: --backend: no backend file with a request defines `backend: openai-caht`");
    let help = exit.stderr.lines().nth(2).unwrap();
    assert!(help.starts_with(" = help: one of ") && help.contains("openai-chat") && !help.contains("replay"), "{help}");
    let exit = serve().args(["--profile", "opneai"]).run_with_timeout();
    let expected = "error[RF020]: --profile: unknown profile `opneai`\n |\n = help: one of ai-sdk, codex-cli, \
                    codex-completions-api, codex-proxy, nine-router, obsidian-copilot, open-responses, openai or pydantic-ai\n\n\
                    error: the mappings do not load, so there is nothing to serve\n";
    assert_eq!((exit.code, exit.stderr.as_str()), (Some(2), expected));
    let exit = serve().args(["--backend", "openai-chat"]).run_with_timeout();
    let expected = "error[RF013]: --backend: `openai-chat` needs a URL\n |\n = help: write NAME=URL, such as \
                    openai-chat=http://127.0.0.1:9000/v1\n\nerror: the mappings do not load, so there is nothing to serve\n";
    assert_eq!((exit.code, exit.stderr.as_str()), (Some(2), expected));
}

// ---- injection

#[test]
fn a_model_name_cannot_change_the_path_or_host() {
    let fixture = yaml_backend("named");
    fixture
        .set_response(MockResponse::sse_raw("event: delta\ndata: {\"text\":\"Hello\"}\n\nevent: over\ndata: {}\n\n"));
    let fetch = |model: &str| {
        let reply = fixture.fetch(Dialect::Chat.request_with(Form::Json, json!({ "model": model })));
        Dialect::Chat.read(Form::Json, &reply)
    };
    for (model, path) in [
        ("gpt-4.1_x~y:z", "gpt-4.1_x~y:z"),
        ("../../admin", "..%2F..%2Fadmin"),
        ("..\\admin", "..%5Cadmin"),
        ("%2e%2e", "%252e%252e"),
        ("%2e%2e%2f", "%252e%252e%252f"),
        ("a/b", "a%2Fb"),
        ("a?b=c#d", "a%3Fb%3Dc%23d"),
        ("//evil.example/", "%2F%2Fevil.example%2F"),
        ("http://evil.example/", "http:%2F%2Fevil.example%2F"),
        ("@evil.example", "%40evil.example"),
        ("a\r\nhost: evil.example\r\n\r\nGET /", "a%0D%0Ahost:%20evil.example%0D%0A%0D%0AGET%20%2F"),
        ("a\0b\tc", "a%00b%09c"),
        ("é", "%C3%A9"),
        ("...", "..."),
    ] {
        assert_eq!(fetch(model), complete_hello(), "{model:?}");
        let seen = fixture.last();
        assert_eq!(seen.path, format!("/v1/models/{path}/generate"));
        assert_eq!(seen.header("host"), Some(&*fixture.backend.addr().to_string()));
        assert_eq!(seen.json(), json!({ "model": model }));
    }
    let request_count = fixture.backend.requests().len();
    for model in [".", ".."] {
        let message = format!("`{model}` is not a valid model name");
        let expected =
            Received::HttpError { status: 400, message, code: Some("invalid_value".to_owned()), retry_after: None };
        assert_eq!(fetch(model), expected);
    }
    assert_eq!(fixture.backend.requests().len(), request_count);
}

#[test]
fn a_model_named_dot_dot_is_accepted_outside_a_path() {
    let fixture = GatewayFixture::of("openai-chat");
    fixture.set_response(HelloStream::of("openai-chat").json());
    let reply = fixture.fetch(Dialect::Chat.request_with(Form::Json, json!({ "model": "..\r\n" })));
    assert_eq!(Dialect::Chat.read(Form::Json, &reply), complete_hello());
    assert_eq!(
        (fixture.last().path.as_str(), &fixture.last().json()["model"]),
        ("/v1/chat/completions", &json!("..\r\n"))
    );
}

#[test]
fn a_request_field_cannot_inject_a_header() {
    let fixture = yaml_backend("lines");
    fixture.set_response(MockResponse::ndjson(&[r#"{"kind":"delta","text":"Hello"}"#, r#"{"kind":"over"}"#]));
    let fetch = |user: Value| {
        let reply = fixture.fetch(Dialect::Chat.request_with(Form::Json, json!({ "user": user })));
        Dialect::Chat.read(Form::Json, &reply)
    };
    assert_eq!(fetch(json!("ann")), complete_hello());
    assert_eq!(fixture.last().header("x-user"), Some("ann"));
    assert_eq!(fixture.last().header("x-key"), None);
    let request_count = fixture.backend.requests().len();
    for user in ["a\r\nx-evil: 1", "a\nx-evil: 1", "a\rb", "a\0b", "\r\n\r\nGET /evil HTTP/1.1\r\n\r\n", "\u{7f}"] {
        let message = "the header `x-user` cannot contain the value from the request".to_owned();
        let expected =
            Received::HttpError { status: 400, message, code: Some("invalid_value".to_owned()), retry_after: None };
        assert_eq!(fetch(json!(user)), expected, "{user:?}");
    }
    assert_eq!(fixture.backend.requests().len(), request_count, "the backend received a request");
}

#[test]
fn an_unknown_member_cannot_inject_a_header() {
    let fixture = GatewayFixture::of("openai-chat");
    fixture.set_response(HelloStream::of("openai-chat").json());
    let reply = fixture.fetch(Dialect::Chat.request_with(Form::Json, json!({ "x\r\nx-evil: 1": true, "é": 1 })));
    assert_eq!(Dialect::Chat.read(Form::Json, &reply), complete_hello());
    assert_eq!(reply.header("x-evil"), None);
    assert_eq!(reply.header("x-reframe-dropped"), Some("x%0D%0Ax-evil: 1, %C3%A9"));
}

/// Text from a backend is always escaped.
#[test]
fn backend_text_cannot_end_a_frame_or_inject_a_header() {
    let fixture = GatewayFixture::of("openai-chat");
    let evil = "no\r\n\r\ndata: [DONE]\r\n\r\nevent: x\n\n";
    let error = json!({ "error": { "message": evil, "code": "a\r\nb: c" } }).to_string();
    let expected = Received::HttpError {
        status: 429,
        message: evil.to_owned(),
        code: Some("a\r\nb: c".to_owned()),
        retry_after: None,
    };
    for value in ["soon", "-1", "1e9", "7.5", "99999999999999999999999", "Mon, 01 Jan 1990 00:00:00 GMT"] {
        fixture.set_response(MockResponse::json(429, &error).header("retry-after", value));
        for dialect in Dialect::ALL {
            assert_eq!(dialect.read(Form::Stream, &fixture.fetch(dialect.request(Form::Stream))), expected, "{value}");
        }
    }
    let half = HelloStream::of("openai-chat").half().event(&error);
    let received =
        Dialect::Chat.read(Form::Stream, &fixture.set_response(half).fetch(Dialect::Chat.request(Form::Stream)));
    assert_eq!(
        received,
        Received::Interrupted { text: "Hel".to_owned(), message: evil.to_owned(), code: Some("a\r\nb: c".to_owned()) }
    );
}
