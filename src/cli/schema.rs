//! `reframe schema`: the JSON Schemas of mapping files, and the reference generated from the same doc comments.

use super::{EXIT_FINDINGS, EXIT_OK, error, print_report};
use crate::diagnostics::count_noun;
use crate::mapping::spec::{FILE_KINDS, FileKind, reference};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::Path;
use std::{fs, iter};

#[derive(Args)]
pub struct SchemaArgs {
    /// A kind of mapping file
    #[arg(value_name = "KIND", value_parser = PossibleValuesParser::new(FILE_KINDS.iter().map(|k| k.name)))]
    kind: Option<String>,
    /// Write schemas/mapping/KIND.json (without KIND all of them, and docs/mappings/reference.md)
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// Check whether these files are current
    #[arg(long)]
    check: bool,
}

struct GeneratedFile {
    path: String,
    text: String,
}

pub fn run(args: &SchemaArgs) -> Result<u8, String> {
    let kind = args.kind.as_deref().and_then(FileKind::find);
    match (args.write, args.check, kind) {
        (true, ..) => write(&generated_files(kind)),
        (false, true, _) => Ok(check(&generated_files(kind))),
        (false, false, Some(kind)) => print_report(&text(kind), EXIT_OK),
        (false, false, None) => print_report(&list(), EXIT_OK),
    }
}

fn generated_files(kind: Option<&FileKind>) -> Vec<GeneratedFile> {
    let schema =
        |kind: &FileKind| GeneratedFile { path: format!("schemas/mapping/{}.json", kind.name), text: text(kind) };
    match kind {
        Some(kind) => vec![schema(kind)],
        None => {
            let reference = GeneratedFile { path: "docs/mappings/reference.md".to_owned(), text: reference::text() };
            FILE_KINDS.iter().map(schema).chain(iter::once(reference)).collect()
        }
    }
}

fn text(kind: &FileKind) -> String {
    format!("{:#}\n", kind.schema())
}

fn list() -> String {
    FILE_KINDS.iter().map(|kind| format!("{:<9} {}\n", kind.name, kind.files)).collect()
}

fn write(generated_files: &[GeneratedFile]) -> Result<u8, String> {
    let mut written = 0;
    for file in generated_files.iter().filter(|file| !is_current(file)) {
        let folder = Path::new(&file.path).parent().unwrap_or(Path::new("."));
        let written_file = fs::create_dir_all(folder).and_then(|()| fs::write(&file.path, &file.text));
        written_file.map_err(|cause| error(format!("{}: {cause}", file.path)))?;
        println!("wrote {}", file.path);
        written += 1;
    }
    println!("{}, {written} written", count_noun(generated_files.len(), "file"));
    Ok(EXIT_OK)
}

fn check(generated_files: &[GeneratedFile]) -> u8 {
    let stale: Vec<&GeneratedFile> = generated_files.iter().filter(|file| !is_current(file)).collect();
    for file in &stale {
        let how = if Path::new(&file.path).exists() { "stale" } else { "missing" };
        println!("{how}: {}", file.path);
    }
    println!("{}, {} stale", count_noun(generated_files.len(), "file"), stale.len());
    if stale.is_empty() {
        return EXIT_OK;
    }
    println!("run `reframe schema --write`");
    EXIT_FINDINGS
}

fn is_current(file: &GeneratedFile) -> bool {
    fs::read_to_string(&file.path).is_ok_and(|text| text == file.text)
}
