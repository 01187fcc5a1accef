//! Bytes on the way: how they are cut, coded, labelled and limited, and which connection they come on.

use crate::backend_streams::Spoken;
use crate::gateway_fixture::Rig;
use crate::received::{Dialect, Form, Told};
use crate::support::{Answer, Backend, Disk, Reply, eventually, serve, within};
use serde_json::json;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

const BACKENDS: &[&str] = &["openai-chat", "openai-responses"];

/// What a client gets, with ids and times replaced.
fn normal(reply: &Reply) -> String {
    let text = reply.text();
    let mut out = String::new();
    let mut rest = text.as_str();
    // An id of ours is a prefix and many letters; a time has ten digits.
    while let Some(c) = rest.chars().next() {
        let id = ["chatcmpl-", "resp_", "msg_", "cmpl-", "fc_", "call_"].into_iter().find(|p| rest.starts_with(p));
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if let Some(prefix) = id {
            out += prefix;
            rest = rest[prefix.len()..].trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        } else if digits == 10 {
            out += "TIME";
            rest = &rest[digits..];
        } else {
            let step = digits.max(c.len_utf8());
            out += &rest[..step];
            rest = &rest[step..];
        }
    }
    out
}

fn said(rig: &Rig, dialect: Dialect, form: Form) -> Told {
    dialect.read(form, &rig.ask(dialect.request(form)))
}

fn hello() -> Told {
    Told::Whole("Hello".to_owned())
}

/// Every dialect, streamed and whole, is told the same.
fn all_are_told(rig: &Rig, what: &str, answer: Answer, expected: &Told) {
    rig.will(answer);
    for dialect in Dialect::ALL {
        for form in [Form::Stream, Form::Json] {
            assert_eq!(said(rig, dialect, form), *expected, "{what}: {dialect:?} {form:?}");
        }
    }
}

// ---- where it is cut

#[test]
fn b073_a_stream_that_is_cut_at_every_byte_gives_the_same_bytes() {
    for name in BACKENDS {
        let (mut spoken, rig) = (Spoken::by(name), Rig::of(name));
        // Every width of UTF-8, a joined emoji, and an escaped pair: what is cut badly shows.
        for event in &mut spoken.events {
            *event = event.replace("Hel", "é漢🙂👩‍👩‍👧\\ud83d\\ude00");
        }
        for dialect in Dialect::ALL {
            for form in [Form::Stream, Form::Json] {
                let whole = normal(rig.will(Answer::sse_raw(spoken.text())).ask(dialect.request(form)).ok());
                assert!(whole.contains("é漢🙂👩‍👩‍👧😀"), "{whole}");
                for size in [1, 3] {
                    let cut = Answer::sse_raw(spoken.text()).split(size);
                    assert_eq!(
                        normal(rig.will(cut).ask(dialect.request(form)).ok()),
                        whole,
                        "pieces of {size}: {name} {dialect:?} {form:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_json_answer_that_is_cut_at_every_byte_gives_the_same_bytes() {
    for name in BACKENDS {
        let (spoken, rig) = (Spoken::by(name), Rig::of(name));
        for form in [Form::Stream, Form::Json] {
            let whole = normal(rig.will(spoken.json()).ask(Dialect::Responses.request(form)).ok());
            let cut = spoken.json().chunked().split(1);
            assert_eq!(normal(rig.will(cut).ask(Dialect::Responses.request(form)).ok()), whole, "{name} {form:?}");
        }
    }
}

/// Each is tried whole and byte by byte: a CR and its LF may come apart.
#[test]
fn every_line_end_and_everything_else_that_an_event_stream_may_hold_is_read() {
    for name in BACKENDS {
        let (spoken, rig) = (Spoken::by(name), Rig::of(name));
        let text = spoken.text();
        let in_lines = spoken.events.iter().map(|e| format!("data: {}\n\n", e.replacen(',', ",\ndata: ", 1)));
        let in_lines: String = in_lines.chain(spoken.end.map(|end| format!("data: {end}\n\n"))).collect();
        let variants = [
            ("LF", text.clone()),
            ("CR", text.replace('\n', "\r")),
            ("CRLF", text.replace('\n', "\r\n")),
            ("CR and LF mixed", text.replacen("\n\n", "\r\n\n", 1).replacen("\n\nd", "\r\rd", 1)),
            ("a BOM", format!("\u{feff}{text}")),
            ("a BOM and a comment", format!("\u{feff}: hello\n\n{text}")),
            ("no space after the colon", text.replace("data: ", "data:")),
            ("data in two lines", in_lines.clone()),
            ("data in two lines, CRLF", in_lines.replace('\n', "\r\n")),
            ("comments", text.replace("\n\n", "\n: keep-alive\n\n:\n\n")),
            ("empty lines at the beginning", format!("\n\r\n\n{text}")),
            (
                "names, ids, times, unknown fields",
                text.replace("data: ", "event: message\nid: 7\nretry: 10\nwhat: else\nlonely\ndata: "),
            ),
            ("events without data", text.replace("\n\n", "\n\nevent: ping\n\ndata\n\n")),
            ("no last empty line", text.trim_end().to_owned() + "\n"),
            ("no last line end", text.trim_end().to_owned()),
            ("no last line end, CR", text.trim_end().replace('\n', "\r")),
        ];
        for (what, text) in variants {
            let whole = Answer::sse_raw(&text);
            all_are_told(&rig, &format!("{name}, {what}"), whole.clone(), &hello());
            assert_eq!(
                said(rig.will(whole.split(1)), Dialect::Chat, Form::Stream),
                hello(),
                "{name}, {what}, byte by byte"
            );
        }
    }
}

#[test]
fn the_end_marker_may_lack_its_empty_line_and_may_be_missing() {
    let (spoken, rig) = (Spoken::by("openai-chat"), Rig::of("openai-chat"));
    let text = spoken.text();
    let without = text.strip_suffix("data: [DONE]\n\n").unwrap();
    for (what, text) in [("half", format!("{without}data: [DONE]")), ("none", without.to_owned())] {
        all_are_told(&rig, what, Answer::sse_raw(text), &hello());
    }
}

// ---- how large it is

#[test]
fn b075_a_line_of_eight_megabytes_passes() {
    let rig = Rig::of("openai-chat");
    let text = "x".repeat(8 << 20);
    let event = json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": "stop" }] });
    for (form, answer) in [
        (Form::Stream, Answer::sse(&[&event.to_string(), "[DONE]"])),
        (Form::Json, Answer::json(200, &event.to_string().replace("delta", "message"))),
    ] {
        let begun = Instant::now();
        let told = said(rig.will(answer), Dialect::Chat, form);
        println!("8 MiB in one line, {form:?}: {:.1?}", begun.elapsed());
        assert!(told == Told::Whole(text.clone()), "another text");
    }
}

/// A gateway that takes little.
fn small(limits: &str) -> Rig {
    let shipped = "limits: { body_bytes: 16MiB, streams: 2000, event_bytes: 16MiB, answer_bytes: 16MiB }";
    let disk = Disk::empty().lay("gateway.yaml", shipped, &format!("limits: {limits}"));
    Rig::launched("openai-chat", |launch| launch.add(disk))
}

fn no(message: &str) -> Told {
    Told::No { status: 502, message: message.to_owned(), code: None, retry_after: None }
}

#[test]
fn b075_an_event_above_the_limit_is_a_typed_error_however_it_arrives() {
    let (spoken, rig) = (Spoken::by("openai-chat"), small("{ event_bytes: 1000 }"));
    let empty = r#"{"model":"m","choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}"#;
    let xs = |length: usize| "x".repeat(length - empty.len());
    let large = |length: usize| empty.replace(r#""content":""#, &format!(r#""content":"{}"#, xs(length)));
    let limit = no("an event of the backend is larger than 1000 bytes");
    let fits = large(990);
    assert_eq!(fits.len(), 990);
    // As long as it fits, it passes.
    let well = spoken.ended(spoken.events[1..].iter().fold(Answer::sse(&[&fits]), |answer, event| answer.event(event)));
    let told = Told::Whole(xs(990) + "Hello");
    all_are_told(&rig, "990 bytes", well, &told);
    let two_lines = large(1400).replace("\"index\"", "\ndata: \"index\"");
    let many_lines = format!("data: {}\n\n", vec!["0"; 600].join("\ndata: "));
    for (what, answer) in [
        ("in one piece", Answer::sse(&[&large(1400)])),
        ("with what follows", spoken.ended(Answer::sse(&[&large(1400)]))),
        ("in one write", Answer::sse_raw(format!("data: {}\n\n{}", large(1400), spoken.text()))),
        ("in two lines", Answer::sse_raw(format!("data: {two_lines}\n\n{}", spoken.text()))),
        ("in many lines", Answer::sse_raw(many_lines + &spoken.text())),
        ("byte by byte", Answer::sse(&[&large(1400)]).split(1)),
        ("without end", Answer::sse_raw("data: ").endless("x".repeat(100))),
        ("a comment without end", Answer::sse_raw(": ").endless("x".repeat(100))),
        ("a JSON answer", Answer::json(200, &large(1400))),
        ("a bomb", Answer::json(200, &large(8 << 20)).gzip()),
        ("a bomb in a stream", Answer::sse(&[&large(8 << 20)]).zstd()),
    ] {
        all_are_told(&rig, what, answer, &limit);
    }
    // What came before it is told, whether it came with it or apart.
    for text in [format!("data: {}\n\n", large(1400)), "data: ".to_owned() + &"x".repeat(1400)] {
        let half = spoken.events[..=spoken.begun()].iter().map(|data| format!("data: {data}\n\n")).collect::<String>();
        for answer in
            [Answer::sse_raw(half.clone() + &text), spoken.half().bytes(&text), spoken.half().bytes(&text).split(1)]
        {
            let told = said(rig.will(answer), Dialect::Chat, Form::Stream);
            let message = "an event of the backend is larger than 1000 bytes".to_owned();
            assert_eq!(told, Told::Broke { said: "Hel".to_owned(), message, code: None });
        }
    }
    all_are_told(
        &rig,
        "white space without end",
        Answer::sse_raw("").endless(" ".repeat(100)),
        &no("what the backend sent before its first event is larger than 1000 bytes"),
    );
}

#[test]
fn an_answer_that_is_kept_whole_has_a_limit_of_its_own() {
    let (spoken, rig) = (Spoken::by("openai-chat"), small("{ answer_bytes: 5000 }"));
    let piece = spoken.events[spoken.begun()].clone();
    let endless = || Answer::sse(&[&piece]).endless(format!("data: {piece}\n\n"));
    for dialect in [Dialect::Chat, Dialect::Completions] {
        let told = dialect.read(Form::Json, &rig.will(endless()).ask(dialect.request(Form::Json)));
        assert_eq!(told, no("the backend's answer is larger than 5000 bytes"), "{dialect:?}");
    }
    // A stream is not kept, so it may go on: twice the limit has arrived, and the client is still told.
    let long = spoken.ended(
        spoken.events[spoken.begun() + 2..]
            .iter()
            .fold((0..60).fold(Answer::sse(&[]), |a, _| a.event(&piece)), |a, e| a.event(e)),
    );
    assert_eq!(said(rig.will(long), Dialect::Chat, Form::Stream), Told::Whole("Hel".repeat(60)));
}

#[test]
fn after_the_end_marker_an_endless_backend_is_left() {
    let (spoken, rig) = (Spoken::by("openai-chat"), Rig::of("openai-chat"));
    let before = rig.backend.gone().len();
    for form in [Form::Stream, Form::Json] {
        let begun = Instant::now();
        rig.will(Answer::sse_raw(spoken.text()).endless("x".repeat(16 * 1024)));
        assert_eq!(said(&rig, Dialect::Chat, form), hello());
        within("the end, before an endless rest", begun.elapsed(), Duration::from_millis(100));
    }
    eventually("the backend is left", || (rig.backend.gone().len() == before + 2).then_some(()));
}

// ---- how it is coded

#[test]
fn gzip_br_and_zstd_are_read_in_both_forms_whole_and_byte_by_byte() {
    for name in BACKENDS {
        let (spoken, rig) = (Spoken::by(name), Rig::of(name));
        for (what, code) in CODINGS {
            for (form, answer) in [("SSE", spoken.stream()), ("JSON", spoken.json())] {
                all_are_told(&rig, &format!("{name} {form} {what}"), code(answer.clone()), &hello());
                let cut = code(answer).chunked().split(1);
                assert_eq!(
                    said(rig.will(cut), Dialect::Chat, Form::Stream),
                    hello(),
                    "{name} {form} {what}, byte by byte"
                );
            }
        }
    }
}

type Coding = fn(Answer) -> Answer;
const CODINGS: [(&str, Coding); 3] = [("gzip", Answer::gzip), ("br", Answer::brotli), ("zstd", Answer::zstd)];

#[test]
fn a_coded_refusal_is_read_too() {
    let (spoken, rig) = (Spoken::by("openai-chat"), Rig::of("openai-chat"));
    for (what, code) in CODINGS {
        let expected = Told::No {
            status: 418,
            message: "no, because".to_owned(),
            code: Some("nope".to_owned()),
            retry_after: None,
        };
        all_are_told(&rig, what, code(Answer::json(418, &spoken.no)), &expected);
    }
}

#[test]
fn what_only_says_that_it_is_gzip_is_an_error() {
    let (spoken, rig) = (Spoken::by("openai-chat"), Rig::of("openai-chat"));
    let lie = spoken.stream().header("content-encoding", "gzip");
    all_are_told(&rig, "a lie", lie, &no("the backend was lost: Invalid gzip header"));
    let cut = spoken.half().pause(Duration::from_millis(10)).cut().gzip();
    for dialect in [Dialect::Chat, Dialect::Completions] {
        let message = "the backend was lost: unexpected EOF during chunk size line".to_owned();
        let told = said(rig.will(cut.clone()), dialect, Form::Stream);
        assert_eq!(told, Told::Broke { said: "Hel".to_owned(), message, code: None });
    }
}

/// The first delta, and each one after it, is there as soon as it was sent: nobody on the way holds it back.
#[test]
fn b079_each_event_arrives_when_it_was_sent_coded_or_not() {
    const GAP: Duration = Duration::from_millis(120);
    let (spoken, rig) = (Spoken::by("openai-chat"), Rig::of("openai-chat"));
    let plain: (&str, Coding) = ("plain", |answer| answer);
    for (what, code) in [plain].into_iter().chain(CODINGS) {
        // "Hel" leaves with the head, "lo" a while later, the end a while after that.
        let [hel, lo] = [0, 1].map(|n| spoken.events[spoken.begun() + n].clone());
        let rest = spoken.events[spoken.begun() + 2..].iter().map(String::as_str).chain(spoken.end);
        let rest: String = rest.map(|data| format!("data: {data}\n\n")).collect();
        rig.will(code(Answer::sse(&[&hel]).pause(GAP).event(&lo).pause(GAP).bytes(rest)));
        let begun = Instant::now();
        let reply = rig.ask(Dialect::Chat.request(Form::Stream));
        assert_eq!(Dialect::Chat.read(Form::Stream, &reply), hello());
        assert_eq!(reply.header("cache-control"), Some("no-cache, no-transform"));
        assert_eq!(reply.header("x-accel-buffering"), Some("no"));
        let came =
            |what: &str| reply.pieces.iter().find(|p| String::from_utf8_lossy(&p.bytes).contains(what)).unwrap().at;
        // The backend sent them at 0, GAP and 2 GAP after it was asked, which is no earlier than the client asked.
        for (part, sent) in [("\"Hel\"", Duration::ZERO), ("\"lo\"", GAP), ("[DONE]", GAP * 2)] {
            let late = (came(part) - begun).saturating_sub(sent);
            within(&format!("B079 {what}: {part} after it was sent"), late, Duration::from_millis(50));
            assert!(late < GAP, "{part} waited for what came after it");
        }
    }
}

// ---- what it calls itself

#[test]
fn what_it_is_shows_in_the_first_byte_and_not_in_the_label() {
    for name in BACKENDS {
        let (spoken, rig) = (Spoken::by(name), Rig::of(name));
        let json_types = ["text/event-stream", "text/plain", "application/octet-stream", "text/html", ""];
        for label in json_types {
            all_are_told(&rig, &format!("JSON called {label:?}"), labelled(spoken.json(), label), &hello());
            let padded = Answer::json(200, &format!("\r\n \t{}\n", spoken.whole));
            all_are_told(&rig, &format!("padded JSON called {label:?}"), labelled(padded, label), &hello());
            let marked = Answer::json(200, &format!("\u{feff}{}", spoken.whole));
            all_are_told(
                &rig,
                &format!("JSON with a BOM, called {label:?}"),
                labelled(marked.clone(), label),
                &hello(),
            );
            let cut = labelled(marked.chunked().split(1), label);
            assert_eq!(
                said(rig.will(cut), Dialect::Chat, Form::Stream),
                hello(),
                "JSON with a BOM, called {label:?}, byte by byte"
            );
        }
        for label in ["application/json", "text/plain", "application/x-ndjson", ""] {
            all_are_told(&rig, &format!("SSE called {label:?}"), labelled(spoken.stream(), label), &hello());
            let marked = Answer::sse_raw(format!("\u{feff}: hi\n\n{}", spoken.text()));
            all_are_told(&rig, &format!("SSE with a BOM, called {label:?}"), labelled(marked.clone(), label), &hello());
            let cut = labelled(marked.split(1), label);
            assert_eq!(
                said(rig.will(cut), Dialect::Chat, Form::Stream),
                hello(),
                "SSE with a BOM, called {label:?}, byte by byte"
            );
        }
    }
    let rig = Rig::of("openai-chat");
    let none = Answer::new(200).bytes(Spoken::by("openai-chat").text());
    all_are_told(&rig, "SSE without a label", none, &hello());
    let none = Answer::new(200).bytes(Spoken::by("openai-chat").whole);
    all_are_told(&rig, "JSON without a label", none, &hello());
}

fn labelled(answer: Answer, label: &str) -> Answer {
    answer.header("content-type", label)
}

// ---- backends that are nothing but YAML

const LINES: &str = r#"
backend: lines
transport: http
request:
  path: /say
  stream: always
  headers: { x-user: "{{ request.user }}", x-key: "{{ secret.key }}" }
  body: { model: "{{ request.model }}" }
events:
  framing: ndjson
  key: $.kind
  rules:
    - { event: piece, emit: [ text: { delta: $.text } ] }
    - { event: over, emit: [ finish: { reason: stop } ] }
    - { event: trouble, emit: [ fault: { message: $.why, code: $.code } ] }
"#;

const NAMED: &str = r#"
backend: named
transport: http
request:
  path: "/models/{{ model }}/say"
  stream: always
  body: { model: "{{ request.model }}" }
events:
  framing: { sse: { event: type } }
  key: $.type
  rules:
    - { event: piece, emit: [ text: { delta: $.text } ] }
    - { event: over, emit: [ finish: { reason: stop } ] }
"#;

pub fn in_yaml(name: &str) -> MutexGuard<'static, Rig> {
    Rig::shared(name, || {
        let disk = Disk::empty();
        disk.write("layer/backends/lines.yaml", LINES);
        disk.write("layer/backends/named.yaml", NAMED);
        Rig::launched(name, |launch| launch.add(disk))
    })
}

#[test]
fn a_backend_of_lines_needs_nothing_but_yaml() {
    let rig = in_yaml("lines");
    let lines = [r#"{"kind":"piece","text":"Hel"}"#, r#"{"kind":"piece","text":"lo"}"#, r#"{"kind":"over"}"#];
    let text = lines.join("\n");
    for (what, answer) in [
        ("as it should", Answer::ndjson(&lines)),
        ("byte by byte", Answer::ndjson(&lines).split(1)),
        ("CRLF", Answer::ndjson(&[]).bytes(text.replace('\n', "\r\n"))),
        ("no last line end", Answer::ndjson(&[]).bytes(&text)),
        ("empty lines", Answer::ndjson(&[]).bytes(format!("\n\n{}\n", text.replace('\n', "\n\n \n")))),
        ("no label", Answer::ndjson(&lines).header("content-type", "")),
        ("called JSON", Answer::ndjson(&lines).header("content-type", "application/json")),
        ("a line that cannot be read", Answer::ndjson(&[lines[0], "{oops", lines[1], lines[2]])),
        ("gzip", Answer::ndjson(&lines).gzip()),
        ("a BOM", Answer::ndjson(&[]).bytes(format!("\u{feff}{text}"))),
    ] {
        all_are_told(&rig, what, answer, &hello());
    }
    assert_eq!((rig.last().path.as_str(), rig.last().json()), ("/v1/say", json!({ "model": "m" })));
    let broken = Answer::ndjson(&[lines[0], r#"{"kind":"trouble","why":"no, because","code":"nope"}"#]);
    let told = said(rig.will(broken), Dialect::Chat, Form::Stream);
    let message = "no, because".to_owned();
    assert_eq!(told, Told::Broke { said: "Hel".to_owned(), message, code: Some("nope".to_owned()) });
    let told = said(rig.will(Answer::ndjson(&lines[..1])), Dialect::Chat, Form::Json);
    assert_eq!(told, no("the backend's answer ended in the middle"));
}

#[test]
fn a_backend_whose_events_are_named_by_their_frame_alone_needs_nothing_but_yaml() {
    let rig = in_yaml("named");
    let text = "event: piece\ndata: {\"text\":\"Hel\"}\n\ndata: {\"text\":\"lo\"}\nevent: piece\n\nevent: ping\n\nevent: over\ndata: {}\n\n";
    all_are_told(&rig, "as it should", Answer::sse_raw(text), &hello());
    all_are_told(&rig, "byte by byte", Answer::sse_raw(text.replace('\n', "\r\n")).split(1), &hello());
    // A name counts for its own event only.
    let nameless = text.replacen("data: {\"text\":\"lo\"}\nevent: piece", "data: {\"text\":\"lo\"}", 1);
    all_are_told(&rig, "a piece without a name", Answer::sse_raw(nameless), &Told::Whole("Hel".to_owned()));
    assert_eq!(rig.last().path, "/v1/models/m/say");
}

// ---- connections

#[test]
fn turns_share_a_connection_also_after_the_end_marker() {
    for name in BACKENDS {
        let (spoken, rig) = (Spoken::by(name), Rig::of(name));
        let stream = spoken.stream();
        let late_end = spoken.stream().pause(Duration::from_millis(20));
        for (what, answer) in [("SSE", stream), ("SSE whose last chunk is late", late_end), ("JSON", spoken.json())] {
            let before = rig.backend.connections();
            for dialect in Dialect::ALL {
                for form in [Form::Stream, Form::Json] {
                    assert_eq!(said(rig.will(answer.clone()), dialect, form), hello());
                    // As a client would: a moment passes before the next turn.
                    std::thread::sleep(Duration::from_millis(30));
                }
            }
            let more = rig.backend.connections() - before;
            assert!(more <= 1, "{name}, {what}: {more} connections for six turns");
        }
    }
}

#[test]
fn a_backend_that_does_not_keep_connections_gets_a_new_one_each_time() {
    let (spoken, rig) = (Spoken::by("openai-chat"), Rig::own("openai-chat"));
    for answer in [
        spoken.stream().header("connection", "close"),
        spoken.json().header("connection", "close"),
        spoken.stream().until_close(),
    ] {
        all_are_told(&rig, "a connection for one turn", answer, &hello());
    }
    assert_eq!(rig.backend.connections(), 18);
}

#[test]
fn a_backend_may_have_a_name_and_a_path_of_its_own() {
    let backend = Backend::start(|_| Spoken::by("openai-chat").json());
    let place = format!("openai-chat=http://localhost:{}/a/b/", backend.addr().port());
    let server = serve().arg("--backend").arg(place).start();
    assert_eq!(Dialect::Chat.read(Form::Json, &server.ask(Dialect::Chat.request(Form::Json))), hello());
    assert_eq!(backend.seen()[0].path, "/a/b/chat/completions");
    assert_eq!(backend.seen()[0].header("host"), Some(&*format!("localhost:{}", backend.addr().port())));
}

#[test]
fn a_request_is_what_a_backend_can_expect() {
    let (spoken, rig) = (Spoken::by("openai-chat"), Rig::of("openai-chat"));
    for (form, accept) in [(Form::Stream, "text/event-stream, application/json"), (Form::Json, "application/json")] {
        assert_eq!(said(rig.will(spoken.json()), Dialect::Chat, form), hello());
        let seen = rig.last();
        assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v1/chat/completions"));
        let names: Vec<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "accept", "accept-encoding", "user-agent", "host", "content-length"]);
        assert_eq!((seen.header("accept"), seen.header("content-type")), (Some(accept), Some("application/json")));
        assert_eq!(seen.header("host"), Some(rig.backend.addr().to_string().as_str()));
    }
    assert_eq!(rig.last().header("user-agent"), Some(concat!("reframe/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(rig.last().header("accept-encoding"), Some("identity"));
}

trait Fine {
    fn ok(&self) -> &Reply;
}

impl Fine for Reply {
    fn ok(&self) -> &Reply {
        assert_eq!(self.status(), 200, "{}", self.text());
        self
    }
}
