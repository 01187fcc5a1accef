//! Reads the files of a mapping set: from the binary, from folders, or from both as layers.
//!
//! This module decides which files belong to a set; the loader interprets them. A file with the wrong name or in an
//! unknown folder is returned too, so that the loader can report it: silently ignored files are hard to debug.

use super::read_error::ReadError;
use super::watcher::parent_folder;
use crate::diagnostics::Code;
use crate::mapping::SourceFile;
use crate::mapping::source::layout::{
    EDITOR_SCHEMAS, Folder, GATEWAY, ROOT, SCHEMAS, SHARED, SetFile, may_belong, tests_of,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    io::{self, Read},
    path::{Component, MAIN_SEPARATOR, Path, PathBuf},
};

const MAX_FILES: usize = 2_000;
/// Limit for all files of a set together. In memory a parsed file is several times as large as its text.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Where the files of a set come from. Later layers replace files of the same name, except for gateway.yaml and
/// shared.yaml, which the loader merges.
#[derive(Clone, Debug)]
pub struct Layers {
    pub base: Base,
    pub add: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
pub enum Base {
    /// The files that are compiled into the binary.
    Embedded,
    Folder(PathBuf),
}

/// A file that a file of a later layer replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacedFile {
    /// In the set: `dialects/chat.yaml`.
    pub name: String,
    /// The displayed path of the later file.
    pub by: String,
    /// The displayed path of the file that is replaced.
    pub of: String,
}

/// The files and folders found by walking the layers, before any file is read.
#[derive(Default)]
struct Walk {
    layer: usize,
    files: Vec<FoundFile>,
    folders: Vec<PathBuf>,
    errors: Vec<ReadError>,
    /// How many entries of folders were looked at: the work of a walk.
    looked_at: usize,
}

struct FoundFile {
    name: String,
    path: PathBuf,
    limit: u64,
    /// 0 is the base.
    layer: usize,
}

/// What a path points to, after symlinks are resolved.
enum EntryKind {
    File,
    Folder,
    Other,
}

/// Whether a folder named `schemas` next to the set's folder is used.
#[derive(Clone, Copy, PartialEq)]
enum SiblingSchemas {
    Used,
    Ignored,
}

impl Layers {
    /// Returns the whole set, sorted by name and layer, or every error. `embedded` are the files compiled into the
    /// binary.
    pub fn read(&self, embedded: &[SourceFile]) -> Result<Vec<SourceFile>, Vec<ReadError>> {
        let walk = self.walk();
        let mut errors = walk.errors;
        let mut set = BTreeMap::new();
        let mut layer_of: BTreeMap<String, usize> = BTreeMap::new();
        for file in self.used(embedded) {
            set.insert(key(&file.name, file.layer), file.clone());
        }
        if walk.files.len() > MAX_FILES {
            let message = format!("the set has more than {MAX_FILES} files");
            errors.push(ReadError::new(Code::LimitExceeded, None, message));
            return Err(errors);
        }
        let mut bytes = 0;
        for found in walk.files {
            match found.read() {
                Ok(Some(file)) => {
                    bytes += file.text.len();
                    if bytes > MAX_BYTES {
                        let message = format!("the files of the set have more than {} MiB", MAX_BYTES / 1024 / 1024);
                        errors.push(ReadError::new(Code::LimitExceeded, None, message));
                        return Err(errors);
                    }
                    // Tests belong to the mapping next to them: a layer that replaces a mapping drops its old tests.
                    if let Some(tests) =
                        tests_of(&found.name).filter(|_| set.contains_key(&key(&found.name, found.layer)))
                        && layer_of.get(&tests) != Some(&found.layer)
                    {
                        set.remove(&key(&tests, found.layer));
                    }
                    layer_of.insert(found.name.clone(), found.layer);
                    set.insert(key(&found.name, found.layer), file);
                }
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(set.into_values().collect()) } else { Err(errors) }
    }

    /// Each file that a file of a later layer replaces, with that file: the displayed paths, and the name in the set.
    pub fn replaced_files(&self, embedded: &[SourceFile]) -> Vec<ReplacedFile> {
        let embedded = self.used(embedded).map(|file| (file.name.clone(), file.layer, file.shown.clone()));
        let found = self.walk().files.into_iter().map(|file| (file.name, file.layer, display_path(&file.path)));
        let mut last: BTreeMap<(String, usize), (usize, String)> = BTreeMap::new();
        let mut replaced = Vec::new();
        for (name, layer, shown) in embedded.chain(found) {
            let earlier = last.insert(key(&name, layer), (layer, shown.clone()));
            replaced.extend(earlier.map(|(_, of)| ReplacedFile { name, by: shown, of }));
        }
        replaced
    }

    /// The embedded files that belong to the set.
    fn used<'e>(&self, embedded: &'e [SourceFile]) -> impl Iterator<Item = &'e SourceFile> {
        let (rest, schemas) = match &self.base {
            Base::Embedded => (true, true),
            Base::Folder(folder) => (false, schemas_of(folder, SiblingSchemas::Used).is_none()),
        };
        embedded.iter().filter(move |file| if SetFile::Schema.matches(&file.name) { schemas } else { rest })
    }

    /// The folders to watch: every existing folder of the layout, and the targets of symlinks.
    pub fn folders(&self) -> Vec<PathBuf> {
        let walk = self.walk();
        let mut folders: BTreeSet<PathBuf> = walk.folders.into_iter().collect();
        for found in &walk.files {
            if let Some(target) = target_folder(&found.path) {
                folders.insert(target);
            }
        }
        folders.into_iter().collect()
    }

    fn walk(&self) -> Walk {
        let mut walk = Walk::default();
        if let Base::Folder(folder) = &self.base {
            walk.add_set(folder, SiblingSchemas::Used);
        }
        for folder in &self.add {
            walk.layer += 1;
            walk.add_set(folder, SiblingSchemas::Ignored);
        }
        walk
    }
}

impl Walk {
    fn add_set(&mut self, root: &Path, sibling: SiblingSchemas) {
        for (name, path) in self.list(root) {
            match entry_kind(&path) {
                Ok(EntryKind::Folder) if name == SCHEMAS => {}
                Ok(EntryKind::Folder) => match Folder::find(&name) {
                    Some(folder) => self.add_folder(&path, &name, folder),
                    None => self.add_stray_files(&path, &name),
                },
                other => self.add_file(name, path, other, &ROOT),
            }
        }
        if let Some((path, folder)) = schemas_of(root, sibling).zip(Folder::find(SCHEMAS)) {
            self.add_folder(&path, SCHEMAS, folder);
        }
    }

    fn add_folder(&mut self, path: &Path, inside: &str, folder: &Folder) {
        for (name, path) in self.list(path) {
            let name = format!("{inside}/{name}");
            match entry_kind(&path) {
                Ok(EntryKind::Folder) if name == EDITOR_SCHEMAS => {}
                // The depth limit also ends symlink cycles.
                Ok(EntryKind::Folder) if name.split('/').count() <= folder.max_depth => {
                    self.add_folder(&path, &name, folder);
                }
                Ok(EntryKind::Folder) => {}
                other => self.add_file(name, path, other, folder),
            }
        }
    }

    /// Adds the mappings directly inside an unknown folder, for the loader to report. Other contents and listing errors
    /// are ignored. The folder is watched only while it holds a mapping: a layer such as /tmp has many unrelated
    /// folders that change all the time.
    fn add_stray_files(&mut self, folder: &Path, inside: &str) {
        let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
        names.retain(|name| !is_scratch(name) && ROOT.accepts(name));
        names.sort();
        let before = self.files.len();
        for name in names {
            let path = folder.join(&name);
            if let Ok(EntryKind::File) = entry_kind(&path) {
                let (name, layer) = (format!("{inside}/{name}"), self.layer);
                self.files.push(FoundFile { name, path, limit: ROOT.max_bytes, layer });
            }
        }
        if self.files.len() > before {
            self.watch(folder);
        }
    }

    fn add_file(&mut self, name: String, path: PathBuf, entry_kind: io::Result<EntryKind>, folder: &Folder) {
        if !folder.accepts(&name) {
            return;
        }
        match entry_kind {
            Ok(EntryKind::File) => {
                self.files.push(FoundFile { name, path, limit: folder.max_bytes, layer: self.layer })
            }
            // Opening a pipe would block until it has a writer.
            Ok(EntryKind::Folder | EntryKind::Other) => {
                self.errors.push(ReadError::unreadable(&path, "it is not a file"))
            }
            Err(error) if has_vanished(&path, &error) => {}
            Err(error) => self.errors.push(ReadError::io(&path, &error)),
        }
    }

    /// The entries of a folder that may belong to a set. Returns nothing once the file limit is exceeded.
    fn list(&mut self, folder: &Path) -> Vec<(String, PathBuf)> {
        if self.files.len() > MAX_FILES {
            return Vec::new();
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.errors.push(ReadError::io(folder, &error));
                return Vec::new();
            }
        };
        self.watch(folder);
        let mut listed = Vec::new();
        for entry in entries {
            match entry {
                // Thousands of foreign files next to the mappings must cost nothing: the watcher walks all the time.
                Ok(entry) if is_foreign(&entry) => {}
                Ok(entry) => match entry.file_name().into_string() {
                    Ok(name) if is_scratch(&name) => {}
                    Ok(name) => listed.push((name, entry.path())),
                    Err(_) => self.errors.push(ReadError::unreadable(&entry.path(), "its name is not UTF-8")),
                },
                Err(error) => self.errors.push(ReadError::io(folder, &error)),
            }
        }
        self.looked_at += listed.len();
        listed.sort();
        listed
    }

    fn watch(&mut self, folder: &Path) {
        self.folders.push(folder.to_owned());
        self.folders.extend(target_folder(folder));
    }
}

impl FoundFile {
    /// The file's text; `None` if it was deleted after it was listed.
    fn read(&self) -> Result<Option<SourceFile>, ReadError> {
        let shown = display_path(&self.path);
        let mut bytes = Vec::new();
        let read = fs::File::open(&self.path).and_then(|file| {
            let length = file.metadata()?.len();
            if length <= self.limit {
                // One byte more than allowed detects a file that grew after its length was read.
                file.take(self.limit + 1).read_to_end(&mut bytes)?;
            }
            Ok(length.max(bytes.len() as u64))
        });
        match read {
            Ok(length) if length > self.limit => {
                let message = format!("{shown} has {length} bytes; the limit is {}", self.limit);
                Err(ReadError::new(Code::LimitExceeded, Some(shown), message))
            }
            Ok(_) => match String::from_utf8(bytes) {
                Ok(text) => {
                    Ok(Some(SourceFile { name: self.name.clone(), shown, layer: self.layer, text: text.into() }))
                }
                Err(error) => Err(ReadError::not_utf8(shown, &error)),
            },
            Err(error) if has_vanished(&self.path, &error) => Ok(None),
            Err(error) => Err(ReadError::io(&self.path, &error)),
        }
    }
}

/// What identifies a file: a later layer replaces a file with the same path, except for the files that are merged.
fn key(name: &str, layer: usize) -> (String, usize) {
    let is_merged = [GATEWAY, SHARED].contains(&name);
    (name.to_owned(), if is_merged { layer } else { 0 })
}

/// Whether an entry is a file that no folder of a set accepts, as far as its name and kind show without a lookup. A
/// symlink may lead anywhere, and a name that is not UTF-8 is an error.
pub(super) fn is_foreign(entry: &fs::DirEntry) -> bool {
    let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
    is_file && entry.file_name().to_str().is_some_and(|name| !may_belong(name))
}

/// Follows symlinks: a mounted ConfigMap consists of symlinks.
fn entry_kind(path: &Path) -> io::Result<EntryKind> {
    let is = fs::metadata(path)?;
    Ok(if is.is_dir() {
        EntryKind::Folder
    } else if is.is_file() {
        EntryKind::File
    } else {
        EntryKind::Other
    })
}

/// Hidden files, temporary and backup files of editors, and the `..data` link of a mounted ConfigMap.
fn is_scratch(name: &str) -> bool {
    name.starts_with('.')
        || name.ends_with('~')
        || name.ends_with(".swp")
        || name.ends_with(".tmp")
        || (name.starts_with('#') && name.ends_with('#'))
}

/// Whether the path no longer exists. A dangling symlink exists, and is an error.
fn has_vanished(path: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound && !path.is_symlink()
}

/// The schema folder of a set: inside it, or next to it.
fn schemas_of(root: &Path, sibling: SiblingSchemas) -> Option<PathBuf> {
    let own = root.join(SCHEMAS);
    // A dangling symlink is kept, so that reading it reports the error.
    let exists_or_is_link = |path: &Path| (path.is_dir() && !has_only_editor_schemas(path)) || path.is_symlink();
    if exists_or_is_link(&own) {
        return Some(own);
    }
    if sibling == SiblingSchemas::Ignored {
        return None;
    }
    let sibling_folder = parent_folder(root).join(SCHEMAS);
    exists_or_is_link(&sibling_folder).then_some(sibling_folder)
}

/// Whether a folder has nothing but the schemas for editors, which are not part of a set.
fn has_only_editor_schemas(schemas: &Path) -> bool {
    let names = || fs::read_dir(schemas).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let is_editor_folder = |name: &OsStr| EDITOR_SCHEMAS.rsplit('/').next().is_some_and(|folder| name == folder);
    names().next().is_some() && names().all(|name| is_editor_folder(&name))
}

/// The target of a symlink if it is a folder, else the folder that contains the target.
fn target_folder(path: &Path) -> Option<PathBuf> {
    if !path.is_symlink() {
        return None;
    }
    let target = fs::canonicalize(path).ok()?;
    if target.is_dir() { Some(target) } else { target.parent().map(Path::to_owned) }
}

/// The path as given, without `./` and with `/` as separator.
pub(super) fn display_path(path: &Path) -> String {
    let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    let shown = path.to_string_lossy().replace(MAIN_SEPARATOR, "/");
    if shown.is_empty() { ".".to_owned() } else { shown }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#[path = "../../tests/unit/reload_set_reader.rs"]
mod tests;
