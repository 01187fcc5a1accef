//! `reframe openapi`: prints or writes the OpenAPI document of a set, or checks whether the written file is current.

use super::{EXIT_ERROR, EXIT_FINDINGS, EXIT_OK, use_colour};
use crate::mapping::Overrides;
use crate::openapi;
use crate::reload::{Layers, Reloader};
use clap::Args;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

#[derive(Args)]
pub struct OpenapiArgs {
    /// Write the file instead of printing the document
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// Check whether the file is current
    #[arg(long)]
    check: bool,
    /// The file to write or check
    #[arg(long, value_name = "PATH", default_value = "openapi/openapi.json")]
    file: PathBuf,
}

pub fn run(args: &OpenapiArgs, layers: Layers, overrides: Overrides) -> u8 {
    let reloader = match Reloader::open(layers, overrides) {
        Ok(reloader) => reloader,
        Err(error) => {
            eprintln!("{}", error.render(use_colour()));
            return EXIT_ERROR;
        }
    };
    // Without the generation, which would make the file stale after every edit.
    let text = openapi::json_text(&openapi::document(&reloader.current().plan, None));
    let shown = args.file.display();
    if args.check {
        return match fs::read_to_string(&args.file) {
            Ok(written) if written == text => EXIT_OK,
            Ok(_) => {
                eprintln!("{shown} is stale; run `reframe openapi --write`");
                EXIT_FINDINGS
            }
            Err(error) => {
                eprintln!("error: {shown}: {error}\nhelp: run `reframe openapi --write`");
                EXIT_ERROR
            }
        };
    }
    if args.write {
        let folder = args.file.parent().filter(|f| !f.as_os_str().is_empty());
        let written = folder.map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&args.file, &text));
        return match written {
            Ok(()) => EXIT_OK,
            Err(error) => {
                eprintln!("error: {shown}: {error}");
                EXIT_ERROR
            }
        };
    }
    let _ = io::stdout().write_all(text.as_bytes());
    EXIT_OK
}
