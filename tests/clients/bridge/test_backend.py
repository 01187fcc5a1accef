"""The mock backend rejects what OpenAI rejects, so that a test through a gateway also checks the gateway's requests."""

import openai
import pytest
from conftest import MODEL, client_of

USER = {"role": "user", "content": "hello"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ITEM = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "1"}
CHAT_TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
TEXT = [{"type": "text", "text": "hello"}]
INPUT_TEXT = [{"type": "input_text", "text": "hello"}]

CHAT = {
    "no messages": {},
    "empty messages": {"messages": []},
    "an unknown role": {"messages": [{"role": "robot", "content": "hello"}]},
    "a field of responses": {"messages": [USER], "instructions": "Be short."},
    "another field of responses": {"messages": [USER], "max_output_tokens": 100},
    "parts of responses": {"messages": [{"role": "user", "content": INPUT_TEXT}]},
    "a result without its call": {"messages": [USER, {"role": "tool", "tool_call_id": "call_1", "content": "1"}]},
    "a result of another call": {"messages": [USER, CALLS, {"role": "tool", "tool_call_id": "call_2", "content": "1"}]},
    "a result without an id": {"messages": [USER, CALLS, {"role": "tool", "content": "1"}]},
    "a call without its result": {"messages": [USER, CALLS, USER]},
    "a call at the end": {"messages": [USER, CALLS]},
    "arguments that are no text": {"messages": [USER, {**CALLS, "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {}}}]}, USER]},
    "no content": {"messages": [USER, {"role": "assistant", "content": None}, USER]},
    "no calls but a list": {"messages": [USER, {"role": "assistant", "content": "hi", "tool_calls": []}, USER]},
    "a tool of responses": {"messages": [USER], "tools": [TOOL]},
    "no tools but a list": {"messages": [USER], "tools": []},
    "tools that are null": {"messages": [USER], "tools": None},
    "a choice without tools": {"messages": [USER], "tool_choice": "auto"},
    "a choice of another tool": {"messages": [USER], "tools": [CHAT_TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
    "stream options without a stream": {"messages": [USER], "stream_options": {"include_usage": True}},
    "a schema without a name": {"messages": [USER], "response_format": {"type": "json_schema", "json_schema": {"schema": {}}}},
}

RESPONSES = {
    "no input": {},
    "empty input": {"input": []},
    "an unknown role": {"input": [{"role": "robot", "content": "hello"}]},
    "a role of chat": {"input": [{"role": "tool", "content": "1"}]},
    "a field of chat": {"input": "hello", "messages": [USER]},
    "another field of chat": {"input": "hello", "max_completion_tokens": 100},
    "parts of chat": {"input": [{"role": "user", "content": TEXT}]},
    "parts of a user from the assistant": {"input": [{"role": "assistant", "content": INPUT_TEXT}, USER]},
    "calls of chat": {"input": [USER, CALLS]},
    "an unknown item": {"input": [USER, {"type": "thought", "text": "hm"}]},
    "a result without its call": {"input": [USER, RESULT]},
    "two results of one call": {"input": [USER, ITEM, RESULT, RESULT]},
    "a result before its call": {"input": [USER, RESULT, ITEM]},
    "a call without its result": {"input": [USER, ITEM]},
    "an id of another kind": {"input": [USER, {**ITEM, "id": "call_1"}, RESULT]},
    "arguments that are no JSON": {"input": [USER, {**ITEM, "arguments": "{"}, RESULT]},
    "a tool of chat": {"input": "hello", "tools": [CHAT_TOOL]},
    "a choice of another tool": {"input": "hello", "tools": [TOOL], "tool_choice": {"type": "function", "name": "g"}},
    "a call that is required without tools": {"input": "hello", "tool_choice": "required"},
    "stream options without a stream": {"input": "hello", "stream_options": {"include_obfuscation": False}},
    "a format of chat": {"input": "hello", "response_format": {"type": "json_object"}},
    "a schema without a name": {"input": "hello", "text": {"format": {"type": "json_schema", "schema": {}}}},
    "a response that is not stored": {"input": "hello", "previous_response_id": "resp_1"},
}

GOOD = {
    "/chat/completions": [
        {"messages": [USER]},
        {"messages": [USER, CALLS, {"role": "tool", "tool_call_id": "call_1", "content": TEXT}], "tools": [CHAT_TOOL]},
        {"messages": [USER], "temperature": None, "stream": True, "stream_options": {"include_usage": True}},
    ],
    "/responses": [
        {"input": "hello"},
        {"input": [USER, {**ITEM, "id": "fc_1", "status": "completed"}, RESULT], "tools": [TOOL]},
        {"input": [{"type": "message", "role": "developer", "content": INPUT_TEXT}, USER], "tools": [], "tool_choice": "auto"},
    ],
}


@pytest.fixture
def post(sse_only):
    return lambda path, body: client_of(openai.OpenAI, sse_only).post(path, cast_to=str, body={"model": MODEL, **body})


@pytest.mark.parametrize(
    "path, body",
    [("/chat/completions", body) for body in CHAT.values()] + [("/responses", body) for body in RESPONSES.values()],
    ids=[f"chat: {name}" for name in CHAT] + [f"responses: {name}" for name in RESPONSES],
)
def test_rejected(post, path, body):
    with pytest.raises(openai.BadRequestError) as raised:
        post(path, body)

    assert set(raised.value.body) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("path, body", [(path, body) for path, bodies in GOOD.items() for body in bodies])
def test_accepted(post, path, body):
    assert "data: " in post(path, body)
