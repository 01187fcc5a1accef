"""Requests of the Responses API, and helpers to read its streams."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from openai.types.responses import Response, ResponseStreamEvent

from demo import BOTH, BREAK, CUT, GET_WEATHER, HELLO, MODEL, REFUSE, STORY, THINK, WEATHER

TOOL = {"type": "function", **GET_WEATHER["function"]}

# The streams of the demo, each with its final status.
TURNS = {
    "hello": ({"input": HELLO}, "completed"),
    "story": ({"input": STORY}, "completed"),
    "think": ({"input": THINK}, "completed"),
    "weather": ({"input": WEATHER, "tools": [TOOL]}, "completed"),
    "both": ({"input": BOTH, "tools": [TOOL]}, "completed"),
    "refuse": ({"input": REFUSE}, "completed"),
    "cut": ({"input": CUT}, "incomplete"),
    "break": ({"input": BREAK}, "failed"),
}


def create(client, input, **more):
    return client.responses.create(model=MODEL, input=input, **more)


def events_of(client, input, **more) -> list[ResponseStreamEvent]:
    return list(create(client, input, stream=True, **more))


def types_of(events: Iterable[ResponseStreamEvent]) -> list[str]:
    """The types in order, with consecutive deltas merged into one."""
    types = []
    for kind, run in groupby(event.type for event in events):
        types += [kind] if kind.endswith(".delta") else list(run)
    return types


def joined(events: Iterable[ResponseStreamEvent], kind: str) -> str:
    return "".join(event.delta for event in events if event.type == f"response.{kind}.delta")


def of_item(events: Iterable[ResponseStreamEvent], index: int) -> list[ResponseStreamEvent]:
    """The events of one output item, which others may interrupt."""
    return [event for event in events if getattr(event, "output_index", None) == index]


def results(output: Iterable, *texts: str) -> list[dict]:
    """The results of the calls among the output, as a client sends them back."""
    calls = [item for item in output if item.type == "function_call"]
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": text}
        for call, text in zip(calls, texts, strict=True)
    ]


def comparable(response: Response) -> dict:
    """The response as sent, without ids and times."""
    body = response.to_dict()
    for key in ("id", "created_at", "completed_at"):
        del body[key]
    for item in body["output"]:
        del item["id"]
        item.pop("call_id", None)
    return body
