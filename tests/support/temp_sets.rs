//! Temporary folders for tests: a copy of the shipped mappings, or a layer with a few changed files.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A temporary folder. Served files are one level down, so that the watch on the parent folder sees only this test.
pub struct TestDir {
    root: TempDir,
}

/// A file of the shipped set, as text.
pub fn repo(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

impl TestDir {
    pub fn empty() -> TestDir {
        TestDir { root: TempDir::new().unwrap() }
    }

    /// `mappings/` and `schemas/` as they are shipped.
    pub fn shipped() -> TestDir {
        let dir = TestDir::empty();
        for folder in ["mappings", "schemas"] {
            copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &dir.path(folder));
        }
        dir
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

    /// Saves atomically, as editors do: by renaming a new file.
    pub fn save(&self, path: &str, text: &str) {
        let path = self.path(path);
        let new = path.with_file_name(".new");
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// Replaces a text that must occur exactly once.
    pub fn edit(&self, path: &str, old: &str, new: &str) {
        self.write(path, &edited(&self.read(path), old, new));
    }

    /// Writes a shipped file into `layer/` with a text replaced, for `--add`.
    pub fn with_edit(self, path: &str, old: &str, new: &str) -> TestDir {
        self.write(&format!("layer/{path}"), &edited(&repo(&format!("mappings/{path}")), old, new));
        self
    }

    /// Writes the demo's script into `layer/` with another pace.
    pub fn with_pace(self, pace: &str) -> TestDir {
        self.with_edit("scripts/demo.yaml", "pace: { fixed: 5 }", &format!("pace: {pace}"))
    }

    pub fn layer(&self) -> PathBuf {
        let layer = self.path("layer");
        fs::create_dir_all(&layer).unwrap();
        layer
    }
}

pub fn edited(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "{old:?} must occur exactly once in:\n{text}");
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
