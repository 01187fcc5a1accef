"""The answers of the backend, rendered as OpenAI does: as JSON and as stream frames, in both dialects."""

import json
import time
import uuid
from dataclasses import dataclass, field

from accept import Call, RequestError

CITIES = ["Paris", "London", "Zürich"]


@dataclass
class Answer:
    text: str = ""
    calls: list = field(default_factory=list)


# ---- answers


def answer(request):
    """Calls a tool if there is one, then answers with its result; without tools it repeats the question."""
    if "rate limit" in request.question:
        raise RequestError("Rate limit reached.", None, "rate_limit_exceeded", 429, "rate_limit_error")
    if request.schema is None and not request.results and not request.tools:
        instructions = "".join(f" Instructions: {text}" for text in request.instructions)
        return Answer(f"Question: {request.question}{instructions}")

    # pydantic-ai names its output tools final_result…
    last = [name for name in request.tools if name.startswith("final_result")]
    work = [name for name in request.tools if name not in last]
    cities = [city for city in CITIES if city in request.question] or CITIES[:1]
    if request.forced and not request.results:
        return calls(request, request.forced, cities[:1])
    if request.may_call and work and not request.results:
        return calls(request, work[0], cities if "both" in request.question else cities[:1])
    if request.may_call and last:
        return calls(request, last[0], cities[:1])
    if request.schema is not None:
        return Answer(compact(sample(request.schema or {"type": "object"}, cities[0])))
    results = " and ".join(f"{call.name}({call.arguments}) returned: {result}" for call, result in request.results)
    return Answer(f"{results}." if results else f"Question: {request.question}")


def calls(request, name, cities):
    samples = [sample(request.tools[name], city) for city in cities]
    return Answer(calls=[Call(new_id("call"), name, compact(arguments)) for arguments in samples])


def sample(schema, city, root=None):
    """A value that fits the schema: every string is the city, every number 21."""
    root = root or schema
    if "$ref" in schema:
        return sample(root["$defs"][schema["$ref"].split("/")[-1]], city, root)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return sample(schema["anyOf"][0], city, root)
    kind = schema.get("type")
    if kind == "object":
        return {name: sample(inner, city, root) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [sample(schema.get("items", {}), city, root)]
    return {"integer": 21, "number": 21.5, "boolean": True, "null": None}.get(kind, city)


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def new_id(prefix):
    return f"{prefix}_{uuid.uuid4().hex}"


def split(text):
    """Splits a text into deltas of a few characters, none of them empty."""
    return [text[at : at + 7] for at in range(0, len(text), 7)]


# ---- chat


class Chat:
    """One chat completion."""

    usage = {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 2,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }

    def __init__(self, request, answer):
        self.request, self.answer = request, answer
        self.head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": request.body["model"]}
        self.tail = {"service_tier": "default", "system_fingerprint": "fp_44709d6fcb"}
        self.finish = "tool_calls" if answer.calls else "stop"

    def json(self):
        message = {"role": "assistant", "content": self.answer.text or None, "refusal": None, "annotations": []}
        if self.answer.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in self.answer.calls
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish}
        return {**self.head, "object": "chat.completion", "choices": [choice], "usage": self.usage, **self.tail}

    def frames(self):
        # A stream has usage only if it is requested; if no stream was requested, usage is always sent.
        options = self.request.body.get("stream_options") or {}
        usage = options.get("include_usage") or not self.request.body.get("stream")

        def chunk(choices, **more):
            empty = {"usage": None} if usage else {}
            body = {**self.head, "object": "chat.completion.chunk", "choices": choices, **self.tail, **empty, **more}
            return None, compact(body)

        def delta(delta, finish=None):
            return chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])

        yield delta({"role": "assistant", "content": None if self.answer.calls else "", "refusal": None})
        for text in split(self.answer.text):
            yield delta({"content": text})
        for index, call in enumerate(self.answer.calls):
            function = {"name": call.name, "arguments": ""}
            yield delta({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
            for text in split(call.arguments):
                yield delta({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
        yield delta({}, self.finish)
        if usage:
            yield chunk([], usage=self.usage)
        yield None, "[DONE]"


# ---- responses


class Responses:
    """One response."""

    usage = {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 18,
    }

    def __init__(self, request, answer):
        self.answer = answer
        self.items = [self.call(call) for call in answer.calls]
        if answer.text:
            self.items.insert(0, self.message(answer.text))
        body, self.id, self.created = request.body, new_id("resp"), int(time.time())
        reasoning = body.get("reasoning") or {}
        self.echo = {
            "background": body.get("background") or False,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "max_tool_calls": body.get("max_tool_calls"),
            "model": body["model"],
            "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
            "previous_response_id": None,
            "prompt_cache_key": body.get("prompt_cache_key"),
            "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
            "safety_identifier": body.get("safety_identifier"),
            "service_tier": "default",
            "store": body.get("store") is not False,
            "temperature": body.get("temperature") or 1.0,
            "text": {"format": {"type": "text"}, "verbosity": "medium", **body.get("text", {})},
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": [{"description": None, "parameters": {}, "strict": True, **tool} for tool in body.get("tools", [])],
            "top_logprobs": body.get("top_logprobs") or 0,
            "top_p": body.get("top_p") or 1.0,
            "truncation": body.get("truncation") or "disabled",
            "user": body.get("user"),
            "metadata": body.get("metadata") or {},
        }

    def message(self, text):
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
        return {"id": new_id("msg"), "type": "message", "status": "completed", "content": [part], "role": "assistant"}

    def call(self, call):
        return {
            "id": new_id("fc"),
            "type": "function_call",
            "status": "completed",
            "arguments": call.arguments,
            "call_id": call.id,
            "name": call.name,
        }

    def response(self, done):
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": "completed" if done else "in_progress",
            "completed_at": int(time.time()) if done else None,
            "error": None,
            "incomplete_details": None,
            "output": self.items if done else [],
            "usage": self.usage if done else None,
            **self.echo,
        }

    def json(self):
        return self.response(done=True)

    def frames(self):
        for number, (name, more) in enumerate(self.events()):
            yield name, compact({"type": name, "sequence_number": number, **more})

    def events(self):
        yield "response.created", {"response": self.response(done=False)}
        yield "response.in_progress", {"response": self.response(done=False)}
        for index, item in enumerate(self.items):
            at = {"item_id": item["id"], "output_index": index}
            is_call = item["type"] == "function_call"
            empty = {"arguments": ""} if is_call else {"content": []}
            yield "response.output_item.added", {"output_index": index, "item": {**item, "status": "in_progress", **empty}}
            yield from self.call_events(item, at) if is_call else self.message_events(item, {**at, "content_index": 0})
            yield "response.output_item.done", {"output_index": index, "item": item}
        yield "response.completed", {"response": self.response(done=True)}

    def call_events(self, item, at):
        for delta in split(item["arguments"]):
            yield "response.function_call_arguments.delta", {**at, "delta": delta}
        yield "response.function_call_arguments.done", {**at, "name": item["name"], "arguments": item["arguments"]}

    def message_events(self, item, at):
        [part] = item["content"]
        yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
        for delta in split(part["text"]):
            yield "response.output_text.delta", {**at, "delta": delta, "logprobs": []}
        yield "response.output_text.done", {**at, "text": part["text"], "logprobs": []}
        yield "response.content_part.done", {**at, "part": part}
