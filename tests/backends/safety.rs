//! Keys, addresses, and what a client may not decide.

use crate::backend_streams::Spoken;
use crate::gateway_fixture::Rig;
use crate::received::{Dialect, Form, Told};
use crate::support::{Answer, Backend, Client, Disk, Exit, Launch, Reply, Request, Server, serve};
use crate::transport::in_yaml;
use serde_json::{Value, json};
use std::sync::MutexGuard;

/// The backend's, and a client's.
const KEY: &str = "sk-backend-0123456789abcdef";
const OURS: &str = "sk-client-0123456789abcdef";

fn keyed(name: &str) -> MutexGuard<'static, Rig> {
    let start = || Rig::launched(name, |launch| launch.env("REFRAME_BACKEND_KEY", KEY).env("REFRAME_LOG", "trace"));
    Rig::shared(&format!("{name} with a key"), start)
}

fn hello() -> Told {
    Told::Whole("Hello".to_owned())
}

// ---- the backend's key

#[test]
fn the_backends_key_reaches_the_backend_in_one_header_and_nothing_else() {
    for name in ["openai-chat", "openai-responses"] {
        let (spoken, rig) = (Spoken::by(name), keyed(name));
        for dialect in Dialect::ALL {
            for form in [Form::Stream, Form::Json] {
                assert_eq!(dialect.read(form, &rig.will(spoken.stream()).ask(dialect.request(form))), hello());
                let seen = rig.last();
                assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {KEY}")));
                let with_key: Vec<&str> =
                    seen.headers.iter().filter(|(_, v)| v.contains(KEY)).map(|(n, _)| &**n).collect();
                assert_eq!(with_key, ["authorization"]);
                assert!(!String::from_utf8_lossy(&seen.body).contains(KEY) && !seen.path.contains(KEY));
            }
        }
        let pages = ["/v1/models", "/v1/models/demo", "/metrics"].map(|path| rig.ask(Request::get(path)).text());
        assert!(pages.iter().all(|text| !text.contains(KEY)), "{pages:?}");
        let log = rig.server.wait_for_log("/metrics");
        assert!(log.contains("TRACE"), "the log is not at its most talkative");
        assert!(!log.contains(KEY), "{}", lines_with_key(&log));
        assert!(!rig.server.banner.contains(KEY));
    }
}

fn lines_with_key(log: &str) -> String {
    log.lines().filter(|line| line.contains(KEY)).collect::<Vec<_>>().join("\n")
}

/// All that a client sees and all that is logged, when the backend answers this.
fn shown(rig: &Rig, answer: Answer) -> Vec<(u16, String)> {
    rig.will(answer);
    let all = Dialect::ALL.into_iter().flat_map(|d| [Form::Stream, Form::Json].map(|f| (d, f)));
    all.map(|(dialect, form)| rig.ask(dialect.request(form))).map(|reply| (reply.status(), whole(&reply))).collect()
}

fn whole(reply: &Reply) -> String {
    format!("{:?}\n{}", reply.head, reply.text())
}

#[test]
fn a_refusal_that_repeats_the_backends_key_is_told_without_it() {
    let rig = keyed("openai-chat");
    let said = format!("Incorrect API key provided: {KEY}.");
    let body =
        json!({ "error": { "message": said, "type": "x", "param": null, "code": "invalid_api_key" } }).to_string();
    for (answer, message) in [
        (Answer::json(401, &body), "Incorrect API key provided: [redacted]."),
        (Answer::sse(&[&body]).status(401), "Incorrect API key provided: [redacted]."),
        (Answer::new(401).bytes(&said), "the backend answered 401: Incorrect API key provided: [redacted]."),
        (Answer::json(401, &body).header("x-key", KEY).gzip(), "Incorrect API key provided: [redacted]."),
    ] {
        for (status, text) in shown(&rig, answer) {
            assert_eq!(status, 401);
            assert!(text.contains(&format!("\"message\":\"{message}\"")), "{text}");
            assert!(!text.contains(KEY), "{text}");
        }
    }
    let log = rig.server.log();
    assert!(log.contains("TRACE"), "the log is not at its most talkative");
    assert!(!log.contains(KEY), "{}", lines_with_key(&log));
}

#[test]
fn an_error_in_the_stream_that_repeats_the_backends_key_is_told_without_it() {
    let (spoken, rig) = (Spoken::by("openai-chat"), keyed("openai-chat"));
    let error = |message: &str, code: &str| json!({ "error": { "message": message, "code": code } }).to_string();
    let in_message = error(&format!("bad key {KEY}"), "nope");
    for answer in [
        Answer::sse(&[&in_message]),
        Answer::json(200, &in_message),
        spoken.half().event(&in_message),
        Answer::json(401, &error("bad key", KEY)),
    ] {
        for (_, text) in shown(&rig, answer) {
            assert!(!text.contains(KEY), "{text}");
        }
    }
    let log = rig.server.log();
    assert!(log.contains("TRACE"), "the log is not at its most talkative");
    assert!(!log.contains(KEY), "{}", lines_with_key(&log));
}

#[test]
fn what_cannot_be_read_or_understood_is_logged_without_the_key() {
    let (spoken, rig) = (Spoken::by("openai-chat"), keyed("openai-chat"));
    for answer in [
        spoken.ended(Answer::sse(&[&format!("{{\"oops {KEY}"), &format!("{{\"what\":\"{KEY}\"}}"), KEY])),
        Answer::json(200, &format!("{{\"{KEY}")),
        Answer::new(200).bytes(format!("<html>{KEY}</html>")),
        Answer::new(500).bytes(format!("<html>{KEY}</html>")),
        Answer::garbage(format!("HTTP/1.1 {KEY}\r\n\r\n")),
        Answer::new(302).header("location", &format!("http://127.0.0.1:1/{KEY}")),
    ] {
        for (status, text) in shown(&rig, answer) {
            assert!(status >= 500 && !text.contains(KEY), "{text}");
        }
    }
    let log = rig.server.log();
    assert!(log.contains("TRACE"), "the log is not at its most talkative");
    assert!(!log.contains(KEY), "{}", lines_with_key(&log));
}

#[test]
fn without_a_key_there_is_no_authorization_and_the_clients_own_goes_no_further() {
    let spoken = Spoken::by("openai-chat");
    let launches: [fn(Launch) -> Launch; 2] =
        [|l| l.env("REFRAME_BACKEND_KEY", ""), |l| l.env("REFRAME_API_KEY", OURS)];
    for with in launches {
        let rig = Rig::launched("openai-chat", with);
        let request = Dialect::Chat.request_with(Form::Json, json!({ "user": "u" }));
        let request = [
            ("authorization", &*format!("Bearer {OURS}")),
            ("x-api-key", OURS),
            ("api-key", OURS),
            ("openai-organization", OURS),
            ("cookie", "a=b"),
            ("x-forwarded-for", "10.0.0.1"),
        ]
        .into_iter()
        .fold(request, |request, (name, value)| request.header(name, value));
        assert_eq!(Dialect::Chat.read(Form::Json, &rig.will(spoken.json()).ask(request)), hello());
        let seen = rig.last();
        let names: Vec<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "accept", "accept-encoding", "user-agent", "host", "content-length"]);
        assert!(!format!("{seen:?}").contains(OURS));
        assert!(!String::from_utf8(seen.body).unwrap().contains(OURS));
    }
}

/// A gateway.yaml with one backend, whose key is in this place.
fn with_key_at(key: &str, backend: &Backend) -> Disk {
    let entry = format!("backends:\n  b: {{ use: openai-chat, url: \"{}\", key: {key} }}\n", backend.url());
    let disk = Disk::empty().lay("gateway.yaml", "backends:\n  demo: { use: replay, script: demo }\n", &entry);
    let text = disk.read("layer/gateway.yaml").replace("{ id: demo, backend: demo }", "{ match: \"*\", backend: b }");
    disk.write("layer/gateway.yaml", &text);
    disk
}

#[test]
fn a_backends_key_may_lie_in_a_file() {
    let backend = Backend::start(|_| Spoken::by("openai-chat").json());
    let keys = Disk::empty();
    keys.write("key", &format!("{KEY}\n"));
    let place = format!("{{ file: \"{}\" }}", keys.path("key").display());
    let server = serve().add(with_key_at(&place, &backend)).start();
    assert_eq!(Dialect::Chat.read(Form::Json, &server.ask(Dialect::Chat.request(Form::Json))), hello());
    assert_eq!(backend.seen()[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
}

#[test]
fn a_backends_key_that_is_not_there_is_not_done_without() {
    let backend = Backend::start(|_| Spoken::by("openai-chat").json());
    for (place, hint) in [("{ file: /nowhere/key }", "/nowhere/key"), ("{ env: NO_SUCH_KEY }", "NO_SUCH_KEY")] {
        let server = serve().add(with_key_at(place, &backend)).start();
        let reply = server.ask(Dialect::Chat.request(Form::Stream));
        let message = "the key of the backend `b` is missing".to_owned();
        let expected = Told::No { status: 500, message, code: None, retry_after: None };
        assert_eq!(Dialect::Chat.read(Form::Stream, &reply), expected);
        server.wait_for_log(hint);
    }
    assert_eq!(backend.seen(), []);
}

// ---- the clients' key

fn unauthorized(reply: &Reply, message: &str) {
    let expected = Told::No {
        status: 401,
        message: message.to_owned(),
        code: Some("invalid_api_key".to_owned()),
        retry_after: None,
    };
    assert_eq!(Dialect::Chat.read(Form::Json, reply), expected);
    assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=\"api\""));
}

/// Every place that needs the key, and every way to show a wrong one.
fn is_closed(server: &Server, key: &str) {
    const NEEDED: &str = "a key is needed: `Authorization: Bearer KEY`";
    const UNKNOWN: &str = "this key is not known";
    let places = || {
        let turns = Dialect::ALL.into_iter().flat_map(|d| [Form::Stream, Form::Json].map(|f| d.request(f)));
        turns.chain(["/v1/models", "/v1/models/demo", "/metrics"].map(Request::get)).collect::<Vec<_>>()
    };
    for request in places() {
        unauthorized(&server.ask(request), NEEDED);
    }
    let near =
        [&key[..key.len() - 1], &format!("{key}x"), &key.to_uppercase(), "", "null", "undefined"].map(str::to_owned);
    let wrong = near.map(|key| format!("Bearer {key}")).into_iter();
    let wrong = wrong.chain([
        format!("Basic {key}"),
        key.to_owned(),
        format!("Bearer{key}"),
        "Bearer".to_owned(),
        format!("Bearer {key} {key}"),
    ]);
    for shown in wrong {
        for request in places() {
            unauthorized(&server.ask(request.header("authorization", &shown)), UNKNOWN);
        }
    }
    unauthorized(&server.ask(Request::get("/v1/models").header("authorization", "")), NEEDED);
    unauthorized(&server.ask(Request::get(&format!("/v1/models?api_key={key}")).header("x-api-key", key)), NEEDED);
    for scheme in ["Bearer", "bearer", "BEARER", "Bearer  "] {
        for path in ["/v1/models", "/v1/models/demo", "/metrics"] {
            let shown = format!("{scheme} {key}");
            assert_eq!(
                server.ask(Request::get(path).header("authorization", &shown)).status(),
                200,
                "{path} {shown:?}"
            );
        }
    }
    assert_eq!(server.ask(Request::get("/nowhere")).status(), 404);
}

#[test]
fn a24_with_a_key_set_nobody_is_answered_without_it() {
    let spoken = Spoken::by("openai-chat");
    let rig = Rig::launched("openai-chat", |launch| launch.env("REFRAME_API_KEY", OURS));
    rig.will(spoken.json());
    is_closed(&rig.server, OURS);
    let asked = rig.backend.seen().iter().filter(|seen| seen.method == "POST").count();
    assert_eq!(asked, 0, "the backend was asked for somebody without a key");
    for dialect in Dialect::ALL {
        let request = dialect.request(Form::Json).header("authorization", &format!("bearer {OURS}"));
        assert_eq!(dialect.read(Form::Json, &rig.ask(request)), hello());
    }
    let log = rig.server.log();
    assert!(!log.contains(OURS), "{log}");
}

#[test]
fn a_body_is_not_read_before_the_key_is() {
    let rig = Rig::launched("openai-chat", |launch| launch.env("REFRAME_API_KEY", OURS));
    unauthorized(&rig.ask(Request::post("{")), "a key is needed: `Authorization: Bearer KEY`");
}

fn with_client_keys(keys: &str) -> Disk {
    let shipped = "  - { name: default, secret: { env: REFRAME_API_KEY } }\n";
    Disk::empty().lay("gateway.yaml", shipped, keys)
}

#[test]
fn a_clients_key_may_lie_in_a_file_and_there_may_be_two() {
    let disk =
        with_client_keys("  - { name: one, secret: { file: KEYS/one } }\n  - { name: two, secret: { env: SECOND } }\n");
    disk.write("one", &format!("  {OURS}\r\n"));
    disk.edit("layer/gateway.yaml", "KEYS", &disk.path("").display().to_string());
    let server = serve().add(disk).env("SECOND", "sk-second-key").start();
    is_closed(&server, OURS);
    is_closed(&server, "sk-second-key");
}

#[test]
fn a_key_file_that_cannot_be_read_leaves_the_gateway_closed() {
    let server = serve().add(with_client_keys("  - { name: one, secret: { file: /nowhere/key } }\n")).start();
    for shown in [None, Some("Bearer "), Some("Bearer x")] {
        let request = Request::get("/v1/models");
        let request = shown.into_iter().fold(request, |request, value| request.header("authorization", value));
        assert_eq!(server.ask(request).status(), 401, "{shown:?}");
    }
    server.wait_for_log("/nowhere/key");
}

#[test]
fn without_a_key_whoever_is_on_this_machine_is_answered_whatever_they_show() {
    for server in [serve().start(), serve().env("REFRAME_API_KEY", "  ").start()] {
        assert_eq!(server.ask(Request::get("/v1/models")).status(), 200);
        assert_eq!(server.ask(Request::get("/v1/models").header("authorization", "Bearer x")).status(), 200);
    }
}

#[test]
fn a_place_that_others_can_reach_needs_a_key() {
    for (addr, key) in [("0.0.0.0:0", Some("")), ("[::]:0", None)] {
        let launch = Launch::new().args(["serve", "--listen", addr]);
        let exit = key.into_iter().fold(launch, |launch, key| launch.env("REFRAME_API_KEY", key)).refused();
        let expected = format!(
            "error: {addr} can be reached from elsewhere, and no key is asked for\n\
             help: set REFRAME_API_KEY, or say `auth: none` in gateway.yaml if anybody may ask\n"
        );
        assert_eq!((exit.code, exit.stdout.as_str(), exit.stderr), (Some(2), "", expected));
    }
    let with_key = Launch::new().args(["serve", "--listen", "0.0.0.0:0"]).env("REFRAME_API_KEY", OURS).start();
    unauthorized(&local(&with_key).ask(Request::get("/v1/models")), "a key is needed: `Authorization: Bearer KEY`");
    let disk = Disk::empty().lay("gateway.yaml", "listen: 127.0.0.1:8080\n", "auth: none\n");
    let open = Launch::new().args(["serve", "--listen", "0.0.0.0:0"]).add(disk).start();
    assert_eq!(local(&open).ask(Request::get("/v1/models")).status(), 200);
}

fn local(server: &Server) -> Client {
    Client::connect(([127, 0, 0, 1], server.addr().port()).into())
}

// ---- addresses

/// A gateway.yaml with a backend for each of these.
fn check(urls: &[&str]) -> Exit {
    let entries = urls.iter().enumerate().map(|(n, url)| format!("  b{n}: {{ use: openai-chat, url: \"{url}\" }}\n"));
    let demo = "  demo: { use: replay, script: demo }\n";
    let disk = Disk::empty().lay("gateway.yaml", demo, &format!("{demo}{}", entries.collect::<String>()));
    Launch::new().args(["check"]).add(disk).run()
}

/// Each is an error of its own in a file; the first one is tried on the command line as well.
fn are_refused(cases: &[(&str, &str, &str)]) {
    let exit = check(&cases.iter().map(|(url, ..)| *url).collect::<Vec<_>>());
    assert_eq!(exit.code, Some(1), "{exit:?}");
    let said = exit.stdout + &exit.stderr;
    let after =
        |mark: &str| said.lines().filter_map(|l| l.trim().strip_prefix(mark)).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(after("error[RF013]: "), cases.iter().map(|(_, message, _)| *message).collect::<Vec<_>>(), "{said}");
    assert_eq!(after("= help: "), cases.iter().map(|(.., help)| *help).collect::<Vec<_>>(), "{said}");
    let (url, message, help) = cases[0];
    let exit = serve().arg("--backend").arg(format!("openai-chat={url}")).refused();
    let expected = format!(
        "error[RF013]: --backend: {message}\n |\n = help: {help}\n\nerror: the mappings do not load, so there is nothing to serve\n"
    );
    assert_eq!((exit.code, exit.stdout.as_str(), exit.stderr), (Some(2), "", expected));
}

#[test]
fn addresses_where_machines_tell_their_secrets_are_refused_however_they_are_written() {
    let help = "if that is meant, name it in `allow_addresses:`";
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
    let cases = cases.map(|(url, shown)| (url, format!("{shown} is a link-local or metadata address")));
    are_refused(&cases.each_ref().map(|(url, message)| (*url, message.as_str(), help)));
}

#[test]
fn addresses_where_machines_tell_their_secrets_are_refused_inside_others_too() {
    for host in ["[::169.254.169.254]", "[64:ff9b::169.254.169.254]", "[2002:a9fe:a9fe::]", "192.0.0.192"] {
        assert_eq!(check(&[&format!("http://{host}/v1")]).code, Some(1), "{host}");
    }
}

#[test]
fn a_base_url_is_a_host_and_a_path_and_nothing_else() {
    let (key, more) = ("say where it is: `key: { env: NAME }`", "what follows the path is said by the backend file");
    let (whole, spoken) = ("write it whole: http://127.0.0.1:9000/v1", "a backend is reached over http or https");
    are_refused(&[
        ("http://user:pass@127.0.0.1/v1", "a key does not stand in a URL", key),
        ("http://user@127.0.0.1/v1", "a key does not stand in a URL", key),
        ("http://:pass@127.0.0.1/v1", "a key does not stand in a URL", key),
        ("http://127.0.0.1/v1?a=b", "this URL has more than a path", more),
        ("http://127.0.0.1/v1#a", "this URL has more than a path", more),
        ("ftp://127.0.0.1/v1", "`ftp` is not spoken", spoken),
        ("file:///etc/passwd", "`file` is not spoken", spoken),
        ("ws://127.0.0.1/v1", "`ws` is not spoken", spoken),
        ("127.0.0.1:9000", "this is not a URL", whole),
        ("http://", "this is not a URL", whole),
        ("http:///v1", "this URL has no host", whole),
    ]);
}

#[test]
fn names_that_nobody_has_are_refused_with_those_that_there_are() {
    let exit = serve().args(["--backend", "openai-caht=http://127.0.0.1:9/v1"]).refused();
    assert_eq!(exit.code, Some(2));
    let first = exit.stderr.lines().next().unwrap();
    assert_eq!(first, "error[RF020]: --backend: no backend file that is asked over HTTP says `backend: openai-caht`");
    let help = exit.stderr.lines().nth(2).unwrap();
    assert!(help.starts_with(" = help: one of ") && help.contains("openai-chat") && !help.contains("replay"), "{help}");
    let exit = serve().args(["--profile", "opneai"]).refused();
    let expected = "error[RF020]: --profile: no profile is called `opneai`\n |\n = help: one of codex-proxy or openai\n\n\
                    error: the mappings do not load, so there is nothing to serve\n";
    assert_eq!((exit.code, exit.stderr.as_str()), (Some(2), expected));
    let exit = serve().args(["--backend", "openai-chat"]).refused();
    let expected = "error: --backend openai-chat: write NAME=URL, such as openai-chat=http://127.0.0.1:9000/v1\n";
    assert_eq!((exit.code, exit.stderr.as_str()), (Some(2), expected));
}

// ---- what a client may not decide

#[test]
fn no_name_of_a_model_leads_to_another_path_or_host() {
    let rig = in_yaml("named");
    rig.will(Answer::sse_raw("event: piece\ndata: {\"text\":\"Hello\"}\n\nevent: over\ndata: {}\n\n"));
    let ask = |model: &str| {
        let reply = rig.ask(Dialect::Chat.request_with(Form::Json, json!({ "model": model })));
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
        assert_eq!(ask(model), hello(), "{model:?}");
        let seen = rig.last();
        assert_eq!(seen.path, format!("/v1/models/{path}/say"));
        assert_eq!(seen.header("host"), Some(&*rig.backend.addr().to_string()));
        assert_eq!(seen.json(), json!({ "model": model }));
    }
    let asked = rig.backend.seen().len();
    for model in [".", ".."] {
        let message = format!("`{model}` cannot be the name of a model");
        let expected = Told::No { status: 400, message, code: Some("invalid_value".to_owned()), retry_after: None };
        assert_eq!(ask(model), expected);
    }
    assert_eq!(rig.backend.seen().len(), asked);
}

#[test]
fn a_dot_dot_is_a_name_like_any_other_where_it_is_no_path() {
    let rig = Rig::of("openai-chat");
    rig.will(Spoken::by("openai-chat").json());
    let reply = rig.ask(Dialect::Chat.request_with(Form::Json, json!({ "model": "..\r\n" })));
    assert_eq!(Dialect::Chat.read(Form::Json, &reply), hello());
    assert_eq!((rig.last().path.as_str(), &rig.last().json()["model"]), ("/v1/chat/completions", &json!("..\r\n")));
}

#[test]
fn no_field_of_a_client_ends_a_header() {
    let rig = in_yaml("lines");
    rig.will(Answer::ndjson(&[r#"{"kind":"piece","text":"Hello"}"#, r#"{"kind":"over"}"#]));
    let ask = |user: Value| {
        let reply = rig.ask(Dialect::Chat.request_with(Form::Json, json!({ "user": user })));
        Dialect::Chat.read(Form::Json, &reply)
    };
    assert_eq!(ask(json!("ann")), hello());
    assert_eq!(rig.last().header("x-user"), Some("ann"));
    assert_eq!(rig.last().header("x-key"), None);
    let asked = rig.backend.seen().len();
    for user in ["a\r\nx-evil: 1", "a\nx-evil: 1", "a\rb", "a\0b", "\r\n\r\nGET /evil HTTP/1.1\r\n\r\n", "\u{7f}"] {
        let message = "the header `x-user` cannot hold what the request says".to_owned();
        let expected = Told::No { status: 400, message, code: Some("invalid_value".to_owned()), retry_after: None };
        assert_eq!(ask(json!(user)), expected, "{user:?}");
    }
    assert_eq!(rig.backend.seen().len(), asked, "the backend was asked all the same");
}

#[test]
fn no_member_that_a_client_invents_ends_the_header_that_lists_it() {
    let rig = Rig::of("openai-chat");
    rig.will(Spoken::by("openai-chat").json());
    let reply = rig.ask(Dialect::Chat.request_with(Form::Json, json!({ "x\r\nx-evil: 1": true, "é": 1 })));
    assert_eq!(Dialect::Chat.read(Form::Json, &reply), hello());
    assert_eq!(reply.header("x-evil"), None);
    assert_eq!(reply.header("x-reframe-dropped"), Some("x%0D%0Ax-evil: 1, %C3%A9"));
}

/// What a backend says is quoted, never obeyed.
#[test]
fn no_word_of_a_backend_ends_a_frame_or_a_header() {
    let rig = Rig::of("openai-chat");
    let evil = "no\r\n\r\ndata: [DONE]\r\n\r\nevent: x\n\n";
    let error = json!({ "error": { "message": evil, "code": "a\r\nb: c" } }).to_string();
    let expected =
        Told::No { status: 429, message: evil.to_owned(), code: Some("a\r\nb: c".to_owned()), retry_after: None };
    for value in ["soon", "-1", "1e9", "7.5", "99999999999999999999999", "Mon, 01 Jan 1990 00:00:00 GMT"] {
        rig.will(Answer::json(429, &error).header("retry-after", value));
        for dialect in Dialect::ALL {
            assert_eq!(dialect.read(Form::Stream, &rig.ask(dialect.request(Form::Stream))), expected, "{value}");
        }
    }
    let half = Spoken::by("openai-chat").half().event(&error);
    let told = Dialect::Chat.read(Form::Stream, &rig.will(half).ask(Dialect::Chat.request(Form::Stream)));
    assert_eq!(
        told,
        Told::Broke { said: "Hel".to_owned(), message: evil.to_owned(), code: Some("a\r\nb: c".to_owned()) }
    );
}
