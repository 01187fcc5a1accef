//! The real binary as a process that does not outlive its guard.

use super::{Chat, Client, Disk, FAR_TOO_LONG, Operator, Reply, Request, Streaming};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// A server that is ready. Dropping it kills the process.
pub struct Server {
    child: Child,
    addr: SocketAddr,
    /// What it said until it listened.
    pub banner: String,
    log: Arc<Log>,
    /// What the process works with, for as long as it runs.
    _disks: Vec<Disk>,
}

/// How to start the binary. Without a word it serves what is compiled in, from an empty folder, on a free port.
pub struct Launch {
    command: Command,
    disks: Vec<Disk>,
}

/// What a command left behind.
#[derive(Debug, PartialEq)]
pub struct Exit {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// What the process has written to standard error so far.
#[derive(Default)]
struct Log {
    text: Mutex<String>,
    grown: Condvar,
}

/// The demo, shared by all tests of a program.
pub fn demo() -> &'static Server {
    static SHARED: LazyLock<(Server, Child)> = LazyLock::new(|| {
        let server = serve().start();
        let undertaker = server.undertaker();
        (server, undertaker)
    });
    &SHARED.0
}

pub fn serve() -> Launch {
    Launch::new().args(["serve", "--listen", "127.0.0.1:0"])
}

/// The demo with the layer of a disk over it.
pub fn serve_with(disk: Disk) -> Server {
    serve().add(disk).start()
}

impl Launch {
    pub fn new() -> Launch {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reframe"));
        let home = Disk::empty();
        command.current_dir(home.path("")).stdin(Stdio::null());
        for name in ["PORT", "REFRAME_LOG", "REFRAME_API_KEY", "REFRAME_BACKEND_KEY", "REFRAME_ADMIN_TOKEN"] {
            command.env_remove(name);
        }
        Launch { command, disks: vec![home] }
    }

    /// Lays the layer of a disk over the set, and keeps the disk.
    pub fn add(mut self, disk: Disk) -> Launch {
        self.command.arg("--add").arg(disk.layer());
        self.disks.push(disk);
        self
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Launch {
        self.command.arg(arg);
        self
    }

    pub fn args<const N: usize>(mut self, args: [&str; N]) -> Launch {
        self.command.args(args);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Launch {
        self.command.env(name, value);
        self
    }

    pub fn in_folder(mut self, folder: &Path) -> Launch {
        self.command.current_dir(folder);
        self
    }

    /// With an admin listener.
    pub fn operated(self) -> Launch {
        self.args(["--admin", "127.0.0.1:0"]).env("REFRAME_ADMIN_TOKEN", super::admin_client::TOKEN)
    }

    /// Runs it to its end.
    pub fn run(mut self) -> Exit {
        let output = self.command.output().unwrap();
        Exit {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs it to its end, which must come by itself and soon: for what may not start.
    pub fn refused(mut self) -> Exit {
        let mut child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if begun.elapsed() > FAR_TOO_LONG {
                let _ = child.kill();
            }
            thread::sleep(std::time::Duration::from_millis(2));
        }
        let output = child.wait_with_output().unwrap();
        Exit {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts it with nobody at the other end of its standard output and its standard error.
    pub fn start_unheard(mut self, addr: SocketAddr) -> Server {
        let mut child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        let log = Arc::new(Log::default());
        let mut server = Server { child, addr, banner: String::new(), log, _disks: self.disks };
        super::eventually("it listens", || {
            assert_eq!(server.child.try_wait().unwrap(), None, "it ended");
            TcpStream::connect(addr).ok()
        });
        server
    }

    /// Starts it, and waits until it listens.
    pub fn start(mut self) -> Server {
        let mut child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Log::default());
        let stderr = child.stderr.take().unwrap();
        thread::spawn({
            let log = Arc::clone(&log);
            move || log.follow(stderr)
        });
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        let addr = loop {
            let from = banner.len();
            if stdout.read_line(&mut banner).unwrap() == 0 {
                let status = child.wait().unwrap();
                panic!("it did not listen ({status}):\n{banner}\n{}", lock(&log.text));
            }
            let line = banner[from..].trim_end();
            if let Some(place) = line.strip_prefix("listening on http://") {
                break place.strip_suffix("/v1").unwrap().parse().unwrap();
            }
        };
        // Kept open: a server must not die of a closed pipe when it says something later.
        thread::spawn(move || stdout.read_to_string(&mut String::new()));
        Server { child, addr, banner, log, _disks: self.disks }
    }
}

impl Server {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What is static is never dropped, so its end is left to a shell that waits for the end of its input, which is the
    /// end of this program.
    pub fn undertaker(&self) -> Child {
        let bury = format!("cat >/dev/null; kill -9 {}", self.child.id());
        Command::new("sh").args(["-c", &bury]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    pub fn client(&self) -> Client {
        Client::connect(self.addr)
    }

    /// One request on a connection of its own.
    pub fn ask(&self, request: impl Into<Request>) -> Reply {
        self.client().ask(request)
    }

    /// The head of a stream is there; its frames come as they are asked for.
    pub fn stream(&self, chat: Chat) -> Streaming {
        self.client().stream(chat.streamed())
    }

    /// For what is static and never dropped: a shell ends the process when this program ends.
    pub fn outlived_by_nobody(&self) -> Child {
        let bury = format!("cat >/dev/null; kill -9 {}", self.child.id());
        Command::new("sh").args(["-c", &bury]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    /// How much memory the process has in use, in bytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
    }

    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    pub fn hang_up(&self) {
        self.signal("-HUP");
    }

    fn signal(&self, signal: &str) {
        let kill = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status().unwrap();
        assert!(kill.success());
    }

    /// Whoever runs it, at its admin listener.
    pub fn operator(&self) -> Operator {
        let line = self.banner.lines().find_map(|line| line.strip_prefix("admin on http://"));
        let addr = line.and_then(|line| line.strip_suffix("/status")).expect("it has no admin listener");
        Operator::new(addr.parse().unwrap())
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        super::eventually("the process ends", || self.child.try_wait().unwrap())
    }

    pub fn log(&self) -> String {
        lock(&self.log.text).clone()
    }

    /// Waits until the log says this, and returns all of it.
    pub fn wait_for_log(&self, wanted: &str) -> String {
        self.wait_for_log_from(0, wanted)
    }

    /// Waits until the log says this behind its first `from` bytes, and returns what stands there.
    pub fn wait_for_log_from(&self, from: usize, wanted: &str) -> String {
        let begun = Instant::now();
        let mut text = lock(&self.log.text);
        while !text[from..].contains(wanted) {
            let left = FAR_TOO_LONG.saturating_sub(begun.elapsed());
            assert!(!left.is_zero(), "the log never said {wanted:?}:\n{}", &text[from..]);
            text = self.log.grown.wait_timeout(text, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        text[from..].to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the server's log:\n{}", lock(&self.log.text));
        }
    }
}

impl Log {
    /// A pipe that nobody empties would stop the server.
    fn follow(&self, stderr: impl Read) {
        let mut lines = BufReader::new(stderr);
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
            lock(&self.text).push_str(&line);
            self.grown.notify_all();
            line.clear();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
