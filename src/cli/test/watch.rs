//! `reframe test --watch`: runs the tests at start and again whenever a file changes.

use super::{TestArgs, run_once};
use crate::cli::{EXIT_ERROR, EXIT_OK};
use crate::reload::generation::digest;
use crate::reload::watcher::{FolderWatcher, SafetyPoll};
use crate::reload::{Layers, read_set};
use tokio::sync::mpsc;

/// Runs until Ctrl-C and returns the exit code of the last run.
pub fn run(args: &TestArgs, layers: &Layers) -> Result<u8, String> {
    if layers.folders().is_empty() {
        return Err("the embedded mappings never change; name a folder with --mappings or --add".to_owned());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(watch(args, layers))
}

/// What ends the wait for the next run.
enum WatchEvent {
    Changed,
    Stop,
}

async fn watch(args: &TestArgs, layers: &Layers) -> Result<u8, String> {
    let (sender, mut events) = mpsc::unbounded_channel();
    let (stop, folders) = (sender.clone(), layers.clone());
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        let _ = stop.send(WatchEvent::Stop);
    });
    // Installs the Ctrl-C handler before the first run starts.
    tokio::task::yield_now().await;
    let changed = move || {
        let _ = sender.send(WatchEvent::Changed);
    };
    // Started before the first read, so that no change in between is missed.
    let _watcher = FolderWatcher::start(SafetyPoll::On, move || folders.folders(), changed)?;
    let mut code = EXIT_OK;
    let mut last = None;
    loop {
        let files = read_set(layers);
        // Not every change on disk affects the set.
        let now = files.as_ref().ok().map(|files| digest(files));
        if now.is_none() || now != last {
            last = now;
            code = run_once(args, layers, files).unwrap_or_else(|message| {
                eprintln!("{message}");
                EXIT_ERROR
            });
            eprintln!("watching; press Ctrl-C to stop");
        }
        match events.recv().await {
            Some(WatchEvent::Changed) => {}
            Some(WatchEvent::Stop) | None => return Ok(code),
        }
    }
}
