"""Text as a stream: the raw chunks, and openai-python's own accumulator."""

import pytest

from demo import HELLO, MODEL, STORY, choice_frames, text_of

@pytest.fixture(params=[HELLO, STORY], ids=["hello", "story"])
def messages(request):
    return request.param


def chunks_of(client, messages, **more):
    return list(client.chat.completions.create(model=MODEL, messages=messages, stream=True, **more))


def test_frames_are_a_role_then_text_then_a_finish(client, messages):
    role, *text, finish = choice_frames(chunks_of(client, messages))

    assert role == {
        "index": 0,
        "delta": {"role": "assistant", "content": "", "refusal": None},
        "logprobs": None,
        "finish_reason": None,
    }
    assert text == [
        {
            "index": 0,
            "delta": {"content": frame["delta"]["content"]},
            "logprobs": None,
            "finish_reason": None,
        }
        for frame in text
    ]
    assert finish == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}


def test_every_chunk_is_of_the_same_answer(client, messages):
    chunks = chunks_of(client, messages)

    assert {(c.id, c.created, c.model, c.object) for c in chunks} == {
        (chunks[0].id, chunks[0].created, MODEL, "chat.completion.chunk")
    }
    assert chunks[0].id.startswith("chatcmpl-")


def test_the_deltas_make_the_complete_answer(client, messages):
    whole = client.chat.completions.create(model=MODEL, messages=messages)

    assert text_of(choice_frames(chunks_of(client, messages))) == whole.choices[0].message.content


def test_a_story_is_streamed_in_many_deltas(client):
    deltas = [f for f in choice_frames(chunks_of(client, STORY)) if f["delta"].get("content")]

    assert len(deltas) >= 5


def test_usage_is_not_sent_unless_requested(client, messages):
    chunks = chunks_of(client, messages)

    assert [c for c in chunks if "usage" in c.model_fields_set] == []
    assert [c for c in chunks if not c.choices] == []


def test_usage_is_the_last_chunk_when_requested(client, messages):
    whole = client.chat.completions.create(model=MODEL, messages=messages)
    *others, last = chunks_of(client, messages, stream_options={"include_usage": True})

    assert [(c.choices != [], "usage" in c.model_fields_set, c.usage) for c in others] == [
        (True, True, None)
    ] * len(others)
    assert last.choices == []
    assert last.usage == whole.usage


def test_the_wire_is_data_lines_that_end_with_done(client):
    with client.chat.completions.with_streaming_response.create(
        model=MODEL, messages=HELLO, stream=True
    ) as response:
        content_type = response.headers["content-type"]
        lines = [line for line in response.iter_lines() if line and not line.startswith(":")]

    assert content_type.startswith("text/event-stream")
    assert [line for line in lines if not line.startswith("data: ")] == []
    assert lines[-1] == "data: [DONE]"


def test_the_stream_helper_gives_the_complete_answer(client, messages):
    whole = client.chat.completions.create(model=MODEL, messages=messages)
    with client.chat.completions.stream(
        model=MODEL, messages=messages, stream_options={"include_usage": True}
    ) as stream:
        events = list(stream)
        final = stream.get_final_completion()

    content = whole.choices[0].message.content
    assert "".join(e.delta for e in events if e.type == "content.delta") == content
    assert [e.content for e in events if e.type == "content.done"] == [content]
    assert [(c.index, c.message.role, c.message.content, c.message.refusal, c.finish_reason) for c in final.choices] == [
        (0, "assistant", content, None, "stop")
    ]
    assert final.object == "chat.completion"
    assert final.usage == whole.usage
