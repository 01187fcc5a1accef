"""Prompts for the embedded demo, and helpers to read its streams."""

from __future__ import annotations

from collections.abc import Iterable

from openai.types.chat import ChatCompletionChunk

MODEL = "demo"


def user(text: str) -> list[dict]:
    return [{"role": "user", "content": text}]


HELLO = user("hello")
STORY = user("A Story, please.")
TWO_ANSWERS = user("Give me two answers.")
WEATHER = user("What is the weather in Paris?")
BOTH = user("What is the weather in both Paris and London?")
THINK = user("Think before you answer.")
CUT = user("Cut the answer off.")
REFUSE = user("Please refuse.")
FAIL = user("Please fail before the first word.")
BREAK = user("Please break after a few words.")

GET_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


PARIS = '{"city":"Paris"}'
LONDON = '{"city":"London"}'
SUNNY = '{"sky":"sunny","celsius":21}'
RAINY = '{"sky":"rainy","celsius":12}'


def with_results(question: list[dict], call_message: dict, *results: str) -> list[dict]:
    """The conversation as a client sends it after it has run the tools."""
    calls = call_message["tool_calls"]
    return [
        *question,
        call_message,
        *(
            {"role": "tool", "tool_call_id": call["id"], "content": result}
            for call, result in zip(calls, results, strict=True)
        ),
    ]


def choice_frames(chunks: Iterable[ChatCompletionChunk], index: int = 0) -> list[dict]:
    """Every choice object of one index, with exactly the keys that were on the wire."""
    return [
        choice.model_dump(exclude_unset=True)
        for chunk in chunks
        for choice in chunk.choices
        if choice.index == index
    ]


def text_of(frames: list[dict]) -> str:
    return "".join(frame["delta"].get("content") or "" for frame in frames)
