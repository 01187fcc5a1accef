"""Legacy completions, with the demo's prompts."""

import asyncio

import openai
import pytest

from demo import BREAK, CUT, FAIL, HELLO, MODEL, THINK

HELLO, THINK, CUT, FAIL, BREAK = (message[0]["content"] for message in (HELLO, THINK, CUT, FAIL, BREAK))


@pytest.fixture(params=[HELLO, THINK], ids=["hello", "think"])
def prompt(request):
    return request.param


def create(client, prompt, **more):
    return client.completions.create(model=MODEL, prompt=prompt, **more)


def texts_of(chunks):
    return [choice.text for chunk in chunks for choice in chunk.choices]


def test_an_answer_is_a_text_completion(client, prompt):
    answer = create(client, prompt)
    text = answer.choices[0].text

    assert answer.object == "text_completion"
    assert answer.id.startswith("cmpl-")
    assert answer.model == MODEL
    assert isinstance(answer.created, int)
    assert text
    assert [choice.to_dict() for choice in answer.choices] == [
        {"text": text, "index": 0, "logprobs": None, "finish_reason": "stop"}
    ]


def test_usage_adds_up(client):
    usage = create(client, HELLO).usage

    assert usage.prompt_tokens > 0
    assert usage.completion_tokens > 0
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_the_prompt_may_be_a_list_of_one(client, prompt):
    assert create(client, [prompt]).choices == create(client, prompt).choices


def test_the_text_is_that_of_a_chat(client, prompt):
    chat = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": prompt}])

    assert create(client, prompt).choices[0].text == chat.choices[0].message.content


def test_every_chunk_is_of_the_same_answer(client, prompt):
    chunks = list(create(client, prompt, stream=True))

    assert {(c.id, c.created, c.model, c.object) for c in chunks} == {
        (chunks[0].id, chunks[0].created, MODEL, "text_completion")
    }
    assert chunks[0].id.startswith("cmpl-")


def test_frames_are_text_then_a_finish(client, prompt):
    *frames, finish = [c.to_dict() for chunk in create(client, prompt, stream=True) for c in chunk.choices]

    assert frames == [
        {"text": frame["text"], "index": 0, "logprobs": None, "finish_reason": None} for frame in frames
    ]
    assert finish == {"text": finish["text"], "index": 0, "logprobs": None, "finish_reason": "stop"}


def test_the_deltas_make_the_complete_answer(client, prompt):
    deltas = texts_of(create(client, prompt, stream=True))

    assert len(deltas) > 2
    assert "".join(deltas) == create(client, prompt).choices[0].text


def test_usage_is_not_sent_unless_requested(client):
    chunks = list(create(client, HELLO, stream=True))

    assert [c for c in chunks if "usage" in c.model_fields_set or not c.choices] == []


def test_usage_is_the_last_chunk_when_requested(client):
    whole = create(client, HELLO)
    *others, last = create(client, HELLO, stream=True, stream_options={"include_usage": True})

    assert [(len(c.choices), "usage" in c.model_fields_set, c.usage) for c in others] == [
        (1, True, None)
    ] * len(others)
    assert last.choices == []
    assert last.usage == whole.usage


def test_the_wire_is_data_lines_that_end_with_done(client):
    with client.completions.with_streaming_response.create(
        model=MODEL, prompt=HELLO, stream=True
    ) as response:
        content_type = response.headers["content-type"]
        lines = [line for line in response.iter_lines() if line and not line.startswith(":")]

    assert content_type.startswith("text/event-stream")
    assert [line for line in lines if not line.startswith("data: ")] == []
    assert lines[-1] == "data: [DONE]"


def test_the_asynchronous_client_reads_the_same(settings, client):
    async def main():
        async with openai.AsyncOpenAI(**settings) as client:
            return [chunk async for chunk in await create(client, THINK, stream=True)]

    assert "".join(texts_of(asyncio.run(main()))) == create(client, THINK).choices[0].text


def test_a_truncated_answer_has_finish_reason_length(client):
    [whole] = create(client, CUT).choices
    chunks = list(create(client, CUT, stream=True))

    assert whole.text
    assert whole.finish_reason == "length"
    assert "".join(texts_of(chunks)) == whole.text
    assert chunks[-1].choices[0].finish_reason == "length"


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_a_failure_before_the_first_word_has_its_status(client, stream):
    with pytest.raises(openai.InternalServerError) as failed:
        create(client, FAIL, stream=stream)

    assert failed.value.status_code == 503
    assert set(failed.value.body) == {"message", "type", "param", "code"}


def test_a_broken_body_is_an_error(client):
    with pytest.raises(openai.InternalServerError):
        create(client, BREAK)


def test_a_broken_stream_raises_after_its_text(client):
    chunks = []
    with pytest.raises(openai.APIError) as broken:
        for chunk in create(client, BREAK, stream=True):
            chunks.append(chunk)

    assert "".join(texts_of(chunks))
    assert set(broken.value.body) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_an_unknown_model_is_not_found(client, stream):
    with pytest.raises(openai.NotFoundError) as raised:
        client.completions.create(model="nope", prompt=HELLO, stream=stream)

    assert raised.value.code == "model_not_found"
