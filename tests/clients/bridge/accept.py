"""Validates the requests to the mock backend. A request becomes a ParsedRequest, or is rejected as OpenAI would reject it."""

import json
import re
from dataclasses import dataclass, field


class RequestError(Exception):
    def __init__(self, message, param=None, code="invalid_value", status=400, kind="invalid_request_error"):
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}


@dataclass
class ParsedRequest:
    """A request, independent of its dialect."""

    body: dict
    instructions: list = field(default_factory=list)  # system and developer messages, and instructions
    question: str = ""  # the last user message
    results: list = field(default_factory=list)  # (call, result), since the question
    tools: dict = field(default_factory=dict)  # name → JSON schema of the arguments
    forced: str | None = None  # the tool that has to be called
    may_call: bool = True
    must_call: bool = False
    schema: dict | None = None  # of the answer, if it must be JSON


@dataclass
class Call:
    id: str
    name: str
    arguments: str


# ---- fields

# Nullable fields are listed separately. Fields in neither list are rejected, so that no field of one dialect passes as the other.
CHAT = set("function_call functions messages model parallel_tool_calls prompt_cache_options response_format tool_choice tools user web_search_options".split())
CHAT_OR_NULL = set(
    "audio frequency_penalty logit_bias logprobs max_completion_tokens max_tokens metadata modalities moderation n prediction presence_penalty"
    " prompt_cache_key prompt_cache_retention reasoning_effort safety_identifier seed service_tier stop store stream stream_options temperature"
    " top_logprobs top_p verbosity".split()
)
RESPONSES = set("input model prompt_cache_options text tool_choice tools user".split())
RESPONSES_OR_NULL = set(
    "background context_management conversation include instructions max_output_tokens max_tool_calls metadata moderation parallel_tool_calls"
    " previous_response_id prompt prompt_cache_key prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options"
    " temperature top_logprobs top_p truncation".split()
)


def fields(value, at, plain, nullable=()):
    """Rejects a value that is not an object, unknown fields, and null in fields that are not nullable."""
    if not isinstance(value, dict):
        raise RequestError(f"Invalid type for '{at or 'body'}': expected an object.", at, "invalid_type")
    for name, held in value.items():
        where = f"{at}.{name}" if at else name
        if name not in plain and name not in nullable:
            raise RequestError(f"Unknown parameter: '{where}'.", where, "unknown_parameter")
        if held is None and name not in nullable:
            raise RequestError(f"Invalid type for '{where}': null is not allowed.", where, "invalid_type")


def need(value, name, kind, at=""):
    """A required field of this type."""
    where = f"{at}.{name}" if at else name
    if not isinstance(value, dict):
        raise RequestError(f"Invalid type for '{at}': expected an object.", at, "invalid_type")
    if name not in value:
        raise RequestError(f"Missing required parameter: '{where}'.", where, "missing_required_parameter")
    if not isinstance(value[name], kind):
        raise RequestError(f"Invalid type for '{where}'.", where, "invalid_type")
    return value[name]


def one_of(value, allowed, at):
    if value not in allowed:
        raise RequestError(f"Invalid value: '{value}'. Supported values are: {', '.join(allowed)}.", at)
    return value


def text_of(content, at, allowed):
    """The text of a message: a string, or parts of the allowed types."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise RequestError(f"Invalid type for '{at}': expected a string or a list of parts.", at, "invalid_type")
    texts = []
    for number, part in enumerate(content):
        where = f"{at}[{number}]"
        if not isinstance(part, dict):
            raise RequestError(f"Invalid type for '{where}': expected an object.", where, "invalid_type")
        kind = one_of(need(part, "type", str, where), allowed, f"{where}.type")
        if kind.endswith("text"):
            texts.append(need(part, "text", str, where))
        elif kind == "refusal":
            texts.append(need(part, "refusal", str, where))
    return "".join(texts)


def arguments_of(function, at):
    arguments = need(function, "arguments", str, at)
    try:
        if not isinstance(json.loads(arguments), dict):
            raise ValueError
    except ValueError:
        raise RequestError(f"'{at}.arguments' is not a JSON object: {arguments!r}", f"{at}.arguments") from None
    return arguments


def tool_name(tool, at):
    name = need(tool, "name", str, at)
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        raise RequestError(f"Invalid '{at}.name': {name!r}.", f"{at}.name")
    return name


def common(body, plain, nullable):
    fields(body, "", plain, nullable)
    if not need(body, "model", str):
        raise RequestError("you must provide a model parameter", "model")
    if not isinstance(body.get("stream"), (bool, type(None))):
        raise RequestError("Invalid type for 'stream': expected a boolean.", "stream", "invalid_type")
    if body.get("stream_options") is not None and not body.get("stream"):
        raise RequestError("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")


def choose(request, choice, name_of):
    if isinstance(choice, dict):
        one_of(need(choice, "type", str, "tool_choice"), ["function"], "tool_choice.type")
        request.forced = name_of(choice)
        if request.forced not in request.tools:
            raise RequestError(f"Tool choice '{request.forced}' not found in 'tools' parameter.", "tool_choice")
    else:
        one_of(choice, ["none", "auto", "required"], "tool_choice")
        request.may_call, request.must_call = choice != "none", choice == "required"


# ---- chat


def chat(body):
    common(body, CHAT, CHAT_OR_NULL)
    request = ParsedRequest(body)
    chat_tools(request, body)
    chat_format(request, body.get("response_format"))

    messages = need(body, "messages", list)
    if not messages:
        raise RequestError("[] is too short - 'messages'", "messages")
    waiting = {}  # calls of the last assistant message that have no result yet
    for number, message in enumerate(messages):
        at = f"messages[{number}]"
        fields(message, at, {"role", "name", "tool_calls", "tool_call_id", "content", "annotations"}, {"content", "refusal", "audio", "function_call"})
        role = one_of(need(message, "role", str, at), ["system", "developer", "user", "assistant", "tool"], f"{at}.role")
        if waiting and role != "tool":
            missing = ", ".join(waiting)
            raise RequestError(f"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. Missing: {missing}", at)
        if "tool_call_id" in message and role != "tool":
            raise RequestError(f"Unknown parameter: '{at}.tool_call_id'.", at, "unknown_parameter")
        if "tool_calls" in message and role != "assistant":
            raise RequestError(f"Unknown parameter: '{at}.tool_calls'.", at, "unknown_parameter")

        if role == "assistant":
            waiting = chat_calls(message, at)
            if message.get("content") is not None:
                text_of(message["content"], f"{at}.content", ["text", "refusal"])
            elif not waiting and not message.get("refusal"):
                raise RequestError(f"Invalid value for '{at}.content': expected a string, got null.", f"{at}.content")
        elif role == "tool":
            id = need(message, "tool_call_id", str, at)
            if id not in waiting:
                raise RequestError(f"Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls' ('{id}').", at)
            request.results.append((waiting.pop(id), text_of(message.get("content"), f"{at}.content", ["text"])))
        elif role == "user":
            request.question = text_of(message.get("content"), f"{at}.content", ["text", "image_url", "input_audio", "file"])
            request.results = []
        else:
            request.instructions.append(text_of(message.get("content"), f"{at}.content", ["text"]))
    if waiting:
        raise RequestError(f"No tool message answers the calls {', '.join(waiting)}.", "messages")
    return request


def chat_calls(message, at):
    calls = {}
    for number, call in enumerate(message.get("tool_calls", ())):
        where = f"{at}.tool_calls[{number}]"
        fields(call, where, {"id", "type", "function"})
        one_of(need(call, "type", str, where), ["function"], f"{where}.type")
        function = need(call, "function", dict, where)
        fields(function, f"{where}.function", {"name", "arguments"})
        id, name = need(call, "id", str, where), tool_name(function, f"{where}.function")
        if not id or id in calls:
            raise RequestError(f"Invalid '{where}.id': {id!r} is empty or there already.", f"{where}.id")
        calls[id] = Call(id, name, arguments_of(function, f"{where}.function"))
    if message.get("tool_calls") == []:
        raise RequestError(f"[] is too short - '{at}.tool_calls'", f"{at}.tool_calls")
    return calls


def chat_tools(request, body):
    if body.get("tools") == []:
        raise RequestError("[] is too short - 'tools'", "tools")
    for number, tool in enumerate(body.get("tools", ())):
        at = f"tools[{number}]"
        fields(tool, at, {"type", "function"})
        one_of(need(tool, "type", str, at), ["function"], f"{at}.type")
        function = need(tool, "function", dict, at)
        fields(function, f"{at}.function", {"name", "description", "parameters"}, {"strict"})
        request.tools[tool_name(function, f"{at}.function")] = function.get("parameters", {})
    for name in "tool_choice", "parallel_tool_calls":
        if name in body and not request.tools:
            raise RequestError(f"'{name}' is only allowed when 'tools' are specified.", name)
    choose(request, body.get("tool_choice", "auto"), lambda choice: need(need(choice, "function", dict, "tool_choice"), "name", str, "tool_choice.function"))


def chat_format(request, format):
    if format is None:
        return
    at = "response_format"
    kind = one_of(need(format, "type", str, at), ["text", "json_object", "json_schema"], f"{at}.type")
    fields(format, at, {"type", "json_schema"} if kind == "json_schema" else {"type"})
    if kind == "json_object":
        request.schema = {}
    if kind == "json_schema":
        inner = need(format, "json_schema", dict, at)
        fields(inner, f"{at}.json_schema", {"name", "schema", "description"}, {"strict"})
        tool_name(inner, f"{at}.json_schema")
        request.schema = need(inner, "schema", dict, f"{at}.json_schema")


# ---- responses


def responses(body):
    common(body, RESPONSES, RESPONSES_OR_NULL)
    request = ParsedRequest(body)
    responses_tools(request, body)
    responses_format(request, body)
    for name in "previous_response_id", "conversation":
        if body.get(name) is not None:
            raise RequestError(f"Nothing is kept here: '{name}' is not found.", name, "previous_response_not_found")
    if (body.get("max_output_tokens") or 16) < 16:
        raise RequestError("Invalid 'max_output_tokens': expected a value >= 16.", "max_output_tokens", "integer_below_min_value")
    if body.get("instructions") is not None:
        request.instructions.append(need(body, "instructions", str))

    items = need(body, "input", (str, list))
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    if not items:
        raise RequestError("Invalid 'input': empty array.", "input", "empty_array")
    calls, answered = {}, set()
    for number, item in enumerate(items):
        at = f"input[{number}]"
        if not isinstance(item, dict):
            raise RequestError(f"Invalid type for '{at}': expected an object.", at, "invalid_type")
        kind = item.get("type", "message")
        if kind == "message":
            responses_message(request, item, at)
        elif kind == "function_call":
            fields(item, at, {"type", "id", "call_id", "name", "arguments", "status"})
            prefix(item, at, "fc")
            id = need(item, "call_id", str, at)
            if not id or id in calls:
                raise RequestError(f"Invalid '{at}.call_id': {id!r} is empty or there already.", f"{at}.call_id")
            calls[id] = Call(id, tool_name(item, at), arguments_of(item, at))
        elif kind == "function_call_output":
            fields(item, at, {"type", "call_id", "output"}, {"id", "status"})
            id = need(item, "call_id", str, at)
            if id not in calls or id in answered:
                raise RequestError(f"No tool call found for function call output with call_id {id}.", "input")
            answered.add(id)
            request.results.append((calls[id], text_of(item.get("output"), f"{at}.output", ["input_text", "input_image", "input_file"])))
        elif kind == "reasoning":
            fields(item, at, {"type", "id", "summary", "status", "content"}, {"encrypted_content"})
            need(item, "id", str, at)
            need(item, "summary", list, at)
            prefix(item, at, "rs")
        else:
            raise RequestError(f"Invalid value: '{kind}'.", f"{at}.type")
    for id in calls:
        if id not in answered:
            raise RequestError(f"No tool output found for function call {id}.", "input")
    return request


def responses_message(request, item, at):
    fields(item, at, {"type", "role", "content", "id", "status"}, {"phase"})
    role = one_of(need(item, "role", str, at), ["assistant", "system", "developer", "user"], f"{at}.role")
    parts = ["output_text", "refusal"] if role == "assistant" else ["input_text", "input_image", "input_file"]
    text = text_of(item.get("content"), f"{at}.content", parts)
    prefix(item, at, "msg")
    if role == "user":
        request.question, request.results = text, []
    elif role != "assistant":
        request.instructions.append(text)


def prefix(item, at, start):
    if not need({"id": start, **item}, "id", str, at).startswith(start):
        raise RequestError(f"Invalid '{at}.id': '{item['id']}'. Expected an ID that begins with '{start}'.", f"{at}.id")


def responses_tools(request, body):
    for number, tool in enumerate(body.get("tools", ())):
        at = f"tools[{number}]"
        fields(tool, at, {"type", "name"}, {"description", "parameters", "strict"})
        one_of(need(tool, "type", str, at), ["function"], f"{at}.type")
        request.tools[tool_name(tool, at)] = tool.get("parameters") or {}
    choose(request, body.get("tool_choice", "auto"), lambda choice: need(choice, "name", str, "tool_choice"))
    if request.must_call and not request.tools:
        raise RequestError("Tool choice 'required' must be specified with 'tools' parameter.", "tool_choice")


def responses_format(request, body):
    text = body.get("text", {})
    fields(text, "text", {"format"}, {"verbosity"})
    format = text.get("format", {"type": "text"})
    at = "text.format"
    kind = one_of(need(format, "type", str, at), ["text", "json_object", "json_schema"], f"{at}.type")
    if kind == "json_object":
        request.schema = {}
    if kind == "json_schema":
        fields(format, at, {"type", "name", "schema", "description"}, {"strict"})
        tool_name(format, at)
        request.schema = need(format, "schema", dict, at)
