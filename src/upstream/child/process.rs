//! Starts a child process that dies with the gateway, and stops it with all processes of its group.
//!
//! A process is started through the gateway's own binary (`reframe launch-child`), which asks the kernel for a signal when
//! its parent dies, and then becomes the command. That signal follows the thread that started the process, so all
//! processes are started by one thread, which ends with the gateway.

use crate::domain::Tree;
use crate::domain::variables;
use crate::engine::render::{self, Scope};
use crate::mapping::config::child_process::{ChildEntry, ProcessTemplate, Supervision, WhileStarting};
use crate::mapping::grammar::notation::TimeLimit;
use crate::mapping::language::field::scalar_text;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// The name of the subcommand that becomes the child process.
pub const LAUNCH: &str = "launch-child";

/// The command of a child process and its supervision, rendered with the environment at startup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSettings {
    pub command: String,
    pub arguments: Vec<String>,
    /// Changes to the environment of the gateway; `None` removes a variable.
    pub environment: Vec<(String, Option<String>)>,
    pub directory: Option<PathBuf>,
    pub is_enabled: bool,
    pub workers: usize,
    pub turns_per_worker: usize,
    pub start_timeout: Duration,
    pub while_starting: WhileStarting,
    pub restart_first: Duration,
    pub restart_longest: Duration,
    pub restart_limit: usize,
    /// `None`: restarts do not resume.
    pub restart_cooldown: Option<Duration>,
    pub recycle_after: Option<Duration>,
    pub recycle_turns: Option<usize>,
    pub stop_timeout: Duration,
    pub line_bytes: usize,
    pub queue_bytes: usize,
    pub read_timeout: Duration,
    pub answer_timeout: Option<Duration>,
}

/// A time limit without end.
const FOREVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);

impl ProcessSettings {
    /// `removed`: variables that the process must not see.
    pub fn render(entry: &ChildEntry, env: &Tree, removed: &[String]) -> Result<ProcessSettings, String> {
        let scope = Scope::default().set(variables::ENV, env);
        let text = |template: &ProcessTemplate, skeleton| {
            let rendered = render::render(skeleton, &scope, &template.pool).map_err(|why| why.to_string())?;
            Ok::<_, String>(rendered.filter(|tree| !tree.is_null()))
        };
        let (mut command, mut arguments, mut directory) = (None, Vec::new(), None);
        let mut environment: Vec<(String, Option<String>)> = removed.iter().map(|name| (name.clone(), None)).collect();
        let mut supervision = Supervision::default();
        for template in &entry.process {
            if let Some(skeleton) = &template.command {
                command = text(template, skeleton)?.and_then(|tree| scalar_text(&tree));
            }
            if let Some(skeleton) = &template.arguments {
                let rendered = text(template, skeleton)?.unwrap_or_default();
                let list = rendered.as_list().ok_or("`arguments:` is not a list")?;
                arguments = list.iter().filter_map(scalar_text).collect();
            }
            if let Some(skeleton) = &template.directory {
                directory = text(template, skeleton)?.and_then(|tree| tree.as_str().map(PathBuf::from));
            }
            for (name, skeleton) in &template.environment {
                let value = text(template, skeleton)?.and_then(|tree| scalar_text(&tree));
                environment.retain(|(known, _)| known != name);
                environment.push((name.clone(), value));
            }
            supervision = template.supervision.or(supervision);
        }
        let limit = |setting: Option<TimeLimit>, default: Duration| match setting {
            Some(TimeLimit(limit)) => limit.unwrap_or(FOREVER),
            None => default,
        };
        let s = supervision;
        let seconds = Duration::from_secs;
        Ok(ProcessSettings {
            command: command.filter(|command: &String| !command.is_empty()).ok_or("`command:` is empty")?,
            arguments,
            environment,
            directory,
            is_enabled: s.enabled.unwrap_or(true),
            workers: s.workers.map_or(1, |count| count.0),
            turns_per_worker: s.turns_per_worker.map_or(256, |count| count.0),
            start_timeout: limit(s.start_timeout, seconds(15)),
            while_starting: s.while_starting.map_or(WhileStarting::Wait, |name| name.0),
            restart_first: limit(s.restart_first, Duration::from_millis(500)),
            restart_longest: limit(s.restart_longest, seconds(5)),
            restart_limit: s.restart_limit.map_or(25, |count| count.0),
            restart_cooldown: s.restart_cooldown.map_or(Some(seconds(60)), |limit| limit.0),
            recycle_after: TimeLimit::of(s.recycle_after),
            recycle_turns: s.recycle_turns.map(|count| count.0),
            stop_timeout: limit(s.stop_timeout, seconds(5)),
            line_bytes: s.line_bytes.map_or(16 << 20, |bytes| bytes.0),
            queue_bytes: s.queue_bytes.map_or(64 << 20, |bytes| bytes.0),
            read_timeout: limit(s.read_timeout, seconds(60)),
            answer_timeout: TimeLimit::of(s.answer_timeout),
        })
    }

    /// The file of the program. A relative path is one of the gateway's working directory, not of the child's; a name
    /// without a folder is searched for in the child's `PATH`.
    fn program(&self) -> io::Result<PathBuf> {
        let missing = |why: &str| io::Error::new(io::ErrorKind::NotFound, why);
        if self.command.contains('/') {
            let path = std::path::absolute(&self.command)?;
            return if path.is_file() { Ok(path) } else { Err(missing("there is no such file")) };
        }
        let path = match self.environment.iter().find(|(name, _)| name == "PATH") {
            Some((_, path)) => path.as_ref().map(OsString::from),
            None => std::env::var_os("PATH"),
        };
        let mut candidates =
            std::env::split_paths(path.as_deref().unwrap_or_default()).map(|dir| dir.join(&self.command));
        candidates.find(|candidate| candidate.is_file()).ok_or_else(|| missing("no folder of PATH has this program"))
    }

    fn to_command(&self) -> io::Result<Command> {
        if let Some(directory) = &self.directory {
            std::fs::create_dir_all(directory)?;
        }
        let mut command = launcher()?;
        command.arg(LAUNCH).arg(std::process::id().to_string()).arg(self.program()?).args(&self.arguments);
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        Ok(command)
    }
}

/// The gateway's own binary: the running one, also after its file was replaced.
fn launcher() -> io::Result<Command> {
    if cfg!(target_os = "linux") {
        return Ok(Command::new("/proc/self/exe"));
    }
    std::env::current_exe().map(Command::new)
}

/// Becomes the command. Returns only if that fails.
#[cfg(unix)]
pub fn launch(parent: u32, command: &std::ffi::OsStr, arguments: &[OsString]) -> io::Error {
    use std::os::unix::process::CommandExt;
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, getppid, set_parent_process_death_signal};
        if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
            return error.into();
        }
        // A parent that died before the signal was requested sends none.
        if getppid().is_none_or(|pid| pid.as_raw_nonzero().get().cast_unsigned() != parent) {
            return io::Error::other("the gateway has ended");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = parent;
    std::process::Command::new(command).args(arguments).exec()
}

#[cfg(not(unix))]
pub fn launch(_: u32, _: &std::ffi::OsStr, _: &[OsString]) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "child processes are not supported on this platform")
}

/// The thread that starts all child processes.
#[derive(Debug)]
pub struct Spawner {
    requests: mpsc::Sender<SpawnRequest>,
}

struct SpawnRequest {
    command: Command,
    reply: oneshot::Sender<io::Result<Child>>,
}

impl Spawner {
    /// Call inside the runtime that reads the processes' output.
    pub fn start() -> io::Result<Spawner> {
        let (requests, received) = mpsc::channel::<SpawnRequest>();
        let runtime = Handle::current();
        std::thread::Builder::new().name("child-spawner".to_owned()).spawn(move || {
            let _inside = runtime.enter();
            for SpawnRequest { mut command, reply } in received {
                // If nobody waits for it any more, the process is killed when it is dropped.
                let _ = reply.send(command.spawn());
            }
        })?;
        Ok(Spawner { requests })
    }

    pub async fn spawn(&self, settings: &ProcessSettings) -> io::Result<ChildProcess> {
        let (reply, received) = oneshot::channel();
        let request = SpawnRequest { command: settings.to_command()?, reply };
        let stopped = || io::Error::other("the thread that starts processes has ended");
        self.requests.send(request).map_err(|_| stopped())?;
        let child = received.await.map_err(|_| stopped())??;
        let pid = child.id();
        Ok(ChildProcess { child, group: pid, pid })
    }
}

/// A child process. Dropping it kills the processes of its group.
#[derive(Debug)]
pub struct ChildProcess {
    pub child: Child,
    pub pid: Option<u32>,
    /// The process group, until it is gone.
    group: Option<u32>,
}

impl ChildProcess {
    /// Waits for the end of the process, and ends what is left of its group.
    pub async fn wait(&mut self) -> String {
        let status = self.child.wait().await;
        self.kill();
        self.group = None;
        match status {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    pub fn terminate(&self) {
        self.signal(EndSignal::Terminate);
    }

    pub fn kill(&self) {
        self.signal(EndSignal::Kill);
    }

    #[cfg(unix)]
    fn signal(&self, signal: EndSignal) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let signal = match signal {
            EndSignal::Terminate => Signal::TERM,
            EndSignal::Kill => Signal::KILL,
        };
        if let Some(group) = self.group.and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            // It fails if the group is gone, which is the goal.
            let _ = kill_process_group(group, signal);
        }
    }

    #[cfg(not(unix))]
    fn signal(&self, _: EndSignal) {}
}

#[derive(Clone, Copy)]
enum EndSignal {
    Terminate,
    Kill,
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
