//! The cost of a reload: `cargo bench --bench reload`. Only ratios within one run are meaningful.
//!
//! `reload -- repeat FILE` reloads after edits of one file, for `valgrind --tool=callgrind --toggle-collect='*counted*'`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use divan::{Bencher, black_box};
use reframe::testing::domain::WorkBudget;
use reframe::testing::mapping::{Overrides, Plan, SourceFile, load, load_with};
use reframe::testing::reload::{Base, Layers, embedded, generation, read_set};
use reframe::testing::verify;
use std::sync::LazyLock;

static FILES: LazyLock<Vec<SourceFile>> = LazyLock::new(embedded::files);
static PLAN: LazyLock<Plan> = LazyLock::new(|| load(&FILES).plan.expect("the embedded set loads"));

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "repeat").skip(1);
    match arguments.next() {
        Some(file) => {
            let mut reload = reload_after_edits_of(&file);
            counted(&mut || (0..5).for_each(|_| reload()));
        }
        None => divan::main(),
    }
}

#[inline(never)]
fn counted(repetitions: &mut dyn FnMut()) {
    repetitions();
    black_box(());
}

/// Three routes. Clients can choose each of the nine profiles by a header, at two of them the form of calls by another
/// one, and some get a profile or a policy by their `User-Agent`.
fn nine_profiles() -> Vec<SourceFile> {
    let mut files = embedded::files();
    let names = |file: &SourceFile| {
        let name = file.name.strip_prefix("profiles/")?.strip_suffix(".yaml")?;
        (!name.ends_with(".test")).then(|| name.to_owned())
    };
    let profiles = files.iter().filter_map(names).collect::<Vec<_>>().join(", ");
    assert_eq!(profiles.split(", ").count(), 9, "{profiles}");
    let gateway = files.iter_mut().find(|file| file.name == "gateway.yaml").expect("it exists");
    let header = format!("x-reframe-profile: {{ profiles: [ {profiles} ] }}");
    let both = format!("profile: openai, headers: {{ {header}, x-output: {{ policy: output_mode }} }}");
    let text = gateway.text.replace(
        "dialect: completions, profile: openai",
        &format!("dialect: completions, headers: {{ {header} }}, profile: OPENAI"),
    );
    let text = text.replace("profile: openai", &both).replace("OPENAI", "openai");
    gateway.text = format!(
        "{text}
by_user_agent:
  - {{ match: obsidian, profile: obsidian-copilot }}
  - {{ match: pydantic, profile: pydantic-ai }}
  - {{ match: ai-sdk, profile: ai-sdk }}
  - {{ match: codex_cli, profile: codex-cli }}
  - {{ match: proxy, profile: codex-proxy }}
  - {{ match: Owl, policies: {{ terminator: typed }} }}
"
    )
    .into();
    files
}

/// Each call reloads the set after another edit of the file.
fn reload_after_edits_of(name: &str) -> impl FnMut() + use<> {
    let mut files = nine_profiles();
    let at = files.iter().position(|file| file.name == name).expect("it exists");
    let original = files[at].text.to_string();
    let (overrides, budget) = (Overrides::default(), WorkBudget::new(u64::MAX));
    let first = generation::build(&files, 1, None, &overrides, None, &budget).expect("it loads");
    let mut edits = 0;
    move || {
        edits += 1;
        files[at].text = format!("{original}# edit {edits}\n").into();
        black_box(generation::build(&files, 2, Some(&first), &overrides, None, &budget).expect("it loads"));
    }
}

/// From the files in memory to a verified generation.
#[divan::bench(args = ["gateway.yaml", "profiles/codex-proxy.yaml", "dialects/chat.yaml", "dialects/responses.yaml", "shared.yaml"])]
fn reload_nine_profiles(bencher: Bencher, file: &str) {
    bencher.bench_local(reload_after_edits_of(file));
}

/// Reads all files of the shipped set twice, until two reads agree.
#[divan::bench]
fn read_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/mappings");
    let layers = Layers { base: Base::Folder(folder.into()), add: Vec::new() };
    black_box(read_set(&layers).expect("it can be read"));
}

/// Loads the first generation: every schema is compiled.
#[divan::bench]
fn load_first_generation() {
    black_box(load(&FILES));
}

/// Loads a later generation with unchanged schemas.
#[divan::bench]
fn load_next_generation(bencher: Bencher) {
    let earlier = &*PLAN;
    bencher.bench(|| load_with(&FILES, Some(earlier), &Overrides::default()));
}

/// Runs the tests of the mappings.
#[divan::bench]
fn run_mapping_tests(bencher: Bencher) {
    let plan = &*PLAN;
    bencher.bench(|| {
        verify::suites(plan).iter().flat_map(|s| &s.cases).map(|case| verify::run(case, plan)).collect::<Vec<_>>()
    });
}

/// Verifies the frames, runs the tests and replays the transcripts.
#[divan::bench]
fn verify_the_set(bencher: Bencher) {
    let plan = &*PLAN;
    bencher.bench(|| verify::verify(plan));
}
