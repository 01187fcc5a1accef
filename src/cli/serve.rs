//! `reframe serve`: load, listen, watch.

use super::{COULD_NOT_RUN, FINE, colour, shown};
use crate::mapping::Overrides;
use crate::mapping::gateway::Auth;
use crate::mapping::overrides::BackendAt;
use crate::mapping::reach::KeySource;
use crate::observe;
use crate::reload::{Layers, Store, watch::Watch};
use crate::serve::listen::Listener;
use crate::serve::{Gateway, Shell, auth};
use crate::upstream::secrets;
use clap::Args;
use std::ffi::OsString;
use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

#[derive(Args, Default)]
pub struct ServeArgs {
    /// Where to listen: HOST:PORT, port 0 picks one [default: 127.0.0.1:$PORT, else what gateway.yaml says]
    #[arg(long, global = true, value_name = "ADDR")]
    listen: Option<String>,
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
        let lossy = |text: OsString| text.to_string_lossy().into_owned();
        let environment = std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect();
        Ok(Overrides { backend, profile: self.profile.clone(), environment })
    }
}

/// How long running turns may take to end after a stop was asked for.
const DRAIN: Duration = Duration::from_secs(10);

pub fn run(args: ServeArgs, layers: Layers, overrides: Overrides) -> u8 {
    observe::init();
    let store = match Store::open(layers, overrides) {
        Ok(store) => store,
        Err(refusal) => {
            eprintln!("{}", refusal.render(colour()));
            eprintln!("error: the mappings do not load, so there is nothing to serve");
            return COULD_NOT_RUN;
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no runtime: {error}");
            return COULD_NOT_RUN;
        }
    };
    runtime.block_on(serve(args, store))
}

async fn serve(args: ServeArgs, store: Arc<Store>) -> u8 {
    let addr = address(&args, &store);
    let listener = match Listener::bind(&addr).await {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("error: cannot listen on {addr}: {error}");
            eprintln!("help: choose another place with --listen 127.0.0.1:0 or PORT=0, which picks a free port");
            return COULD_NOT_RUN;
        }
    };
    let shell = Arc::new(Shell::default());
    let gateway = &store.current().plan.gateway;
    let open = gateway.auth == Auth::None || auth::is_closed(gateway, &shell.dialler.keys);
    if !open && !listener.local_addr().ip().is_loopback() {
        eprintln!("error: {addr} can be reached from elsewhere, and no key is asked for");
        eprintln!("help: set REFRAME_API_KEY, or say `auth: none` in gateway.yaml if anybody may ask");
        return COULD_NOT_RUN;
    }
    for backend in &gateway.backends {
        let source = backend.reach.as_ref().and_then(|reach| reach.key.as_ref());
        if let Some(source) = source.filter(|source| shell.dialler.keys.get(source).is_none()) {
            let why = secrets::shown(source);
            tracing::warn!(backend = backend.name, why, "the backend's key is missing");
        }
    }
    let watched = store.clone();
    let changed = store.clone();
    // Kept for as long as the server runs: dropping it stops the watch.
    let _watch = match Watch::start(move || watched.layers().folders(), move || changed.reload()) {
        Ok(watch) => Some(watch),
        Err(error) => {
            tracing::warn!(error, "the mappings are not watched");
            None
        }
    };
    // A change between the first reading and the start of the watch.
    store.reload();
    let (stop, hurry) = (told(1), told(2));
    // Who started us may be gone; the clients are not.
    let _ = io::stdout().write_all(banner(&store, listener.local_addr()).as_bytes());
    tokio::select! {
        () = listener.serve(Gateway::new(store, shell), stop, DRAIN) => {}
        () = hurry => tracing::info!("told to stop again, dropping what still runs"),
    }
    FINE
}

/// Flag, then environment, then file, then default.
fn address(args: &ServeArgs, store: &Store) -> String {
    let port = std::env::var("PORT").ok().filter(|p| !p.is_empty());
    let file = || store.current().plan.gateway.listen.clone();
    args.listen
        .clone()
        .or_else(|| port.map(|p| format!("127.0.0.1:{p}")))
        .or_else(file)
        .unwrap_or_else(|| "127.0.0.1:8080".to_owned())
}

fn banner(store: &Store, addr: SocketAddr) -> String {
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
    lines.push(format!("listening on http://{addr}/v1\n"));
    lines.join("\n")
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
