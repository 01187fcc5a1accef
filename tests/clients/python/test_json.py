"""JSON answers: without `stream`."""

from demo import HELLO, MODEL, STORY


def test_an_answer_is_a_chat_completion(client):
    answer = client.chat.completions.create(model=MODEL, messages=HELLO)
    content = answer.choices[0].message.content

    assert answer.object == "chat.completion"
    assert answer.id.startswith("chatcmpl-")
    assert answer.model == MODEL
    assert isinstance(answer.created, int)
    assert content
    assert [choice.model_dump(exclude_unset=True) for choice in answer.choices] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": content, "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]


def test_usage_adds_up(client):
    usage = client.chat.completions.create(model=MODEL, messages=HELLO).usage

    assert usage.prompt_tokens > 0
    assert usage.completion_tokens > 0
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_two_answers_have_different_ids(client):
    first = client.chat.completions.create(model=MODEL, messages=HELLO)
    second = client.chat.completions.create(model=MODEL, messages=HELLO)

    assert first.id != second.id


def test_a_message_may_be_a_list_of_parts(client):
    parts = [{"role": "user", "content": [{"type": "text", "text": STORY[0]["content"]}]}]

    from_parts = client.chat.completions.create(model=MODEL, messages=parts)
    from_text = client.chat.completions.create(model=MODEL, messages=STORY)

    assert from_parts.choices == from_text.choices


def test_stream_false_is_the_same_as_no_stream(client):
    with client.chat.completions.with_streaming_response.create(
        model=MODEL, messages=HELLO, stream=False
    ) as response:
        assert response.headers["content-type"].startswith("application/json")
        assert response.parse().object == "chat.completion"
