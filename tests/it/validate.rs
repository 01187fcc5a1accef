//! `reframe validate`: the output of the gateway is valid, and every violation is reported with its line.

use reframe::testing::capture::{ValidationReport, fit, read, validate};
use reframe::testing::diagnostics::render_all;
use reframe::testing::mapping::config::dialect::DialectPlan;
use reframe::testing::mapping::{Plan, SourceFile, load};
use reframe::testing::reload::embedded;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")
}

fn plan() -> Plan {
    load(&embedded::files()).plan.unwrap()
}

fn golden(case: &str) -> String {
    fs::read_to_string(root().join(case)).unwrap()
}

fn finding_lines(report: &ValidationReport) -> Vec<String> {
    report
        .findings
        .iter()
        .map(|f| match f.more {
            0 => format!("{}: {}", f.line, f.text),
            more => format!("{}: {} (+{more})", f.line, f.text),
        })
        .collect()
}

fn findings(dialect: &DialectPlan, text: &str) -> Vec<String> {
    finding_lines(&validate(dialect, &read(text).unwrap()))
}

#[test]
fn every_golden_output_is_valid_and_its_dialect_is_detected() {
    let plan = plan();
    let (mut checked, mut failures) = (0, Vec::new());
    for backend in fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        for case in fs::read_dir(backend).unwrap() {
            for file in fs::read_dir(case.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap();
                let is_golden = name.ends_with(".sse") || name.ends_with(".json") && name != "request.json";
                let text = fs::read_to_string(&path).unwrap();
                // A turn that failed before its first frame is an HTTP error, stored with its status line.
                if !is_golden || text.starts_with("HTTP ") {
                    continue;
                }
                let (dialect, profile) = name
                    .rsplit_once('.')
                    .unwrap()
                    .0
                    .split_once('@')
                    .unwrap_or((name.rsplit_once('.').unwrap().0, "openai"));
                let capture = read(&text).unwrap();
                let found = finding_lines(&validate(plan.dialect(dialect, Some(profile)).unwrap(), &capture));
                failures.extend(found.iter().map(|f| format!("{}:{f}", path.display())));
                let fits = plan.dialects().filter(|d| d.profile.as_deref() == Some(profile));
                let best = fits.max_by_key(|d| fit(d, &capture)).unwrap();
                if best.name != dialect {
                    failures.push(format!("{}: taken for {}", path.display(), best.name));
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 800, "only {checked} goldens were checked");
    assert!(failures.is_empty(), "{} of {checked}:\n{}", failures.len(), failures.join("\n"));
}

/// A stream as a list of events.
#[derive(Clone)]
struct Stream(Vec<String>);

impl Stream {
    fn of(case: &str) -> Stream {
        Stream(golden(case).split_terminator("\n\n").map(str::to_owned).collect())
    }

    fn change(mut self, at: usize, from: &str, to: &str) -> Stream {
        assert!(self.0[at].contains(from), "{from} is not in {}", self.0[at]);
        self.0[at] = self.0[at].replacen(from, to, 1);
        self
    }

    fn remove(mut self, at: usize) -> Stream {
        self.0.remove(at);
        self
    }

    fn duplicate(mut self, at: usize, to: usize) -> Stream {
        self.0.insert(to, self.0[at].clone());
        self
    }

    fn move_event(mut self, at: usize, to: usize) -> Stream {
        let event = self.0.remove(at);
        self.0.insert(to, event);
        self
    }

    /// Renumbers the events after a change of their order, so that only the order is wrong.
    fn renumbered(self) -> Stream {
        self.numbered_from(0)
    }

    fn numbered_from(mut self, first: usize) -> Stream {
        const KEY: &str = "\"sequence_number\":";
        for (n, event) in self.0.iter_mut().enumerate() {
            if let Some(at) = event.find(KEY) {
                let start = at + KEY.len();
                let end = start + event[start..].find([',', '}']).unwrap();
                event.replace_range(start..end, &(first + n).to_string());
            }
        }
        self
    }

    fn text(&self) -> String {
        self.0.iter().map(|event| format!("{event}\n\n")).collect()
    }
}

type Mutation<'m> = (&'m str, Stream, &'m [&'m str]);

fn assert_findings(dialect: &str, profile: &str, mutations: &[Mutation]) {
    let plan = plan();
    let dialect = plan.dialect(dialect, Some(profile)).unwrap();
    let mut failures = Vec::new();
    for (name, stream, expected) in mutations {
        let found = findings(dialect, &stream.text());
        if found != *expected {
            failures.push(format!("{name}\n  expected {expected:#?}\n  found {found:#?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn violations_of_a_chat_stream_are_reported() {
    // 0 role, 1 text, 2 tool, 3 arguments, 4 finish, 5 usage, 6 [DONE]; event n is on line 2n + 1
    let good = || Stream::of("openai-responses/matrix-text-then-call/chat.sse");
    let mutations: &[Mutation] = &[
        ("nothing", good(), &[]),
        ("missing field", good().change(1, "\"created\":1767225600,", ""), &["3: `created` is missing"]),
        (
            "missing inner field",
            good().change(1, ",\"logprobs\":null", ""),
            &["3: `logprobs` is missing in `choices[0]`"],
        ),
        ("extra field", good().change(1, "{\"id\"", "{\"extra\":1,\"id\""), &["3: `extra` is not allowed here"]),
        ("wrong type", good().change(1, "1767225600", "\"now\""), &["3: `created` must be an integer, not a string"]),
        (
            "wrong inner type",
            good().change(1, "\"content\":\"Let me look. \"", "\"content\":7"),
            &["3: `choices[0].delta.content` must be a string, not a number"],
        ),
        (
            "wrong constant",
            good().change(1, "chat.completion.chunk", "chat.completion"),
            &["3: `object` must be \"chat.completion.chunk\", not \"chat.completion\""],
        ),
        (
            "wrong word",
            good().change(4, "\"finish_reason\":\"tool_calls\"", "\"finish_reason\":\"tools\""),
            &["9: `choices[0].finish_reason` must be \"stop\", \"length\", \"tool_calls\", \"content_filter\" or \
               \"function_call\", not `tools`"],
        ),
        ("not JSON", good().change(1, "{\"id\"", "{id"), &["3: invalid JSON: column 2: expected a key in quotes"]),
        (
            "arguments before the call",
            good().remove(2),
            &["5: a delta of arguments of item 0 comes before it is opened"],
        ),
        (
            "wrong index",
            good().change(3, "\"tool_calls\":[{\"index\":0", "\"tool_calls\":[{\"index\":3"),
            &["7: a delta of arguments of item 3 comes before it is opened"],
        ),
        (
            "a call at a wrong index",
            good().change(2, "\"tool_calls\":[{\"index\":0", "\"tool_calls\":[{\"index\":1"),
            &[
                "5: `call_1` is opened at index 1, but the next free index is 0",
                "7: a delta of arguments of item 0 comes before it is opened",
            ],
        ),
        ("two finishes", good().duplicate(4, 5), &["11: choice 0 is finished a second time (first on line 9)"]),
        (
            "content after the finish",
            good().move_event(1, 4),
            &["9: a delta of text comes after choice 0 was finished on line 7"],
        ),
        ("no finish", good().remove(4), &["11: choice 0 is never finished"]),
        ("no terminator", good().remove(6), &["11: the stream stops without its terminator, `[DONE]`"]),
        ("two terminators", good().duplicate(6, 6), &["15: there is a second terminator (the first is on line 13)"]),
        (
            "a frame after the terminator",
            good().duplicate(5, 7),
            &["15: a frame comes after the terminator on line 13"],
        ),
        ("two usages", good().duplicate(5, 6), &["13: the usage is reported a second time (first on line 11)"]),
        (
            "changed id",
            good().change(3, "chatcmpl-1", "chatcmpl-2"),
            &["7: the id of the response is `chatcmpl-2` here, but was `chatcmpl-1` on line 1"],
        ),
        (
            "changed model",
            good().change(3, "up-model", "other-model"),
            &["7: the model of the response is `other-model` here, but was `up-model` on line 1"],
        ),
        (
            "two roles",
            good().change(1, "\"delta\":{", "\"delta\":{\"role\":\"assistant\","),
            &["3: choice 0 starts a second time (first on line 1)"],
        ),
        ("no role", good().remove(0), &["1: a delta of text comes before choice 0 has started"]),
        (
            "mixed",
            good().change(2, "\"delta\":{", "\"delta\":{\"content\":\"x\","),
            &["5: text and tool calls share a delta"],
        ),
        (
            "cut",
            Stream(good().0[..3].to_vec()),
            &["5: choice 0 is never finished", "5: the stream stops without its terminator, `[DONE]`"],
        ),
    ];
    assert_findings("chat", "openai", mutations);
}

#[test]
fn violations_of_a_completions_stream_are_reported() {
    let good = || Stream::of("openai-responses/matrix-text/completions.sse");
    let finish = good().0.iter().position(|e| e.contains("\"stop\"")).unwrap();
    let mutations: &[Mutation] = &[
        ("nothing", good(), &[]),
        ("missing field", good().change(0, "\"created\":1767225600,", ""), &["1: `created` is missing"]),
        (
            "wrong type",
            good().change(0, "\"index\":0", "\"index\":\"0\""),
            &["1: `choices[0].index` must be an integer, not a string"],
        ),
        (
            "two finishes",
            good().duplicate(finish, finish),
            &["7: choice 0 is finished a second time (first on line 5)"],
        ),
        (
            "content after the finish",
            good().move_event(0, finish),
            &["5: a delta of text comes after choice 0 was finished on line 3"],
        ),
        ("no finish", good().remove(finish), &["7: choice 0 is never finished"]),
        ("no terminator", good().remove(good().0.len() - 1), &["7: the stream stops without its terminator, `[DONE]`"]),
        (
            "changed id",
            good().change(finish, "cmpl-1", "cmpl-2"),
            &["5: the id of the response is `cmpl-2` here, but was `cmpl-1` on line 1"],
        ),
    ];
    assert_findings("completions", "openai", mutations);
}

#[test]
fn violations_of_a_responses_stream_are_reported() {
    // 0 created, 1 in_progress, 2 item, 3 part, 4 delta, 5 text done, 6 part done, 7 item done, 8 item, 9 arguments,
    // 10 arguments done, 11 item done, 12 completed, 13 [DONE]; event n is on line 3n + 2
    let good = || Stream::of("openai-responses/matrix-text-then-call/responses.sse");
    let added = "response.output_item.added";
    let mutations: &[Mutation] = &[
        ("nothing", good(), &[]),
        (
            "missing field",
            good().change(4, ",\"content_index\":0", ""),
            &[
                "14: `content_index` is missing",
                "17: the complete value of part 0 (text) of `msg_2` has 13 characters more than its deltas (+3)",
            ],
        ),
        (
            "extra field",
            good().change(4, "\"content_index\"", "\"extra\":{},\"content_index\""),
            &["14: `extra` is not allowed here"],
        ),
        (
            "wrong type",
            good().change(9, "\"output_index\":1", "\"output_index\":\"1\""),
            &["29: `output_index` must be an integer, not a string"],
        ),
        (
            "extra field in the envelope",
            good().change(12, "\"object\":\"response\"", "\"object\":\"response\",\"x\":1"),
            &["38: `x` is not allowed in `response`"],
        ),
        (
            "gap in the numbers",
            good().change(4, "\"sequence_number\":4", "\"sequence_number\":5"),
            &[
                "14: this frame has the sequence number 5, but the previous one has 3",
                "17: this frame has the sequence number 5, but the previous one has 5",
            ],
        ),
        (
            "wrong first number",
            Stream(good().0[..1].to_vec()).change(0, "\"sequence_number\":0", "\"sequence_number\":1"),
            &[
                "2: the first frame has the sequence number 1, not 0",
                "2: the stream stops before the frame that ends the response",
                "2: the stream stops without its terminator, `[DONE]`",
            ],
        ),
        (
            "delta before its item",
            good().move_event(4, 2).renumbered(),
            &["8: a delta of text of `msg_2` comes before it is opened"],
        ),
        (
            "delta before its part",
            good().move_event(4, 3).renumbered(),
            &["11: a delta of part 0 (text) of `msg_2` comes before the part is opened"],
        ),
        (
            "arguments before their item",
            good().move_event(9, 8).renumbered(),
            &["26: a delta of arguments of `fc_3` comes before it is opened"],
        ),
        ("item never closed", good().remove(7).renumbered(), &["8: `msg_2` is opened here and never closed"]),
        (
            "part never closed",
            good().remove(6).renumbered(),
            &["20: `msg_2` is closed, but part 0 (text) (opened on line 11) is not"],
        ),
        ("call never closed", good().remove(11).renumbered(), &["26: `fc_3` is opened here and never closed"]),
        (
            "item closed twice",
            good().duplicate(11, 11).renumbered(),
            &["38: `fc_3` is closed a second time (first on line 35)"],
        ),
        (
            "item opened twice",
            good().duplicate(8, 8).renumbered(),
            &["29: `fc_3` is opened a second time (first on line 26)"],
        ),
        ("two ends", good().duplicate(12, 13).renumbered(), &["41: a frame comes after the end on line 38"]),
        ("delta after the end", good().duplicate(9, 13).renumbered(), &["41: a frame comes after the end on line 38"]),
        (
            "delta after the item was closed",
            good().move_event(4, 7).renumbered(),
            &[
                "14: the complete value of part 0 (text) of `msg_2` has 13 characters more than its deltas (+2)",
                "23: a delta of part 0 (text) of `msg_2` comes after the item was closed on line 20",
            ],
        ),
        (
            "delta after the whole",
            good().move_event(4, 5).renumbered(),
            &[
                "14: the complete value of part 0 (text) of `msg_2` has 13 characters more than its deltas",
                "17: a delta of part 0 (text) of `msg_2` comes after the complete value on line 14",
            ],
        ),
        ("no end", good().remove(12), &["37: the stream stops before the frame that ends the response"]),
        ("no terminator", good().remove(13), &["38: the stream stops without its terminator, `[DONE]`"]),
        (
            "changed id",
            good().change(12, "\"id\":\"resp_1\"", "\"id\":\"resp_2\""),
            &["38: the id of the response is `resp_2` here, but was `resp_1` on line 2"],
        ),
        (
            "changed item id at the end",
            good().change(11, "\"id\":\"fc_3\"", "\"id\":\"fc_4\""),
            &["35: the id is `fc_4` here, but item 1 is `fc_3` (opened on line 26) (+1)"],
        ),
        (
            "changed call id",
            good().change(11, "\"call_1\"", "\"call_2\""),
            &["35: the call of `fc_3` is `call_2` here, but was `call_1` on line 26"],
        ),
        (
            "wrong output_index",
            good().change(9, "\"output_index\":1", "\"output_index\":0"),
            &["29: `fc_3` is at index 0 here, but was opened at index 1 on line 26"],
        ),
        (
            "wrong output_index when opened",
            good().change(8, "\"output_index\":1", "\"output_index\":2"),
            &[
                "26: `fc_3` is opened at index 2, but the next free index is 1",
                "29: `fc_3` is at index 1 here, but was opened at index 2 on line 26 (+4)",
            ],
        ),
        (
            "wrong item_id",
            good().change(9, "\"item_id\":\"fc_3\"", "\"item_id\":\"fc_9\""),
            &["29: the id is `fc_9` here, but item 1 is `fc_3` (opened on line 26)"],
        ),
        (
            "the id of another item",
            good().change(9, "\"item_id\":\"fc_3\"", "\"item_id\":\"msg_2\""),
            &[
                "29: `msg_2` is at index 1 here, but was opened at index 0 on line 8",
                "29: a delta of the arguments of `msg_2` comes after the item was closed on line 23",
                "32: the complete value of the arguments of `fc_3` has 7 characters more than its deltas (+2)",
            ],
        ),
        (
            "text differs from its deltas",
            good().change(4, "Let me look. ", "Let me loop. "),
            &["17: the complete value of part 0 (text) of `msg_2` differs from its deltas from character 11 on (+3)"],
        ),
        (
            "text done differs",
            good().change(5, "Let me look. ", "Let me look"),
            &["17: the complete value of part 0 (text) of `msg_2` has 2 characters fewer than its deltas"],
        ),
        (
            "arguments differ from their deltas",
            good().change(10, "{\\\"a\\\":1}", "{\\\"a\\\":12}"),
            &["32: the complete value of the arguments of `fc_3` differs from its deltas from character 7 on"],
        ),
        (
            "the final event has another text",
            good().change(12, "Let me look. ", "Let me look. Now."),
            &["38: the complete value of part 0 (text) of `msg_2` has 4 characters more than its deltas"],
        ),
        (
            "an item is missing from the end",
            missing_item(good()),
            &["38: `fc_3`, opened on line 26, is missing from the final frame"],
        ),
        (
            "an unknown frame",
            good().change(3, "\"type\":\"response.content_part.added\"", "\"type\":\"response.content_part.add\""),
            &[
                "11: this dialect has no frame `response.content_part.add` (did you mean `response.content_part.added`?)",
                "14: a delta of part 0 (text) of `msg_2` comes before the part is opened",
            ],
        ),
        (
            "the event has another name",
            good().change(8, &format!("event: {added}"), "event: response.created"),
            &["26: the event name is `response.created`, but the data requires `response.output_item.added`"],
        ),
        (
            "no event line",
            good().change(8, &format!("event: {added}\n"), ""),
            &["25: there is no `event:` line before the data"],
        ),
        (
            "created twice",
            good().duplicate(0, 1).renumbered(),
            &["5: the response starts a second time (first on line 2)"],
        ),
        ("no created", good().remove(0).renumbered(), &["5: an item comes before the response has started"]),
    ];
    assert_findings("responses", "openai", mutations);
}

/// Removes the tool call from the final envelope.
fn missing_item(stream: Stream) -> Stream {
    let event = &stream.0[12];
    let start = event.find(",{\"id\":\"fc_3\"").unwrap();
    let end = start + event[start..].find("}]").unwrap() + 1;
    let call = event[start..end].to_owned();
    stream.clone().change(12, &call, "")
}

#[test]
fn refusals_thoughts_and_summaries_equal_their_deltas() {
    let summary = || Stream::of("openai-responses/matrix-reasoning-then-text/responses.sse");
    let thought = || Stream::of("openai-responses/matrix-raw-thoughts/responses.sse");
    let refusal = || Stream::of("openai-responses/b055-refusal/responses.sse");
    let delta = refusal().0.iter().position(|e| e.contains("response.refusal.delta")).unwrap();
    let mutations: &[Mutation] = &[
        (
            "summary",
            summary().change(5, "answer.", "add."),
            &["20: the complete value of part 0 (summary) of `rs_2` differs from its deltas from character 8 on (+3)"],
        ),
        (
            "summary part never opened",
            summary().remove(3).renumbered(),
            &["11: a delta of part 0 (summary) of `rs_2` comes before the part is opened"],
        ),
        (
            "thought",
            thought().remove(5).renumbered(),
            &["17: the complete value of part 0 (thought) of `rs_2` has 4 characters more than its deltas (+3)"],
        ),
        (
            "refusal",
            refusal().change(delta, "\"delta\":\"", "\"delta\":\"Oh. "),
            &["17: the complete value of part 0 (refusal) of `msg_2` differs from its deltas from character 1 on (+3)"],
        ),
        (
            "text in a part of refusal",
            refusal().change(delta, "event: response.refusal.delta", "event: response.output_text.delta").change(
                delta,
                "\"type\":\"response.refusal.delta\"",
                "\"type\":\"response.output_text.delta\",\"logprobs\":[]",
            ),
            &[
                "14: a delta of part 0 (text) of `msg_2` comes before the part is opened",
                "17: the complete value of part 0 (refusal) of `msg_2` has 2 characters more than its deltas (+3)",
            ],
        ),
    ];
    assert_findings("responses", "openai", mutations);
}

#[test]
fn a_profile_has_its_own_rules() {
    let good = || Stream::of("openai-responses/b013-arguments-only-in-done/responses@codex-proxy.sse");
    let mutations: &[Mutation] = &[
        ("nothing", good(), &[]),
        (
            "numbers begin elsewhere",
            good().renumbered(),
            &["2: the first frame has the sequence number 0, not 1", "2: `sequence_number` must be at least 1, not 0"],
        ),
        (
            "arguments",
            good().change(2, "{\\\"a\\\":1}", "{}"),
            &["14: the complete value of the arguments of `call_1` differs from its deltas from character 2 on (+2)"],
        ),
        (
            "the message is never closed",
            good().remove(3).numbered_from(1),
            &["2: `msg_2` is opened here and never closed"],
        ),
        (
            "the answer changes its id",
            good().change(4, "resp_1", "resp_2"),
            &["14: the id of the response is `resp_2` here, but was `resp_1` on line 2"],
        ),
        (
            "a bare terminator",
            good().change(7, "event: done\n", ""),
            &["22: `[DONE]` has the event name `done` in this dialect"],
        ),
    ];
    assert_findings("responses", "codex-proxy", mutations);
}

#[test]
fn violations_of_a_body_have_the_line_of_the_value() {
    let plan = plan();
    let chat = plan.dialect("chat", Some("openai")).unwrap();
    let body = golden("openai-responses/matrix-parallel-calls/chat.json");
    assert_eq!(findings(chat, &body), [""; 0]);
    let cases: &[(&str, String, &[&str])] = &[
        (
            "wrong type",
            body.replace("\"created\": 1767225600", "\"created\": \"now\""),
            &["4: `created` must be an integer, not a string"],
        ),
        (
            "missing field",
            body.replacen("      \"logprobs\": null,\n", "", 1),
            &["8: `logprobs` is missing in `choices[0]`"],
        ),
        (
            "extra field",
            body.replacen("\"role\":", "\"rule\": 1,\n        \"role\":", 1),
            &["10: `rule` is not allowed in `choices[0].message`"],
        ),
        ("two calls of one id", body.replace("call_0", "call_1"), &["1: two items have the id `call_1`"]),
        (
            "no finish",
            body.replace("\"finish_reason\": \"tool_calls\"", "\"finish_reason\": null"),
            &["34: `choices[0].finish_reason` must be one of stop, length, tool_calls, \
                 content_filter or function_call, not null"],
        ),
    ];
    let mut failures = Vec::new();
    for (name, text, expected) in cases {
        assert_ne!(text, &body, "{name} changes nothing");
        let found = findings(chat, text);
        if found != *expected {
            failures.push(format!("{name}\n  expected {expected:#?}\n  found {found:#?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Standard output, standard error and exit code of `reframe validate`.
fn run_validate(arguments: &[&str], input: &[u8]) -> (String, String, i32) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_reframe"))
        .arg("validate")
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A process that does not read its input may have exited already.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

const CHAT: &str = "openai-responses/matrix-text-then-call/chat.sse";

#[test]
fn reframe_validate_reads_a_file_and_detects_its_dialect() {
    let valid = |what: &str| (format!("{what}: valid\n"), String::new(), 0);
    assert_eq!(run_validate(&[CHAT], b""), valid(&format!("{CHAT}: 7 frames, dialect chat, profile openai")));
    let responses = "openai-responses/matrix-text/responses.json";
    assert_eq!(
        run_validate(&[responses], b""),
        valid(&format!("{responses}: a body, dialect responses, profile openai"))
    );
    let proxy = "openai-responses/matrix-text-then-call/responses@codex-proxy.sse";
    let (text, _, code) = run_validate(&["--profile", "codex-proxy", proxy], b"");
    assert_eq!((text.contains("dialect responses, profile codex-proxy: valid"), code), (true, 0), "{text}");
}

#[test]
fn reframe_validate_reads_stdin_and_prints_text_or_json() {
    let broken = golden(CHAT).replace("\"up-model\",\"system", "\"up-model\",\"extra\":1,\"system");
    let sentence = "`extra` is not allowed here";
    let human = format!("stdin:1: {sentence} (and 5 more)\nstdin: 7 frames, dialect chat, profile openai: 1 finding\n");
    assert_eq!(run_validate(&[], broken.as_bytes()), (human.clone(), String::new(), 1));
    assert_eq!(run_validate(&["-"], broken.as_bytes()), (human, String::new(), 1));
    let json = format!("{{\"file\":\"stdin\",\"line\":1,\"message\":\"{sentence}\",\"more\":5}}\n");
    assert_eq!(run_validate(&["--format", "json"], broken.as_bytes()), (json, String::new(), 1));
    assert_eq!(run_validate(&["--format", "json"], golden(CHAT).as_bytes()), (String::new(), String::new(), 0));
}

#[test]
fn unreadable_input_is_reported() {
    let error_of = |arguments: &[&str], input: &[u8]| {
        let (text, error, code) = run_validate(arguments, input);
        assert_eq!((text.as_str(), code), ("", 2), "{error}");
        error
    };
    assert!(error_of(&["nowhere.sse"], b"").starts_with("error: nowhere.sse: "));
    assert_eq!(error_of(&[], b"\n\n"), "error: stdin is empty\n");
    let neither = "error: stdin is neither JSON nor an event stream: no line begins with `data:`\n";
    assert_eq!(error_of(&[], b"hello"), neither);
    assert_eq!(error_of(&[], b"data: {}\n\n\xff"), "error: stdin:3: this is not UTF-8\n");
    let fits =
        "error: stdin: no dialect of this set matches; select one with --dialect: chat, completions or responses\n";
    assert_eq!(error_of(&[], b"{\"hello\": 1}"), fits);
    let dialect = "error: no dialect `chap`; known dialects: chat, completions or responses\n";
    assert_eq!(error_of(&["--dialect", "chap", CHAT], b""), dialect);
    assert_eq!(error_of(&["--profile", "unknown", CHAT], b""), "error: no profile `unknown`\n");
    let broken = run_validate(&[], b"{\n  \"id\": 1,\n  oops\n}");
    let printed = "stdin:3: invalid JSON: expected a key in quotes\nstdin: a body: 1 finding\n";
    assert_eq!(broken, (printed.to_owned(), String::new(), 1));
}

#[test]
fn line_endings_and_curl_headers_are_accepted() {
    let plan = plan();
    let chat = plan.dialect("chat", Some("openai")).unwrap();
    let head = "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\ncontent-type: text/event-stream\n\n";
    assert_eq!(findings(chat, &format!("{head}{}", golden(CHAT))), [""; 0]);
    let broken = format!("{head}{}", Stream::of(CHAT).change(3, "chatcmpl-1", "chatcmpl-2").text());
    let expected = ["12: the id of the response is `chatcmpl-2` here, but was `chatcmpl-1` on line 6"];
    for text in [broken.clone(), broken.replace('\n', "\r\n"), broken.replace('\n', "\r"), format!("\u{feff}{broken}")]
    {
        assert_eq!(findings(chat, &text), expected);
    }
    let body = golden("openai-responses/matrix-text/chat.json").replace("1767225600", "null");
    let found = findings(chat, &format!("HTTP/1.1 200 OK\n\n{body}").replace('\n', "\r\n"));
    assert_eq!(found, ["6: `created` must be an integer, not null"]);
    // Comments are ignored, data may have several lines, and the last event needs no empty line.
    let comments = format!(": ping\n\n{}", golden(CHAT).replace("data: {", "data:\ndata: {"));
    assert_eq!(findings(chat, comments.trim_end()), [""; 0]);
}

#[test]
fn an_error_body_is_validated_by_its_dialect() {
    let body = r#"{"error":{"message":"no","type":"server_error","param":null,"code":null}}"#;
    let (text, _, code) = run_validate(&["--dialect", "chat"], body.as_bytes());
    assert_eq!((text.as_str(), code), ("stdin: an error body, dialect chat, profile openai: valid\n", 0));
}

/// The example in docs/validate.md is the actual output.
#[test]
fn the_example_in_the_docs_is_current() {
    let broken = Stream::of("openai-responses/matrix-text-then-call/responses.sse")
        .change(9, "\"item_id\":\"fc_3\"", "\"item_id\":\"fc_7\"")
        .change(5, "Let me look. ", "Let me look")
        .remove(13)
        .remove(1);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("capture.sse"), broken.text()).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_reframe"))
        .args(["validate", "capture.sse"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let printed = format!("$ reframe validate capture.sse\n{}```\n", String::from_utf8(output.stdout).unwrap());
    let docs = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/validate.md")).unwrap();
    assert!(docs.contains(&printed), "docs/validate.md does not show\n{printed}");
}

/// A dialect that is defined only in YAML is validated by the same rules.
#[test]
fn a_new_dialect_needs_only_yaml() {
    const DRUM: &str = r#"
dialect: drum
request: { model: { value: m }, stream: true, items: [ { where: { $.q: string }, emit: [ message: { role: user, text: $.q } ] } ] }
stream:
  framing: { as: ndjson }
  base: { beat: "{{ frame }}", at: "{{ seq }}" }
  frames:
    text.delta: { tap: { data: { hit: "{{ text }}" } } }
    turn.close: { roll: { data: { all: "{{ turn.choices[0].text }}" } } }
  order: { turn: text.delta* turn.close turn.end }
body: { all: "{{ turn.choices[0].text }}" }
errors: { why: "{{ fault.message }}" }
capture:
  event_name: $.beat
  first_sequence: 0
  rules:
    - { emit: [ sequence: { value: $.at } ] }
    - { event: tap, emit: [ delta: { kind: text, text: $.hit } ] }
    - { event: roll, emit: [ whole: { kind: text, text: $.all }, end: {} ] }
"#;
    let mut files = embedded::files();
    let name = "dialects/drum.yaml".to_owned();
    files.push(SourceFile { shown: name.clone(), name, layer: 0, text: DRUM.into() });
    let loaded = load(&files);
    let plan = loaded.plan.unwrap_or_else(|| panic!("{}", render_all(&loaded.diagnostics, &loaded.sources, false)));
    let drum = plan.dialects().find(|d| d.name == "drum").unwrap();
    let good = r#"{"beat":"tap","at":0,"hit":"ta"}
{"beat":"tap","at":1,"hit":"ta"}
{"beat":"roll","at":2,"all":"tata"}
"#;
    assert_eq!(findings(drum, good), [""; 0]);
    let broken = good.replace("\"at\":1", "\"at\":3").replace("tata", "tatam").replacen("\"tap\"", "\"tip\"", 1);
    let expected = [
        "1: this dialect has no frame `tip` (did you mean `tap`?)",
        "2: this frame has the sequence number 3, but the previous one has 0",
        "3: this frame has the sequence number 2, but the previous one has 3",
        "3: the complete value of the text of choice 0 has 3 characters more than its deltas",
    ];
    assert_eq!(findings(drum, &broken), expected);
    let best = plan.dialects().max_by_key(|d| fit(d, &read(good).unwrap())).unwrap();
    assert_eq!(best.name, "drum");
}

/// The rules of `capture:` can read the name of an SSE event that the data does not repeat.
#[test]
fn the_name_of_an_event_can_be_read() {
    const HORN: &str = r#"dialect: horn
request: { required: { $.model: string }, model: $.model, stream: { from: $.stream, default: false } }
stream:
  framing: { data: json, event: "{{ frame }}" }
  frames:
    text.delta: { toot: { data: { hit: "{{ text }}" } } }
    turn.close: { rest: { data: { all: "{{ turn.choices[0].text }}" } } }
  order: { turn: text.delta* turn.close turn.end }
body: { all: "{{ turn.choices[0].text }}" }
errors: { why: "{{ fault.message }}" }
capture:
  event: kind
  event_name: $.kind
  rules:
    - { event: toot, emit: [ delta: { kind: text, text: $.hit } ] }
    - { event: rest, emit: [ whole: { kind: text, text: $.all }, end: {} ] }
"#;
    let mut files = embedded::files();
    let name = "dialects/horn.yaml".to_owned();
    files.push(SourceFile { shown: name.clone(), name, layer: 0, text: HORN.into() });
    let loaded = load(&files);
    let plan = loaded.plan.unwrap_or_else(|| panic!("{}", render_all(&loaded.diagnostics, &loaded.sources, false)));
    let horn = plan.dialects().find(|d| d.name == "horn").unwrap();
    let good = "event: toot\ndata: {\"hit\":\"ta\"}\n\nevent: rest\ndata: {\"all\":\"ta\"}\n\n";
    assert_eq!(findings(horn, good), [""; 0]);
    let wrong = good.replace("{\"all\":\"ta\"}", "{\"all\":\"tata\"}");
    let expected = ["5: the complete value of the text of choice 0 has 2 characters more than its deltas"];
    assert_eq!(findings(horn, &wrong), expected);
}
