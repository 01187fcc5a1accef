//! Lists `mappings/` and `schemas/` for `src/reload/embedded.rs`, which embeds their texts in the binary.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let mut files = Vec::new();
    for folder in ["mappings", "schemas"] {
        println!("cargo::rerun-if-changed={folder}");
        list(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut out = String::from("&[\n");
    for file in &files {
        let shown = file.strip_prefix(&root).map_err(io::Error::other)?.to_string_lossy().replace('\\', "/");
        let name = shown.strip_prefix("mappings/").unwrap_or(&shown);
        out.push_str(&format!(
            "    ({name:?}, {shown:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {:?}))),\n",
            format!("/{shown}")
        ));
    }
    out.push_str("]\n");
    let target = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?).join("embedded.rs");
    fs::write(target, out)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        let known = path.extension().is_some_and(|e| ["yaml", "json", "jsonl"].iter().any(|k| e == *k));
        // Schemas for editors describe mapping files, not frames; the gateway does not use them.
        if path.is_dir() && !path.ends_with("schemas/mapping") {
            list(&path, files)?;
        } else if known && !hidden {
            files.push(path);
        }
    }
    Ok(())
}
