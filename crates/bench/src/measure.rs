//! The measurement: in every round each row is measured for the pass-through and for each way through the gateway, one
//! after the other, so that noise of the machine hits all of them.

use crate::RunArguments;
use crate::client::{API_KEY, Seen, Times, repeat};
use crate::process::{Cores, Server};
use crate::report::{Sample, Table};
use crate::rows::{Api, Measure, ROWS, Row};
use crate::targets::Targets;
use anyhow::{Context, Result, bail};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// What is measured: the pass-through, then the gateway for clients of each API, then another gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Pass,
    Gateway(Api),
    /// For clients of Responses.
    Peer,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::Pass, Way::Gateway(Api::Chat), Way::Gateway(Api::Responses), Way::Peer];
}

/// False if a row is over its limit.
pub fn run(arguments: &RunArguments) -> Result<bool> {
    let targets = Targets::read(&arguments.targets)?;
    let rounds = arguments.rounds.unwrap_or(if arguments.quick { 3 } else { 5 });
    let window = if arguments.quick { Duration::from_millis(1_000) } else { Duration::from_secs(2) };
    let rows: Vec<&Row> =
        ROWS.iter().filter(|row| arguments.only.as_ref().is_none_or(|text| row.name.contains(text.as_str()))).collect();
    if rows.is_empty() {
        bail!(
            "no row has this name; the rows are:\n{}",
            ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join("\n")
        );
    }
    let cores = Cores::find()?;
    match cores {
        Some(cores) => cores.pin_tools()?,
        None => eprintln!("one core: nothing is pinned, the ratios include the tools' interference"),
    }
    let bench = Bench::start(arguments, cores)?;
    let mut samples = Vec::new();
    let began = Instant::now();
    for round in 0..rounds {
        for row in &rows {
            for way in Way::ALL {
                match bench.measure(row, way, window).with_context(|| format!("{} ({way:?})", row.name)) {
                    Ok(Some(sample)) => samples.push((row.name, way, round, sample)),
                    Ok(None) => {}
                    // It need not support all rows.
                    Err(error) if way == Way::Peer => eprintln!("{error:#}"),
                    Err(error) => return Err(error),
                }
            }
        }
        eprintln!("round {} of {rounds}: {} s", round + 1, began.elapsed().as_secs());
    }
    let table = Table { rows: &rows, samples: &samples, rounds, targets: &targets, backend: arguments.backend };
    let passed = table.print();
    if !passed {
        println!("a row is over its limit in {}", arguments.targets.display());
    }
    Ok(passed)
}

struct Bench<'a> {
    arguments: &'a RunArguments,
    cores: Option<Cores>,
    mock: Server,
    pass: Server,
    gateway: Server,
    peer: Option<Server>,
    set: TempDir,
    runtime: tokio::runtime::Runtime,
}

impl<'a> Bench<'a> {
    fn start(arguments: &'a RunArguments, cores: Option<Cores>) -> Result<Bench<'a>> {
        let this = std::env::current_exe()?;
        let mock = Server::start(Command::new(this).arg("mock"), None, |line| line.parse().ok())?;
        let set = gateway_set(arguments.backend, mock.address)?;
        let pass = start_pass(mock.address, cores)?;
        let gateway = start_gateway(&arguments.gateway, set.path(), cores)?;
        let peer = arguments.peer.as_deref().map(|peer| start_peer(peer, mock.address, cores)).transpose()?;
        let runtime = crate::single_thread()?;
        Ok(Bench { arguments, cores, mock, pass, gateway, peer, set, runtime })
    }

    /// `None`: there is no such server.
    fn measure(&self, row: &Row, way: Way, window: Duration) -> Result<Option<Sample>> {
        let api = match way {
            Way::Pass => self.arguments.backend,
            Way::Gateway(api) => api,
            Way::Peer => Api::Responses,
        };
        if row.measure == Measure::Memory {
            // A process of its own: what earlier rows left in the allocator is not counted.
            let server = match (way, &self.arguments.peer) {
                (Way::Pass, _) => start_pass(self.mock.address, self.cores)?,
                (Way::Gateway(_), _) => start_gateway(&self.arguments.gateway, self.set.path(), self.cores)?,
                (Way::Peer, Some(peer)) => start_peer(peer, self.mock.address, self.cores)?,
                (Way::Peer, None) => return Ok(None),
            };
            return self.runtime.block_on(measure_memory(row, api, &server)).map(Some);
        }
        let server = match (way, &self.peer) {
            (Way::Pass, _) => &self.pass,
            (Way::Gateway(_), _) => &self.gateway,
            (Way::Peer, Some(peer)) => peer,
            (Way::Peer, None) => return Ok(None),
        };
        self.runtime.block_on(measure_window(row, api, server, window)).map(Some)
    }
}

async fn measure_window(row: &Row, api: Api, server: &Server, window: Duration) -> Result<Sample> {
    let seen = Arc::new(Seen::default());
    let mut clients = connect(row, api, server.address, &seen);
    wait(&mut clients, row.warm_up).await?;
    take_times(&seen);
    let counted = |seen: &Seen| match row.measure {
        Measure::CpuPerRequest => seen.requests.load(Ordering::Relaxed),
        _ => seen.frames.load(Ordering::Relaxed),
    };
    let (cpu_before, before, began) = (server.cpu()?, counted(&seen), Instant::now());
    wait(&mut clients, window).await?;
    let (cpu, count, elapsed) = (server.cpu()? - cpu_before, counted(&seen) - before, began.elapsed());
    let mut times = take_times(&seen);
    drop(clients);
    // The server notices that the clients are gone before the next row begins.
    tokio::time::sleep(Duration::from_millis(200)).await;
    if count == 0 {
        bail!("nothing arrived within {} ms", elapsed.as_millis());
    }
    Ok(Sample {
        cpu_each: cpu.as_secs_f64() * 1e6 / count as f64,
        per_second: count as f64 / elapsed.as_secs_f64(),
        core: cpu.as_secs_f64() / elapsed.as_secs_f64(),
        latency: percentiles(&mut times.frame),
        first_byte: percentiles(&mut times.first_byte),
        memory: (0.0, 0.0),
    })
}

async fn measure_memory(row: &Row, api: Api, server: &Server) -> Result<Sample> {
    let seen = Arc::new(Seen::default());
    let mut clients = connect(&Row { connections: 1, ..*row }, api, server.address, &seen);
    wait(&mut clients, Duration::from_millis(300)).await?;
    drop(clients);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let idle = server.resident()?;
    let mut clients = connect(row, api, server.address, &seen);
    wait(&mut clients, row.warm_up).await?;
    let open = server.resident()?;
    drop(clients);
    let per_stream = (open.saturating_sub(idle)) as f64 / row.connections as f64 / 1024.0;
    Ok(Sample { memory: (idle as f64 / f64::from(1 << 20), per_stream), ..Sample::default() })
}

fn connect(row: &Row, api: Api, server: SocketAddr, seen: &Arc<Seen>) -> JoinSet<Result<()>> {
    let mut clients = JoinSet::new();
    for _ in 0..row.connections {
        let (seen, answer) = (seen.clone(), row.answer);
        clients.spawn(async move { repeat(server, api, answer, &seen).await });
    }
    clients
}

/// A client that stops is an error: every request of the bench is valid, and has an answer.
async fn wait(clients: &mut JoinSet<Result<()>>, time: Duration) -> Result<()> {
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        Some(stopped) = clients.join_next() => stopped?,
    }
}

fn take_times(seen: &Seen) -> Times {
    seen.times.lock().map(|mut times| std::mem::take(&mut *times)).unwrap_or_default()
}

/// The median and the 99th percentile, in microseconds.
fn percentiles(nanoseconds: &mut [u64]) -> (f64, f64) {
    nanoseconds.sort_unstable();
    let at = |share: f64| {
        let index = (nanoseconds.len() as f64 * share) as usize;
        nanoseconds.get(index.min(nanoseconds.len().saturating_sub(1))).map_or(0.0, |ns| *ns as f64 / 1e3)
    };
    (at(0.5), at(0.99))
}

fn start_pass(backend: SocketAddr, cores: Option<Cores>) -> Result<Server> {
    let mut command = Command::new(std::env::current_exe()?);
    Server::start(command.args(["pass", &backend.to_string()]), cores, |line| line.parse().ok())
}

fn start_gateway(binary: &Path, set: &Path, cores: Option<Cores>) -> Result<Server> {
    let mut command = Command::new(binary);
    command.args(["serve", "--listen", "127.0.0.1:0", "--add"]).arg(set);
    command.env("REFRAME_BENCH_KEY", API_KEY).env_remove("PORT");
    Server::start(&mut command, cores, |line| {
        let (_, url) = line.split_once("listening on http://")?;
        url.split(['/', ' ']).next()?.parse().ok()
    })
}

/// `command`: with `{backend}` and `{port}`.
fn start_peer(command: &str, backend: SocketAddr, cores: Option<Cores>) -> Result<Server> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let command = command.replace("{backend}", &backend.to_string()).replace("{port}", &port.to_string());
    let mut words = command.split_whitespace();
    let program = words.next().context("--peer is empty")?;
    Server::start_on(port, Command::new(program).args(words), cores)
}

/// A set with both APIs for clients and the mock as backend. Strict validation, authentication and metrics are on; so is
/// the access log, which is the default.
fn gateway_set(backend: Api, mock: SocketAddr) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    let backend = match backend {
        Api::Chat => "openai-chat",
        Api::Responses => "openai-responses",
    };
    let gateway = format!(
        "validation: strict
backends:
  mock: {{ use: {backend}, url: \"http://{mock}/v1\" }}
models:
  - {{ match: \"*\", backend: mock }}
routes:
  - {{ endpoint: POST {}, dialect: chat, profile: openai }}
  - {{ endpoint: POST {}, dialect: responses, profile: openai }}
api_keys:
  - {{ name: bench, secret: {{ env: REFRAME_BENCH_KEY }} }}
metrics: /metrics
limits: {{ streams: 5000 }}
",
        Api::Chat.path(),
        Api::Responses.path(),
    );
    fs::write(folder.path().join("gateway.yaml"), gateway)?;
    Ok(folder)
}
