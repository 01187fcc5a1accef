//! The processes under test: pinned to a core, with their CPU time and memory from /proc.

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The cores of this process at its start: the first is for gateways, the second for mock and clients.
#[derive(Clone, Copy)]
pub struct Cores {
    gateway: usize,
    tools: usize,
}

impl Cores {
    /// `None` with a single core; nothing is pinned then.
    pub fn find() -> Result<Option<Cores>> {
        let set = sched_getaffinity(None)?;
        let mut allowed = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
        Ok(allowed.next().zip(allowed.next()).map(|(gateway, tools)| Cores { gateway, tools }))
    }

    pub fn pin_tools(self) -> Result<()> {
        pin(self.tools)
    }
}

/// A child process inherits it.
fn pin(core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

fn spawn(command: &mut Command, gateway_core: Option<Cores>) -> Result<Child> {
    if let Some(cores) = gateway_core {
        pin(cores.gateway)?;
    }
    let child = command.spawn();
    if let Some(cores) = gateway_core {
        cores.pin_tools()?;
    }
    child.with_context(|| format!("cannot start {command:?}"))
}

/// A server that is killed when it is dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    /// Starts a server and waits for the line of its output with its address; `address` finds it in a line.
    pub fn start(
        command: &mut Command,
        gateway_core: Option<Cores>,
        address: impl Fn(&str) -> Option<SocketAddr>,
    ) -> Result<Server> {
        let mut child =
            spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()), gateway_core)?;
        let (stdout, stderr) = child.stdout.take().zip(child.stderr.take()).context("the output is not piped")?;
        // The log is on: it is read, as a collector would.
        let log = thread::spawn(move || {
            let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
            let first: Vec<String> = lines.by_ref().take(100).collect();
            lines.for_each(drop);
            first
        });
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        let Some(address) = lines.find_map(|line| address(&line)) else {
            let _ = child.kill();
            let printed = log.join().unwrap_or_default().join("\n");
            bail!("{command:?} did not print its address:\n{printed}");
        };
        thread::spawn(move || lines.for_each(drop));
        Ok(Server { child, address })
    }

    /// Starts a server that prints no address, on a port of this machine, and waits until it accepts connections.
    pub fn start_on(port: u16, command: &mut Command, gateway_core: Option<Cores>) -> Result<Server> {
        let child = spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()), gateway_core)?;
        let mut server = Server { child, address: (Ipv4Addr::LOCALHOST, port).into() };
        for _ in 0..100 {
            if TcpStream::connect(server.address).is_ok() {
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait()? {
                bail!("{command:?} ended: {status}");
            }
            thread::sleep(Duration::from_millis(100));
        }
        bail!("{command:?} did not listen on port {port} within 10 seconds");
    }

    /// CPU time of all its threads so far. The scheduler's count is exact; if the kernel has none, ticks of 10 ms.
    pub fn cpu(&self) -> Result<Duration> {
        let pid = self.child.id();
        let mut total = 0;
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else {
                return self.cpu_ticks();
            };
            total +=
                text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).context("unknown form of schedstat")?;
        }
        Ok(Duration::from_nanos(total))
    }

    fn cpu_ticks(&self) -> Result<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = text.rsplit_once(')').context("unknown form of stat")?.1;
        let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        let per_second = rustix::param::clock_ticks_per_second();
        Ok(Duration::from_nanos(ticks * 1_000_000_000 / per_second))
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
