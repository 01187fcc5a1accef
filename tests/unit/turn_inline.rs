//! Inline blocks: every text gives the same events however it is split, and nothing is both text and a call.

use super::*;
use crate::domain::call_id::CallIdFormat;
use crate::domain::inline::{BlockPosition, BlockTools, CallBlock, CallFormat, StrictCalls, UnclosedBlock};
use crate::domain::request_item::Tool;
use crate::domain::{Delta, Finish, Logprobs, Tree};
use proptest::test_runner::Config as ProptestConfig;

fn block(name: &str, content: BlockContent) -> InlineBlock {
    InlineBlock {
        name: name.to_owned(),
        open: format!("<{name}>"),
        close: format!("</{name}>"),
        position: BlockPosition::Anywhere,
        content,
    }
}

fn call_block(format: CallFormat) -> CallBlock {
    let (strict, unclosed) = (StrictCalls::Off, UnclosedBlock::Call);
    CallBlock { format, id: None, tools: BlockTools::Offered, max_bytes: 1 << 20, strict, repair: false, unclosed }
}

fn json_call(max_bytes: usize) -> BlockContent {
    let path = |name: &str| vec![name.to_owned()];
    let format = CallFormat::Json { id: Some(path("id")), name: path("name"), arguments: path("arguments") };
    BlockContent::Call(CallBlock { id: CallIdFormat::new("call_{choice}_{ordinal}"), max_bytes, ..call_block(format) })
}

fn xml_call() -> BlockContent {
    let format = CallFormat::Xml { name: "name".to_owned(), arguments: Some("args".to_owned()), spaced: false };
    BlockContent::Call(call_block(format))
}

fn blocks() -> Vec<InlineBlock> {
    vec![
        block("think", BlockContent::Reasoning { starts_open: false }),
        block("tool_call", json_call(1 << 20)),
        InlineBlock { open: "<use_tool".to_owned(), ..block("use_tool", xml_call()) },
        // The beginning of another tag.
        block("thinking", BlockContent::Reasoning { starts_open: false }),
    ]
}

fn tools() -> CallableTools {
    let parameters = r#"{ "properties": { "n": { "type": "integer" }, "s": { "type": "string" } } }"#;
    let tool = |name: &str| {
        let parameters = Some(Tree::parse(parameters.as_bytes()).unwrap());
        Arc::new(Tool { name: Some(name.to_owned()), parameters, ..Tool::default() })
    };
    CallableTools::Only { tools: vec![tool("find"), tool("now")], answer: None, no_calls: false }
}

fn pass(blocks: Vec<InlineBlock>) -> InlinePass {
    let blocks: Vec<_> = blocks.into_iter().map(Arc::new).collect();
    InlinePass::new(&blocks, tools(), true).unwrap()
}

fn text(delta: &str) -> Event {
    Event::Text { choice: 0, item: None, part: None, delta: Delta::Append(delta.to_owned()) }
}

const FINISH: Event = Event::Finish { choice: Some(0), reason: Some(Finish::Stop), other: None };

/// The output in one notation, adjacent deltas of the same kind joined.
fn shown(events: Vec<InlineEvent>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (event, _) in events {
        let appended = |delta: &Delta| match delta {
            Delta::Append(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        let line = match &event {
            Event::Text { delta, .. } => format!("text {}", appended(delta)),
            Event::Reasoning { item, delta: Some(delta), .. } => {
                format!("reasoning [{}] {}", item.as_deref().unwrap(), appended(delta))
            }
            Event::Tool { id, name, delta, .. } => {
                let arguments = delta.as_ref().map(appended);
                format!("call {} {} {arguments:?}", id.as_deref().unwrap_or("-"), name.as_deref().unwrap())
            }
            Event::Close { .. } | Event::Finish { .. } | Event::Logprobs { .. } => continue,
            other => panic!("{other:?}"),
        };
        let kind = |line: &str| line.split_inclusive(' ').next().unwrap_or_default().to_owned();
        let reasoning = |line: &str| line.split_inclusive("] ").next().unwrap_or_default().to_owned();
        match lines.last_mut() {
            Some(last) if line.starts_with("text ") && kind(last) == "text " => last.push_str(&line["text ".len()..]),
            Some(last) if line.starts_with("reasoning ") && reasoning(last) == reasoning(&line) => {
                last.push_str(&line[reasoning(&line).len()..]);
            }
            _ => lines.push(line),
        }
    }
    lines
}

fn run<'d>(blocks: Vec<InlineBlock>, deltas: impl IntoIterator<Item = &'d str>) -> Vec<String> {
    let mut pass = pass(blocks);
    let mut output = Vec::new();
    deltas.into_iter().for_each(|delta| pass.push(text(delta), &mut output));
    pass.push(FINISH, &mut output);
    assert_eq!(pass.held_bytes(), 0, "something is still held back after the finish");
    shown(output)
}

/// Name, blocks, text, and what it is.
fn fixtures() -> Vec<(&'static str, Vec<InlineBlock>, String, Vec<&'static str>)> {
    let starts_open = || vec![block("think", BlockContent::Reasoning { starts_open: true })];
    let at_start = || {
        let think = block("think", BlockContent::Reasoning { starts_open: false });
        vec![InlineBlock { position: BlockPosition::Start, ..think }]
    };
    let call = r#"<tool_call>{"name":"find","arguments":{"q":"é🙂"}}</tool_call>"#;
    let found = r#"call call_0_0 find Some("{\"q\":\"é🙂\"}")"#;
    let small = || vec![block("tool_call", json_call(20))];
    vec![
        ("plain", blocks(), "1 < 2 and <b>é🙂</b> <thin".into(), vec!["text 1 < 2 and <b>é🙂</b> <thin"]),
        (
            "reasoning",
            blocks(),
            "<think>\nHm <i>\n</think>\n\nHi!".into(),
            vec!["reasoning [inline 1] Hm <i>\n", "text Hi!"],
        ),
        (
            "a longer tag",
            blocks(),
            "<thinking>Hm</think></thinking>Hi".into(),
            vec!["reasoning [inline 1] Hm</think>", "text Hi"],
        ),
        ("no reasoning", blocks(), "<think>\n\n</think>\n\nHi".into(), vec!["text Hi"]),
        (
            "two reasonings",
            blocks(),
            "\n<think>a</think> <think>b</think>c".into(),
            vec!["reasoning [inline 1] a", "reasoning [inline 2] b", "text c"],
        ),
        ("unclosed reasoning", blocks(), "a<think>b</thin".into(), vec!["text a", "reasoning [inline 1] b</thin"]),
        (
            "starts open",
            starts_open(),
            "Hm\n</think>\nHi <think>x".into(),
            vec!["reasoning [inline 0] Hm\n", "text Hi ", "reasoning [inline 1] x"],
        ),
        (
            "starts open, with the tag",
            starts_open(),
            "\n<think>Hm</think>Hi".into(),
            vec!["reasoning [inline 0] Hm", "text Hi"],
        ),
        ("starts open, almost with the tag", starts_open(), " <thi".into(), vec!["reasoning [inline 0] <thi"]),
        ("only at the start", at_start(), "Hi <think>a</think>".into(), vec!["text Hi <think>a</think>"]),
        ("at the start", at_start(), " <think>a</think> Hi".into(), vec!["reasoning [inline 1] a", "text Hi"]),
        (
            "much space",
            at_start(),
            format!("{}<think>", " ".repeat(300)),
            vec![Box::leak(format!("text {}<think>", " ".repeat(300)).into_boxed_str())],
        ),
        ("only space", blocks(), " \n ".into(), vec!["text  \n "]),
        ("a call", blocks(), format!("Let me see. {call}"), vec!["text Let me see. ", found]),
        (
            "two calls",
            blocks(),
            format!("{call}\n{}", call.replace("arguments", "id\":\"x\",\"arguments")),
            vec![found, r#"call x find Some("{\"q\":\"é🙂\"}")"#],
        ),
        (
            "a list of calls",
            blocks(),
            r#"<tool_call>[{"name":"now"},{"name":"now"}]</tool_call>"#.into(),
            vec!["call call_0_0 now None", "call call_0_1 now None"],
        ),
        (
            "arguments as text",
            blocks(),
            r#"<tool_call>{"name":"now","arguments":"{}"}</tool_call>!"#.into(),
            vec![r#"call call_0_0 now Some("{}")"#, "text !"],
        ),
        (
            "arguments of another name",
            blocks(),
            r#"<tool_call>{"name":"find","parameters":{"q":"a"}}</tool_call>"#.into(),
            vec![r#"text <tool_call>{"name":"find","parameters":{"q":"a"}}</tool_call>"#],
        ),
        (
            "arguments that are not JSON",
            blocks(),
            r#"<tool_call>{"name":"find","arguments":"a"}</tool_call>"#.into(),
            vec![r#"text <tool_call>{"name":"find","arguments":"a"}</tool_call>"#],
        ),
        (
            "arguments that are a list",
            blocks(),
            r#"<tool_call>{"name":"find","arguments":[1]}</tool_call>"#.into(),
            vec![r#"text <tool_call>{"name":"find","arguments":[1]}</tool_call>"#],
        ),
        (
            "a tag in a string",
            blocks(),
            r#"<tool_call>{"name":"find","arguments":{"q":"\"</tool_call>"}}</tool_call>"#.into(),
            vec![r#"call call_0_0 find Some("{\"q\":\"\\\"</tool_call>\"}")"#],
        ),
        ("an unclosed call", blocks(), call.replace("</tool_call>", "\n"), vec![found]),
        ("half a call", blocks(), "a <tool_call>{\"name\":".into(), vec!["text a <tool_call>{\"name\":"]),
        (
            "broken JSON",
            blocks(),
            "<tool_call>{\"q\": \"a}\n</tool_call> b".into(),
            vec!["text <tool_call>{\"q\": \"a}\n</tool_call> b"],
        ),
        (
            "another tool",
            blocks(),
            call.replace("find", "drop"),
            vec![r#"text <tool_call>{"name":"drop","arguments":{"q":"é🙂"}}</tool_call>"#],
        ),
        (
            "a call in reasoning",
            blocks(),
            format!("<think>{call}</think>a"),
            vec![r#"reasoning [inline 1] <tool_call>{"name":"find","arguments":{"q":"é🙂"}}</tool_call>"#, "text a"],
        ),
        (
            "a nested call",
            blocks(),
            format!("<tool_call>{call}"),
            vec![r#"text <tool_call><tool_call>{"name":"find","arguments":{"q":"é🙂"}}</tool_call>"#],
        ),
        (
            "elements",
            blocks(),
            "<use_tool>\n<name>find</name>\n<q> a &lt; b &amp;c &#x41; </q><n>5</n><s>5</s><l>[1]</l></use_tool>b"
                .into(),
            vec![r#"call - find Some("{\"q\":\"a < b &c A\",\"n\":5,\"s\":\"5\",\"l\":[1]}")"#, "text b"],
        ),
        (
            "repeated elements",
            blocks(),
            "<use_tool><name>find</name><q>a</q><q>b</q></use_tool>".into(),
            vec![r#"call - find Some("{\"q\":[\"a\",\"b\"]}")"#],
        ),
        ("an attribute", blocks(), "<use_tool name=\"now\" a='b'></use_tool>".into(), vec!["call - now Some(\"{}\")"]),
        (
            "all arguments",
            blocks(),
            "<use_tool><name>now</name><args>{\"a\": 1}</args></use_tool>".into(),
            vec!["call - now Some(\"{\\\"a\\\": 1}\")"],
        ),
        ("no elements", blocks(), "<use_tools>find</use_tool>".into(), vec!["text <use_tools>find</use_tool>"]),
        (
            "a large call",
            small(),
            format!("a {call} b {call}"),
            vec![Box::leak(format!("text a {call} b {call}").into_boxed_str())],
        ),
        (
            "a call of the largest size",
            small(),
            r#"<tool_call>{"name":"now"      }</tool_call>"#.into(),
            vec!["call call_0_0 now None"],
        ),
        (
            "a call that is one byte too large",
            small(),
            r#"<tool_call>{"name":"now"       }</tool_call>"#.into(),
            vec![r#"text <tool_call>{"name":"now"       }</tool_call>"#],
        ),
    ]
}

#[test]
fn a01_every_split_of_a_text_gives_the_same_events() {
    let mut splits = 0;
    for (name, blocks, text, expected) in fixtures() {
        assert_eq!(run(blocks.clone(), [text.as_str()]), expected, "{name}, whole");
        let characters = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
        assert_eq!(run(blocks.clone(), characters), expected, "{name}, character by character");
        let boundaries: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        for (i, one) in boundaries.iter().enumerate() {
            for two in &boundaries[i..] {
                let deltas = [&text[..*one], &text[*one..*two], &text[*two..]];
                assert_eq!(run(blocks.clone(), deltas), expected, "{name}, split at {one} and {two}");
                splits += 1;
            }
        }
    }
    assert!(splits > 50_000, "{splits}");
}

#[test]
fn a01_snapshots_are_compared_with_the_text_that_contains_the_blocks() {
    for (name, blocks, text, expected) in fixtures() {
        let mut pass = pass(blocks);
        let mut output = Vec::new();
        let snapshot =
            |text: &str| Event::Text { choice: 0, item: None, part: None, delta: Delta::Snapshot(text.to_owned()) };
        for at in (0..text.len()).step_by(7).filter(|at| text.is_char_boundary(*at)) {
            pass.push(snapshot(&text[..at]), &mut output);
        }
        // The final message repeats all of it.
        pass.push(snapshot(&text), &mut output);
        pass.push(snapshot(&text), &mut output);
        pass.push(FINISH, &mut output);
        assert_eq!(shown(output), expected, "{name}");
    }
}

#[test]
fn a01_log_probabilities_stay_with_their_text() {
    let logprobs = |token: &str| {
        let list = format!(r#"[{{"token":{},"logprob":-1}}]"#, Tree::from(token).to_json());
        Event::Logprobs { choice: 0, item: None, logprobs: Logprobs::read(Tree::parse(list.as_bytes()).unwrap()) }
    };
    let mut pass = pass(blocks());
    let mut output = Vec::new();
    for token in ["a", "<th", "ink", ">hm</", "think>b", "<", "c", "<tool_call>x", "</tool_call>"] {
        pass.push(logprobs(token), &mut output);
        pass.push(text(token), &mut output);
    }
    pass.push(FINISH, &mut output);
    let of_text: Vec<(Vec<String>, String)> = output
        .windows(2)
        .filter_map(|pair| match pair {
            [(Event::Logprobs { logprobs, .. }, _), (Event::Text { delta: Delta::Append(text), .. }, _)] => {
                let tokens = logprobs.tokens.iter().map(|t| t.token.as_str().unwrap().to_owned()).collect();
                Some((tokens, text.clone()))
            }
            _ => None,
        })
        .collect();
    let expected =
        [(vec!["a"], "a"), (vec!["<", "c"], "<c"), (vec!["<tool_call>x", "</tool_call>"], "<tool_call>x</tool_call>")];
    let expected =
        expected.map(|(tokens, text)| (tokens.into_iter().map(str::to_owned).collect::<Vec<_>>(), text.to_owned()));
    assert_eq!(of_text, expected);
}

#[test]
fn a01_what_is_held_back_is_bounded() {
    let mut pass = pass(blocks());
    pass.set_memory_limit(10_000);
    let mut output = Vec::new();
    pass.push(text("<tool_call>"), &mut output);
    for _ in 0..2_000 {
        pass.push(text("0123456789"), &mut output);
    }
    let faults = output.iter().filter(|(event, _)| matches!(event, Event::Fault { is_final: true, .. })).count();
    assert_eq!(faults, 1, "the limit of the turn ends it");
}

#[test]
fn a01_other_output_ends_the_text_before_it() {
    let mut pass = pass(blocks());
    let mut output = Vec::new();
    pass.push(text("a <thi"), &mut output);
    pass.push(Event::Refusal { choice: 0, item: None, part: None, delta: Delta::Append("no".into()) }, &mut output);
    let refused = output.pop().unwrap();
    assert!(matches!(refused.0, Event::Refusal { .. }));
    assert_eq!(shown(output), ["text a <thi"]);
}

#[test]
fn a01_a_backend_with_reasoning_of_its_own_does_not_start_open() {
    let mut pass = pass(vec![block("think", BlockContent::Reasoning { starts_open: true })]);
    let mut output = Vec::new();
    let reasoning = Event::Reasoning {
        choice: 0,
        item: Some("own".into()),
        kind: crate::domain::ReasoningKind::Raw,
        part: None,
        delta: Some(Delta::Append("hm".into())),
        encrypted: None,
    };
    pass.push(reasoning, &mut output);
    pass.push(text("Hi"), &mut output);
    pass.push(FINISH, &mut output);
    assert_eq!(shown(output), ["reasoning [own] hm", "text Hi"]);
}

#[test]
fn a01_only_tools_that_the_client_offers_can_be_called() {
    let blocks: Vec<_> = vec![Arc::new(block("tool_call", json_call(100)))];
    let none = CallableTools::Only { tools: Vec::new(), answer: None, no_calls: false };
    assert!(InlinePass::new(&blocks, none, true).is_none(), "nothing is searched for");
}

#[test]
fn tools_that_the_client_does_not_offer_can_be_called_if_the_block_allows_that() {
    let format = CallFormat::Xml { name: "name".to_owned(), arguments: None, spaced: true };
    let call = CallBlock { tools: BlockTools::Any, ..call_block(format) };
    let blocks: Vec<_> = vec![Arc::new(block("use_tool", BlockContent::Call(call)))];
    let without_tools = |no_calls| CallableTools::Only { tools: Vec::new(), answer: None, no_calls };
    let mut pass = InlinePass::new(&blocks, without_tools(false), true).unwrap();
    let mut output = Vec::new();
    let called = "<use_tool><name>search</name><q>rust</q><of>[1,2]</of></use_tool>";
    let nameless = "<use_tool><name></name></use_tool>";
    pass.push(text(&format!("{called}{nameless}")), &mut output);
    pass.push(FINISH, &mut output);
    assert_eq!(
        shown(output),
        [r#"call - search Some("{\"q\": \"rust\", \"of\": [1,2]}")"#, &format!("text {nameless}")]
    );
    assert!(InlinePass::new(&blocks, without_tools(true), true).is_none(), "the client wants no calls");
}

const WORDS: &[&str] = &[
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "<tool_call>",
    "</tool_call>",
    "<use_tool",
    ">",
    "</use_tool>",
    "{\"name\":\"find\"}",
    "{\"name\":\"find\",\"arguments\":{\"q\":\"",
    "\"}}",
    "<name>now</name>",
    "<n>",
    "</n>",
    "\"",
    "\\",
    "\n",
    " ",
    "a",
    "é🙂",
    "<",
    "<th",
    "</",
    "{",
    "}",
    "&amp;",
    "0123456789",
];

proptest::proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random texts, with blocks that are closed, open, nested, broken and too large.
    #[test]
    fn a01_a_random_text_gives_the_same_events_at_every_split(
        words in proptest::collection::vec(proptest::sample::select(WORDS), 0..20),
        sizes in proptest::collection::vec(1usize..9, 1..8),
        starts_open in proptest::bool::ANY,
        at_start in proptest::bool::ANY,
        max_bytes in proptest::sample::select(vec![0usize, 1, 20, 60, 1 << 20]),
    ) {
        let mut blocks = blocks();
        blocks[0].content = BlockContent::Reasoning { starts_open };
        blocks[1].content = json_call(max_bytes);
        if at_start {
            blocks[3].position = BlockPosition::Start;
        }
        let text = words.concat();
        let mut deltas = Vec::new();
        let mut sizes = sizes.iter().cycle();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let size = sizes.next().map_or(1, |size| *size);
            let end = rest.char_indices().map(|(at, _)| at).nth(size).unwrap_or(rest.len());
            deltas.push(&rest[..end]);
            rest = &rest[end..];
        }
        let whole = run(blocks.clone(), [text.as_str()]);
        proptest::prop_assert_eq!(run(blocks, deltas), whole, "{}", text);
    }
}
