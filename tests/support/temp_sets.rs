//! Folders for one test: a copy of the shipped mappings, or a layer with a few files changed.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A temporary folder. What is served lies one level down, so that the watch above it sees nothing but this test.
pub struct Disk {
    root: TempDir,
}

/// A file of the shipped set, as text.
pub fn repo(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

impl Disk {
    pub fn empty() -> Disk {
        Disk { root: TempDir::new().unwrap() }
    }

    /// `mappings/` and `schemas/` as they are shipped.
    pub fn shipped() -> Disk {
        let disk = Disk::empty();
        for folder in ["mappings", "schemas"] {
            copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &disk.path(folder));
        }
        disk
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// As an editor saves: the old file or the new one, never half of it.
    pub fn save(&self, path: &str, text: &str) {
        let path = self.path(path);
        let beside = path.with_file_name(".new");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, path).unwrap();
    }

    /// Replaces a text that must be there exactly once.
    pub fn edit(&self, path: &str, old: &str, new: &str) {
        self.write(path, &edited(&self.read(path), old, new));
    }

    /// Lays a shipped file into `layer/`, with a text replaced: for `--add`.
    pub fn lay(self, path: &str, old: &str, new: &str) -> Disk {
        self.write(&format!("layer/{path}"), &edited(&repo(&format!("mappings/{path}")), old, new));
        self
    }

    /// Lays the demo's script into `layer/`, at another pace.
    pub fn paced(self, pace: &str) -> Disk {
        self.lay("scripts/demo.yaml", "pace: { fixed: 5 }", &format!("pace: {pace}"))
    }

    pub fn layer(&self) -> PathBuf {
        let layer = self.path("layer");
        fs::create_dir_all(&layer).unwrap();
        layer
    }
}

pub fn edited(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "{old:?} must stand exactly once in:\n{text}");
    text.replacen(old, new, 1)
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
