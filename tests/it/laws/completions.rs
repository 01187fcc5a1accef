//! The invariants of a legacy completions stream, checked on its frames.

use super::events::Output;
use reframe::testing::domain::{FrameBody, Tree};
use std::collections::BTreeMap;

pub fn assert_invariants(output: &Output) {
    let mut choices: BTreeMap<u64, (String, Option<String>)> = BTreeMap::new();
    let mut identity = None;
    let (mut failed, mut terminators, mut usage) = (false, 0, None);
    for frame in &output.stream.frames {
        assert!(!failed && terminators == 0, "a frame after the end");
        let data = match &frame.body {
            FrameBody::Data(data) => data,
            FrameBody::Text(text) => {
                assert_eq!(text, "[DONE]");
                terminators += 1;
                continue;
            }
            FrameBody::Comment(_) => continue,
        };
        if data.get("error").is_some() {
            failed = true;
            continue;
        }
        let now = ["id", "object", "created", "model"].map(|k| data.get(k).cloned().unwrap());
        assert_eq!(identity.get_or_insert_with(|| now.clone()), &now, "the identity of a stream is constant");
        assert!(usage.is_none(), "usage is last");
        usage = data.get("usage").filter(|u| !u.is_null()).cloned();
        for choice in data.get("choices").unwrap().as_list().unwrap() {
            let index = choice.get("index").unwrap().as_u64().unwrap();
            let (text, finish) = choices.entry(index).or_default();
            assert!(finish.is_none(), "a frame after the finish of its choice");
            text.push_str(choice.get("text").unwrap().as_str().unwrap());
            *finish = choice.get("finish_reason").and_then(Tree::as_str).map(str::to_owned);
        }
    }
    if output.fault.is_some() {
        assert!(failed && terminators == 0, "a failure is sent, without a terminator");
        return;
    }
    assert_eq!(terminators, 1);
    assert_eq!(choices.len(), output.script.n);
    let body = output.body.as_ref().expect("a body where there was no fault");
    for choice in body.get("choices").unwrap().as_list().unwrap() {
        let (text, finish) = &choices[&choice.get("index").unwrap().as_u64().unwrap()];
        assert_eq!(choice.get("text").unwrap().as_str().unwrap(), text, "concatenated deltas = final");
        assert_eq!(choice.get("finish_reason").and_then(Tree::as_str), finish.as_deref());
    }
    if output.script.usage {
        assert_eq!(body.get("usage").cloned(), usage);
    }
}
