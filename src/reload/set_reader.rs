//! Reading a set of files: from the binary, from folders, or from both, one layer over the other.
//!
//! This file knows which files belong to a set and where they lie; what they mean is the loader's business. A file
//! that has the wrong name or stands in an unknown folder is therefore returned like the others, so that the loader
//! can complain about it: one that is passed over in silence costs its author an hour.

use crate::mapping::FileText;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

const MAX_TEXT: u64 = 1024 * 1024;
const MAX_TRANSCRIPT: u64 = 16 * 1024 * 1024;
const MAX_FILES: usize = 2_000;

/// The folders of mappings that a set may have.
const MAPPINGS: [&str; 4] = ["backends", "dialects", "profiles", "scripts"];
const SCHEMAS: &str = "schemas";
/// Schemas of mapping files, for editors: no dialect's, and no part of a set.
const FOR_EDITORS: &str = "schemas/mapping";
const TRANSCRIPTS: &str = "transcripts";

/// Why a set could not be read. Paths are as a person would write them.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadError {
    Io {
        path: String,
        message: String,
    },
    TooBig {
        path: String,
        bytes: u64,
        limit: u64,
    },
    /// The first line that has a byte too many or too few, as far as it can be shown, and where in it.
    NotUtf8 {
        path: String,
        line: usize,
        column: usize,
        text: String,
    },
    TooMany {
        limit: usize,
    },
}

impl ReadError {
    /// The file that is to blame, if it is one.
    pub fn path(&self) -> Option<&str> {
        match self {
            ReadError::Io { path, .. } | ReadError::TooBig { path, .. } | ReadError::NotUtf8 { path, .. } => Some(path),
            ReadError::TooMany { .. } => None,
        }
    }
}

/// Where a set comes from, in order: later layers replace files of the same name.
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

/// What was found below the folders, before anything is read.
#[derive(Default)]
struct Walk {
    layer: usize,
    files: Vec<Found>,
    folders: Vec<PathBuf>,
    errors: Vec<ReadError>,
}

struct Found {
    name: String,
    path: PathBuf,
    limit: u64,
    /// The base is 0.
    layer: usize,
}

/// What a folder of a set holds.
#[derive(Clone, Copy)]
enum Holds {
    Mappings,
    Transcripts,
    Schemas,
}

/// What a path leads to.
enum Kind {
    File,
    Folder,
    Other,
}

/// Whether the schemas of a folder may stand beside it.
#[derive(Clone, Copy, PartialEq)]
enum Sibling {
    Counts,
    Ignored,
}

impl Layers {
    /// Reads everything, and returns either the whole set, sorted by name, or everything that is wrong with it.
    /// `embedded` are the files that are compiled into the binary.
    pub fn read(&self, embedded: &[FileText]) -> Result<Vec<FileText>, Vec<ReadError>> {
        let walk = self.walk();
        let mut errors = walk.errors;
        let mut set = BTreeMap::new();
        let mut layer_of: BTreeMap<String, usize> = BTreeMap::new();
        let (rest, schemas) = match &self.base {
            Base::Embedded => (true, true),
            Base::Folder(folder) => (false, schemas_of(folder, Sibling::Counts).is_none()),
        };
        for file in embedded {
            let is_schema = file.name.starts_with("schemas/");
            if (is_schema && schemas) || (!is_schema && rest) {
                set.insert(file.name.clone(), file.clone());
            }
        }
        if walk.files.len() > MAX_FILES {
            errors.push(ReadError::TooMany { limit: MAX_FILES });
            return Err(errors);
        }
        for found in walk.files {
            match found.read() {
                Ok(Some(file)) => {
                    // Tests belong to the file that they stand beside: one that is replaced takes its own with it.
                    if let Some(tests) = tests_of(&found.name).filter(|_| set.contains_key(&found.name))
                        && layer_of.get(&tests) != Some(&found.layer)
                    {
                        set.remove(&tests);
                    }
                    layer_of.insert(found.name.clone(), found.layer);
                    set.insert(found.name, file);
                }
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(set.into_values().collect()) } else { Err(errors) }
    }

    /// The folders to watch: the root and the folders of its layout that exist, and those that symlinks lead to.
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
            walk.set(folder, Sibling::Counts);
        }
        for folder in &self.add {
            walk.layer += 1;
            walk.set(folder, Sibling::Ignored);
        }
        walk
    }
}

impl Walk {
    fn set(&mut self, root: &Path, sibling: Sibling) {
        for (name, path) in self.list(root) {
            match kind(&path) {
                Ok(Kind::Folder) if name == SCHEMAS => {}
                Ok(Kind::Folder) if name == TRANSCRIPTS => {
                    self.below(&path, &name, Holds::Transcripts);
                }
                Ok(Kind::Folder) if MAPPINGS.contains(&name.as_str()) => self.below(&path, &name, Holds::Mappings),
                Ok(Kind::Folder) => self.strays(&path, &name),
                other => self.file(name, path, other, Holds::Mappings),
            }
        }
        if let Some(schemas) = schemas_of(root, sibling) {
            self.below(&schemas, SCHEMAS, Holds::Schemas);
        }
    }

    fn below(&mut self, folder: &Path, inside: &str, holds: Holds) {
        for (name, path) in self.list(folder) {
            let name = format!("{inside}/{name}");
            match kind(&path) {
                Ok(Kind::Folder) if name == FOR_EDITORS => {}
                // The depth also ends a symlink that leads back up.
                Ok(Kind::Folder) if name.split('/').count() <= holds.depth() => {
                    self.below(&path, &name, holds);
                }
                Ok(Kind::Folder) => {}
                other => self.file(name, path, other, holds),
            }
        }
    }

    /// A folder that no set has. Mappings that stand right in it are taken, for the loader to complain about; what else
    /// is in it, and whether it can be listed, is not our business. It is watched only while such a file is there: a
    /// layer such as /tmp has many folders that change all the time.
    fn strays(&mut self, folder: &Path, inside: &str) {
        let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
        names.retain(|name| !is_scratch(name) && Holds::Mappings.takes(name));
        names.sort();
        let before = self.files.len();
        for name in names {
            let path = folder.join(&name);
            if let Ok(Kind::File) = kind(&path) {
                let limit = Holds::Mappings.limit();
                let (name, layer) = (format!("{inside}/{name}"), self.layer);
                self.files.push(Found { name, path, limit, layer });
            }
        }
        if self.files.len() > before {
            self.watch(folder);
        }
    }

    fn file(&mut self, name: String, path: PathBuf, kind: io::Result<Kind>, holds: Holds) {
        if !holds.takes(&name) {
            return;
        }
        match kind {
            Ok(Kind::File) => self.files.push(Found { name, path, limit: holds.limit(), layer: self.layer }),
            // Opening a pipe would wait for its writer, with no end.
            Ok(Kind::Folder | Kind::Other) => {
                self.errors.push(ReadError::Io { path: shown(&path), message: "it is not a file".to_owned() })
            }
            Err(error) if is_gone(&path, &error) => {}
            Err(error) => self.errors.push(ReadError::io(&path, &error)),
        }
    }

    /// The entries of a folder that can belong to a set. Nothing more is listed once the set is too big.
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
                Ok(entry) => match entry.file_name().into_string() {
                    Ok(name) if is_scratch(&name) => {}
                    Ok(name) => listed.push((name, entry.path())),
                    Err(_) => self.errors.push(ReadError::Io {
                        path: shown(&entry.path()),
                        message: "its name is not UTF-8".to_owned(),
                    }),
                },
                Err(error) => self.errors.push(ReadError::io(folder, &error)),
            }
        }
        listed.sort();
        listed
    }

    fn watch(&mut self, folder: &Path) {
        self.folders.push(folder.to_owned());
        self.folders.extend(target_folder(folder));
    }
}

impl Found {
    /// The file's text; `None` if the file has gone since it was listed, which is the same as listing a moment later.
    fn read(&self) -> Result<Option<FileText>, ReadError> {
        let shown = shown(&self.path);
        let too_big = |bytes| ReadError::TooBig { path: shown.clone(), bytes, limit: self.limit };
        let mut bytes = Vec::new();
        let read = fs::File::open(&self.path).and_then(|file| {
            let length = file.metadata()?.len();
            if length <= self.limit {
                // One byte more than allowed: the file may have grown since its length was asked for.
                file.take(self.limit + 1).read_to_end(&mut bytes)?;
            }
            Ok(length.max(bytes.len() as u64))
        });
        match read {
            Ok(length) if length > self.limit => Err(too_big(length)),
            Ok(_) => match String::from_utf8(bytes) {
                Ok(text) => Ok(Some(FileText { name: self.name.clone(), shown, text: text.into() })),
                Err(error) => {
                    let good = error.utf8_error().valid_up_to();
                    let (before, after) = error.as_bytes().split_at(good);
                    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
                    let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                    let column = String::from_utf8_lossy(&before[begin..]).chars().count() + 1;
                    let end = after.iter().position(|byte| *byte == b'\n').map_or(after.len(), |at| at);
                    let whole = &error.as_bytes()[begin..good + end];
                    let text = String::from_utf8_lossy(whole).into_owned();
                    Err(ReadError::NotUtf8 { path: shown, line, column, text })
                }
            },
            Err(error) if is_gone(&self.path, &error) => Ok(None),
            Err(error) => Err(ReadError::io(&self.path, &error)),
        }
    }
}

impl Holds {
    fn takes(self, name: &str) -> bool {
        let ending = Path::new(name).extension().and_then(|end| end.to_str());
        let ends_in =
            |wanted: &[&str]| ending.is_some_and(|end| wanted.iter().any(|one| end.eq_ignore_ascii_case(one)));
        match self {
            // `.yml` is not a name that a set uses; the loader says so.
            Holds::Mappings => ends_in(&["yaml", "yml"]),
            Holds::Transcripts => ends_in(&["jsonl"]),
            Holds::Schemas => ends_in(&["json"]),
        }
    }

    /// How many names a file's path may have below the folder. Mappings need one; the second is for the loader to
    /// complain about.
    fn depth(self) -> usize {
        match self {
            Holds::Mappings | Holds::Transcripts => 2,
            Holds::Schemas => 3,
        }
    }

    fn limit(self) -> u64 {
        match self {
            Holds::Mappings | Holds::Schemas => MAX_TEXT,
            Holds::Transcripts => MAX_TRANSCRIPT,
        }
    }
}

impl ReadError {
    fn io(path: &Path, error: &io::Error) -> ReadError {
        let message = match error.kind() {
            io::ErrorKind::NotFound if path.is_symlink() => "it is a link to nothing".to_owned(),
            io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
            io::ErrorKind::PermissionDenied => "permission is denied".to_owned(),
            io::ErrorKind::NotADirectory => "it is not a folder".to_owned(),
            _ => error.to_string(),
        };
        ReadError::Io { path: shown(path), message }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io { path, message } => write!(out, "cannot read {path}: {message}"),
            ReadError::TooBig { path, bytes, limit } => {
                write!(out, "{path} has {bytes} bytes, and at most {limit} are read")
            }
            ReadError::NotUtf8 { path, line, .. } => write!(out, "{path} is not UTF-8 text: see line {line}"),
            ReadError::TooMany { limit } => {
                write!(out, "the set has more files than the {limit} that are read")
            }
        }
    }
}

impl std::error::Error for ReadError {}

/// What a path is, symlinks followed: a mounted ConfigMap is nothing but symlinks.
fn kind(path: &Path) -> io::Result<Kind> {
    let is = fs::metadata(path)?;
    Ok(if is.is_dir() {
        Kind::Folder
    } else if is.is_file() {
        Kind::File
    } else {
        Kind::Other
    })
}

/// `dialects/chat.test.yaml` of `dialects/chat.yaml`.
fn tests_of(name: &str) -> Option<String> {
    let stem = name.strip_suffix(".yaml").filter(|stem| !stem.ends_with(".test"))?;
    Some(format!("{stem}.test.yaml"))
}

/// Hidden files, what editors leave beside a file, and the `..data` of a mounted ConfigMap.
fn is_scratch(name: &str) -> bool {
    name.starts_with('.')
        || name.ends_with('~')
        || name.ends_with(".swp")
        || name.ends_with(".tmp")
        || (name.starts_with('#') && name.ends_with('#'))
}

/// Whether nothing is there any more. A symlink to nothing is something, and wrong.
fn is_gone(path: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound && !path.is_symlink()
}

/// The folder of a set's schemas: its own, or the one beside it.
fn schemas_of(root: &Path, sibling: Sibling) -> Option<PathBuf> {
    let own = root.join(SCHEMAS);
    // A link to nothing was meant to lead somewhere: it is told when it is read.
    let meant = |path: &Path| path.is_dir() || path.is_symlink();
    if meant(&own) {
        return Some(own);
    }
    if sibling == Sibling::Ignored {
        return None;
    }
    // By name, where there is one: `a/../schemas` would follow a symlink `a` to a place that its author did not name.
    let beside = match (root.file_name(), root.parent()) {
        (Some(_), Some(parent)) => parent.join(SCHEMAS),
        _ => root.join("..").join(SCHEMAS),
    };
    meant(&beside).then_some(beside)
}

/// Where a symlink really leads: the folder itself, or the folder that holds the file.
fn target_folder(path: &Path) -> Option<PathBuf> {
    if !path.is_symlink() {
        return None;
    }
    let target = fs::canonicalize(path).ok()?;
    if target.is_dir() { Some(target) } else { target.parent().map(Path::to_owned) }
}

/// The path as it was given, without `./`, and with `/` everywhere.
fn shown(path: &Path) -> String {
    let mut shown = String::new();
    for part in path.components() {
        match part {
            Component::CurDir => continue,
            Component::RootDir => shown.push('/'),
            Component::Prefix(_) | Component::ParentDir | Component::Normal(_) => {
                if !shown.is_empty() && !shown.ends_with('/') {
                    shown.push('/');
                }
                shown.push_str(&part.as_os_str().to_string_lossy());
            }
        }
    }
    if shown.is_empty() {
        shown.push('.');
    }
    shown
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_folder_gives_its_files_sorted_and_nothing_else() {
        let disk = Disk::new(&[
            "mappings/shared.yaml",
            "mappings/gateway.yaml",
            "mappings/dialects/chat.yaml",
            "mappings/dialects/chat.test.yaml",
            "mappings/dialects/chat.yaml~",
            "mappings/dialects/chat.yaml.tmp",
            "mappings/dialects/.chat.yaml.swp",
            "mappings/dialects/#chat.yaml#",
            "mappings/dialects/.#chat.yaml",
            "mappings/dialects/.hidden.yaml",
            "mappings/dialects/notes.md",
            "mappings/.git/config.yaml",
            "mappings/transcripts/a.jsonl",
            "mappings/transcripts/codex/b.jsonl",
            "mappings/transcripts/codex/deep/c.jsonl",
            "mappings/schemas/chat/chunk.json",
            "mappings/schemas/a/b/deep.json",
            "mappings/schemas/a/b/c/deeper.json",
            "schemas/not/used.json",
        ]);
        let names = [
            "dialects/chat.test.yaml",
            "dialects/chat.yaml",
            "gateway.yaml",
            "schemas/a/b/deep.json",
            "schemas/chat/chunk.json",
            "shared.yaml",
            "transcripts/a.jsonl",
            "transcripts/codex/b.jsonl",
        ];
        assert_eq!(disk.names("mappings", &[]), names);
    }

    #[test]
    fn misnamed_and_misplaced_files_are_left_to_the_loader() {
        let disk =
            Disk::new(&["mappings/gateway.yml", "mappings/dialect/chat.yaml", "mappings/dialects/old/chat.YAML"]);
        let names = ["dialect/chat.yaml", "dialects/old/chat.YAML", "gateway.yml"];
        assert_eq!(disk.names("mappings", &[]), names);
    }

    #[test]
    fn schemas_may_stand_beside_the_base_but_not_beside_an_added_folder() {
        let disk = Disk::new(&[
            "mappings/gateway.yaml",
            "schemas/chat/chunk.json",
            "more/mine/dialects/mine.yaml",
            "more/schemas/mine/frame.json",
        ]);
        let layers = disk.layers("mappings", &["more/mine"]);
        let set = layers.read(&[]).unwrap();
        let shown: Vec<_> = set.iter().map(|file| disk.cut(&file.shown)).collect();
        let expected = ["more/mine/dialects/mine.yaml", "mappings/gateway.yaml", "schemas/chat/chunk.json"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn schemas_for_editors_are_neither_read_nor_watched() {
        let disk = Disk::new(&["mappings/gateway.yaml", "schemas/chat/chunk.json", "schemas/mapping/dialect.json"]);
        assert_eq!(disk.names("mappings", &[]), ["gateway.yaml", "schemas/chat/chunk.json"]);
        let folders = disk.layers("mappings", &[]).folders();
        let folders: Vec<_> = folders.iter().map(|one| disk.cut(&shown(one))).collect();
        assert_eq!(folders, ["mappings", "schemas", "schemas/chat"]);
    }

    #[test]
    fn a_folder_without_schemas_takes_the_embedded_ones_and_only_those() {
        let disk = Disk::new(&["mappings/gateway.yaml"]);
        let embedded = [embedded("schemas/chat/chunk.json"), embedded("shared.yaml")];
        let set = disk.layers("mappings", &[]).read(&embedded).unwrap();
        assert_eq!(names(&set), ["gateway.yaml", "schemas/chat/chunk.json"]);
        assert_eq!(set[1], embedded[0]);
    }

    #[test]
    fn later_layers_replace_files_of_the_same_name() {
        let disk = Disk::new(&["one/shared.yaml", "two/shared.yaml", "two/profiles/p.yaml"]);
        let layers = Layers { base: Base::Embedded, add: vec![disk.path("one"), disk.path("two")] };
        let embedded = [embedded("gateway.yaml"), embedded("shared.yaml")];
        let set = layers.read(&embedded).unwrap();
        let names = ["gateway.yaml", "profiles/p.yaml", "shared.yaml"];
        assert_eq!(self::names(&set), names);
        assert_eq!(&*set[0].text, "embedded");
        assert_eq!(&*set[2].text, "two/shared.yaml");
    }

    #[test]
    fn a_file_that_is_replaced_takes_its_tests_with_it() {
        let disk = Disk::new(&[
            "base/dialects/a.yaml",
            "base/dialects/a.test.yaml",
            "base/dialects/b.yaml",
            "base/dialects/b.test.yaml",
            "base/dialects/c.yaml",
            "base/dialects/c.test.yaml",
            "one/dialects/a.yaml",
            "one/dialects/b.yaml",
            "one/dialects/b.test.yaml",
            "two/dialects/c.test.yaml",
        ]);
        let set = disk.layers("base", &["one", "two"]).read(&[]).unwrap();
        let shown: Vec<_> = set.iter().map(|file| disk.cut(&file.shown)).collect();
        let expected = [
            "one/dialects/a.yaml",
            "one/dialects/b.test.yaml",
            "one/dialects/b.yaml",
            "two/dialects/c.test.yaml",
            "base/dialects/c.yaml",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn all_that_is_wrong_is_returned_at_once() {
        let disk = Disk::new(&["mappings/shared.yaml"]);
        disk.write("mappings/gateway.yaml", &[b'#'; MAX_TEXT as usize + 1]);
        disk.write("mappings/transcripts/fits.jsonl", &[b' '; MAX_TEXT as usize + 1]);
        disk.write("mappings/dialects/latin.yaml", b"caf\xe9");
        symlink("nowhere.yaml", disk.path("mappings/dialects/lost.yaml")).unwrap();
        fs::create_dir(disk.path("mappings/dialects/x")).unwrap();
        let errors = disk.layers("mappings", &["absent", "mappings/shared.yaml"]).read(&[]).unwrap_err();
        let mut said: Vec<_> = errors.iter().map(|one| disk.cut(&one.to_string())).collect();
        said.sort();
        let expected = [
            "cannot read absent: there is no such file or folder",
            "cannot read mappings/dialects/lost.yaml: it is a link to nothing",
            "cannot read mappings/shared.yaml: it is not a folder",
            "mappings/dialects/latin.yaml is not UTF-8 text: see line 1",
            "mappings/gateway.yaml has 1048577 bytes, and at most 1048576 are read",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_set_with_too_many_files_is_refused_before_any_is_read() {
        let disk = Disk::new(&[]);
        for number in 0..=MAX_FILES {
            disk.write(&format!("mappings/scripts/{number}.yaml"), b"");
        }
        let errors = disk.layers("mappings", &[]).read(&[]).unwrap_err();
        assert_eq!(errors, [ReadError::TooMany { limit: 2_000 }]);
        let said = "the set has more files than the 2000 that are read";
        assert_eq!(errors[0].to_string(), said);
    }

    #[test]
    fn a_mounted_config_map_is_read_through_its_links_and_its_target_is_watched() {
        let disk = Disk::new(&["mnt/..1/gateway.yaml", "mnt/..1/dialects/chat.yaml"]);
        symlink("..1", disk.path("mnt/..data")).unwrap();
        symlink("..data/gateway.yaml", disk.path("mnt/gateway.yaml")).unwrap();
        symlink("..data/dialects", disk.path("mnt/dialects")).unwrap();
        assert_eq!(disk.names("mnt", &[]), ["dialects/chat.yaml", "gateway.yaml"]);
        let folders = disk.layers("mnt", &[]).folders();
        let folders: Vec<_> = folders.iter().map(|one| disk.cut(&shown(one))).collect();
        assert_eq!(folders, ["mnt", "mnt/..1", "mnt/..1/dialects", "mnt/dialects"]);
    }

    #[test]
    fn a_link_that_leads_back_up_ends() {
        let disk = Disk::new(&["mappings/gateway.yaml", "mappings/schemas/a.json"]);
        symlink("..", disk.path("mappings/schemas/up")).unwrap();
        let names = disk.names("mappings", &[]);
        assert!(names.contains(&"schemas/up/schemas/a.json".to_owned()));
        assert!(names.len() < 10, "{names:?}");
    }

    #[test]
    fn all_folders_are_listed_also_the_schemas_beside_the_base() {
        let disk = Disk::new(&[
            "mappings/gateway.yaml",
            "mappings/transcripts/codex/a.jsonl",
            "schemas/chat/chunk.json",
            "more/dialects/mine.yaml",
        ]);
        let folders = disk.layers("mappings", &["more", "absent"]).folders();
        let folders: Vec<_> = folders.iter().map(|one| disk.cut(&shown(one))).collect();
        let expected = [
            "mappings",
            "mappings/transcripts",
            "mappings/transcripts/codex",
            "more",
            "more/dialects",
            "schemas",
            "schemas/chat",
        ];
        assert_eq!(folders, expected);
    }

    #[test]
    fn a_folder_that_no_set_has_is_not_watched_unless_a_mapping_strayed_into_it() {
        let disk = Disk::new(&[
            "tmp/dialects/mine.yaml",
            "tmp/build/objects/deep.yaml",
            "tmp/build/notes.md",
            "tmp/dialect/stray.yaml",
            "tmp/dialect/deeper/unseen.yaml",
        ]);
        symlink("nowhere", disk.path("tmp/build/lost.yaml")).unwrap();
        let layers = Layers { base: Base::Embedded, add: vec![disk.path("tmp")] };
        assert_eq!(names(&layers.read(&[]).unwrap()), ["dialect/stray.yaml", "dialects/mine.yaml"]);
        let folders: Vec<_> = layers.folders().iter().map(|one| disk.cut(&shown(one))).collect();
        assert_eq!(folders, ["tmp", "tmp/dialect", "tmp/dialects"]);
    }

    #[test]
    fn paths_are_shown_as_they_were_given() {
        let shown_as = |path: &str| shown(Path::new(path));
        assert_eq!(shown_as("./mappings/gateway.yaml"), "mappings/gateway.yaml");
        assert_eq!(shown_as("./gateway.yaml"), "gateway.yaml");
        assert_eq!(shown_as("../a/./b.yaml"), "../a/b.yaml");
        assert_eq!(shown_as("/etc/reframe/b.yaml"), "/etc/reframe/b.yaml");
        assert_eq!(shown_as("."), ".");
    }

    /// A folder for one test. Each file that it is made with holds its own path.
    struct Disk(TempDir);

    impl Disk {
        fn new(files: &[&str]) -> Disk {
            let disk = Disk(TempDir::new().unwrap());
            for path in files {
                disk.write(path, path.as_bytes());
            }
            disk
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }

        fn write(&self, path: &str, bytes: &[u8]) {
            let path = self.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }

        fn layers(&self, base: &str, add: &[&str]) -> Layers {
            Layers { base: Base::Folder(self.path(base)), add: add.iter().map(|folder| self.path(folder)).collect() }
        }

        fn names(&self, base: &str, add: &[&str]) -> Vec<String> {
            names(&self.layers(base, add).read(&[]).unwrap())
        }

        fn cut(&self, text: &str) -> String {
            text.replace(&format!("{}/", self.path("").display()).replace("//", "/"), "")
        }
    }

    fn names(set: &[FileText]) -> Vec<String> {
        set.iter().map(|file| file.name.clone()).collect()
    }

    fn embedded(name: &str) -> FileText {
        FileText { name: name.to_owned(), shown: format!("(built in) {name}"), text: "embedded".into() }
    }
}
