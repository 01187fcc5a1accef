"""Truncated answers, refusals, failures, broken streams, and reasoning."""

import openai
import pytest

from demo import BREAK, CUT, FAIL, MODEL, REFUSE, THINK, choice_frames, text_of


def create(client, messages, **more):
    return client.chat.completions.create(model=MODEL, messages=messages, **more)


def test_a_truncated_answer_has_finish_reason_length(client):
    [whole] = create(client, CUT).choices
    *text, finish = choice_frames(create(client, CUT, stream=True))

    assert whole.message.content
    assert whole.finish_reason == "length"
    assert text_of(text) == whole.message.content
    assert finish == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "length"}


def test_a_refusal_is_not_content(client):
    [choice] = create(client, REFUSE).choices

    assert choice.message.refusal
    assert choice.message.model_dump(exclude_unset=True) == {
        "role": "assistant",
        "content": None,
        "refusal": choice.message.refusal,
    }
    assert choice.finish_reason == "stop"


def test_a_refusal_is_streamed_as_a_refusal(client):
    whole = create(client, REFUSE).choices[0].message
    role, *deltas, finish = choice_frames(create(client, REFUSE, stream=True))

    assert role["delta"]["role"] == "assistant"
    assert [set(frame["delta"]) for frame in deltas] == [{"refusal"}] * len(deltas)
    assert "".join(frame["delta"]["refusal"] for frame in deltas) == whole.refusal
    assert finish["finish_reason"] == "stop"


def test_the_stream_helper_gathers_a_refusal(client):
    whole = create(client, REFUSE).choices[0].message
    with client.chat.completions.stream(model=MODEL, messages=REFUSE) as stream:
        done = [event.refusal for event in stream if event.type == "refusal.done"]
        message = stream.get_final_completion().choices[0].message

    assert done == [whole.refusal]
    assert (message.content or None, message.refusal) == (None, whole.refusal)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_a_failure_before_the_first_word_has_its_status(client, stream):
    with pytest.raises(openai.InternalServerError) as failed:
        create(client, FAIL, stream=stream)

    assert failed.value.status_code == 503
    assert set(failed.value.body) == {"message", "type", "param", "code"}
    assert failed.value.body["message"]


def test_a_broken_body_is_an_error(client):
    with pytest.raises(openai.InternalServerError) as broken:
        create(client, BREAK)

    assert set(broken.value.body) == {"message", "type", "param", "code"}


def test_a_broken_stream_raises_after_its_text(client):
    chunks = []
    with pytest.raises(openai.APIError) as broken:
        for chunk in create(client, BREAK, stream=True):
            chunks.append(chunk)
    frames = choice_frames(chunks)

    assert text_of(frames)
    assert [frame["finish_reason"] for frame in frames] == [None] * len(frames)
    assert set(broken.value.body) == {"message", "type", "param", "code"}
    assert broken.value.body["message"]


def test_reasoning_stays_out_of_the_content(client):
    [whole] = create(client, THINK).choices
    role, *deltas, finish = choice_frames(create(client, THINK, stream=True))
    message = whole.message.model_dump(exclude_unset=True)
    thought = "".join(frame["delta"].get("reasoning_content") or "" for frame in deltas)

    assert role["delta"]["role"] == "assistant"
    assert message["content"]
    # Chat has no standard field for reasoning: it may be omitted, or be next to the content.
    assert set(message) - {"reasoning_content"} == {"role", "content", "refusal"}
    assert (message.get("reasoning_content") or "") == thought
    assert text_of(deltas) == message["content"]
    assert (whole.finish_reason, finish["finish_reason"]) == ("stop", "stop")


def test_the_stream_helper_keeps_reasoning_apart(client):
    [whole] = create(client, THINK).choices
    with client.chat.completions.stream(model=MODEL, messages=THINK) as stream:
        [choice] = stream.get_final_completion().choices

    assert choice.message.content == whole.message.content
