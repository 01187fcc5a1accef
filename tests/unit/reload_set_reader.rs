//! Unit tests of `reload::set_reader`.

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

#[test]
fn a_folder_gives_its_files_sorted_and_nothing_else() {
    let tree = TempTree::new(&[
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
    assert_eq!(tree.names("mappings", &[]), names);
}

#[test]
fn misnamed_and_misplaced_files_are_returned_for_the_loader_to_report() {
    let tree =
        TempTree::new(&["mappings/gateway.yml", "mappings/dialect/chat.yaml", "mappings/dialects/old/chat.YAML"]);
    let names = ["dialect/chat.yaml", "dialects/old/chat.YAML", "gateway.yml"];
    assert_eq!(tree.names("mappings", &[]), names);
}

#[test]
fn sibling_schemas_are_used_for_the_base_but_not_for_an_added_folder() {
    let tree = TempTree::new(&[
        "mappings/gateway.yaml",
        "schemas/chat/chunk.json",
        "more/mine/dialects/mine.yaml",
        "more/schemas/mine/frame.json",
    ]);
    let layers = tree.layers("mappings", &["more/mine"]);
    let set = layers.read(&[]).unwrap();
    let shown: Vec<_> = set.iter().map(|file| tree.relative(&file.shown)).collect();
    let expected = ["more/mine/dialects/mine.yaml", "mappings/gateway.yaml", "schemas/chat/chunk.json"];
    assert_eq!(shown, expected);
}

#[test]
fn schemas_for_editors_are_neither_read_nor_watched() {
    let tree = TempTree::new(&["mappings/gateway.yaml", "schemas/chat/chunk.json", "schemas/mapping/dialect.json"]);
    assert_eq!(tree.names("mappings", &[]), ["gateway.yaml", "schemas/chat/chunk.json"]);
    let folders = tree.layers("mappings", &[]).folders();
    let folders: Vec<_> = folders.iter().map(|one| tree.relative(&display_path(one))).collect();
    assert_eq!(folders, ["mappings", "schemas", "schemas/chat"]);
}

#[test]
fn a_folder_without_schemas_uses_the_embedded_schemas_and_no_other_embedded_file() {
    let tree = TempTree::new(&["mappings/gateway.yaml"]);
    let embedded = [embedded("schemas/chat/chunk.json"), embedded("shared.yaml")];
    let set = tree.layers("mappings", &[]).read(&embedded).unwrap();
    assert_eq!(names(&set), ["gateway.yaml", "schemas/chat/chunk.json"]);
    assert_eq!(set[1], embedded[0]);
}

#[test]
fn later_layers_replace_files_of_the_same_name_except_those_that_are_merged() {
    let tree = TempTree::new(&["one/profiles/p.yaml", "one/shared.yaml", "two/shared.yaml", "two/profiles/p.yaml"]);
    let layers = Layers { base: Base::Embedded, add: vec![tree.path("one"), tree.path("two")] };
    let embedded = [embedded("gateway.yaml"), embedded("shared.yaml")];
    let set = layers.read(&embedded).unwrap();
    let names = ["gateway.yaml", "profiles/p.yaml", "shared.yaml", "shared.yaml", "shared.yaml"];
    assert_eq!(self::names(&set), names);
    let texts: Vec<&str> = set.iter().map(|file| &*file.text).collect();
    assert_eq!(texts, ["embedded", "two/profiles/p.yaml", "embedded", "one/shared.yaml", "two/shared.yaml"]);
}

#[test]
fn replacing_a_file_removes_its_tests() {
    let tree = TempTree::new(&[
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
    let set = tree.layers("base", &["one", "two"]).read(&[]).unwrap();
    let shown: Vec<_> = set.iter().map(|file| tree.relative(&file.shown)).collect();
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
fn all_errors_are_returned_at_once() {
    let tree = TempTree::new(&["mappings/shared.yaml"]);
    tree.write("mappings/gateway.yaml", &[b'#'; ROOT.max_bytes as usize + 1]);
    tree.write("mappings/transcripts/fits.jsonl", &[b' '; ROOT.max_bytes as usize + 1]);
    tree.write("mappings/dialects/latin.yaml", b"caf\xe9");
    symlink("nowhere.yaml", tree.path("mappings/dialects/lost.yaml")).unwrap();
    fs::create_dir(tree.path("mappings/dialects/x")).unwrap();
    let errors = tree.layers("mappings", &["absent", "mappings/shared.yaml"]).read(&[]).unwrap_err();
    let mut messages: Vec<_> = errors.iter().map(|one| tree.relative(&one.message)).collect();
    messages.sort();
    let expected = [
        "cannot read absent: no such file or folder",
        "cannot read mappings/dialects/lost.yaml: it is a dangling symlink",
        "cannot read mappings/shared.yaml: it is not a folder",
        "mappings/dialects/latin.yaml is not UTF-8 text: see line 1",
        "mappings/gateway.yaml has 1048577 bytes; the limit is 1048576",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn a_set_with_too_many_files_is_rejected_before_any_is_read() {
    let tree = TempTree::new(&[]);
    for number in 0..=MAX_FILES {
        tree.write(&format!("mappings/scripts/{number}.yaml"), b"");
    }
    let errors = tree.layers("mappings", &[]).read(&[]).unwrap_err();
    let message = "the set has more than 2000 files".to_owned();
    assert_eq!(errors, [ReadError::new(Code::LimitExceeded, None, message)]);
}

#[test]
fn foreign_files_are_not_looked_at() {
    let tree = TempTree::new(&["mappings/gateway.yaml", "mappings/dialects/chat.yaml"]);
    let layers = tree.layers("mappings", &[]);
    let before = layers.walk().looked_at;
    for number in 0..500 {
        tree.write(&format!("mappings/{number}.log"), b"");
        tree.write(&format!("mappings/dialects/{number}"), b"");
    }
    assert_eq!(layers.walk().looked_at, before);
    assert_eq!(before, 3);
    tree.write("mappings/shared.yaml", b"");
    assert_eq!(layers.walk().looked_at, before + 1);
}

#[test]
fn a_set_with_too_many_bytes_is_rejected() {
    let tree = TempTree::new(&["mappings/gateway.yaml"]);
    for number in 0..5 {
        let path = tree.path(&format!("mappings/transcripts/{number}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::File::create(path).unwrap().set_len(15 * 1024 * 1024).unwrap();
    }
    let errors = tree.layers("mappings", &[]).read(&[]).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].code, Code::LimitExceeded);
    assert_eq!(errors[0].message, "the files of the set have more than 64 MiB");
}

#[test]
fn a_mounted_config_map_is_read_through_its_symlinks_and_their_targets_are_watched() {
    let tree = TempTree::new(&["mnt/..1/gateway.yaml", "mnt/..1/dialects/chat.yaml"]);
    symlink("..1", tree.path("mnt/..data")).unwrap();
    symlink("..data/gateway.yaml", tree.path("mnt/gateway.yaml")).unwrap();
    symlink("..data/dialects", tree.path("mnt/dialects")).unwrap();
    assert_eq!(tree.names("mnt", &[]), ["dialects/chat.yaml", "gateway.yaml"]);
    let folders = tree.layers("mnt", &[]).folders();
    let folders: Vec<_> = folders.iter().map(|one| tree.relative(&display_path(one))).collect();
    assert_eq!(folders, ["mnt", "mnt/..1", "mnt/..1/dialects", "mnt/dialects"]);
}

#[test]
fn a_symlink_cycle_ends() {
    let tree = TempTree::new(&["mappings/gateway.yaml", "mappings/schemas/a.json"]);
    symlink("..", tree.path("mappings/schemas/up")).unwrap();
    let names = tree.names("mappings", &[]);
    assert!(names.contains(&"schemas/up/schemas/a.json".to_owned()));
    assert!(names.len() < 10, "{names:?}");
}

#[test]
fn all_folders_are_listed_including_the_sibling_schemas_of_the_base() {
    let tree = TempTree::new(&[
        "mappings/gateway.yaml",
        "mappings/transcripts/codex/a.jsonl",
        "schemas/chat/chunk.json",
        "more/dialects/mine.yaml",
    ]);
    let folders = tree.layers("mappings", &["more", "absent"]).folders();
    let folders: Vec<_> = folders.iter().map(|one| tree.relative(&display_path(one))).collect();
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
fn an_unknown_folder_is_watched_only_if_it_holds_a_mapping() {
    let tree = TempTree::new(&[
        "tmp/dialects/mine.yaml",
        "tmp/build/objects/deep.yaml",
        "tmp/build/notes.md",
        "tmp/dialect/stray.yaml",
        "tmp/dialect/deeper/unseen.yaml",
    ]);
    symlink("nowhere", tree.path("tmp/build/lost.yaml")).unwrap();
    let layers = Layers { base: Base::Embedded, add: vec![tree.path("tmp")] };
    assert_eq!(names(&layers.read(&[]).unwrap()), ["dialect/stray.yaml", "dialects/mine.yaml"]);
    let folders: Vec<_> = layers.folders().iter().map(|one| tree.relative(&display_path(one))).collect();
    assert_eq!(folders, ["tmp", "tmp/dialect", "tmp/dialects"]);
}

#[test]
fn paths_are_shown_as_they_were_given() {
    let shown_as = |path: &str| display_path(Path::new(path));
    assert_eq!(shown_as("./mappings/gateway.yaml"), "mappings/gateway.yaml");
    assert_eq!(shown_as("./gateway.yaml"), "gateway.yaml");
    assert_eq!(shown_as("../a/./b.yaml"), "../a/b.yaml");
    assert_eq!(shown_as("/etc/reframe/b.yaml"), "/etc/reframe/b.yaml");
    assert_eq!(shown_as("."), ".");
}

/// A temporary folder. The text of each initial file is the file's path.
struct TempTree(TempDir);

impl TempTree {
    fn new(files: &[&str]) -> TempTree {
        let tree = TempTree(TempDir::new().unwrap());
        for path in files {
            tree.write(path, path.as_bytes());
        }
        tree
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

    fn relative(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.path("").display()).replace("//", "/"), "")
    }
}

fn names(set: &[SourceFile]) -> Vec<String> {
    set.iter().map(|file| file.name.clone()).collect()
}

fn embedded(name: &str) -> SourceFile {
    SourceFile { name: name.to_owned(), shown: format!("(built in) {name}"), layer: 0, text: "embedded".into() }
}
