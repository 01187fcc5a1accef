"""Two choices in one answer."""

from demo import MODEL, TWO_ANSWERS, choice_frames, text_of


def two(client, **more):
    return client.chat.completions.create(model=MODEL, messages=TWO_ANSWERS, n=2, **more)


def test_both_choices_are_complete(client):
    choices = two(client).choices
    first, second = (choice.message.content for choice in choices)

    assert [(c.index, c.message.role, c.finish_reason) for c in choices] == [
        (0, "assistant", "stop"),
        (1, "assistant", "stop"),
    ]
    assert first and second
    assert first != second


def test_each_choice_has_its_own_role_text_and_finish(client):
    texts = [choice.message.content for choice in two(client).choices]
    chunks = list(two(client, stream=True))

    # openai-python finds a choice by its position, so the first to appear must be number 0.
    assert list(dict.fromkeys(c.index for chunk in chunks for c in chunk.choices)) == [0, 1]
    for index, text in enumerate(texts):
        frames = choice_frames(chunks, index)
        assert ["role" in frame["delta"] for frame in frames] == [True] + [False] * (len(frames) - 1)
        assert [frame["finish_reason"] for frame in frames] == [None] * (len(frames) - 1) + ["stop"]
        assert text_of(frames) == text


def test_the_stream_helper_keeps_them_apart(client):
    whole = [(c.index, c.message.role, c.message.content, c.finish_reason) for c in two(client).choices]
    with client.chat.completions.stream(model=MODEL, messages=TWO_ANSWERS, n=2) as stream:
        final = stream.get_final_completion()

    assert [(c.index, c.message.role, c.message.content, c.finish_reason) for c in final.choices] == whole
