"""Tool calls: asked for, answered, and accumulated."""

import openai
from pydantic import BaseModel

from demo import GET_WEATHER, MODEL, WEATHER, choice_frames, text_of, with_result

PARIS = '{"city":"Paris"}'
SUNNY = '{"sky":"sunny","celsius":21}'


class GetWeather(BaseModel):
    city: str


def weather(client, **more):
    return client.chat.completions.create(model=MODEL, messages=WEATHER, tools=[GET_WEATHER], **more)


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
    role, opening, *pieces, finish = choice_frames(weather(client, stream=True))

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
    arguments = [piece["delta"]["tool_calls"][0]["function"]["arguments"] for piece in pieces]
    assert [piece["delta"] for piece in pieces] == [
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


def test_the_result_is_answered_with_text(client):
    asked = weather(client).choices[0].message.model_dump(exclude_unset=True)
    [choice] = client.chat.completions.create(
        model=MODEL, messages=with_result(asked, SUNNY), tools=[GET_WEATHER]
    ).choices

    assert "Paris" in choice.message.content
    assert choice.message.model_dump(exclude_unset=True) == {
        "role": "assistant",
        "content": choice.message.content,
        "refusal": None,
    }
    assert choice.finish_reason == "stop"


def test_the_round_trip_works_with_streams_alone(client):
    with client.chat.completions.stream(model=MODEL, messages=WEATHER, tools=[GET_WEATHER]) as stream:
        asked = stream.get_final_completion().choices[0].message
    call = asked.tool_calls[0]
    conversation = with_result(
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
    frames = choice_frames(
        client.chat.completions.create(model=MODEL, messages=conversation, tools=[GET_WEATHER], stream=True)
    )

    assert "Paris" in text_of(frames)
    assert frames[-1]["finish_reason"] == "stop"


def test_the_parse_helper_reads_the_arguments(client):
    tool = openai.pydantic_function_tool(GetWeather, name="get_weather")
    parsed = client.chat.completions.parse(model=MODEL, messages=WEATHER, tools=[tool])

    [call] = parsed.choices[0].message.tool_calls
    assert call.function.parsed_arguments == GetWeather(city="Paris")
