"""Invariants of every Responses stream."""

import pytest

from responses import TURNS, create, events_of, of_item, comparable

LIFECYCLE = ("response.created", "response.in_progress")
# For each kind of delta: the event that ends it, and the field of that event with the complete value.
ENDS = {
    "response.output_text.delta": ("response.output_text.done", "text"),
    "response.refusal.delta": ("response.refusal.done", "refusal"),
    "response.reasoning_summary_text.delta": ("response.reasoning_summary_text.done", "text"),
    "response.function_call_arguments.delta": ("response.function_call_arguments.done", "arguments"),
}
EMPTY = {
    "message": {"content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
}


@pytest.fixture(scope="module", params=TURNS)
def turn(request, client):
    params, status = TURNS[request.param]
    return params, status, events_of(client, **params)


@pytest.fixture
def events(turn):
    return turn[2]


@pytest.fixture
def items(events):
    """The events of each item, by output index."""
    indexes = {event.output_index for event in events if hasattr(event, "output_index")}
    assert indexes == set(range(len(indexes)))
    return [of_item(events, index) for index in sorted(indexes)]


def test_sequence_numbers_have_no_gap(events):
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_it_ends_once_and_with_its_status(turn):
    _, status, events = turn
    ends = [e.type for e in events if hasattr(e, "response") and e.type not in LIFECYCLE]

    assert ends == [events[-1].type] == [f"response.{status}"]
    assert events[-1].response.status == status


def test_every_event_is_of_the_same_response(events):
    responses = [event.response for event in events if hasattr(event, "response")]
    identities = {(r.id, r.created_at, r.model, r.object) for r in responses}

    assert len(responses) == 3
    assert len(identities) == 1
    assert responses[0].id.startswith("resp_")


def test_it_starts_empty(events):
    for kind, event in zip(LIFECYCLE, events):
        response = event.response.to_dict()
        assert event.type == kind
        assert (response["status"], response["output"]) == ("in_progress", [])
        assert (response["usage"], response["completed_at"], response["error"]) == (None, None, None)


def test_items_are_opened_in_order_and_empty(events, items):
    opened = [event for event in events if event.type == "response.output_item.added"]

    assert [event.output_index for event in opened] == list(range(len(items)))
    for event in opened:
        item = event.item.to_dict()
        # A reasoning item need not have a status.
        assert item.get("status", "in_progress") == "in_progress"
        assert {key: item[key] for key in EMPTY[item["type"]]} == EMPTY[item["type"]]
    assert len({event.item.id for event in opened}) == len(items)


def test_an_item_keeps_its_ids(events, items):
    for index, item_events in enumerate(items):
        states = [event.item for event in item_events if hasattr(event, "item")]
        states.append(events[-1].response.output[index])
        ids = {event.item_id for event in item_events if hasattr(event, "item_id")}

        assert ids == {states[0].id}
        assert len({(s.id, s.type, getattr(s, "call_id", None)) for s in states}) == 1


def test_the_deltas_make_the_complete_text(turn, items):
    _, status, _ = turn
    for item_events in items:
        for kind, (end, field) in ENDS.items():
            deltas = [event.delta for event in item_events if event.type == kind]
            wholes = [getattr(event, field) for event in item_events if event.type == end]
            if deltas and status != "failed":
                assert wholes == ["".join(deltas)]


def test_the_output_is_the_items_as_they_were_closed(turn, items):
    _, status, events = turn
    closed = [event.item for event in events if event.type == "response.output_item.done"]
    output = events[-1].response.output

    assert [item.to_dict() for item in closed] == [item.to_dict() for item in output[: len(closed)]]
    if status != "failed":
        assert len(closed) == len(output) == len(items)
    assert [item for item in output if getattr(item, "status", None) == "in_progress"] == []


@pytest.mark.parametrize("name", [name for name, (_, status) in TURNS.items() if status != "failed"])
def test_the_json_answer_is_the_same(client, name):
    params, _ = TURNS[name]

    assert comparable(events_of(client, **params)[-1].response) == comparable(create(client, **params))
