//! What a large request costs: ten times the items cost at most twelve times the processor time, whatever the items
//! are; the memory of a body at the size limit is bounded; and other clients are answered meanwhile.
//!
//! The time is that of the thread on a processor, which other processes do not change much; noise only adds to it, so the
//! least of several measurements counts.

use crate::support::{MockBackend, MockResponse, Request, Server, backend_events, serve};
use reframe::testing::engine::backend_request::prepare;
use reframe::testing::engine::request;
use reframe::testing::mapping::{Plan, SourceFile, load};
use reframe::testing::reload::embedded;
use std::fmt::Write;
use std::fs;
use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BACKENDS: &[&str] = &["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate"];

static PLAN: LazyLock<Plan> = LazyLock::new(|| {
    let mut files: Vec<SourceFile> = embedded::files();
    let gateway = files.iter_mut().find(|file| file.name == "gateway.yaml").unwrap();
    let entry = |name: &&str| format!("  {name}: {{ use: {name}, url: \"http://backend.test/v1\" }}\n");
    let forwards = "  forwards: { use: openai-chat, url: \"http://backend.test/v1\", unknown_fields: forward }\n";
    let entries: String = BACKENDS.iter().map(entry).chain([forwards.to_owned()]).collect();
    gateway.text = gateway.text.replace("\nbackends:\n", &format!("\nbackends:\n{entries}")).into();
    load(&files).plan.expect("the set loads")
});

/// What a request has many of: a name, the dialect, the text before and after, and element `i`.
type Shape = (&'static str, &'static str, &'static str, fn(usize) -> String, &'static str);

const SHAPES: &[Shape] = &[
    ("messages", "chat", r#"{"model":"m","messages":["#, message, "]}"),
    ("calls and results", "chat", r#"{"model":"m","messages":["#, call_and_result, "]}"),
    ("calls with one id", "chat", r#"{"model":"m","messages":["#, calls_with_one_id, "]}"),
    ("system messages", "chat", r#"{"model":"m","messages":["#, |_| r#"{"role":"system","content":"a"}"#.into(), "]}"),
    ("parts", "chat", r#"{"model":"m","messages":[{"role":"user","content":["#, part, "]}]}"),
    ("calls", "chat", r#"{"model":"m","messages":[{"role":"assistant","tool_calls":["#, call, "]}]}"),
    ("tools", "chat", r#"{"model":"m","messages":[{"role":"user","content":"a"}],"tools":["#, tool, "]}"),
    ("custom tools", "chat", r#"{"model":"m","messages":[{"role":"user","content":"a"}],"tools":["#, custom_tool, "]}"),
    ("members", "chat", r#"{"model":"m","messages":[{"role":"user","content":"a"}],"#, member, "}"),
    (
        "nested members",
        "chat",
        r#"{"model":"m","messages":[{"role":"user","content":"a"}],
        "tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function",
        "function":{"name":"f"},"#,
        member,
        "}}",
    ),
    ("items", "responses", r#"{"model":"m","input":["#, item_and_output, "]}"),
    ("reasoning items", "responses", r#"{"model":"m","input":["#, reasoning, "]}"),
    ("summaries", "responses", r#"{"model":"m","input":[{"type":"reasoning","summary":["#, summary, "]}]}"),
    ("format members", "responses", r#"{"model":"m","input":"a","text":{"format":{"type":"text"},"#, member, "}}"),
    ("stops", "completions", r#"{"model":"m","prompt":"a","stop":["#, |i| format!("\"{i}\""), "]}"),
];

fn message(i: usize) -> String {
    let role = if i.is_multiple_of(2) { "user" } else { "assistant" };
    format!(r#"{{"role":"{role}","content":"line {i}"}}"#)
}

fn call_and_result(i: usize) -> String {
    format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{}]}},{{"role":"tool","tool_call_id":"call_{i}","content":"a"}}"#,
        call(i)
    )
}

fn calls_with_one_id(i: usize) -> String {
    call_and_result(i).replace(&format!("call_{i}"), "call")
}

fn call(i: usize) -> String {
    format!(r#"{{"id":"call_{i}","type":"function","function":{{"name":"f","arguments":"{{\"line\":{i}}}"}}}}"#)
}

fn part(i: usize) -> String {
    match i % 2 {
        0 => format!(r#"{{"type":"text","text":"line {i}"}}"#),
        _ => r#"{"type":"image_url","image_url":{"url":"http://x/i.png","detail":"low"}}"#.into(),
    }
}

fn tool(i: usize) -> String {
    format!(r#"{{"type":"function","function":{{"name":"f{i}","strict":true,"parameters":{{"type":"object"}}}}}}"#)
}

fn custom_tool(i: usize) -> String {
    format!(r#"{{"type":"custom","custom":{{"name":"f{i}"}}}}"#)
}

fn member(i: usize) -> String {
    format!(r#""x{i}":{{"a":1}}"#)
}

fn item_and_output(i: usize) -> String {
    format!(
        r#"{{"type":"function_call","call_id":"c{i}","name":"f","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"c{i}","output":"a"}}"#
    )
}

fn reasoning(i: usize) -> String {
    format!(r#"{{"type":"reasoning","id":"r{i}","summary":[]}},{{"type":"kind_{i}","id":"k{i}"}}"#)
}

fn summary(i: usize) -> String {
    format!(r#"{{"type":"summary_text","text":"line {i}"}}"#)
}

fn body(shape: &Shape, count: usize) -> String {
    let (_, _, before, element, after) = shape;
    let mut body = (*before).to_owned();
    for i in 0..count {
        let separator = if i == 0 { "" } else { "," };
        write!(body, "{separator}{}", element(i)).unwrap();
    }
    body + after
}

/// The time of this thread on a processor. The system counts it in steps of some milliseconds.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split_whitespace().next().unwrap().parse().unwrap())
}

/// From the bytes of the client's body to the bytes of every backend's, this many times.
fn cost(dialect: &str, body: &str, times: usize) -> Duration {
    let client = &PLAN.dialect(dialect, Some("openai")).unwrap().request;
    let before = processor_time();
    for _ in 0..times {
        let request = request::read(client, body.as_bytes()).unwrap_or_else(|fault| panic!("{}", fault.message));
        for backend in &PLAN.gateway.backends {
            if let (Some(template), Some(address)) = (&backend.plan.request_template, &backend.address) {
                let _ = black_box(prepare(template, &address.settings, None, &request, client).map(|sent| sent.body));
            }
        }
    }
    processor_time() - before
}

#[test]
fn four_times_the_items_cost_at_most_seven_times() {
    // Few fit in the caches, and many do not, which costs half as much again. If the cost grew with the square, it
    // would be sixteen times.
    const FEW: usize = 2_500;
    const TIMES: usize = 4;
    const MOST: f64 = 7.0;
    let mut wrong = Vec::new();
    for shape in SHAPES {
        let (name, dialect, ..) = *shape;
        let (few, many) = (body(shape, FEW), body(shape, TIMES * FEW));
        let mut least = (Duration::MAX, Duration::MAX);
        let mut ratio = f64::MAX;
        for _ in 0..10 {
            least = (least.0.min(cost(dialect, &few, TIMES)), least.1.min(cost(dialect, &many, 1)));
            ratio = TIMES as f64 * least.1.as_secs_f64() / least.0.as_secs_f64();
            if ratio <= MOST {
                break;
            }
        }
        println!("{name}: {:.1?} for {}, {ratio:.1} times the cost of {FEW}", least.1, TIMES * FEW);
        if ratio > MOST {
            wrong.push(format!("{name}: {ratio:.1}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// How much of something a request has.
enum Amount {
    Count(usize),
    /// As many as fit in a body of the maximum size.
    Fill,
}

/// The worst of each kind: as many as the limits allow, and many more.
const LARGE: &[(Shape, Amount, u16)] = &[
    (("messages", "chat", MESSAGES, |_| r#"{"role":"user","content":""}"#.into(), "]}"), Amount::Fill, 413),
    (("messages", "chat", MESSAGES, message, "]}"), Amount::Count(60_000), 400),
    (
        ("messages", "chat", MESSAGES, |i| format!(r#"{{"role":"user","content":"{i:0600}"}}"#), "]}"),
        Amount::Count(24_990),
        200,
    ),
    (
        ("parts", "chat", PARTS, |i| format!(r#"{{"type":"text","text":"{i:0300}"}}"#), "]}]}"),
        Amount::Count(19_998),
        200,
    ),
    (("calls", "chat", MESSAGES, call_and_result, "]}"), Amount::Count(16_600), 200),
    (("tools", "chat", TOOLS, tool, "]}"), Amount::Count(30_000), 200),
    (("values", "chat", UNKNOWN, |_| "{\"a\":0}".into(), "]}"), Amount::Count(120_000), 200),
    (("values", "chat", UNKNOWN, |_| "[]".into(), "]}"), Amount::Fill, 413),
];

const MESSAGES: &str = r#"{"model":"m","messages":["#;
const PARTS: &str = r#"{"model":"m","messages":[{"role":"user","content":["#;
const TOOLS: &str = r#"{"model":"m","messages":[{"role":"user","content":"a"}],"tools":["#;
const UNKNOWN: &str = r#"{"model":"m","messages":[{"role":"user","content":"a"}],"x":["#;

/// The peak of the memory of the process, in bytes.
fn peak(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

/// A request of the maximum size takes at most ten times that in memory, in all of its forms together, whether it is
/// accepted or not. It did take a hundred and fifty times.
#[test]
fn a_large_request_takes_a_bounded_amount_of_memory() {
    const BODY_LIMIT: usize = 16 << 20;
    let message = serde_json::json!({ "role": "assistant", "content": "Hello." });
    let response = MockResponse::json(200, &backend_events::completion(&message, "stop").to_string());
    let backend = MockBackend::start(move |_| response.clone());
    for ((name, dialect, before, element, after), amount, expected) in LARGE {
        let shape = (*name, *dialect, *before, *element, *after);
        let count = match amount {
            Amount::Count(count) => *count,
            Amount::Fill => (BODY_LIMIT - before.len() - after.len()) / (element(0).len() + 1),
        };
        let body = body(&shape, count);
        let server = serve().arg("--backend").arg(format!("openai-chat={}", backend.url())).start();
        let idle = peak(&server);
        let size = body.len();
        let reply =
            server.fetch(Request::post(body).at("/v1/chat/completions").header("content-type", "application/json"));
        let (status, grown) = (reply.head.status, peak(&server) - idle);
        let text = reply.text();
        println!("{count} {name}, {} KiB: {status}, {} MiB; {}", size >> 10, grown >> 20, &text[..text.len().min(160)]);
        assert_eq!(status, *expected, "{count} {name}: {}", &text[..text.len().min(300)]);
        assert!(grown < 10 * BODY_LIMIT as u64, "{count} {name} of {size} bytes take {grown} bytes");
    }
}

/// With one worker thread, another client is answered while a large request is read: no answer takes as long as half of
/// the large request does.
#[test]
fn a_large_request_does_not_block_the_others() {
    let server = serve().env("TOKIO_WORKER_THREADS", "1").start();
    let messages = vec![format!(r#"{{"role":"user","content":"{}"}}"#, "a".repeat(600)); 24_000].join(",");
    let body = format!(r#"{{"model":"demo","messages":[{messages}]}}"#);
    let is_answered = AtomicBool::new(false);
    let (large, slowest) = thread::scope(|scope| {
        let large = scope.spawn(|| {
            let started = Instant::now();
            let reply = server.fetch(Request::post(body).header("content-type", "application/json"));
            is_answered.store(true, Ordering::Relaxed);
            assert_eq!(reply.head.status, 200, "{}", reply.text());
            started.elapsed()
        });
        let mut slowest = Duration::ZERO;
        let mut client = server.client();
        while !is_answered.load(Ordering::Relaxed) {
            let started = Instant::now();
            assert_eq!(client.fetch(Request::get("/v1/models")).head.status, 200);
            slowest = slowest.max(started.elapsed());
        }
        (large.join().unwrap(), slowest)
    });
    println!("the large request took {large:.1?}, the slowest of the others {slowest:.1?}");
    assert!(slowest < large / 2, "{slowest:?} of {large:?}");
}
