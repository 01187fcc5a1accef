//! `reframe schema`: the JSON Schemas of mapping files, and the reference that is made from the same comments.

use super::check::counted;
use super::{COULD_NOT_RUN, FINDINGS, FINE, say};
use crate::mapping::spec::{KINDS, Kind, reference};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::Path;
use std::{fs, iter};

#[derive(Args)]
pub struct SchemaArgs {
    /// A kind of mapping file
    #[arg(value_name = "KIND", value_parser = PossibleValuesParser::new(KINDS.iter().map(|k| k.name)))]
    kind: Option<String>,
    /// Write schemas/mapping/KIND.json (without KIND all of them, and docs/mapping-reference.md)
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// Say which of these files are not what --write would write
    #[arg(long)]
    check: bool,
}

/// A generated file.
struct Made {
    path: String,
    text: String,
}

pub fn run(args: &SchemaArgs) -> u8 {
    let kind = args.kind.as_deref().and_then(Kind::find);
    match (args.write, args.check, kind) {
        (true, ..) => write(&made(kind)),
        (false, true, _) => check(&made(kind)),
        (false, false, Some(kind)) => say(&text(kind), FINE),
        (false, false, None) => say(&list(), FINE),
    }
}

fn made(kind: Option<&Kind>) -> Vec<Made> {
    let schema = |kind: &Kind| Made { path: format!("schemas/mapping/{}.json", kind.name), text: text(kind) };
    match kind {
        Some(kind) => vec![schema(kind)],
        None => {
            let reference = Made { path: "docs/mapping-reference.md".to_owned(), text: reference::text() };
            KINDS.iter().map(schema).chain(iter::once(reference)).collect()
        }
    }
}

fn text(kind: &Kind) -> String {
    format!("{:#}\n", kind.schema())
}

fn list() -> String {
    KINDS.iter().map(|kind| format!("{:<9} {}\n", kind.name, kind.files)).collect()
}

fn write(made: &[Made]) -> u8 {
    let mut written = 0;
    for file in made.iter().filter(|file| !is_current(file)) {
        let folder = Path::new(&file.path).parent().unwrap_or(Path::new("."));
        if let Err(error) = fs::create_dir_all(folder).and_then(|()| fs::write(&file.path, &file.text)) {
            eprintln!("error: {}: {error}", file.path);
            return COULD_NOT_RUN;
        }
        println!("wrote {}", file.path);
        written += 1;
    }
    println!("{}, {written} written", counted(made.len(), "file"));
    FINE
}

fn check(made: &[Made]) -> u8 {
    let stale: Vec<&Made> = made.iter().filter(|file| !is_current(file)).collect();
    for file in &stale {
        let how = if Path::new(&file.path).exists() { "stale" } else { "missing" };
        println!("{how}: {}", file.path);
    }
    println!("{}, {} stale", counted(made.len(), "file"), stale.len());
    if stale.is_empty() {
        return FINE;
    }
    println!("`reframe schema --write` writes them");
    FINDINGS
}

fn is_current(file: &Made) -> bool {
    fs::read_to_string(&file.path).is_ok_and(|text| text == file.text)
}
