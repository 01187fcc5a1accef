"""Tool calls: requested, answered, and accumulated."""

import openai
from pydantic import BaseModel

from demo import (
    BOTH,
    GET_WEATHER,
    LONDON,
    MODEL,
    PARIS,
    RAINY,
    SUNNY,
    WEATHER,
    choice_frames,
    text_of,
    with_results,
)


class GetWeather(BaseModel):
    city: str


def weather(client, messages=WEATHER, **more):
    return client.chat.completions.create(model=MODEL, messages=messages, tools=[GET_WEATHER], **more)


def test_the_answer_is_one_call(client):
    [choice] = weather(client).choices
    message = choice.message.model_dump(exclude_unset=True)
    call = message["tool_calls"][0]

    assert choice.finish_reason == "tool_calls"
    assert message == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": "get_weather", "arguments": PARIS},
            }
        ],
    }
    assert call["id"]


def test_a_streamed_call_is_named_once_then_fed_arguments(client):
    role, opening, *deltas, finish = choice_frames(weather(client, stream=True))

    assert role["delta"]["role"] == "assistant"
    [call] = opening["delta"]["tool_calls"]
    assert opening["delta"] == {
        "tool_calls": [
            {
                "index": 0,
                "id": call["id"],
                "type": "function",
                "function": {"name": "get_weather", "arguments": ""},
            }
        ]
    }
    arguments = [frame["delta"]["tool_calls"][0]["function"]["arguments"] for frame in deltas]
    assert [frame["delta"] for frame in deltas] == [
        {"tool_calls": [{"index": 0, "function": {"arguments": text}}]} for text in arguments
    ]
    assert len(arguments) > 1
    assert "".join(arguments) == PARIS
    assert finish == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "tool_calls"}


def test_the_stream_helper_gathers_the_arguments(client):
    with client.chat.completions.stream(model=MODEL, messages=WEATHER, tools=[GET_WEATHER]) as stream:
        events = list(stream)
        [choice] = stream.get_final_completion().choices

    [done] = [e for e in events if e.type == "tool_calls.function.arguments.done"]
    [call] = choice.message.tool_calls
    assert (done.name, done.index, done.arguments) == ("get_weather", 0, PARIS)
    assert (call.type, call.function.name, call.function.arguments) == ("function", "get_weather", PARIS)
    assert (choice.message.content or None, choice.finish_reason) == (None, "tool_calls")


def test_the_result_is_followed_by_text(client):
    message = weather(client).choices[0].message.model_dump(exclude_unset=True)
    [choice] = weather(client, with_results(WEATHER, message, SUNNY)).choices

    assert "Paris" in choice.message.content
    assert choice.message.model_dump(exclude_unset=True) == {
        "role": "assistant",
        "content": choice.message.content,
        "refusal": None,
    }
    assert choice.finish_reason == "stop"


def test_the_round_trip_works_with_streams_alone(client):
    with client.chat.completions.stream(model=MODEL, messages=WEATHER, tools=[GET_WEATHER]) as stream:
        message = stream.get_final_completion().choices[0].message
    call = message.tool_calls[0]
    conversation = with_results(
        WEATHER,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
            ],
        },
        SUNNY,
    )
    frames = choice_frames(weather(client, conversation, stream=True))

    assert "Paris" in text_of(frames)
    assert frames[-1]["finish_reason"] == "stop"


def test_the_parse_helper_reads_the_arguments(client):
    tool = openai.pydantic_function_tool(GetWeather, name="get_weather")
    parsed = client.chat.completions.parse(model=MODEL, messages=WEATHER, tools=[tool])

    [call] = parsed.choices[0].message.tool_calls
    assert call.function.parsed_arguments == GetWeather(city="Paris")


def test_two_calls_are_two_entries(client):
    [choice] = weather(client, BOTH).choices
    calls = choice.message.tool_calls

    assert [(c.type, c.function.name, c.function.arguments) for c in calls] == [
        ("function", "get_weather", PARIS),
        ("function", "get_weather", LONDON),
    ]
    assert len({call.id for call in calls}) == 2
    assert choice.finish_reason == "tool_calls"


def test_two_streamed_calls_come_one_after_the_other(client):
    _, *deltas, finish = choice_frames(weather(client, BOTH, stream=True))
    fragments = [call for frame in deltas for call in frame["delta"]["tool_calls"]]
    indexes = [fragment["index"] for fragment in fragments]

    # openai-python takes a call as finished when the next index appears.
    assert indexes == sorted(indexes)
    for index, arguments in enumerate([PARIS, LONDON]):
        opening, *rest = [f for f in fragments if f["index"] == index]
        assert opening == {
            "index": index,
            "id": opening["id"],
            "type": "function",
            "function": {"name": "get_weather", "arguments": ""},
        }
        assert [set(f) for f in rest] == [{"index", "function"}] * len(rest)
        assert "".join(f["function"]["arguments"] for f in rest) == arguments
    assert finish["finish_reason"] == "tool_calls"


def test_the_stream_helper_gathers_two_calls(client):
    with client.chat.completions.stream(model=MODEL, messages=BOTH, tools=[GET_WEATHER]) as stream:
        done = [e for e in stream if e.type == "tool_calls.function.arguments.done"]
        [choice] = stream.get_final_completion().choices

    assert [(e.index, e.arguments) for e in done] == [(0, PARIS), (1, LONDON)]
    assert [c.function.arguments for c in choice.message.tool_calls] == [PARIS, LONDON]


def test_two_results_are_followed_by_text(client):
    message = weather(client, BOTH).choices[0].message.model_dump(exclude_unset=True)
    [choice] = weather(client, with_results(BOTH, message, SUNNY, RAINY)).choices

    assert choice.message.content
    assert choice.message.tool_calls is None
    assert choice.finish_reason == "stop"
