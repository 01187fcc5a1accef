//! `reframe test --watch`: once at the start, and again whenever a file has changed.

use super::{TestArgs, once};
use crate::cli::{COULD_NOT_RUN, FINE, colour};
use crate::reload::generation::hash;
use crate::reload::watcher::Watch;
use crate::reload::{Layers, read};
use tokio::sync::mpsc;

/// Runs until it is told to stop, and exits as the last run did.
pub fn run(args: &TestArgs, layers: &Layers) -> u8 {
    if layers.folders().is_empty() {
        eprintln!("error: the embedded mappings never change; name a folder with --mappings or --add");
        return COULD_NOT_RUN;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: {error}");
            return COULD_NOT_RUN;
        }
    };
    runtime.block_on(watch(args, layers))
}

/// Why the next run begins, or none does.
enum Told {
    Changed,
    Stop,
}

async fn watch(args: &TestArgs, layers: &Layers) -> u8 {
    let (tell, mut told) = mpsc::unbounded_channel();
    let (stop, folders) = (tell.clone(), layers.clone());
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        let _ = stop.send(Told::Stop);
    });
    // From here on Ctrl-C is heard, also one that comes in the middle of a run.
    tokio::task::yield_now().await;
    let changed = move || {
        let _ = tell.send(Told::Changed);
    };
    // Started before the first reading, so that no save falls between the two.
    let _watch = match Watch::start(move || folders.folders(), changed) {
        Ok(watch) => watch,
        Err(error) => {
            eprintln!("error: {error}");
            return COULD_NOT_RUN;
        }
    };
    let mut code = FINE;
    let mut last = None;
    loop {
        let files = read(layers);
        // Not every change on disk is one of the set.
        let now = files.as_ref().ok().map(|files| hash(files));
        if now.is_none() || now != last {
            last = now;
            code = match files {
                Ok(files) => once(args, layers, &files),
                Err(refusal) => {
                    eprint!("{}", refusal.render(colour()));
                    COULD_NOT_RUN
                }
            };
            eprintln!("watching; Ctrl-C ends");
        }
        match told.recv().await {
            Some(Told::Changed) => {}
            Some(Told::Stop) | None => return code,
        }
    }
}
