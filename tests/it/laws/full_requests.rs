//! A valid request of each dialect with every member that the dialect, a backend or the response reads: what mutations
//! start from, next to the requests in `tests/requests/`.

use crate::support::replay;
use reframe::testing::domain::Tree;
use std::sync::LazyLock;

/// A dialect and one of its requests.
pub type Seed = (String, Tree);

const CHAT: &str = r#"{
  "model": "m-1",
  "messages": [
    { "role": "system", "content": "Be brief." },
    { "role": "developer", "content": [ { "type": "text", "text": "In English." } ] },
    { "role": "user", "name": "ann", "content": [
      { "type": "text", "text": "What is this? é🙂" },
      { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA", "detail": "low" } },
      { "type": "input_audio", "input_audio": { "data": "AAAA", "format": "wav" } },
      { "type": "file", "file": { "file_id": "file-1", "filename": "a.pdf", "file_data": "AAAA" } }
    ] },
    { "role": "assistant", "content": null, "refusal": "No.", "tool_calls": [
      { "id": "call_1", "type": "function", "function": { "name": "look", "arguments": "{\"at\":1}" } },
      { "id": "call_2", "type": "custom", "custom": { "name": "run", "input": "ls" } }
    ] },
    { "role": "tool", "tool_call_id": "call_1", "content": "a cat" },
    { "role": "tool", "tool_call_id": "call_2", "content": [ { "type": "text", "text": "a.txt" } ] },
    { "role": "assistant", "content": "Old.", "function_call": { "name": "look", "arguments": "{}" } },
    { "role": "function", "name": "look", "content": "a dog" },
    { "role": "user", "content": "Go on." }
  ],
  "stream": false, "stream_options": { "include_usage": true, "include_obfuscation": false },
  "n": 1, "max_tokens": 100, "max_completion_tokens": 200, "temperature": 0.5, "top_p": 0.9,
  "presence_penalty": 0.1, "frequency_penalty": 0.2, "seed": 7, "stop": [ "END", "STOP" ],
  "logprobs": true, "top_logprobs": 2, "logit_bias": { "50256": -100 }, "user": "u-1", "store": false,
  "metadata": { "team": "a" }, "reasoning_effort": "low", "service_tier": "auto", "verbosity": "low",
  "prompt_cache_key": "k", "safety_identifier": "s", "modalities": [ "text" ],
  "audio": { "voice": "alloy", "format": "wav" }, "prediction": { "type": "content", "content": "a" },
  "web_search_options": { "search_context_size": "low" }, "parallel_tool_calls": false,
  "response_format": { "type": "json_schema", "json_schema": {
    "name": "answer", "description": "d", "strict": true, "schema": { "type": "object", "properties": {} } } },
  "tools": [
    { "type": "function", "function": { "name": "look", "description": "d", "strict": true,
      "parameters": { "type": "object", "properties": { "at": { "type": "integer" } } } } },
    { "type": "custom", "custom": { "name": "run", "description": "d",
      "format": { "type": "grammar", "grammar": { "syntax": "lark", "definition": "start: /a/" } } } },
    { "type": "web_search", "max_uses": 2 }
  ],
  "tool_choice": { "type": "function", "function": { "name": "look" } },
  "functions": [ { "name": "old", "description": "d", "parameters": { "type": "object" } } ],
  "function_call": "auto",
  "x_unknown": { "a": [ 1 ] }
}"#;

const RESPONSES: &str = r#"{
  "model": "m-1",
  "instructions": "Be brief.",
  "input": [
    { "role": "developer", "content": "In English." },
    { "type": "message", "role": "user", "content": [
      { "type": "input_text", "text": "What is this? é🙂" },
      { "type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low" },
      { "type": "input_file", "file_id": "file-1", "filename": "a.pdf", "file_data": "AAAA", "file_url": "http://x/a" },
      { "type": "input_audio", "input_audio": { "data": "AAAA", "format": "wav" } }
    ] },
    { "type": "reasoning", "id": "rs_1", "encrypted_content": "sealed",
      "summary": [ { "type": "summary_text", "text": "thinking" } ] },
    { "type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": [
      { "type": "output_text", "text": "Hm.", "annotations": [], "logprobs": [] },
      { "type": "refusal", "refusal": "No." }
    ] },
    { "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{\"at\":1}" },
    { "type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "run", "input": "ls" },
    { "type": "function_call_output", "call_id": "call_1", "output": "a cat" },
    { "type": "custom_tool_call_output", "call_id": "call_2", "output": [ { "type": "input_text", "text": "a" } ] },
    { "type": "web_search_call", "id": "ws_1", "status": "completed" },
    { "role": "user", "content": "Go on." }
  ],
  "stream": false, "stream_options": { "include_usage": true, "include_obfuscation": false },
  "max_output_tokens": 100, "max_tool_calls": 3, "temperature": 0.5, "top_p": 0.9, "top_logprobs": 2,
  "presence_penalty": 0.1, "frequency_penalty": 0.2, "truncation": "auto", "store": false, "background": false,
  "metadata": { "team": "a" }, "user": "u-1", "safety_identifier": "s", "prompt_cache_key": "k",
  "service_tier": "flex", "include": [ "reasoning.encrypted_content" ], "parallel_tool_calls": false,
  "reasoning": { "effort": "low", "summary": "auto" },
  "text": { "verbosity": "low", "format": {
    "type": "json_schema", "name": "answer", "description": "d", "strict": true,
    "schema": { "type": "object", "properties": {} } } },
  "tools": [
    { "type": "function", "name": "look", "description": "d", "strict": false,
      "parameters": { "type": "object", "properties": { "at": { "type": "integer" } } } },
    { "type": "custom", "name": "run", "description": "d",
      "format": { "type": "grammar", "syntax": "lark", "definition": "start: /a/" } },
    { "type": "web_search", "search_context_size": "low" }
  ],
  "tool_choice": { "type": "function", "name": "look" },
  "previous_response_id": null, "conversation": null, "n": 1,
  "x_unknown": { "a": [ 1 ] }
}"#;

const COMPLETIONS: &str = r#"{
  "model": "m-1", "prompt": [ "Once upon" ], "suffix": "", "echo": false, "best_of": 1, "logprobs": null,
  "stream": false, "stream_options": { "include_usage": true, "include_obfuscation": false },
  "n": 1, "max_tokens": 100, "temperature": 0.5, "top_p": 0.9, "presence_penalty": 0.1, "frequency_penalty": 0.2,
  "seed": 7, "stop": "END", "user": "u-1", "logit_bias": { "50256": -100 }, "x_unknown": { "a": [ 1 ] }
}"#;

/// The full requests, and the requests in `tests/requests/`.
pub static SEEDS: LazyLock<Vec<Seed>> = LazyLock::new(|| {
    let full = [("chat", CHAT), ("responses", RESPONSES), ("completions", COMPLETIONS)];
    let mut seeds: Vec<Seed> =
        full.iter().map(|(dialect, body)| ((*dialect).to_owned(), Tree::parse(body.as_bytes()).unwrap())).collect();
    for case in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/requests")).unwrap() {
        let case = replay::requests(&case.unwrap().path().join("request.json"));
        seeds.push((case["dialect"].as_str().unwrap().to_owned(), case["body"].clone()));
    }
    seeds
});
