//! Runs the real binary as a child process that is killed when its guard is dropped.

use super::{AdminClient, ChatRequest, Client, Reply, Request, ResponseStream, TIMEOUT, TestDir};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// A server that listens. Dropping it kills the process.
pub struct Server {
    child: Child,
    addr: SocketAddr,
    /// The output up to the line that names the address.
    pub banner: String,
    log: Arc<Log>,
    /// What it printed after the banner.
    printed: Arc<Log>,
    /// The folders that the process uses, kept while it runs.
    _dirs: Vec<TestDir>,
}

/// How to start the binary. By default it serves the embedded set, in an empty working folder, on a free port.
pub struct Launch {
    command: Command,
    dirs: Vec<TestDir>,
}

/// The result of a command.
#[derive(Debug, PartialEq)]
pub struct Exit {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// The standard error or output of the process so far.
#[derive(Default)]
struct Log {
    text: Mutex<String>,
    grown: Condvar,
}

/// A server with the embedded demo, shared by all tests of a test binary.
pub fn demo() -> &'static Server {
    static SHARED: LazyLock<(Server, Child)> = LazyLock::new(|| {
        let server = serve().start();
        let killer = server.kill_on_exit();
        (server, killer)
    });
    &SHARED.0
}

pub fn serve() -> Launch {
    Launch::new().args(["serve", "--listen", "127.0.0.1:0"])
}

/// A server with the demo and the layer of `dir`.
pub fn serve_with(dir: TestDir) -> Server {
    serve().add(dir).start()
}

impl Launch {
    pub fn new() -> Launch {
        // `./test soak` tests the release binary.
        let binary = std::env::var_os("REFRAME_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_reframe").into());
        let mut command = Command::new(binary);
        let home = TestDir::empty();
        command.current_dir(home.path("")).stdin(Stdio::null());
        for name in ["PORT", "REFRAME_LOG", "REFRAME_API_KEY", "REFRAME_BACKEND_KEY", "REFRAME_ADMIN_TOKEN"] {
            command.env_remove(name);
        }
        Launch { command, dirs: vec![home] }
    }

    /// Adds the layer of `dir` to the set and keeps the folder.
    pub fn add(mut self, dir: TestDir) -> Launch {
        self.command.arg("--add").arg(dir.layer());
        self.dirs.push(dir);
        self
    }

    /// Keeps the folder while the process runs.
    pub fn keep(mut self, dir: TestDir) -> Launch {
        self.dirs.push(dir);
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

    /// Starts the binary with at most so many file descriptors.
    pub fn with_open_files(mut self, limit: usize) -> Launch {
        let own = std::mem::replace(&mut self.command, Command::new("sh"));
        let limited = format!("ulimit -n {limit} && exec \"$0\" \"$@\"");
        self.command.arg("-c").arg(limited).arg(own.get_program()).args(own.get_args()).stdin(Stdio::null());
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => self.command.env(name, value),
                None => self.command.env_remove(name),
            };
        }
        if let Some(folder) = own.get_current_dir() {
            self.command.current_dir(folder);
        }
        self
    }

    /// Enables the admin listener.
    pub fn with_admin(self) -> Launch {
        self.args(["--admin", "127.0.0.1:0"]).env("REFRAME_ADMIN_TOKEN", super::admin_client::TOKEN)
    }

    /// Runs the command to its end.
    pub fn run(mut self) -> Exit {
        let output = self.command.output().unwrap();
        Exit {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command that is expected to fail at start, with a time limit.
    pub fn run_with_timeout(mut self) -> Exit {
        let mut child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let started = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if started.elapsed() > TIMEOUT {
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

    /// Starts the server with closed standard output and standard error.
    pub fn start_with_closed_output(mut self, addr: SocketAddr) -> Server {
        let mut child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        let log = Arc::new(Log::default());
        let printed = Arc::default();
        let mut server = Server { child, addr, banner: String::new(), log, printed, _dirs: self.dirs };
        super::eventually("it listens", || {
            assert_eq!(server.child.try_wait().unwrap(), None, "it ended");
            TcpStream::connect(addr).ok()
        });
        server
    }

    /// Starts the server and waits until it listens.
    pub fn start(self) -> Server {
        let (server, stderr) = self.start_with_unread_log();
        let log = Arc::clone(&server.log);
        thread::spawn(move || log.follow(stderr));
        server
    }

    /// Starts the server with a standard error that nobody reads.
    pub fn start_with_unread_log(mut self) -> (Server, ChildStderr) {
        let mut child = self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Log::default());
        let mut stderr = child.stderr.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        let addr = loop {
            let from = banner.len();
            if stdout.read_line(&mut banner).unwrap() == 0 {
                let status = child.wait().unwrap();
                let mut log = String::new();
                let _ = stderr.read_to_string(&mut log);
                panic!("it did not listen ({status}):\n{banner}\n{log}");
            }
            let line = banner[from..].trim_end();
            if let Some(place) = line.strip_prefix("listening on http://") {
                break place.strip_suffix("/v1").unwrap_or(place).parse().unwrap();
            }
        };
        // Keeps the pipe open, so that later output of the server does not fail.
        let printed = Arc::new(Log::default());
        let following = Arc::clone(&printed);
        thread::spawn(move || following.follow(stdout));
        (Server { child, addr, banner, log, printed, _dirs: self.dirs }, stderr)
    }
}

impl Server {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it printed until it listened.
    pub fn banner(&self) -> &str {
        &self.banner
    }

    /// Starts a shell that kills the server when this test process exits, because statics are never dropped. The shell
    /// waits for the end of its input, which this process holds open.
    pub fn kill_on_exit(&self) -> Child {
        let script = format!("cat >/dev/null; kill -9 {}", self.pid());
        Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    pub fn client(&self) -> Client {
        Client::connect(self.addr)
    }

    /// Sends one request on its own connection.
    pub fn fetch(&self, request: impl Into<Request>) -> Reply {
        self.client().fetch(request)
    }

    /// Sends a streaming request and returns after the response headers. Frames are read on demand.
    pub fn stream(&self, chat: ChatRequest) -> ResponseStream {
        self.client().stream(chat.streamed())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    pub fn sighup(&self) {
        self.signal("-HUP");
    }

    fn signal(&self, signal: &str) {
        let kill = Command::new("kill").arg(signal).arg(self.pid().to_string()).status().unwrap();
        assert!(kill.success());
    }

    /// A client of the admin listener.
    pub fn admin(&self) -> AdminClient {
        let line = self.banner.lines().find_map(|line| line.strip_prefix("admin on http://"));
        let addr = line.and_then(|line| line.strip_suffix("/status")).expect("it has no admin listener");
        AdminClient::new(addr.parse().unwrap())
    }

    /// Waits until the process exits.
    pub fn wait(&mut self) -> ExitStatus {
        super::eventually("the process ends", || self.child.try_wait().unwrap())
    }

    /// What it printed on standard output after the banner.
    pub fn printed(&self) -> String {
        lock(&self.printed.text).clone()
    }

    pub fn log(&self) -> String {
        lock(&self.log.text).clone()
    }

    /// The log with everything that happened before: lines are written in their order, and a little later.
    pub fn complete_log(&self) -> String {
        let from = self.log().len();
        let id = self.fetch(Request::get("/nowhere")).header("x-request-id").unwrap().to_owned();
        self.wait_for_log_from(from, &id);
        self.log()
    }

    /// Waits until the log contains `wanted` and returns the whole log.
    pub fn wait_for_log(&self, wanted: &str) -> String {
        self.wait_for_log_from(0, wanted)
    }

    /// Waits until the log after its first `from` bytes contains `wanted`, and returns that part of the log.
    pub fn wait_for_log_from(&self, from: usize, wanted: &str) -> String {
        let started = Instant::now();
        let mut text = lock(&self.log.text);
        while !text[from..].contains(wanted) {
            let left = TIMEOUT.saturating_sub(started.elapsed());
            assert!(!left.is_zero(), "the log never contained {wanted:?}:\n{}", &text[from..]);
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
    /// Drains the pipe: a full pipe would block the server.
    fn follow(&self, output: impl Read) {
        let mut lines = BufReader::new(output);
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
