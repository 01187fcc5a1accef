//! Every combination of backend, dialect, response form, and success or failure of the backend.

use super::backend_streams::{ERROR_MESSAGE, HelloStream};
use super::gateway_fixture::GatewayFixture;
use super::received::{Dialect, Form, Received};
use crate::support::{MockResponse, RefusingPort, serve};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime};

/// The backends of every test in this file.
const BACKENDS: &[&str] = &["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate"];

/// A response of the backend, and what every client must receive.
struct Row {
    name: String,
    answer: MockResponse,
    expect: Expect,
}

#[derive(Clone)]
enum Expect {
    Complete,
    /// No text before: an HTTP error, streamed or not.
    HttpError {
        status: u16,
        message: String,
        code: Option<&'static str>,
        retry_after: Option<u64>,
    },
    /// "Hel" was sent before: in a stream the dialect's failure is last. As a body, a failed response where the dialect
    /// has one, else an HTTP error.
    Interrupted {
        status: u16,
        message: String,
        code: Option<&'static str>,
    },
}

impl Expect {
    fn bad_gateway(message: &str) -> Expect {
        Expect::HttpError { status: 502, message: message.to_owned(), code: None, retry_after: None }
    }

    fn interrupted(message: &str) -> Expect {
        Expect::Interrupted { status: 502, message: message.to_owned(), code: None }
    }

    fn received(&self, dialect: Dialect, form: Form) -> Received {
        let own = |code: &Option<&str>| code.map(str::to_owned);
        match self {
            Expect::Complete => Received::Complete("Hello".to_owned()),
            Expect::HttpError { status, message, code, retry_after } => Received::HttpError {
                status: *status,
                message: message.clone(),
                code: own(code),
                retry_after: *retry_after,
            },
            Expect::Interrupted { status, message, code } => match (dialect, form) {
                // The dialect has a closed set of codes.
                (Dialect::Responses, _) => Received::Interrupted {
                    text: "Hel".to_owned(),
                    message: message.clone(),
                    code: Some("server_error".to_owned()),
                },
                (Dialect::Chat | Dialect::Completions, Form::Stream) => {
                    Received::Interrupted { text: "Hel".to_owned(), message: message.clone(), code: own(code) }
                }
                (Dialect::Chat | Dialect::Completions, Form::Json) => Received::HttpError {
                    status: *status,
                    message: message.clone(),
                    code: own(code),
                    retry_after: None,
                },
            },
        }
    }
}

fn row(name: &str, answer: MockResponse, expect: Expect) -> Row {
    Row { name: name.to_owned(), answer, expect }
}

// ---- the rows

/// Error statuses with each kind of error body.
fn backend_errors(hello: &HelloStream) -> Vec<Row> {
    // A date in the future; the exact conversion is tested elsewhere.
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(7000));
    let heads: [(u16, Option<&str>); 6] =
        [(400, None), (401, None), (429, Some("7")), (429, Some(&date)), (500, None), (503, Some("7"))];
    let mut rows = Vec::new();
    for (status, retry) in heads {
        let message = ERROR_MESSAGE.to_owned();
        let reasons = [
            ("JSON", MockResponse::json(status, &hello.error), message.clone(), hello.error_code),
            ("SSE", MockResponse::sse(&[&hello.error]).status(status), message, hello.error_code),
            (
                "text",
                plain(status, "text/plain", ERROR_MESSAGE),
                format!("the backend responded with {status}: {ERROR_MESSAGE}"),
                None,
            ),
            (
                "HTML",
                plain(status, "text/html", "<html><p>no</p></html>"),
                format!("the backend responded with {status}"),
                None,
            ),
            ("nothing", MockResponse::new(status), format!("the backend responded with {status}"), None),
            (
                "words of its own",
                MockResponse::json(status, UNKNOWN_ERROR),
                format!("the backend responded with {status}: {UNKNOWN_ERROR}"),
                None,
            ),
            (
                "a book",
                plain(status, "text/plain", "no ").chunked().endless(ERROR_MESSAGE.repeat(1000)),
                format!("the backend responded with {status}"),
                None,
            ),
        ];
        for (kind, answer, message, code) in reasons {
            let answer = retry.iter().fold(answer, |answer, value| answer.header("retry-after", value));
            let retry_after = retry.map(|value| value.parse().unwrap_or(FAR));
            let name = format!("HTTP {status}, retry-after {retry:?}, with {kind}");
            rows.push(Row { name, answer, expect: Expect::HttpError { status, message, code, retry_after } });
        }
    }
    rows
}

/// The error format of FastAPI servers, which no rule of the backends knows.
const UNKNOWN_ERROR: &str = r#"{"detail":"no, because"}"#;

/// The retry-after of a date, which is compared with a tolerance.
const FAR: u64 = 7000;

/// Transport variants and failures of streams and JSON bodies.
fn transport_failures(hello: &HelloStream) -> Vec<Row> {
    let (stream, half, json) = (hello.stream(), hello.half(), hello.json());
    let http_error = |status| Expect::HttpError {
        status,
        message: ERROR_MESSAGE.to_owned(),
        code: hello.error_code,
        retry_after: None,
    };
    let interrupted_later =
        Expect::Interrupted { status: hello.error_status, message: ERROR_MESSAGE.to_owned(), code: hello.error_code };
    let middle = hello.text_start() + 1;
    let after = |events: &[String]| events.iter().fold(half.clone(), |answer, data| answer.event(data));
    let mut rows = vec![
        row("SSE", stream.clone(), Expect::Complete),
        row("JSON", json.clone(), Expect::Complete),
        row("SSE, with a length", stream.clone().length(), Expect::Complete),
        row("SSE, until the connection closes", stream.clone().until_close(), Expect::Complete),
        row("JSON, in chunks", json.clone().chunked(), Expect::Complete),
        row("JSON, until the connection closes", json.clone().until_close(), Expect::Complete),
        row("HTTP/1.0", MockResponse::garbage(format!("HTTP/1.0 200 OK\r\n\r\n{}", hello.body)), Expect::Complete),
        row(
            "a hint before the head",
            MockResponse::garbage(format!(
                "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}",
                hello.text()
            )),
            Expect::Complete,
        ),
        row(
            "a trailer",
            MockResponse::garbage(format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\nx-sum: 1\r\n\r\n",
                hello.body.len(),
                hello.body
            )),
            Expect::Complete,
        ),
        row(
            "hangs up before the head",
            MockResponse::raw(),
            Expect::bad_gateway("the backend did not respond: connection closed before message completed"),
        ),
        row(
            "resets before the head",
            MockResponse::raw().reset(),
            Expect::bad_gateway("the backend did not respond: Connection reset by peer (os error 104)"),
        ),
        row(
            "half a head",
            MockResponse::garbage("HTTP/1.1 200 OK\r\ncontent-ty"),
            Expect::bad_gateway("the backend did not respond: connection closed before message completed"),
        ),
        row(
            "garbage instead of HTTP",
            MockResponse::garbage("SSH-2.0-OpenSSH_9.9\r\n\r\n"),
            Expect::bad_gateway("the backend did not respond: invalid HTTP version parsed"),
        ),
        row("an error first", hello.ended(MockResponse::sse(&[&hello.error])), http_error(hello.error_status)),
        row(
            "an error after the first sign of life",
            hello.ended(hello.first(1.min(middle - 1)).event(&hello.error)),
            http_error(hello.error_status),
        ),
        row("an error instead of a JSON answer", MockResponse::json(200, &hello.error), http_error(hello.error_status)),
        row("an error later", hello.ended(half.clone().event(&hello.error)), interrupted_later.clone()),
        row(
            "an error later, and then as if nothing had been",
            hello.ended(hello.events[middle..].iter().fold(half.clone().event(&hello.error), |a, e| a.event(e))),
            interrupted_later,
        ),
        row(
            "SSE cut in the middle",
            half.clone().pause(SHORT_PAUSE).disconnect(),
            Expect::interrupted("the connection to the backend was lost: unexpected EOF during chunk size line"),
        ),
        row(
            "SSE cut in an event",
            half.clone().bytes("data: {\"id\":\"chatc").pause(SHORT_PAUSE).disconnect(),
            Expect::interrupted("the connection to the backend was lost: unexpected EOF during chunk size line"),
        ),
        row(
            "JSON cut in the middle",
            MockResponse::json(200, &hello.body[..40]).chunked().disconnect(),
            Expect::bad_gateway("the connection to the backend was lost: unexpected EOF during chunk size line"),
        ),
        row(
            "SSE reset in the middle",
            half.clone().pause(SHORT_PAUSE).reset(),
            Expect::interrupted("the connection to the backend was lost: Connection reset by peer (os error 104)"),
        ),
        row(
            "JSON reset in the middle",
            MockResponse::json(200, &hello.body[..40]).chunked().pause(SHORT_PAUSE).reset(),
            Expect::bad_gateway("the connection to the backend was lost: Connection reset by peer (os error 104)"),
        ),
        row(
            "SSE without a finish",
            half.clone(),
            Expect::interrupted("the backend's response ended before it was complete"),
        ),
        row(
            "SSE without a finish, but with an end",
            hello.ended(half.clone()),
            Expect::interrupted("the backend's response ended before it was complete"),
        ),
        row(
            "SSE without a finish, until the connection closes",
            half.clone().until_close(),
            Expect::interrupted("the backend's response ended before it was complete"),
        ),
        row(
            "SSE, a length too long",
            half.clone().wrong_length(10),
            Expect::interrupted("the connection to the backend was lost: end of file before message length reached"),
        ),
        row(
            "SSE, a length too short",
            stream
                .clone()
                .header("connection", "close")
                .wrong_length(-(hello.text().len() as isize) + half_length(hello)),
            Expect::interrupted("the backend's response ended before it was complete"),
        ),
        row(
            "JSON, a length too long",
            json.clone().wrong_length(10),
            Expect::bad_gateway("the connection to the backend was lost: end of file before message length reached"),
        ),
        row("SSE that is empty", MockResponse::sse(&[]), Expect::bad_gateway("the backend ended without an answer")),
        row(
            "SSE that is nothing but comments",
            MockResponse::sse_raw(": one\n\n: two\n\n"),
            Expect::bad_gateway("the backend ended without an answer"),
        ),
        row(
            "JSON that is empty",
            MockResponse::json(200, ""),
            Expect::bad_gateway("the backend ended without an answer"),
        ),
        row(
            "JSON that is an empty object",
            MockResponse::json(200, "{}"),
            Expect::bad_gateway("the backend ended without an answer"),
        ),
        row(
            "JSON that is an empty list",
            MockResponse::json(200, "[]"),
            Expect::bad_gateway("the backend ended without an answer"),
        ),
        row("HTTP 204", MockResponse::new(204), Expect::bad_gateway("the backend ended without an answer")),
        row(
            "an event that cannot be read",
            after(
                &[
                    &["{\"oops".to_owned()],
                    &hello.events[middle..],
                    &hello.end.map(str::to_owned).into_iter().collect::<Vec<_>>(),
                ]
                .concat(),
            ),
            Expect::Complete,
        ),
        row(
            "SSE of nothing that can be read",
            MockResponse::sse(&["{oops", "{again"]),
            Expect::bad_gateway("the backend ended without an answer"),
        ),
        row("HTML with 200", plain(200, "text/html", "<html>Sign in</html>"), Expect::bad_gateway(NEITHER)),
        row(
            "HTML that calls itself JSON",
            plain(200, "application/json", "<html>Sign in</html>"),
            Expect::bad_gateway(NEITHER),
        ),
        row("text with 200", plain(200, "text/plain", "Welcome!"), Expect::bad_gateway(NEITHER)),
    ];
    if let Some(end) = hello.end {
        rows.push(row(
            "SSE of nothing but its end",
            MockResponse::sse(&[end]),
            Expect::bad_gateway("the backend ended without an answer"),
        ));
        rows.push(row("SSE, whole, a length too long", stream.clone().wrong_length(10), Expect::Complete));
        rows.push(row("SSE, whole, then cut", stream.clone().disconnect(), Expect::Complete));
        rows.push(row(
            "SSE, whole, then more",
            stream.clone().event(&hello.events[hello.text_start()]),
            Expect::Complete,
        ));
    }
    for status in [301, 302, 303, 307, 308] {
        let answer = MockResponse::new(status).header("location", "http://127.0.0.1:1/v1/elsewhere");
        let message = format!("the backend responded with {status}, a redirect, which is not followed");
        rows.push(row(&format!("a redirect, {status}"), answer, Expect::bad_gateway(&message)));
    }
    rows
}

const NEITHER: &str = "the backend's response is neither an event stream nor JSON";

/// Long enough for the gateway to read what was sent before a reset.
const SHORT_PAUSE: Duration = Duration::from_millis(15);

fn plain(status: u16, content_type: &str, text: &str) -> MockResponse {
    MockResponse::new(status).header("content-type", content_type).bytes(text)
}

/// The number of bytes up to and including the event with "Hel".
fn half_length(hello: &HelloStream) -> isize {
    hello.events[..=hello.text_start()].iter().map(|data| format!("data: {data}\n\n").len() as isize).sum()
}

// ---- the cells

/// The failures of a row, over all dialects and response forms.
fn check_row(fixture: &GatewayFixture, row: &Row) -> Vec<String> {
    let mut wrong = Vec::new();
    for dialect in Dialect::ALL {
        for form in [Form::Stream, Form::Json] {
            fixture.set_response(row.answer.clone());
            let received = catch_unwind(AssertUnwindSafe(|| dialect.read(form, &fixture.fetch(dialect.request(form)))));
            let expected = row.expect.received(dialect, form);
            let found = match received {
                Ok(received) => round_retry_after(received),
                Err(panic) => {
                    let why = panic.downcast_ref::<String>().map_or("not well formed", String::as_str).to_owned();
                    wrong.push(format!("{}: {dialect:?} {form:?}: {why}", row.name));
                    continue;
                }
            };
            if found != expected {
                wrong.push(format!(
                    "{}: {dialect:?} {form:?}\n   expected {expected:?}\n   found    {found:?}",
                    row.name
                ));
            }
        }
    }
    wrong
}

/// Rounds the retry-after of a date, which depends on the time that has passed.
fn round_retry_after(mut received: Received) -> Received {
    if let Received::HttpError { retry_after: Some(seconds), .. } = &mut received
        && (FAR - 60..=FAR).contains(seconds)
    {
        *seconds = FAR;
    }
    received
}

fn run(name: &'static str, rows: impl Fn(&HelloStream) -> Vec<Row>) {
    let (hello, fixture) = (HelloStream::of(name), GatewayFixture::of(name));
    let started = Instant::now();
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for row in rows(&hello) {
        wrong.extend(check_row(&fixture, &row));
        cells += 6;
        // After any failure the next turn must succeed.
        let next = Row { name: format!("after {}", row.name), answer: hello.stream(), expect: Expect::Complete };
        let received =
            Dialect::Chat.read(Form::Json, &fixture.set_response(next.answer).fetch(Dialect::Chat.request(Form::Json)));
        assert_eq!(received, next.expect.received(Dialect::Chat, Form::Json), "{}", next.name);
    }
    println!("{name}: {cells} cells in {:.1?}", started.elapsed());
    assert!(wrong.is_empty(), "{} of {cells} cells of {name}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_backend_error_keeps_its_status_message_and_retry_after() {
    BACKENDS.iter().for_each(|name| run(name, backend_errors));
}

#[test]
fn a_failure_during_the_response_is_an_http_error_or_the_last_frame() {
    BACKENDS.iter().for_each(|name| run(name, transport_failures));
}

#[test]
fn an_unreachable_backend_is_an_http_error() {
    let refusing = RefusingPort::start();
    for name in BACKENDS {
        let server = serve().arg("--backend").arg(format!("{name}={}", refusing.url())).start();
        let expected = Expect::bad_gateway("the backend could not be reached: Connection refused (os error 111)");
        for dialect in Dialect::ALL {
            for form in [Form::Stream, Form::Json] {
                let received = dialect.read(form, &server.fetch(dialect.request(form)));
                assert_eq!(received, expected.received(dialect, form), "{name} {dialect:?} {form:?}");
            }
        }
    }
}
