//! The chapters of docs/mappings/ that people wrote, as one text; the generated reference is left out.

use std::fs;
use std::path::Path;

pub fn mapping_chapters() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/mappings");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "md") && !file.ends_with("reference.md"));
    files.sort();
    assert!(files.len() > 5, "docs/mappings/ has only {} chapters", files.len());
    files.iter().map(|file| fs::read_to_string(file).unwrap() + "\n").collect()
}
