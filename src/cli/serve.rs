//! `reframe serve`: loads the mappings, starts the listeners and watches the files.

use super::signals::{HangupSignals, stop_signal};
use super::{EXIT_OK, set_name, use_colour};
use crate::diagnostics::count_noun;
use crate::mapping::Overrides;
use crate::mapping::config::client_keys::Auth;
use crate::mapping::config::gateway::GatewayPlan;
use crate::mapping::config::overrides::BackendOverride;
use crate::mapping::config::secret::SecretSource;
use crate::mapping::config::timeouts::Drain;
use crate::reload::watcher::{FolderWatcher, SafetyPoll};
use crate::reload::{Cause, Layers, Reloader};
use crate::server::admin::Admin;
use crate::server::listener::Listener;
use crate::server::{AppState, Gateway, auth, log_lines, open_files};
use crate::telemetry::{self, FileLog, LogFormat, LogQueue};
use clap::{Args, ValueEnum};
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
    /// Send every model to one backend: the name of a backend file and a base URL, or only the name of one that is a
    /// child process. Its API key is in REFRAME_BACKEND_KEY
    #[arg(long, global = true, value_name = "NAME[=URL]", help_heading = SERVER_OPTIONS)]
    backend: Option<String>,
    /// How log lines are written [default: $REFRAME_LOG_FORMAT, else text]
    #[arg(long, global = true, value_enum, value_name = "FORMAT", help_heading = SERVER_OPTIONS)]
    log_format: Option<LogFormat>,
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
                let (name, url) =
                    text.split_once('=').map_or((&**text, None), |(name, url)| (name, Some(url.to_owned())));
                let key = std::env::var_os(BACKEND_KEY).filter(|k| !k.is_empty());
                let key = key.map(|_| SecretSource::Env(BACKEND_KEY.to_owned()));
                Some(BackendOverride { name: name.to_owned(), url, api_key: key })
            }
        };
        let lossy = |text: OsString| text.to_string_lossy().into_owned();
        let environment = std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect();
        let (profile, listen, admin) = (self.profile.clone(), self.listen.clone(), self.admin.clone());
        Ok(Overrides { backend, profile, environment, listen, port: port_variable(), admin })
    }

    /// Of the option or the environment. A word in the environment that is no format is ignored: logging must not fail.
    pub fn log_format(&self) -> LogFormat {
        let variable = || LogFormat::from_str(&std::env::var("REFRAME_LOG_FORMAT").ok()?, true).ok();
        self.log_format.or_else(variable).unwrap_or_default()
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

/// How long the failure of turns that are ended by `drain.limit` may take to reach their clients.
const FAILURE_TIME: Duration = Duration::from_secs(1);

pub fn run(layers: Layers, overrides: Overrides, poll: SafetyPoll, log_format: LogFormat) -> Result<u8, String> {
    telemetry::init(log_format);
    open_files::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start the async runtime: {error}"))?;
    // Before the first set is read: a SIGHUP without a handler kills the process.
    let hangups = {
        let _inside = runtime.enter();
        HangupSignals::subscribe()
    };
    let reloader = Reloader::open(layers, overrides).map_err(|error| {
        LogQueue::flush_all();
        eprintln!("{}", error.render(use_colour()));
        "the mappings do not load, so there is nothing to serve"
    })?;
    reloader.print_with(|report| LogQueue::stderr().print(report));
    let code = runtime.block_on(serve(reloader, poll, hangups));
    // A reload that is still being checked must not delay the end of the process.
    runtime.shutdown_background();
    FileLog::flush_all();
    LogQueue::flush_all();
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
    let first = reloader.current();
    let listener = listener
        .with_write_timeout(app_state.write_timeout.clone())
        .with_header_timeout(first.plan.gateway.client_timeouts.headers.0);
    first.log_warnings();
    let gateway = &first.plan.gateway;
    app_state.write_timeout.set(gateway.client_timeouts.write.0);
    app_state.client_pool.keys.seal(secret_sources(gateway));
    if !listener.local_addr().ip().is_loopback() {
        check_remote_keys(&addr, gateway, &app_state)?;
        let sources = gateway.api_keys.iter().map(|key| &key.secret);
        app_state.client_pool.keys.set_rules(sources, auth::remote_key_rules(gateway));
    }
    warn_about_missing_keys(gateway, &app_state);
    app_state.client_pool.children.start(gateway, log_lines::worker_reader(&gateway.logs))?;
    let (prepared, state) = (first.clone(), app_state.clone());
    // Before clients are accepted: they could use up the descriptors that it takes to read the root certificates.
    let prepare = move || state.client_pool.prepare(&prepared.plan.gateway.backends);
    drop(tokio::task::spawn_blocking(prepare).await);
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
        tokio::spawn(listener.serve(admin, pending(), || Some(Duration::ZERO)));
    }
    // Warnings about the set come before the banner.
    LogQueue::stderr().flush();
    // A closed stdout (the parent process exited) must not stop the server.
    let _ = io::stdout().write_all(banner(&reloader, listener.local_addr(), admin_addr).as_bytes());
    log_lines::write_start(&reloader.current(), &app_state, &listener.local_addr().to_string());
    let stopped = drain_after(stop, reloader.clone(), app_state.clone());
    let drained = {
        let reloader = reloader.clone();
        move || reloader.current().plan.gateway.drain.limit.0.map(|limit| limit + FAILURE_TIME)
    };
    let state = app_state.clone();
    let gateway = Gateway::new(reloader, app_state);
    // On a thread of the runtime: on this one, each new connection would cost a switch between threads.
    let mut server = tokio::spawn(listener.with_refusal(gateway.refusal()).serve(gateway, stopped, drained));
    tokio::select! {
        _ = &mut server => {}
        () = stop_now => {
            tracing::info!("second stop signal, dropping the requests in flight");
            server.abort();
        }
    }
    state.client_pool.children.stop().await;
    tracing::info!("stopped");
    Ok(EXIT_OK)
}

/// The errors of an address that others can reach: no API key, or one that can be guessed.
fn check_remote_keys(addr: &str, gateway: &GatewayPlan, app_state: &AppState) -> Result<(), String> {
    let keys = &app_state.client_pool.keys;
    if gateway.auth != Auth::None && !auth::has_api_key(gateway, keys) {
        return Err(format!(
            "{addr} is not a local address and no API key is configured\n\
             help: set REFRAME_API_KEY, or set `auth: none` in gateway.yaml to accept requests without a key"
        ));
    }
    if let Some(short) = auth::short_api_key(gateway, keys) {
        return Err(format!(
            "{addr} is not a local address and the API key `{short}` has fewer than {} characters\n\
             help: use a longer key, such as the output of `openssl rand -hex 24`",
            auth::MIN_REMOTE_KEY
        ));
    }
    if let Some(known) = auth::well_known_api_key(gateway, keys) {
        return Err(format!(
            "{addr} is not a local address and everybody knows the value of the API key `{known}`\n\
             help: use a key of your own, such as the output of `openssl rand -hex 24`"
        ));
    }
    Ok(())
}

fn warn_about_missing_keys(gateway: &GatewayPlan, app_state: &AppState) {
    let keys = &app_state.client_pool.keys;
    for backend in &gateway.backends {
        let source = backend.address.as_ref().and_then(|address| address.api_key.as_ref());
        if let Some(source) = source.filter(|source| keys.get(source).is_none()) {
            let why = keys.missing_reason(source);
            tracing::warn!(backend = backend.name, reason = why, "the API key of the backend is missing");
        }
    }
}

/// After the signal: is no longer ready, serves on for the delay of `drain:`, then lets the turns in flight finish.
async fn drain_after(stop: impl Future<Output = ()>, reloader: Arc<Reloader>, app_state: Arc<AppState>) {
    stop.await;
    app_state.lifecycle.stop();
    let Drain { delay, limit } = reloader.current().plan.gateway.drain;
    if let Some(delay) = delay.0 {
        tracing::info!("stopping: not ready, and still serving for {}s", delay.as_secs_f32());
        tokio::time::sleep(delay).await;
    }
    app_state.lifecycle.drain();
    let requests = count_noun(reloader.turns_in_flight(), "request");
    tracing::info!("shutting down: draining {requests}, at most {limit}");
    // The listener lets turns finish; those that do not get their failure, and a moment to send it.
    tokio::spawn(async move {
        if let Some(limit) = limit.0 {
            tokio::time::sleep(limit).await;
            app_state.lifecycle.cut();
        }
    });
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
        if backend.child.is_some() {
            lines.push(format!("  backend {}: a child process", backend.name));
        }
    }
    for route in gateway.static_routes.iter().filter(|route| gateway.serves(route)) {
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
