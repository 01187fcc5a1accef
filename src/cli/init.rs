//! `reframe init`: writes the embedded set to a folder, so that it can be edited.

use super::{EXIT_OK, error, print_report};
use crate::diagnostics::{count_noun, did_you_mean};
use crate::mapping::SourceFile;
use crate::mapping::source::layout::EDITOR_SCHEMAS;
use crate::mapping::spec::FileKind;
use crate::reload::embedded;
use clap::Args;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The first line of a mapping names its schema, relative to the file. In the repository, schemas are next to the set.
const SCHEMA_LINE: &str = "# yaml-language-server: $schema=../";
/// Inside the set, it is one level nearer.
const SCHEMA_LINE_INSIDE: &str = "# yaml-language-server: $schema=";

#[derive(Args)]
pub struct InitArgs {
    /// The folder to write to; it is created
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Write only these files: `dialects/chat` (with its tests), a folder such as `schemas/chat`, or `gateway.yaml`; can
    /// be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Overwrite files that exist
    #[arg(long)]
    force: bool,
}

pub fn run(args: &InitArgs) -> Result<u8, String> {
    let embedded = embedded::files();
    let files = contents(&selected(&embedded, &args.only)?);
    if !args.force {
        let known: Vec<String> =
            files.keys().map(|name| args.folder.join(name)).filter(|path| path.exists()).map(shown).collect();
        if let Some(first) = known.first() {
            let others = if known.len() > 1 {
                format!(" and {} more", count_noun(known.len() - 1, "file"))
            } else {
                String::new()
            };
            return Err(error(format!(
                "{first}{others} would be overwritten\nhelp: choose another folder, or use --force"
            )));
        }
    }
    for (name, text) in &files {
        let path = args.folder.join(name);
        write(&path, text, args.force).map_err(|cause| error(format!("{}: {cause}", path.display())))?;
    }
    print_report(&report(args, files.len()), EXIT_OK)
}

/// The files to write: all, or those that `--only` names.
fn selected<'f>(embedded: &'f [SourceFile], only: &[String]) -> Result<Vec<&'f SourceFile>, String> {
    if only.is_empty() {
        return Ok(embedded.iter().collect());
    }
    let mut selected: Vec<&SourceFile> = Vec::new();
    for wanted in only {
        let wanted = wanted.trim_end_matches('/');
        let found: Vec<&SourceFile> = embedded.iter().filter(|file| names(wanted, &file.name)).collect();
        if found.is_empty() {
            let known = || embedded.iter().map(|file| stem(&file.name));
            let near = did_you_mean(stem(wanted), known()).map(|near| format!("\nhelp: did you mean `{near}`?"));
            let help =
                near.unwrap_or_else(|| "\nhelp: `reframe list` lists backends, dialects and profiles".to_owned());
            return Err(error(format!("the embedded set has no `{wanted}`{help}")));
        }
        selected.extend(found);
    }
    Ok(selected)
}

/// Whether `wanted` is the file, its folder, or its name without the extension; with its tests.
fn names(wanted: &str, file: &str) -> bool {
    let inside = file.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('/'));
    inside || wanted == file || wanted == stem(file)
}

/// `dialects/chat.test.yaml` → `dialects/chat`
fn stem(file: &str) -> &str {
    [".test.yaml", ".yaml", ".jsonl", ".json"].iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(file)
}

/// The texts by their path in the folder, with the schemas for editors that the mappings name.
fn contents(files: &[&SourceFile]) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    for file in files {
        let text = match file.text.strip_prefix(SCHEMA_LINE) {
            Some(rest) => format!("{SCHEMA_LINE_INSIDE}{rest}"),
            None => file.text.to_string(),
        };
        contents.insert(file.name.clone(), text);
        if let Some(kind) = FileKind::of(&file.name) {
            contents
                .entry(format!("{EDITOR_SCHEMAS}/{}.json", kind.name))
                .or_insert_with(|| format!("{:#}\n", kind.schema()));
        }
    }
    contents
}

/// Without `force`, a file that appeared in the meantime is not overwritten.
fn write(path: &Path, text: &str, force: bool) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let mut options = OpenOptions::new();
    options.write(true);
    let file = if force { options.create(true).truncate(true).open(path) } else { options.create_new(true).open(path) };
    file?.write_all(text.as_bytes())
}

fn report(args: &InitArgs, count: usize) -> String {
    let folder = shown(args.folder.clone());
    let option = if args.only.is_empty() { "--mappings" } else { "--add" };
    format!(
        "wrote {} to {folder}\ncheck them:  reframe check {option} {folder}\nserve them:  reframe serve {option} {folder}\n",
        count_noun(count, "file")
    )
}

fn shown(path: PathBuf) -> String {
    path.display().to_string()
}
