//! Clients that disconnect at random stages, over HTTP/1 and HTTP/2: the backend is released at once, and nothing is left.

use super::{ProcessStats, Sequence, SoakLoad};
use crate::disconnects::gateway_config;
use crate::http2_client::{DATA, Http2Client};
use crate::support::backend_events::word;
use crate::support::{Client, MockResponse, Request, TestGateway, assert_within, dialect_request, eventually};
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_millis(250);

/// Where a request is when its client disconnects.
#[derive(Clone, Copy, Debug)]
enum Stage {
    HalfOfTheHeaders,
    HalfOfTheBody,
    /// The backend has the request and has sent nothing.
    Waiting {
        stream: bool,
    },
    /// The backend has sent a part of its response.
    Midway {
        stream: bool,
    },
}

const STAGES: &[Stage] = &[
    Stage::HalfOfTheHeaders,
    Stage::HalfOfTheBody,
    Stage::Waiting { stream: true },
    Stage::Waiting { stream: false },
    Stage::Midway { stream: true },
    Stage::Midway { stream: false },
];

/// How a client disconnects.
#[derive(Clone, Copy, Debug)]
enum Way {
    Http1,
    /// With bytes that follow the request.
    Http1WithTrailingBytes,
    Http2,
    /// Only the stream, which the client resets.
    Http2Reset,
}

const WAYS: &[Way] = &[Way::Http1, Way::Http1WithTrailingBytes, Way::Http2, Way::Http2Reset];
const DIALECTS: &[&str] = &["chat", "responses", "completions"];

#[test]
fn the_backend_is_released_when_a_client_disconnects_at_any_stage() {
    let load = SoakLoad::new(200, 5000, 20);
    let gateway = gateway_config().start("openai-chat", "openai");
    gateway.set_response("d-hang", MockResponse::hang());
    gateway.set_response("d-mid", MockResponse::sse(&[&word("One").to_string()]).stall());
    let before = ProcessStats::of(&gateway.server);
    let mut during = ProcessStats::of(&gateway.server);
    let mut random = Sequence::new(13);
    let mut released = Vec::new();
    let mut done = 0;
    while done < load.count && !load.is_over() {
        let (stage, way) = (STAGES[random.below(STAGES.len())], WAYS[random.below(WAYS.len())]);
        let dialect = DIALECTS[random.below(DIALECTS.len())];
        let pause = Duration::from_millis(random.below(10) as u64);
        released.extend(disconnect(&gateway, stage, way, dialect, pause).map(|time| (time, stage, way)));
        done += 1;
        if done % 100 == 0 {
            during = ProcessStats::of(&gateway.server);
        }
    }
    eventually("no slot is taken", || (gateway.metric("reframe_turns_in_flight") == 0.0).then_some(()));
    let after = before.assert_returned(&gateway.server, 2);
    released.sort_by_key(|(time, ..)| *time);
    let at = |percent: usize| released[(released.len() - 1) * percent / 100].0;
    let (slowest, stage, way) = released[released.len() - 1];
    println!("disconnects: {done}, {} of them with a request at the backend", released.len());
    println!(
        "  released after {:.1?} (median), {:.1?} (p99), {slowest:.1?} (p100: {stage:?}, {way:?})",
        at(50),
        at(99)
    );
    println!("  before {before}\n  during {during}\n  after  {after}");
    assert_within("the slowest release", slowest, LIMIT);
    // Every disconnect ended a request of its own.
    assert_eq!(gateway.backend.disconnects().len(), released.len());
    // The runtime ends its threads for blocking work after a while without any.
    eventually("no thread is left", || (ProcessStats::of(&gateway.server).threads <= before.threads).then_some(()));
}

/// Disconnects one client, and returns the time until the backend was released if it had the request.
fn disconnect(gateway: &TestGateway, stage: Stage, way: Way, dialect: &str, pause: Duration) -> Option<Duration> {
    let (model, stream) = match stage {
        Stage::HalfOfTheHeaders | Stage::HalfOfTheBody => ("d-hang", true),
        Stage::Waiting { stream } => ("d-hang", stream),
        Stage::Midway { stream } => ("d-mid", stream),
    };
    let request = dialect_request(dialect, model, stream);
    let (requests, disconnects) = (gateway.backend.request_count(), gateway.backend.disconnects().len());
    let connected = match way {
        Way::Http1 | Way::Http1WithTrailingBytes => Connected::Http1(http1(gateway, &request, stage, way)),
        Way::Http2 | Way::Http2Reset => http2(gateway, &request, stage, way),
    };
    if matches!(stage, Stage::HalfOfTheHeaders | Stage::HalfOfTheBody) {
        thread::sleep(pause);
        return None;
    }
    eventually("the backend has the request", || (gateway.backend.request_count() > requests).then_some(()));
    let mut connected = connected;
    if let Stage::Midway { stream: true } = stage {
        connected.wait_for_data();
    }
    thread::sleep(pause);
    let closed = Instant::now();
    let _kept = connected.disconnect();
    let at = eventually("the backend is released", || gateway.backend.disconnects().get(disconnects).copied());
    Some(at.saturating_duration_since(closed))
}

enum Connected {
    Http1(Client),
    Http2 { client: Http2Client, stream: u32, resets: bool },
}

impl Connected {
    fn wait_for_data(&mut self) {
        match self {
            Connected::Http1(client) => drop(client.head()),
            Connected::Http2 { client, .. } => while client.next_frame().unwrap().kind != DATA {},
        }
    }

    /// Closes the connection, or resets the stream: then the connection is kept until the end of the measurement.
    fn disconnect(self) -> Option<Http2Client> {
        match self {
            Connected::Http2 { mut client, stream, resets: true } => {
                client.reset(stream);
                Some(client)
            }
            Connected::Http1(_) | Connected::Http2 { .. } => None,
        }
    }
}

fn http1(gateway: &TestGateway, request: &Request, stage: Stage, way: Way) -> Client {
    let mut client = gateway.server.client();
    let mut bytes = request.to_bytes();
    match stage {
        Stage::HalfOfTheHeaders => bytes.truncate(40),
        Stage::HalfOfTheBody => bytes.truncate(bytes.len() - 10),
        Stage::Waiting { .. } | Stage::Midway { .. } => {
            if let Way::Http1WithTrailingBytes = way {
                bytes.extend_from_slice(b"\r\n");
            }
        }
    }
    client.send_bytes(&bytes);
    client
}

fn http2(gateway: &TestGateway, request: &Request, stage: Stage, way: Way) -> Connected {
    let mut client = Http2Client::connect(gateway.server.addr());
    let resets = matches!(way, Way::Http2Reset);
    let stream = match stage {
        Stage::HalfOfTheHeaders => 0,
        Stage::HalfOfTheBody => {
            let stream = client.send_headers(request);
            client.send_data(stream, &request.body[..10], false);
            stream
        }
        Stage::Waiting { .. } | Stage::Midway { .. } => client.send(request),
    };
    Connected::Http2 { client, stream, resets }
}
