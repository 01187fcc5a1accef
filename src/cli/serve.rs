//! `reframe serve`: loads the mappings, starts the listeners and watches the files.

use super::{EXIT_OK, set_name, use_colour};
use crate::diagnostics::count_noun;
use crate::mapping::Overrides;
use crate::mapping::config::gateway::{Auth, GatewayPlan};
use crate::mapping::config::overrides::BackendOverride;
use crate::mapping::config::secret::SecretSource;
use crate::reload::watcher::{FolderWatcher, SafetyPoll};
use crate::reload::{Cause, Layers, Reloader};
use crate::server::admin::Admin;
use crate::server::listener::Listener;
use crate::server::{AppState, Gateway, auth};
use crate::telemetry::{self, LogQueue};
use clap::Args;
use std::ffi::OsString;
use std::future::{Future, pending};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The options under this heading are accepted by every command, but only the help of `serve` lists them.
pub const SERVER_OPTIONS: &str = "Server options";

#[derive(Args, Default)]
pub struct ServeArgs {
    /// Listen address, HOST:PORT; port 0 picks a free port [default: 127.0.0.1:$PORT, else `listen` in gateway.yaml]
    #[arg(long, global = true, value_name = "ADDR", help_heading = SERVER_OPTIONS)]
    listen: Option<String>,
    /// Address of the admin listener, which must be local: reload, status, metrics. Its bearer token is in
    /// REFRAME_ADMIN_TOKEN
    #[arg(long, global = true, value_name = "ADDR", help_heading = SERVER_OPTIONS)]
    admin: Option<String>,
    /// Send every model to one backend: the name of a backend file and a base URL. Its API key is in
    /// REFRAME_BACKEND_KEY
    #[arg(long, global = true, value_name = "NAME=URL", help_heading = SERVER_OPTIONS)]
    backend: Option<String>,
    /// Use this profile for every route
    #[arg(long, global = true, value_name = "NAME")]
    profile: Option<String>,
    /// Reload on file events only, without the poll for lost events: to test the events
    #[arg(long, global = true, hide = true)]
    no_poll: bool,
}

const BACKEND_KEY: &str = "REFRAME_BACKEND_KEY";

impl ServeArgs {
    pub fn overrides(&self) -> Result<Overrides, String> {
        let backend = match &self.backend {
            None => None,
            Some(text) => {
                let (name, url) = text.split_once('=').ok_or_else(|| {
                    format!("--backend {text}: write NAME=URL, such as openai-chat=http://127.0.0.1:9000/v1")
                })?;
                let key = std::env::var_os(BACKEND_KEY).filter(|k| !k.is_empty());
                let key = key.map(|_| SecretSource::Env(BACKEND_KEY.to_owned()));
                Some(BackendOverride { name: name.to_owned(), url: url.to_owned(), api_key: key })
            }
        };
        let listen = self.listen.clone().or_else(|| port_variable().map(|p| format!("127.0.0.1:{p}")));
        let lossy = |text: OsString| text.to_string_lossy().into_owned();
        let environment = std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect();
        Ok(Overrides { backend, profile: self.profile.clone(), environment, listen, admin: self.admin.clone() })
    }

    pub fn poll(&self) -> SafetyPoll {
        if self.no_poll { SafetyPoll::Off } else { SafetyPoll::On }
    }

    /// Checks PORT if it is used. Other commands than `serve` ignore it.
    pub fn check_port(&self) -> Result<(), String> {
        match port_variable().filter(|_| self.listen.is_none()) {
            Some(port) if port.parse::<u16>().is_err() => {
                Err(format!("PORT must be a number from 0 to 65535, not `{port}`"))
            }
            _ => Ok(()),
        }
    }
}

fn port_variable() -> Option<String> {
    std::env::var("PORT").ok().filter(|port| !port.is_empty())
}

/// Below this path, most client libraries expect the endpoints of a base URL.
const CLIENT_BASE: &str = "/v1/";

/// How long turns in flight may take to finish after a stop signal.
const DRAIN: Duration = Duration::from_secs(10);

pub fn run(layers: Layers, overrides: Overrides, poll: SafetyPoll) -> Result<u8, String> {
    telemetry::init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start the async runtime: {error}"))?;
    // Before the first set is read: a SIGHUP without a handler kills the process.
    let hangups = {
        let _inside = runtime.enter();
        HangupSignals::subscribe()
    };
    let reloader = Reloader::open(layers, overrides).map_err(|error| {
        eprintln!("{}", error.render(use_colour()));
        "the mappings do not load, so there is nothing to serve"
    })?;
    let code = runtime.block_on(serve(reloader, poll, hangups));
    // A reload that is still being checked must not delay the end of the process.
    runtime.shutdown_background();
    LogQueue::stderr().flush();
    code
}

async fn serve(reloader: Arc<Reloader>, poll: SafetyPoll, hangups: HangupSignals) -> Result<u8, String> {
    // Precedence: flag, environment, file, default.
    let addr = reloader.current().plan.gateway.listen.clone().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = Listener::bind(&addr).await.map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::InvalidInput => format!("`{addr}` is not HOST:PORT"),
            _ => format!("cannot listen on {addr}: {error}"),
        };
        format!("{why}\nhelp: choose another address with --listen 127.0.0.1:0 or PORT=0, which picks a free port")
    })?;
    let app_state = Arc::new(AppState::default());
    let listener = listener.with_write_timeout(app_state.write_timeout.clone());
    let first = reloader.current();
    first.log_warnings();
    let gateway = &first.plan.gateway;
    app_state.write_timeout.set(gateway.client_timeouts.write.0);
    app_state.client_pool.keys.seal(secret_sources(gateway));
    let remote_allowed = gateway.auth == Auth::None || auth::has_api_key(gateway, &app_state.client_pool.keys);
    if !remote_allowed && !listener.local_addr().ip().is_loopback() {
        return Err(format!(
            "{addr} is not a local address and no API key is configured\n\
             help: set REFRAME_API_KEY, or set `auth: none` in gateway.yaml to accept requests without a key"
        ));
    }
    if let Some(short) = auth::short_api_key(gateway, &app_state.client_pool.keys)
        && !listener.local_addr().ip().is_loopback()
    {
        return Err(format!(
            "{addr} is not a local address and the API key `{short}` has fewer than {} characters\n\
             help: use a longer key, such as the output of `openssl rand -hex 24`",
            auth::MIN_REMOTE_KEY
        ));
    }
    for backend in &gateway.backends {
        let source = backend.address.as_ref().and_then(|address| address.api_key.as_ref());
        if let Some(source) = source.filter(|source| app_state.client_pool.keys.get(source).is_none()) {
            let why = app_state.client_pool.keys.missing_reason(source);
            tracing::warn!(backend = backend.name, reason = why, "the API key of the backend is missing");
        }
    }
    let admin = Admin::bind(gateway, &app_state.client_pool.keys).await?;
    drop(first);
    let watched = reloader.clone();
    let changed = reloader.clone();
    // Kept as long as the server runs: dropping it stops watching.
    let on_change = move || drop(changed.reload(Cause::Watch));
    let _watcher = match FolderWatcher::start(poll, move || watched.layers().folders(), on_change) {
        Ok(watch) => Some(watch),
        Err(error) => {
            tracing::warn!(error, "cannot watch the mappings; changes need SIGHUP or POST /admin/reload");
            None
        }
    };
    // Picks up changes made between the first read and the start of the watcher.
    reloader.reload(Cause::Watch);
    let (stop, stop_now) = (stop_signal(1), stop_signal(2));
    tokio::spawn(hangups.reload(reloader.clone()));
    let admin_addr = admin.as_ref().map(|(listener, _)| listener.local_addr());
    if let Some((listener, token)) = admin {
        let admin = Admin::new(reloader.clone(), app_state.clone(), token);
        // Runs until the process exits, so that /status is available while the last turns finish.
        tokio::spawn(listener.serve(admin, pending(), Duration::ZERO));
    }
    // A closed stdout (the parent process exited) must not stop the server.
    let _ = io::stdout().write_all(banner(&reloader, listener.local_addr(), admin_addr).as_bytes());
    let draining = reloader.clone();
    let stop = async move {
        stop.await;
        let requests = count_noun(draining.turns_in_flight(), "request");
        tracing::info!("shutting down: draining {requests}, at most {}s", DRAIN.as_secs());
    };
    tokio::select! {
        () = listener.serve(Gateway::new(reloader, app_state), stop, DRAIN) => {}
        () = stop_now => tracing::info!("second stop signal, dropping the requests in flight"),
    }
    tracing::info!("stopped");
    Ok(EXIT_OK)
}

fn banner(reloader: &Reloader, addr: SocketAddr, admin: Option<SocketAddr>) -> String {
    let generation = reloader.current();
    let gateway = &generation.plan.gateway;
    let watching = if reloader.layers().folders().is_empty() { "" } else { " (watching)" };
    let (version, set) = (env!("CARGO_PKG_VERSION"), set_name(reloader.layers()));
    let mut lines = vec![format!("reframe {version}  generation {}  {set}{watching}", generation.number)];
    for route in &gateway.routes {
        let profile = route.profile.as_deref().map(|p| format!(", profile {p}")).unwrap_or_default();
        lines.push(format!("  {:<5}{:<28} dialect {}{profile}", route.method, route.path, route.dialect));
    }
    for backend in &gateway.backends {
        if let Some(address) = &backend.address {
            lines.push(format!("  backend {} at {}", backend.name, address.url));
        }
    }
    for route in &gateway.static_routes {
        lines.push(format!("  {:<5}{}", route.method, route.path));
    }
    if let Some((path, body)) = &gateway.example {
        let body = body.replace('\'', "'\\''");
        lines.push(format!("try:\n  curl -N http://{addr}{path} -H 'content-type: application/json' -d '{body}'"));
    }
    lines.extend(admin.map(|addr| format!("admin on http://{addr}/status")));
    let base = if gateway.routes.iter().any(|route| route.path.starts_with(CLIENT_BASE)) { CLIENT_BASE } else { "" };
    lines.push(format!("listening on http://{addr}{}\n", base.trim_end_matches('/')));
    lines.join("\n")
}

/// The sources of all secrets, which are read once at start.
fn secret_sources(gateway: &GatewayPlan) -> impl Iterator<Item = &SecretSource> {
    let clients = gateway.api_keys.iter().map(|key| &key.secret);
    let backends = gateway.backends.iter().filter_map(|b| b.address.as_ref()?.api_key.as_ref());
    clients.chain(backends)
}

/// Reloads on SIGHUP, as other servers do.
#[cfg(unix)]
struct HangupSignals(io::Result<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl HangupSignals {
    fn subscribe() -> HangupSignals {
        use tokio::signal::unix::{SignalKind, signal};
        HangupSignals(signal(SignalKind::hangup()))
    }

    async fn reload(self, reloader: Arc<Reloader>) {
        let Ok(mut signals) = self.0 else {
            tracing::warn!("cannot handle SIGHUP");
            return;
        };
        while signals.recv().await.is_some() {
            let reloader = reloader.clone();
            // The reloader logs the outcome.
            let reload = tokio::task::spawn_blocking(move || drop(reloader.reload(Cause::Signal)));
            if reload.await.is_err() {
                tracing::error!("a reload panicked");
            }
        }
    }
}

#[cfg(not(unix))]
struct HangupSignals;

#[cfg(not(unix))]
impl HangupSignals {
    fn subscribe() -> HangupSignals {
        HangupSignals
    }

    async fn reload(self, _reloader: Arc<Reloader>) {}
}

/// Resolves after the given number of SIGINT or SIGTERM signals. The handlers are installed by the call, not by the
/// first poll: a signal in between would kill the process.
#[cfg(unix)]
fn stop_signal(times: usize) -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupt = signal(SignalKind::interrupt());
    let terminate = signal(SignalKind::terminate());
    async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) else {
            tracing::warn!("cannot handle SIGINT and SIGTERM; only SIGKILL stops the server");
            return std::future::pending().await;
        };
        for _ in 0..times {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        }
    }
}

#[cfg(not(unix))]
async fn stop_signal(times: usize) {
    for _ in 0..times {
        let _ = tokio::signal::ctrl_c().await;
    }
}
