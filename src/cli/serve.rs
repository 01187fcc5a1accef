//! `reframe serve`: load, listen, watch.

use super::{COULD_NOT_RUN, FINE, colour, shown};
use crate::mapping::Overrides;
use crate::mapping::config::backend_address::KeySource;
use crate::mapping::config::gateway::{Auth, GatewayPlan};
use crate::mapping::config::overrides::BackendAt;
use crate::reload::watcher::Watch;
use crate::reload::{Cause, Layers, Outcome, Store};
use crate::server::admin::{Admin, Closed};
use crate::server::listener::Listener;
use crate::server::{Gateway, Shell, auth};
use crate::telemetry;
use clap::Args;
use std::ffi::OsString;
use std::future::{Future, pending};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

#[derive(Args, Default)]
pub struct ServeArgs {
    /// Where to listen: HOST:PORT, port 0 picks one [default: 127.0.0.1:$PORT, else what gateway.yaml says]
    #[arg(long, global = true, value_name = "ADDR")]
    listen: Option<String>,
    /// Also listen here, on this machine, for those who run the gateway: reload, status, metrics. The token that they show
    /// is in REFRAME_ADMIN_TOKEN
    #[arg(long, global = true, value_name = "ADDR")]
    admin: Option<String>,
    /// Send every model to one backend: the name of a backend file and a base URL. Its key is in REFRAME_BACKEND_KEY
    #[arg(long, global = true, value_name = "NAME=URL")]
    backend: Option<String>,
    /// The profile of every route
    #[arg(long, global = true, value_name = "NAME")]
    profile: Option<String>,
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
                let key = key.map(|_| KeySource::Env(BACKEND_KEY.to_owned()));
                Some(BackendAt { name: name.to_owned(), url: url.to_owned(), key })
            }
        };
        let port = std::env::var("PORT").ok().filter(|p| !p.is_empty());
        let listen = self.listen.clone().or_else(|| port.map(|p| format!("127.0.0.1:{p}")));
        let lossy = |text: OsString| text.to_string_lossy().into_owned();
        let environment = std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect();
        Ok(Overrides { backend, profile: self.profile.clone(), environment, listen, admin: self.admin.clone() })
    }
}

/// How long running turns may take to end after a stop was asked for.
const DRAIN: Duration = Duration::from_secs(10);

pub fn run(layers: Layers, overrides: Overrides) -> u8 {
    telemetry::init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no runtime: {error}");
            return COULD_NOT_RUN;
        }
    };
    // Before the first set is read: a SIGHUP that nobody hears kills the process.
    let hangups = {
        let _inside = runtime.enter();
        Hangups::listen()
    };
    let store = match Store::open(layers, overrides) {
        Ok(store) => store,
        Err(refusal) => {
            eprintln!("{}", refusal.render(colour()));
            eprintln!("error: the mappings do not load, so there is nothing to serve");
            return COULD_NOT_RUN;
        }
    };
    runtime.block_on(serve(store, hangups))
}

async fn serve(store: Arc<Store>, hangups: Hangups) -> u8 {
    // Flag, then environment, then file, then default.
    let addr = store.current().plan.gateway.listen.clone().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = match Listener::bind(&addr).await {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("error: cannot listen on {addr}: {error}");
            eprintln!("help: choose another place with --listen 127.0.0.1:0 or PORT=0, which picks a free port");
            return COULD_NOT_RUN;
        }
    };
    let shell = Arc::new(Shell::default());
    let first = store.current();
    first.tell_warnings();
    let gateway = &first.plan.gateway;
    shell.dialler.keys.seal(sources(gateway));
    let open = gateway.auth == Auth::None || auth::is_closed(gateway, &shell.dialler.keys);
    if !open && !listener.local_addr().ip().is_loopback() {
        eprintln!("error: {addr} can be reached from elsewhere, and no key is asked for");
        eprintln!("help: set REFRAME_API_KEY, or say `auth: none` in gateway.yaml if anybody may ask");
        return COULD_NOT_RUN;
    }
    for backend in &gateway.backends {
        let source = backend.reach.as_ref().and_then(|reach| reach.key.as_ref());
        if let Some(source) = source.filter(|source| shell.dialler.keys.get(source).is_none()) {
            let why = shell.dialler.keys.why_missing(source);
            tracing::warn!(backend = backend.name, why, "the backend's key is missing");
        }
    }
    let admin = match Admin::open(gateway, &shell.dialler.keys).await {
        Ok(admin) => admin,
        Err(Closed { why, help }) => {
            eprintln!("error: {why}\nhelp: {help}");
            return COULD_NOT_RUN;
        }
    };
    drop(first);
    let watched = store.clone();
    let changed = store.clone();
    // Kept for as long as the server runs: dropping it stops the watch.
    let _watch = match Watch::start(move || watched.layers().folders(), move || drop(changed.reload(Cause::Watch))) {
        Ok(watch) => Some(watch),
        Err(error) => {
            tracing::warn!(error, "the mappings are not watched");
            None
        }
    };
    // A change between the first reading and the start of the watch.
    store.reload(Cause::Watch);
    let (stop, hurry) = (told(1), told(2));
    tokio::spawn(hangups.reload(store.clone()));
    let place = admin.as_ref().map(|(listener, _)| listener.local_addr());
    if let Some((listener, token)) = admin {
        let admin = Admin::new(store.clone(), shell.clone(), token);
        // It goes when the process does: until then it tells how the last turns are doing.
        tokio::spawn(listener.serve(admin, pending(), Duration::ZERO));
    }
    // Who started us may be gone; the clients are not.
    let _ = io::stdout().write_all(banner(&store, listener.local_addr(), place).as_bytes());
    tokio::select! {
        () = listener.serve(Gateway::new(store, shell), stop, DRAIN) => {}
        () = hurry => tracing::info!("told to stop again, dropping what still runs"),
    }
    FINE
}

fn banner(store: &Store, addr: SocketAddr, admin: Option<SocketAddr>) -> String {
    let generation = store.current();
    let gateway = &generation.plan.gateway;
    let watching = if store.layers().folders().is_empty() { "" } else { " (watching)" };
    let (version, set) = (env!("CARGO_PKG_VERSION"), shown(store.layers()));
    let mut lines = vec![format!("reframe {version}  generation {}  {set}{watching}", generation.number)];
    for route in &gateway.routes {
        let profile = route.profile.as_deref().map(|p| format!(", profile {p}")).unwrap_or_default();
        lines.push(format!("  {:<5}{:<28} dialect {}{profile}", route.method, route.path, route.dialect));
    }
    for backend in &gateway.backends {
        if let Some(reach) = &backend.reach {
            lines.push(format!("  backend {} at {}", backend.name, reach.url));
        }
    }
    for page in &gateway.pages {
        lines.push(format!("  {:<5}{}", page.method, page.path));
    }
    if let Some((path, body)) = &gateway.example {
        let body = body.replace('\'', "'\\''");
        lines.push(format!("try:\n  curl -N http://{addr}{path} -H 'content-type: application/json' -d '{body}'"));
    }
    lines.extend(admin.map(|addr| format!("admin on http://{addr}/status")));
    lines.push(format!("listening on http://{addr}/v1\n"));
    lines.join("\n")
}

/// Where the secrets are that the start reads.
fn sources(gateway: &GatewayPlan) -> impl Iterator<Item = &KeySource> {
    let clients = gateway.keys.iter().map(|key| &key.secret);
    let backends = gateway.backends.iter().filter_map(|b| b.reach.as_ref()?.key.as_ref());
    clients.chain(backends)
}

/// SIGHUP, as other servers have it.
#[cfg(unix)]
struct Hangups(io::Result<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Hangups {
    fn listen() -> Hangups {
        use tokio::signal::unix::{SignalKind, signal};
        Hangups(signal(SignalKind::hangup()))
    }

    async fn reload(self, store: Arc<Store>) {
        let Ok(mut heard) = self.0 else {
            tracing::warn!("SIGHUP cannot be heard");
            return;
        };
        while heard.recv().await.is_some() {
            let store = store.clone();
            let told = tokio::task::spawn_blocking(move || match store.reload(Cause::Signal) {
                // The others say so themselves.
                Outcome::Unchanged(now) => {
                    tracing::info!("generation {} stays: its files have not changed", now.number);
                }
                Outcome::Applied(_) | Outcome::Refused(_) => {}
            });
            if told.await.is_err() {
                tracing::error!("a reload panicked");
            }
        }
    }
}

#[cfg(not(unix))]
struct Hangups;

#[cfg(not(unix))]
impl Hangups {
    fn listen() -> Hangups {
        Hangups
    }

    async fn reload(self, _store: Arc<Store>) {}
}

/// Resolves when the process has been told to stop so many times. It listens from the call on, not from the first poll:
/// in between a signal would kill the process.
#[cfg(unix)]
fn told(times: usize) -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupt = signal(SignalKind::interrupt());
    let terminate = signal(SignalKind::terminate());
    async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) else {
            tracing::warn!("signals cannot be heard, so only a kill stops the server");
            return std::future::pending().await;
        };
        for _ in 0..times {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        }
    }
}

#[cfg(not(unix))]
async fn told(times: usize) {
    for _ in 0..times {
        let _ = tokio::signal::ctrl_c().await;
    }
}
