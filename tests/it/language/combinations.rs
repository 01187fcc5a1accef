//! Random combinations of policies: a set that `check` accepts breaks no client, whatever the backend sends. Each
//! combination is loaded and verified as a set with its own profile, and random turns are played through its dialects.
//! What they send must satisfy schemas, orders and `validate`, and the body must have what the stream announced.
//!
//! `COMBINATIONS` sets their number (2,000 in `./test all`), `COMBINATIONS_SEED` repeats a run.

use crate::laws::events::{Script, script_of};
use crate::support::replay::NOW_MS;
use proptest::option;
use proptest::sample::select;
use proptest::strategy::{Just, Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use reframe::testing::capture::{read, validate};
use reframe::testing::domain::policy::BUILT_IN;
use reframe::testing::domain::{FaultKind, Frame, TurnRequest};
use reframe::testing::engine::pipeline::{Pipeline, ResponseMode, TurnSpec};
use reframe::testing::engine::sse;
use reframe::testing::mapping::config::dialect::DialectPlan;
use reframe::testing::mapping::{Plan, SourceFile, load};
use reframe::testing::reload::embedded;
use reframe::testing::verify::test_turn_spec;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const TURNS: usize = 20;
/// Custom policies of the shipped dialects that change what a turn does.
const CUSTOM: &[(&str, &str)] = &[
    ("output_mode", "{ chat: obsidian-xml, responses: obsidian-xml }"),
    ("text_tools", "{ chat: use_tool, responses: tool_call }"),
    ("text_with_calls", "{ chat: drop }"),
    ("tool_stats", "{ chat: comment }"),
];
const LAWS: &[&str] = &["position", "choice", "none"];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The embedded set with the profile on all routes, without its tests and transcripts: they check other things.
fn set(profile: &str) -> Vec<SourceFile> {
    let mut files = embedded::files();
    files.retain(|file| !file.name.ends_with(".test.yaml") && !file.name.starts_with("profiles/"));
    for file in files.iter_mut().filter(|file| file.name == "gateway.yaml") {
        file.text = file.text.replace("profile: openai", "profile: random").into();
    }
    let name = "profiles/random.yaml".to_owned();
    files.push(SourceFile { shown: name.clone(), name, layer: 0, text: profile.into() });
    files
}

/// Half of the policies have a random value, and the index law of `responses` is sometimes another one.
fn profile() -> impl Strategy<Value = String> {
    let policies: Vec<_> = BUILT_IN.iter().filter(|policy| !policy.list).collect();
    let values: Vec<_> = policies.iter().map(|policy| option::of(select(policy.values.to_vec()))).collect();
    let custom: Vec<_> = CUSTOM.iter().map(|one| option::of(Just(one))).collect();
    (values, custom, option::weighted(0.3, select(LAWS))).prop_map(move |(values, custom, law)| {
        let set = policies.iter().zip(values).filter_map(|(policy, value)| Some((policy.name, value?)));
        let policies: String = set.map(|(name, value)| format!("  {name}: {value:?}\n")).collect();
        let custom = custom.into_iter().flatten().map(|(name, value)| format!("  {name}: {value}\n"));
        let policies: String = [policies].into_iter().chain(custom).collect();
        let patch = law.map_or(String::new(), |law| format!("patch: {{ responses: {{ index: {law} }} }}\n"));
        // One that changes nothing, because a map may not be empty.
        format!("profile: random\npolicies:\n  finish_precedence: [ error ]\n{policies}{patch}")
    })
}

struct Player {
    plan: Plan,
}

impl Player {
    fn pipeline(
        &self,
        dialect: &Arc<DialectPlan>,
        script: &Script,
        response_mode: ResponseMode,
    ) -> (Pipeline, Vec<Frame>) {
        let stream = response_mode == ResponseMode::Stream;
        let request = Arc::new(TurnRequest::synthetic("requested", stream, script.usage, script.n));
        let spec = test_turn_spec(&self.plan.backends[0], dialect, request, response_mode);
        let mut pipeline = Pipeline::new(TurnSpec { now_ms: NOW_MS, ..spec });
        let mut frames = pipeline.begin().frames;
        for event in &script.events {
            frames.extend(pipeline.push_event(event.clone(), NOW_MS).frames);
        }
        frames.extend(pipeline.finish(script.ended.clone(), NOW_MS).frames);
        (pipeline, frames)
    }

    /// What is wrong with the stream or the body. Returns how many frames were compared.
    fn check(&self, dialect: &Arc<DialectPlan>, script: &Script) -> Result<usize, String> {
        let (pipeline, frames) = self.pipeline(dialect, script, ResponseMode::Stream);
        let ours = |kind: FaultKind| matches!(kind, FaultKind::Violation | FaultKind::Internal);
        if let Some(fault) = pipeline.fault() {
            // A turn that fails ends in the middle, which `validate` reports rightly.
            return if ours(fault.kind) { Err(fault.full_message()) } else { Ok(0) };
        }
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| sse::write(frame, dialect.encoding.format, &mut bytes));
        let text = String::from_utf8(bytes).unwrap();
        let capture = read(&text).map_err(|error| format!("{error:?}\n{text}"))?;
        if let Some(finding) = validate(dialect, &capture).findings.first() {
            return Err(format!("line {}: {}\n{text}", finding.line, finding.text));
        }
        let (mut pipeline, _) = self.pipeline(dialect, script, ResponseMode::Body);
        let body = match pipeline.body() {
            Err(fault) if ours(fault.kind) => return Err(fault.full_message()),
            Err(_) => return Ok(frames.len()),
            Ok(body) => body.to_json(),
        };
        match validate(dialect, &read(&body).map_err(|error| format!("{error:?}"))?).findings.first() {
            Some(finding) => Err(format!("the body: {}\n{body}", finding.text)),
            None => Ok(frames.len()),
        }
    }
}

#[test]
fn b01_no_accepted_combination_of_policies_breaks_a_client() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("COMBINATIONS_SEED", now.as_nanos() as u64);
    let count = number("COMBINATIONS", 12);
    println!("COMBINATIONS_SEED={seed} COMBINATIONS={count}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let (mut accepted, mut refused, mut frames) = (0, 0, 0);
    for at in 0..count {
        let profile = profile().new_tree(&mut runner).unwrap().current();
        let loaded = load(&set(&profile));
        let Some(plan) = loaded.plan else {
            let codes: Vec<&str> = loaded.diagnostics.iter().map(|d| d.code.as_str()).collect();
            assert!(codes.contains(&"RF138"), "seed {seed}, combination {at}: {codes:?}\n{profile}");
            refused += 1;
            continue;
        };
        accepted += 1;
        let player = Player { plan };
        let dialects: Vec<Arc<DialectPlan>> = player.plan.dialects().filter(|d| d.profile.is_some()).cloned().collect();
        for turn in 0..TURNS {
            let n = 1 + turn % 2;
            let script = script_of(n).new_tree(&mut runner).unwrap().current();
            // Requests of the dialect `responses` have only one choice.
            for dialect in dialects.iter().filter(|d| d.name != "responses" || n == 1) {
                match player.check(dialect, &script) {
                    Ok(compared) => frames += compared,
                    Err(wrong) => {
                        panic!(
                            "seed {seed}, combination {at}, `{}`: {wrong}\n{profile}\n{:#?}",
                            dialect.name, script.events
                        )
                    }
                }
            }
        }
    }
    println!("{accepted} combinations accepted, {refused} refused, {frames} frames compared");
    assert!(accepted >= count / 6 && refused >= count / 12, "{accepted} accepted, {refused} refused");
    // Turns that fail are not compared, and by chance they can be many.
    assert!(frames > 25 * accepted as usize, "only {frames} frames");
}
