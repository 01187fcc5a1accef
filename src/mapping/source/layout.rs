//! The layout of a set: which file is what, by its path inside the set.

/// What a file of a set is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetFile {
    Gateway,
    Shared,
    Backend,
    Dialect,
    Profile,
    Script,
    Test,
    Transcript,
    Schema,
}

/// A folder of a set, and which files belong to it.
pub struct Folder {
    pub name: &'static str,
    holds: SetFile,
    extensions: &'static [&'static str],
    /// Of a file's path, with the folder itself.
    pub max_depth: usize,
    pub max_bytes: u64,
}

pub const GATEWAY: &str = "gateway.yaml";
pub const SHARED: &str = "shared.yaml";
pub const SCHEMAS: &str = "schemas";
/// JSON Schemas of the mapping files themselves, for editors. They are not part of a set.
pub const EDITOR_SCHEMAS: &str = "schemas/mapping";
const TEST_SUFFIX: &str = ".test.yaml";

const MIB: u64 = 1024 * 1024;

pub const FOLDERS: &[Folder] = &[
    mappings("backends", SetFile::Backend),
    mappings("dialects", SetFile::Dialect),
    mappings("profiles", SetFile::Profile),
    mappings("scripts", SetFile::Script),
    Folder {
        name: "transcripts",
        holds: SetFile::Transcript,
        extensions: &["jsonl"],
        max_depth: 2,
        max_bytes: 16 * MIB,
    },
    Folder { name: SCHEMAS, holds: SetFile::Schema, extensions: &["json"], max_depth: 3, max_bytes: MIB },
];
/// The folder of the set itself, which holds gateway.yaml and shared.yaml.
pub const ROOT: Folder = mappings("", SetFile::Gateway);

/// Mappings are directly inside their folder, and end in `.yaml`. What is one level deeper or ends in `.yml` is read
/// too, so that the loader can report it.
const fn mappings(name: &'static str, holds: SetFile) -> Folder {
    Folder { name, holds, extensions: &["yaml", "yml"], max_depth: 2, max_bytes: MIB }
}

impl SetFile {
    pub const ALL: [SetFile; 9] = [
        SetFile::Gateway,
        SetFile::Shared,
        SetFile::Backend,
        SetFile::Dialect,
        SetFile::Profile,
        SetFile::Script,
        SetFile::Test,
        SetFile::Transcript,
        SetFile::Schema,
    ];

    /// `None`: a set has no such file.
    pub fn of(path: &str) -> Option<SetFile> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let top = folder.split('/').next().unwrap_or_default();
        let holds = FOLDERS.iter().find(|f| f.name == top).map(|f| f.holds);
        match (holds, name) {
            (Some(SetFile::Schema | SetFile::Transcript), _) => holds,
            _ if !name.ends_with(".yaml") || folder != top => None,
            (Some(_), name) if name.ends_with(TEST_SUFFIX) => Some(SetFile::Test),
            (None, GATEWAY) if folder.is_empty() => Some(SetFile::Gateway),
            (None, SHARED) if folder.is_empty() => Some(SetFile::Shared),
            (holds, _) => holds,
        }
    }

    pub fn matches(self, path: &str) -> bool {
        SetFile::of(path) == Some(self)
    }

    /// Also the key that begins a mapping file.
    pub fn name(self) -> &'static str {
        match self {
            SetFile::Gateway => "gateway",
            SetFile::Shared => "shared",
            SetFile::Backend => "backend",
            SetFile::Dialect => "dialect",
            SetFile::Profile => "profile",
            SetFile::Script => "script",
            SetFile::Test => "test",
            SetFile::Transcript => "transcript",
            SetFile::Schema => "schema",
        }
    }
}

impl Folder {
    pub fn find(name: &str) -> Option<&'static Folder> {
        FOLDERS.iter().find(|folder| folder.name == name)
    }

    /// Whether its files are mappings, not schemas or transcripts.
    pub fn has_mappings(&self) -> bool {
        !matches!(self.holds, SetFile::Schema | SetFile::Transcript)
    }

    /// Whether a file with this name belongs to the set, by its extension in any case.
    pub fn accepts(&self, name: &str) -> bool {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        self.extensions.iter().any(|known| extension.eq_ignore_ascii_case(known))
    }
}

/// Whether any folder of a set accepts a file with this name.
pub fn may_belong(name: &str) -> bool {
    FOLDERS.iter().any(|folder| folder.accepts(name))
}

/// `dialects/chat.yaml` → `dialects/chat.test.yaml`
pub fn tests_of(name: &str) -> Option<String> {
    let stem = name.strip_suffix(".yaml").filter(|_| !name.ends_with(TEST_SUFFIX))?;
    Some(format!("{stem}{TEST_SUFFIX}"))
}

/// The mapping that a test file is for: `dialects/chat.test.yaml` → (dialect, `chat`).
pub fn tested_by(name: &str) -> Option<(SetFile, &str)> {
    let (folder, file) = name.split_once('/')?;
    Some((Folder::find(folder)?.holds, file.strip_suffix(TEST_SUFFIX)?))
}

#[cfg(test)]
#[path = "../../../tests/unit/mapping_source_layout.rs"]
mod tests;
