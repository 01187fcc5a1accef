//! A request that is refused before its body is read gets a readable answer, also if the client sends its whole body
//! before it reads, as ordinary clients do.

use crate::support::{Client, Request, Server, TestDir, serve};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

const MIB: usize = 1 << 20;

/// A server that requires an API key and accepts bodies of at most 2 MiB.
fn guarded() -> &'static Server {
    static SHARED: LazyLock<(Server, std::process::Child)> = LazyLock::new(|| {
        let dir = TestDir::empty().with_edit("gateway.yaml", "body_bytes: 16MiB", "body_bytes: 2MiB");
        let server = serve().env("REFRAME_API_KEY", "right").add(dir).start();
        let killer = server.kill_on_exit();
        (server, killer)
    });
    &SHARED.0
}

/// What is refused: its name, the path and headers, the size of the body, and the status.
const REFUSALS: &[(&str, &str, &str, usize, u16)] = &[
    ("no key", "POST /v1/chat/completions", "", 2 * MIB, 401),
    ("an unknown path", "POST /v1/nowhere", "authorization: Bearer right\r\n", 2 * MIB, 404),
    ("a wrong method", "PUT /v1/chat/completions", "authorization: Bearer right\r\n", 2 * MIB, 405),
    ("too large", "POST /v1/chat/completions", "authorization: Bearer right\r\n", 12 * MIB, 413),
    ("too large and without a key", "POST /v1/chat/completions", "", 12 * MIB, 401),
];

#[test]
fn a_client_that_sends_everything_before_it_reads_gets_the_error() {
    for (name, target, headers, size, status) in REFUSALS {
        for chunked in [false, true] {
            let mut client = TcpStream::connect(guarded().addr()).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let length = match chunked {
                true => "transfer-encoding: chunked\r\n".to_owned(),
                false => format!("content-length: {size}\r\n"),
            };
            client.write_all(format!("{target} HTTP/1.1\r\nhost: a\r\n{headers}{length}\r\n").as_bytes()).unwrap();
            let block = vec![b' '; 64 * 1024];
            for _ in 0..size / block.len() {
                if chunked {
                    client.write_all(b"10000\r\n").unwrap();
                }
                client.write_all(&block).unwrap_or_else(|error| panic!("{name}, chunked {chunked}: {error}"));
                if chunked {
                    client.write_all(b"\r\n").unwrap();
                }
            }
            if chunked {
                client.write_all(b"0\r\n\r\n").unwrap();
            }
            let reply = Client::over(client).reply();
            assert_eq!(reply.status(), *status, "{name}, chunked {chunked}");
            assert!(reply.json()["error"]["message"].is_string());
        }
    }
}

#[test]
fn a_refused_upload_that_was_read_to_its_end_keeps_the_connection_open() {
    let mut client = guarded().client();
    for _ in 0..3 {
        assert_eq!(client.fetch(Request::post(vec![b' '; MIB])).status(), 401);
    }
    assert_eq!(client.fetch(Request::post("{}")).status(), 401);
}

#[test]
fn a_client_that_waits_for_100_continue_is_refused_without_sending_its_body() {
    for (target, headers, status) in [
        ("POST /v1/chat/completions", "", 401),
        ("POST /v1/nowhere", "", 404),
        ("POST /v1/chat/completions", "authorization: Bearer right\r\n", 413),
    ] {
        let mut client = guarded().client();
        let head =
            format!("{target} HTTP/1.1\r\nhost: a\r\n{headers}expect: 100-continue\r\ncontent-length: 9999999\r\n\r\n");
        client.send_bytes(head.as_bytes());
        let reply = client.reply();
        assert_eq!((reply.status(), reply.header("connection")), (status, Some("close")), "{target}");
    }
    // It is asked for its body if that is wanted.
    let mut client = guarded().client();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer right\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n";
    client.send_bytes(head.as_bytes());
    assert_eq!(client.line(), "HTTP/1.1 100 Continue");
    assert_eq!(client.line(), "");
    client.send_bytes(b"{}");
    assert_eq!(client.reply().status(), 400);
}

/// The rest of a refused body is discarded to a limit, not for ever.
#[test]
fn a_refused_upload_without_end_is_closed() {
    let mut client = TcpStream::connect(guarded().addr()).unwrap();
    client.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    client.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 999999999999\r\n\r\n").unwrap();
    let block = vec![b' '; 256 * 1024];
    let mut sent = 0;
    let error = loop {
        match client.write(&block) {
            Ok(n) => sent += n,
            Err(error) => break error,
        }
        assert!(sent < 1024 * MIB, "it still reads after {sent} bytes");
    };
    assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
}

#[test]
fn a_refused_upload_that_stops_is_closed() {
    let mut client = guarded().client();
    client.send_bytes(b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 999999\r\n\r\n{");
    // The answer comes at once; the end of the connection when the rest does not come.
    assert_eq!(client.reply().status(), 401);
    assert_eq!(client.into_inner().read(&mut [0; 1]).unwrap(), 0);
}

// ---- real clients

/// The command prints the status and the message of the answer.
fn assert_readable(name: &str, mut command: Command) {
    let body = TestDir::empty();
    body.write("body", &" ".repeat(2 * MIB));
    let url = format!("http://{}/v1/chat/completions", guarded().addr());
    command.current_dir(body.path("")).env("URL", url).env("NO_PROXY", "*").env("no_proxy", "*").stdin(Stdio::null());
    for _ in 0..5 {
        let output = match command.output() {
            Ok(output) => output,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                println!("{name} is not installed");
                return;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        let (text, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("401") && text.contains("an API key is required"), "{name}: {text}\n{log}");
    }
}

fn command(program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

#[test]
fn curl_reads_the_error() {
    let script = "curl -sS -w ' %{http_code}' --noproxy '*' --data-binary @body \"$URL\"";
    assert_readable("curl", command("sh", &["-c", script]));
    let script = "curl -sS -w ' %{http_code}' --noproxy '*' -H 'expect:' --data-binary @body \"$URL\"";
    assert_readable("curl without expect", command("sh", &["-c", script]));
    let script = "curl -sS -w ' %{http_code}' --noproxy '*' --http2-prior-knowledge --data-binary @body \"$URL\"";
    assert_readable("curl over HTTP/2", command("sh", &["-c", script]));
}

#[test]
fn python_reads_the_error() {
    let script = r#"
import os, http.client, urllib.error, urllib.request
from urllib.parse import urlparse
body = open("body", "rb").read()
url = urlparse(os.environ["URL"])
connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
for _ in range(2):
    connection.request("POST", url.path, body)
    answer = connection.getresponse()
    assert answer.status == 401 and answer.read()
try:
    urllib.request.urlopen(os.environ["URL"], body, timeout=60)
except urllib.error.HTTPError as error:
    print(error.status, error.read().decode())
"#;
    assert_readable("python3", command("python3", &["-c", script]));
}

#[test]
fn node_reads_the_error() {
    let script = r#"
const body = require("fs").readFileSync("body");
fetch(process.env.URL, { method: "POST", body }).then(async answer => {
  console.log(answer.status, await answer.text());
  process.exit(0);
});
"#;
    assert_readable("node", command("node", &["-e", script]));
}
