"""Text as a stream of Responses events: the raw events, the wire, and openai-python's own accumulator."""

import json

from demo import HELLO, MODEL, STORY
from responses import create, events_of, joined, comparable, types_of


def test_the_events_come_in_order(client):
    assert types_of(events_of(client, HELLO)) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


def test_the_message_grows_from_empty_to_complete(client):
    text = create(client, HELLO).output_text
    _, _, added, part_added, *deltas, text_done, part_done, done, _ = [
        event.to_dict() for event in events_of(client, HELLO)
    ]
    item = added["item"]
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}

    def part(text):
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    assert item == {
        "id": item["id"],
        "type": "message",
        "status": "in_progress",
        "role": "assistant",
        "content": [],
    }
    assert part_added["part"] == part("")
    assert [delta["logprobs"] for delta in deltas] == [[]] * len(deltas)
    assert "".join(delta["delta"] for delta in deltas) == text
    assert (text_done["text"], text_done["logprobs"]) == (text, [])
    assert part_done["part"] == part(text)
    assert done["item"] == {**item, "status": "completed", "content": [part(text)]}
    assert (added["output_index"], done["output_index"]) == (0, 0)
    for event in (part_added, *deltas, text_done, part_done):
        assert {key: event[key] for key in place} == place


def test_a_story_is_streamed_in_many_deltas(client):
    deltas = [e for e in events_of(client, STORY) if e.type == "response.output_text.delta"]

    assert len(deltas) >= 5


def test_an_event_is_named_as_its_data_is(client):
    with client.responses.with_streaming_response.create(
        model=MODEL, input="hello", stream=True
    ) as response:
        content_type = response.headers["content-type"]
        *frames, rest = "".join(response.iter_text()).split("\n\n")
    frames = [frame.split("\n") for frame in frames if not frame.startswith(":")]

    assert content_type.startswith("text/event-stream")
    assert rest == ""
    # A final `[DONE]` is allowed: OpenAI's documentation has none, the open specification requires it.
    if frames[-1] == ["data: [DONE]"]:
        frames.pop()
    for frame in frames:
        name, data = frame
        assert data.startswith("data: ")
        assert name == "event: " + json.loads(data.removeprefix("data: "))["type"]
    assert frames[-1][0] == "event: response.completed"


def test_the_stream_helper_gives_the_complete_answer(client):
    whole = create(client, HELLO)
    with client.responses.stream(model=MODEL, input=HELLO) as stream:
        events = list(stream)
        final = stream.get_final_response()
    deltas = [e for e in events if e.type == "response.output_text.delta"]

    assert final.status == "completed"
    assert final.output_text == whole.output_text
    assert final.usage == whole.usage
    assert joined(events, "output_text") == whole.output_text
    assert deltas[-1].snapshot == whole.output_text
    assert [e.text for e in events if e.type == "response.output_text.done"] == [whole.output_text]


def test_the_last_event_equals_the_json_answer(client):
    assert comparable(events_of(client, HELLO)[-1].response) == comparable(create(client, HELLO))
