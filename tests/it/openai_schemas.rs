//! Validates the golden outputs with OpenAI's published schemas, if they are in a local folder: bodies by name
//! (`CreateChatCompletionResponse.json`), stream events in `events/` by type.
//!
//! `REFRAME_OPENAI_SCHEMAS=FOLDER cargo test --test it openai_schemas::`; without the variable nothing is compared.
//! `./test` reports at its end how many were compared, or that they were left out.

use reframe_json::{Schema, SchemaSet, Tree};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Features of the API that the published schemas lack: custom tools in chat streams.
const NEWER_THAN_SCHEMAS: &[&str] = &["openai-responses/custom-tool-call/chat.sse"];

#[test]
fn golden_outputs_satisfy_the_published_schemas() {
    let Some(folder) = std::env::var_os("REFRAME_OPENAI_SCHEMAS").map(PathBuf::from) else {
        // `./test` repeats this line at the end of its run.
        println!("OpenAI's published schemas: left out, REFRAME_OPENAI_SCHEMAS does not name their folder");
        return;
    };
    let mut published = Published { folder, compiled: HashMap::new() };
    let (mut compared, mut wrong) = (0, Vec::new());
    for golden in goldens() {
        let shown = golden.iter().rev().take(3).collect::<Vec<_>>().into_iter().rev().collect::<PathBuf>();
        if NEWER_THAN_SCHEMAS.iter().any(|known| shown.ends_with(known)) {
            continue;
        }
        for (name, data) in data(&golden) {
            compared += 1;
            if let Err(violation) = published.get(&name).check(&data) {
                wrong.push(format!("{}: {name}: {violation:?}", shown.display()));
            }
        }
    }
    println!("OpenAI's published schemas: compared {compared} bodies and frames");
    assert!(compared > 1000, "only {compared} were compared");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

struct Published {
    folder: PathBuf,
    compiled: HashMap<String, Schema>,
}

impl Published {
    fn get(&mut self, name: &str) -> &Schema {
        let folder = &self.folder;
        self.compiled.entry(name.to_owned()).or_insert_with(|| {
            let path = folder.join(format!("{name}.json"));
            let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let set = SchemaSet::new([("it.json".to_owned(), serde_json::from_slice(&text).unwrap())]);
            set.compile("it.json").unwrap_or_else(|error| panic!("{name}: {error:?}"))
        })
    }
}

/// The golden files of the profile `openai`: `chat.sse`, `chat.json` and so on.
fn goldens() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let inside = |folder: &Path| fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    let cases = inside(&root).into_iter().filter(|p| p.is_dir()).flat_map(|backend| inside(&backend));
    let names = ["chat", "completions", "responses"].iter().flat_map(|d| ["sse", "json"].map(|e| format!("{d}.{e}")));
    let names: Vec<String> = names.collect();
    cases
        .flat_map(|case| names.iter().map(move |name| case.join(name)).collect::<Vec<_>>())
        .filter(|p| p.exists())
        .collect()
}

/// The data of a golden file with the names of their schemas.
fn data(golden: &Path) -> Vec<(String, Tree)> {
    let text = fs::read_to_string(golden).unwrap();
    let dialect = golden.file_stem().unwrap().to_str().unwrap();
    if text.starts_with("HTTP ") {
        return Vec::new();
    }
    if golden.extension().is_some_and(|e| e == "json") {
        let name = match dialect {
            "chat" => "CreateChatCompletionResponse",
            "completions" => "CreateCompletionResponse",
            _ => "Response",
        };
        return vec![(name.to_owned(), Tree::parse(text.as_bytes()).unwrap())];
    }
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    let trees = lines.map(|data| Tree::parse(data.as_bytes()).unwrap());
    let named = trees.map(|tree| match dialect {
        _ if tree.get("error").is_some() && tree.get("type").is_none() => ("ErrorResponse".to_owned(), tree),
        "chat" => ("CreateChatCompletionStreamResponse".to_owned(), tree),
        "completions" => ("CreateCompletionResponse".to_owned(), tree),
        _ => (format!("events/{}", tree.get("type").and_then(Tree::as_str).unwrap_or_default()), tree),
    });
    named.collect()
}
