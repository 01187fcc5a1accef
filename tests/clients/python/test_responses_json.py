"""JSON answers of the Responses API: without `stream`."""

import pytest

from demo import HELLO, MODEL, THINK
from responses import TOOL, create, comparable

# Every answer has all of these keys; some may be null.
ENVELOPE = """
    id object created_at completed_at status error incomplete_details model output usage
    previous_response_id instructions tools tool_choice parallel_tool_calls max_tool_calls
    temperature top_p top_logprobs presence_penalty frequency_penalty max_output_tokens
    text reasoning truncation store background service_tier metadata safety_identifier prompt_cache_key
""".split()


def test_an_answer_is_a_response(client):
    answer = create(client, "hello")

    assert answer.object == "response"
    assert answer.id.startswith("resp_")
    assert answer.model == MODEL
    assert answer.status == "completed"
    assert (answer.error, answer.incomplete_details) == (None, None)
    assert answer.output_text
    assert [item.to_dict() for item in answer.output] == [
        {
            "id": answer.output[0].id,
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": answer.output_text, "annotations": [], "logprobs": []}
            ],
        }
    ]
    assert answer.output[0].id.startswith("msg_")


def test_the_times_are_whole_seconds_in_order(client):
    answer = create(client, "hello")

    assert answer.created_at.is_integer() and answer.completed_at.is_integer()
    assert answer.created_at <= answer.completed_at


def test_usage_adds_up(client):
    usage = create(client, "hello").usage

    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert set(usage.input_tokens_details.to_dict()) == {"cached_tokens", "cache_write_tokens"}
    assert set(usage.output_tokens_details.to_dict()) == {"reasoning_tokens"}


def test_the_envelope_is_complete(client):
    answer = create(client, "hello").to_dict()

    assert [key for key in ENVELOPE if key not in answer] == []
    # The SDK computes it from the items; a sent value would conflict.
    assert "output_text" not in answer


def test_what_was_not_sent_has_its_default(client):
    answer = create(client, "hello").to_dict()
    defaults = {
        "temperature": 1.0,
        "top_p": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "parallel_tool_calls": True,
        "truncation": "disabled",
        "metadata": {},
        "instructions": None,
        "max_output_tokens": None,
        "previous_response_id": None,
    }

    assert {key: answer[key] for key in defaults} == defaults
    assert answer["text"]["format"] == {"type": "text"}


def test_what_was_sent_is_echoed(client):
    sent = {
        "instructions": "Be brief.",
        "max_output_tokens": 64,
        "metadata": {"purpose": "test"},
        "parallel_tool_calls": False,
        "store": False,
        "temperature": 0.25,
        "tool_choice": "none",
        "top_p": 0.5,
        "truncation": "auto",
    }
    answer = create(client, "hello", **sent).to_dict()

    assert {key: answer[key] for key in sent} == sent


def test_a_tool_is_echoed_with_all_its_keys(client):
    bare = {"type": "function", "name": "bare", "parameters": {"type": "object", "properties": {}}}
    whole, filled = create(client, "hello", tools=[TOOL, bare]).to_dict()["tools"]

    assert whole == TOOL
    assert set(filled) == {"type", "name", "description", "parameters", "strict"}
    assert {key: filled[key] for key in bare} == bare


@pytest.mark.parametrize(
    "input",
    [
        THINK,
        [{"type": "message", **THINK[0]}],
        [{"role": "user", "content": [{"type": "input_text", "text": THINK[0]["content"]}]}],
        [{"role": "developer", "content": "Be brief."}, *THINK],
        [*HELLO, {"role": "assistant", "content": "Hello!"}, *THINK],
    ],
    ids=["message", "typed", "parts", "developer", "conversation"],
)
def test_the_input_has_many_forms(client, input):
    as_text = create(client, THINK[0]["content"])
    answer = create(client, input)

    assert answer.output_text == as_text.output_text


def test_two_answers_differ_only_in_ids_and_times(client):
    first, second = create(client, "hello"), create(client, "hello")

    assert first.id != second.id
    assert first.output[0].id != second.output[0].id
    assert comparable(first) == comparable(second)


def test_stream_false_is_the_same_as_no_stream(client):
    with client.responses.with_streaming_response.create(
        model=MODEL, input="hello", stream=False
    ) as response:
        assert response.headers["content-type"].startswith("application/json")
        assert response.parse().status == "completed"


def test_parse_without_a_format_gives_the_text(client):
    parsed = client.responses.parse(model=MODEL, input="hello")

    assert parsed.output_text == create(client, "hello").output_text
    assert parsed.output_parsed is None
