"""Function calls in the Responses API: requested, answered, accumulated and parsed."""

import openai
import pytest
from pydantic import BaseModel

from demo import BOTH, LONDON, MODEL, PARIS, RAINY, SUNNY, WEATHER
from responses import TOOL, create, events_of, joined, of_item, results, types_of

CALL_EVENTS = [
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
]


class GetWeather(BaseModel):
    city: str


def test_the_answer_is_one_call(client):
    answer = create(client, WEATHER, tools=[TOOL])
    [call] = answer.output

    assert answer.status == "completed"
    assert answer.output_text == ""
    assert call.to_dict() == {
        "id": call.id,
        "type": "function_call",
        "status": "completed",
        "call_id": call.call_id,
        "name": "get_weather",
        "arguments": PARIS,
    }
    assert call.call_id and call.call_id != call.id
    assert call.id.startswith("fc_")


def test_a_streamed_call_is_opened_before_its_arguments(client):
    events = events_of(client, WEATHER, tools=[TOOL])
    _, _, added, *deltas, arguments_done, item_done, _ = [event.to_dict() for event in events]
    item = added["item"]

    assert types_of(events) == [
        "response.created",
        "response.in_progress",
        *CALL_EVENTS,
        "response.completed",
    ]
    assert item == {
        "id": item["id"],
        "type": "function_call",
        "status": "in_progress",
        "call_id": item["call_id"],
        "name": "get_weather",
        "arguments": "",
    }
    assert "".join(delta["delta"] for delta in deltas) == PARIS
    assert (arguments_done["name"], arguments_done["arguments"]) == ("get_weather", PARIS)
    assert item_done["item"] == {**item, "status": "completed", "arguments": PARIS}


def test_the_stream_helper_gathers_the_arguments(client):
    with client.responses.stream(model=MODEL, input=WEATHER, tools=[TOOL]) as stream:
        events = list(stream)
        [call] = stream.get_final_response().output
    deltas = [e for e in events if e.type == "response.function_call_arguments.delta"]

    assert joined(events, "function_call_arguments") == PARIS
    assert deltas[-1].snapshot == PARIS
    assert (call.type, call.name, call.arguments) == ("function_call", "get_weather", PARIS)


def test_the_result_is_followed_by_text(client):
    calls = create(client, WEATHER, tools=[TOOL]).output
    answer = create(client, [*WEATHER, *calls, *results(calls, SUNNY)], tools=[TOOL])

    assert answer.status == "completed"
    assert [item.type for item in answer.output] == ["message"]
    assert "Paris" in answer.output_text


def test_the_round_trip_works_with_streams_alone(client):
    with client.responses.stream(model=MODEL, input=WEATHER, tools=[TOOL]) as stream:
        calls = stream.get_final_response().output
    conversation = [*WEATHER, *calls, *results(calls, SUNNY)]
    with client.responses.stream(model=MODEL, input=conversation, tools=[TOOL]) as stream:
        answer = stream.get_final_response()

    assert [item.type for item in answer.output] == ["message"]
    assert "Paris" in answer.output_text


def test_two_calls_are_two_items(client):
    calls = create(client, BOTH, tools=[TOOL]).output

    assert [(c.type, c.name, c.arguments, c.status) for c in calls] == [
        ("function_call", "get_weather", PARIS, "completed"),
        ("function_call", "get_weather", LONDON, "completed"),
    ]
    assert len({call.id for call in calls} | {call.call_id for call in calls}) == 4


def test_two_streamed_calls_do_not_mix(client):
    events = events_of(client, BOTH, tools=[TOOL])

    for index, arguments in enumerate([PARIS, LONDON]):
        call = of_item(events, index)
        assert types_of(call) == CALL_EVENTS
        assert joined(call, "function_call_arguments") == arguments
    assert [call.arguments for call in events[-1].response.output] == [PARIS, LONDON]


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_two_results_are_followed_by_text(client, stream):
    def send(input):
        if not stream:
            return create(client, input, tools=[TOOL])
        with client.responses.stream(model=MODEL, input=input, tools=[TOOL]) as events:
            return events.get_final_response()

    calls = send(BOTH).output
    answer = send([*BOTH, *calls, *results(calls, SUNNY, RAINY)])

    assert [item.type for item in answer.output] == ["message"]
    assert answer.output_text


def test_the_parse_helper_reads_the_arguments(client):
    tool = openai.pydantic_function_tool(GetWeather, name="get_weather")
    [call] = client.responses.parse(model=MODEL, input=WEATHER, tools=[tool]).output

    assert call.parsed_arguments == GetWeather(city="Paris")
