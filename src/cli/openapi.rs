//! `reframe openapi`: the OpenAPI document of a set, printed, written, or compared with what is written.

use super::{COULD_NOT_RUN, FINDINGS, FINE, colour};
use crate::mapping::Overrides;
use crate::openapi;
use crate::reload::{Layers, Store};
use crate::server::api_docs;
use clap::Args;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

#[derive(Args)]
pub struct OpenapiArgs {
    /// Write the file instead of printing the document
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// Say whether the file is current
    #[arg(long)]
    check: bool,
    /// The file
    #[arg(long, value_name = "PATH", default_value = "openapi/openapi.json")]
    file: PathBuf,
}

pub fn run(args: &OpenapiArgs, layers: Layers, overrides: Overrides) -> u8 {
    let store = match Store::open(layers, overrides) {
        Ok(store) => store,
        Err(refusal) => {
            eprintln!("{}", refusal.render(colour()));
            return COULD_NOT_RUN;
        }
    };
    // Without the generation: a file that names it would be stale after every edit.
    let operational = api_docs::operational(store.clone());
    let text = openapi::document(&store.current().plan, None, &operational).to_json_pretty() + "\n";
    let shown = args.file.display();
    if args.check {
        return match fs::read_to_string(&args.file) {
            Ok(written) if written == text => FINE,
            Ok(_) => {
                eprintln!("{shown} is not what the mappings say any more; `reframe openapi --write` writes it");
                FINDINGS
            }
            Err(error) => {
                eprintln!("error: {shown}: {error}\nhelp: `reframe openapi --write` writes it");
                COULD_NOT_RUN
            }
        };
    }
    if args.write {
        let folder = args.file.parent().filter(|f| !f.as_os_str().is_empty());
        let written = folder.map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&args.file, &text));
        return match written {
            Ok(()) => FINE,
            Err(error) => {
                eprintln!("error: {shown}: {error}");
                COULD_NOT_RUN
            }
        };
    }
    let _ = io::stdout().write_all(text.as_bytes());
    FINE
}
