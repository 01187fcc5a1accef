//! Backend × dialect × what the client asked for × what the backend sends × what goes wrong.

use crate::backend_streams::{Spoken, WHY};
use crate::gateway_fixture::Rig;
use crate::received::{Dialect, Form, Told};
use crate::support::{Answer, Refusing, serve};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime};

/// One more word here is one more backend in every test of this file.
const BACKENDS: &[&str] = &["openai-chat", "openai-responses", "anthropic-messages", "gemini-generate"];

/// A row: what the backend does, and what every client must be told.
struct Row {
    name: String,
    answer: Answer,
    expect: Expect,
}

#[derive(Clone)]
enum Expect {
    Whole,
    /// Nothing was told before: an HTTP error, whatever was asked for.
    No {
        status: u16,
        message: String,
        code: Option<&'static str>,
        retry_after: Option<u64>,
    },
    /// "Hel" was told before: in a stream the dialect's failure, last. As a body, half an answer where the dialect has a
    /// word for that, else an HTTP error.
    Broke {
        status: u16,
        message: String,
        code: Option<&'static str>,
    },
}

impl Expect {
    fn bad(message: &str) -> Expect {
        Expect::No { status: 502, message: message.to_owned(), code: None, retry_after: None }
    }

    fn broke(message: &str) -> Expect {
        Expect::Broke { status: 502, message: message.to_owned(), code: None }
    }

    fn told(&self, dialect: Dialect, form: Form) -> Told {
        let own = |code: &Option<&str>| code.map(str::to_owned);
        match self {
            Expect::Whole => Told::Whole("Hello".to_owned()),
            Expect::No { status, message, code, retry_after } => {
                Told::No { status: *status, message: message.clone(), code: own(code), retry_after: *retry_after }
            }
            Expect::Broke { status, message, code } => match (dialect, form) {
                // It has a closed set of codes.
                (Dialect::Responses, _) => Told::Broke {
                    said: "Hel".to_owned(),
                    message: message.clone(),
                    code: Some("server_error".to_owned()),
                },
                (Dialect::Chat | Dialect::Completions, Form::Stream) => {
                    Told::Broke { said: "Hel".to_owned(), message: message.clone(), code: own(code) }
                }
                (Dialect::Chat | Dialect::Completions, Form::Json) => {
                    Told::No { status: *status, message: message.clone(), code: own(code), retry_after: None }
                }
            },
        }
    }
}

fn row(name: &str, answer: Answer, expect: Expect) -> Row {
    Row { name: name.to_owned(), answer, expect }
}

// ---- the rows

/// A status that says no, with each kind of reason.
fn refusals(spoken: &Spoken) -> Vec<Row> {
    // Further away than a test lasts; how far exactly is another test's.
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(7000));
    let heads: [(u16, Option<&str>); 6] =
        [(400, None), (401, None), (429, Some("7")), (429, Some(&date)), (500, None), (503, Some("7"))];
    let mut rows = Vec::new();
    for (status, retry) in heads {
        let said = WHY.to_owned();
        let reasons = [
            ("JSON", Answer::json(status, &spoken.no), said.clone(), spoken.no_code),
            ("SSE", Answer::sse(&[&spoken.no]).status(status), said, spoken.no_code),
            ("text", plain(status, "text/plain", WHY), format!("the backend answered {status}: {WHY}"), None),
            (
                "HTML",
                plain(status, "text/html", "<html><p>no</p></html>"),
                format!("the backend answered {status}"),
                None,
            ),
            ("nothing", Answer::new(status), format!("the backend answered {status}"), None),
            (
                "words of its own",
                Answer::json(status, OWN_WORDS),
                format!("the backend answered {status}: {OWN_WORDS}"),
                None,
            ),
            (
                "a book",
                plain(status, "text/plain", "no ").chunked().endless(WHY.repeat(1000)),
                format!("the backend answered {status}"),
                None,
            ),
        ];
        for (kind, answer, message, code) in reasons {
            let answer = retry.iter().fold(answer, |answer, value| answer.header("retry-after", value));
            let retry_after = retry.map(|value| value.parse().unwrap_or(FAR));
            let name = format!("HTTP {status}, retry-after {retry:?}, with {kind}");
            rows.push(Row { name, answer, expect: Expect::No { status, message, code, retry_after } });
        }
    }
    rows
}

/// What many servers say that are made with FastAPI; the backend's rules know nothing of it.
const OWN_WORDS: &str = r#"{"detail":"no, because"}"#;

/// Stands for a retry-after of a date, which is compared roughly.
const FAR: u64 = 7000;

/// What can happen on the way, to a stream and to a JSON answer.
fn mishaps(spoken: &Spoken) -> Vec<Row> {
    let (stream, half, json) = (spoken.stream(), spoken.half(), spoken.json());
    let no = |status| Expect::No { status, message: WHY.to_owned(), code: spoken.no_code, retry_after: None };
    let late = Expect::Broke { status: spoken.no_status, message: WHY.to_owned(), code: spoken.no_code };
    let middle = spoken.begun() + 1;
    let after = |events: &[String]| events.iter().fold(half.clone(), |answer, data| answer.event(data));
    let mut rows = vec![
        row("SSE", stream.clone(), Expect::Whole),
        row("JSON", json.clone(), Expect::Whole),
        row("SSE, with a length", stream.clone().length(), Expect::Whole),
        row("SSE, until the connection closes", stream.clone().until_close(), Expect::Whole),
        row("JSON, in chunks", json.clone().chunked(), Expect::Whole),
        row("JSON, until the connection closes", json.clone().until_close(), Expect::Whole),
        row("HTTP/1.0", Answer::garbage(format!("HTTP/1.0 200 OK\r\n\r\n{}", spoken.whole)), Expect::Whole),
        row(
            "a hint before the head",
            Answer::garbage(format!(
                "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}",
                spoken.text()
            )),
            Expect::Whole,
        ),
        row(
            "a trailer",
            Answer::garbage(format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\nx-sum: 1\r\n\r\n",
                spoken.whole.len(),
                spoken.whole
            )),
            Expect::Whole,
        ),
        row(
            "hangs up before the head",
            Answer::raw(),
            Expect::bad("the backend did not answer: connection closed before message completed"),
        ),
        row(
            "resets before the head",
            Answer::raw().reset(),
            Expect::bad("the backend did not answer: Connection reset by peer (os error 104)"),
        ),
        row(
            "half a head",
            Answer::garbage("HTTP/1.1 200 OK\r\ncontent-ty"),
            Expect::bad("the backend did not answer: connection closed before message completed"),
        ),
        row(
            "garbage instead of HTTP",
            Answer::garbage("SSH-2.0-OpenSSH_9.9\r\n\r\n"),
            Expect::bad("the backend did not answer: invalid HTTP version parsed"),
        ),
        row("an error first", spoken.ended(Answer::sse(&[&spoken.no])), no(spoken.no_status)),
        row(
            "an error after the first sign of life",
            spoken.ended(spoken.first(1.min(middle - 1)).event(&spoken.no)),
            no(spoken.no_status),
        ),
        row("an error instead of a JSON answer", Answer::json(200, &spoken.no), no(spoken.no_status)),
        row("an error later", spoken.ended(half.clone().event(&spoken.no)), late.clone()),
        row(
            "an error later, and then as if nothing had been",
            spoken.ended(spoken.events[middle..].iter().fold(half.clone().event(&spoken.no), |a, e| a.event(e))),
            late,
        ),
        row(
            "SSE cut in the middle",
            half.clone().pause(A_MOMENT).cut(),
            Expect::broke("the backend was lost: unexpected EOF during chunk size line"),
        ),
        row(
            "SSE cut in an event",
            half.clone().bytes("data: {\"id\":\"chatc").pause(A_MOMENT).cut(),
            Expect::broke("the backend was lost: unexpected EOF during chunk size line"),
        ),
        row(
            "JSON cut in the middle",
            Answer::json(200, &spoken.whole[..40]).chunked().cut(),
            Expect::bad("the backend was lost: unexpected EOF during chunk size line"),
        ),
        row(
            "SSE reset in the middle",
            half.clone().pause(A_MOMENT).reset(),
            Expect::broke("the backend was lost: Connection reset by peer (os error 104)"),
        ),
        row(
            "JSON reset in the middle",
            Answer::json(200, &spoken.whole[..40]).chunked().pause(A_MOMENT).reset(),
            Expect::bad("the backend was lost: Connection reset by peer (os error 104)"),
        ),
        row("SSE without a finish", half.clone(), Expect::broke("the backend's answer ended in the middle")),
        row(
            "SSE without a finish, but with an end",
            spoken.ended(half.clone()),
            Expect::broke("the backend's answer ended in the middle"),
        ),
        row(
            "SSE without a finish, until the connection closes",
            half.clone().until_close(),
            Expect::broke("the backend's answer ended in the middle"),
        ),
        row(
            "SSE, a length too long",
            half.clone().wrong_length(10),
            Expect::broke("the backend was lost: end of file before message length reached"),
        ),
        row(
            "SSE, a length too short",
            stream
                .clone()
                .header("connection", "close")
                .wrong_length(-(spoken.text().len() as isize) + half_length(spoken)),
            Expect::broke("the backend's answer ended in the middle"),
        ),
        row(
            "JSON, a length too long",
            json.clone().wrong_length(10),
            Expect::bad("the backend was lost: end of file before message length reached"),
        ),
        row("SSE that is empty", Answer::sse(&[]), Expect::bad("the backend ended without an answer")),
        row(
            "SSE that is nothing but comments",
            Answer::sse_raw(": one\n\n: two\n\n"),
            Expect::bad("the backend ended without an answer"),
        ),
        row("JSON that is empty", Answer::json(200, ""), Expect::bad("the backend ended without an answer")),
        row(
            "JSON that is an empty object",
            Answer::json(200, "{}"),
            Expect::bad("the backend ended without an answer"),
        ),
        row("JSON that is an empty list", Answer::json(200, "[]"), Expect::bad("the backend ended without an answer")),
        row("HTTP 204", Answer::new(204), Expect::bad("the backend ended without an answer")),
        row(
            "an event that cannot be read",
            after(
                &[
                    &["{\"oops".to_owned()],
                    &spoken.events[middle..],
                    &spoken.end.map(str::to_owned).into_iter().collect::<Vec<_>>(),
                ]
                .concat(),
            ),
            Expect::Whole,
        ),
        row(
            "SSE of nothing that can be read",
            Answer::sse(&["{oops", "{again"]),
            Expect::bad("the backend ended without an answer"),
        ),
        row("HTML with 200", plain(200, "text/html", "<html>Sign in</html>"), Expect::bad(NEITHER)),
        row(
            "HTML that calls itself JSON",
            plain(200, "application/json", "<html>Sign in</html>"),
            Expect::bad(NEITHER),
        ),
        row("text with 200", plain(200, "text/plain", "Welcome!"), Expect::bad(NEITHER)),
    ];
    if let Some(end) = spoken.end {
        rows.push(row(
            "SSE of nothing but its end",
            Answer::sse(&[end]),
            Expect::bad("the backend ended without an answer"),
        ));
        rows.push(row("SSE, whole, a length too long", stream.clone().wrong_length(10), Expect::Whole));
        rows.push(row("SSE, whole, then cut", stream.clone().cut(), Expect::Whole));
        rows.push(row("SSE, whole, then more", stream.clone().event(&spoken.events[spoken.begun()]), Expect::Whole));
    }
    for status in [301, 302, 303, 307, 308] {
        let answer = Answer::new(status).header("location", "http://127.0.0.1:1/v1/elsewhere");
        let message = format!("the backend answered {status}, a redirect, which is not followed");
        rows.push(row(&format!("a redirect, {status}"), answer, Expect::bad(&message)));
    }
    rows
}

const NEITHER: &str = "what the backend sent is neither an event stream nor JSON";

/// So that what came before a reset was read by then.
const A_MOMENT: Duration = Duration::from_millis(15);

fn plain(status: u16, content_type: &str, text: &str) -> Answer {
    Answer::new(status).header("content-type", content_type).bytes(text)
}

/// How many bytes it takes until "Hel" was said.
fn half_length(spoken: &Spoken) -> isize {
    spoken.events[..=spoken.begun()].iter().map(|data| format!("data: {data}\n\n").len() as isize).sum()
}

// ---- the cells

/// Every cell of a row that is not as it should be.
fn judge(rig: &Rig, row: &Row) -> Vec<String> {
    let mut wrong = Vec::new();
    for dialect in Dialect::ALL {
        for form in [Form::Stream, Form::Json] {
            rig.will(row.answer.clone());
            let told = catch_unwind(AssertUnwindSafe(|| dialect.read(form, &rig.ask(dialect.request(form)))));
            let expected = row.expect.told(dialect, form);
            let found = match told {
                Ok(told) => roughly(told),
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

/// A date a while away is so many seconds, give or take those that passed.
fn roughly(mut told: Told) -> Told {
    if let Told::No { retry_after: Some(seconds), .. } = &mut told
        && (FAR - 60..=FAR).contains(seconds)
    {
        *seconds = FAR;
    }
    told
}

fn run(name: &'static str, rows: impl Fn(&Spoken) -> Vec<Row>) {
    let (spoken, rig) = (Spoken::by(name), Rig::of(name));
    let begun = Instant::now();
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for row in rows(&spoken) {
        wrong.extend(judge(&rig, &row));
        cells += 6;
        // Whatever happened, the next turn is a good one.
        let well = Row { name: format!("after {}", row.name), answer: spoken.stream(), expect: Expect::Whole };
        let told = Dialect::Chat.read(Form::Json, &rig.will(well.answer).ask(Dialect::Chat.request(Form::Json)));
        assert_eq!(told, well.expect.told(Dialect::Chat, Form::Json), "{}", well.name);
    }
    println!("{name}: {cells} cells in {:.1?}", begun.elapsed());
    assert!(wrong.is_empty(), "{} of {cells} cells of {name}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_backend_that_says_no_is_told_with_its_status_its_words_and_when_to_try_again() {
    BACKENDS.iter().for_each(|name| run(name, refusals));
}

#[test]
fn a_backend_that_fails_on_the_way_is_an_error_or_the_last_frame_and_never_an_empty_success() {
    BACKENDS.iter().for_each(|name| run(name, mishaps));
}

#[test]
fn a_backend_that_is_not_there_is_told_as_an_http_error() {
    let refusing = Refusing::start();
    for name in BACKENDS {
        let server = serve().arg("--backend").arg(format!("{name}={}", refusing.url())).start();
        let expected = Expect::bad("the backend could not be reached: Connection refused (os error 111)");
        for dialect in Dialect::ALL {
            for form in [Form::Stream, Form::Json] {
                let told = dialect.read(form, &server.ask(dialect.request(form)));
                assert_eq!(told, expected.told(dialect, form), "{name} {dialect:?} {form:?}");
            }
        }
    }
}
