"""Clients that request one response form, with backends that support only the other. Without the gateway they fail, through it they work."""

import asyncio

import openai
import pydantic_ai
import pytest
from conftest import MODEL, client_of, model_of
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior

OLD = pydantic_ai.__version__.startswith("1.")

HELLO = "hello, Zürich 🌍"
INSTRUCTIONS = "Be short."
HELLO_ANSWER = f"Question: {HELLO} Instructions: {INSTRUCTIONS}"
WEATHER = "What is the weather in Paris?"
BOTH = "What is the weather in both Paris and London?"
FACTS = "Facts about London, please."
MESSAGES = [{"role": "developer", "content": INSTRUCTIONS}, {"role": "user", "content": HELLO}]


class City(BaseModel):
    name: str
    districts: int
    rivers: list[str]


LONDON = City(name="London", districts=21, rivers=["London"])


@pytest.fixture(params=["run_sync", "run_stream"])
def run(request):
    """An agent's output and its result, in either form."""

    def whole(agent, question, **more):
        result = agent.run_sync(question, **more)
        return result.output, result

    def streamed(agent, question, **more):
        async def main():
            async with agent.run_stream(question, **more) as result:
                return await result.get_output(), result

        return asyncio.get_event_loop().run_until_complete(main())

    return whole if request.param == "run_sync" else streamed


def usage_of(result):
    usage = result.usage() if OLD else result.usage
    return usage.requests, usage.input_tokens, usage.output_tokens


def weather_agent(model, cities, **more):
    agent = Agent(model, **more)

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather in a city."""
        cities.append(city)
        return "sunny, 21 °C" if city == "Paris" else "rainy, 12 °C"

    return agent


# ---- without the gateway


@pytest.mark.parametrize("question", [HELLO, WEATHER], ids=["text", "tool"])
def test_without_the_gateway_run_sync_receives_a_stream_and_fails(dialect, sse_only, question):
    agent = weather_agent(model_of(dialect, sse_only), []) if question == WEATHER else Agent(model_of(dialect, sse_only))

    with pytest.raises(Exception) as failed:
        agent.run_sync(question)

    if dialect == "chat":
        assert failed.type is UnexpectedModelBehavior
        assert "expected JSON data" in str(failed.value)
    elif OLD:
        assert failed.type is AttributeError
        assert str(failed.value) == "'str' object has no attribute 'output'"
    else:
        assert failed.type is ModelAPIError
        assert "Expected a JSON response, got: 'event: response.created" in str(failed.value)


def test_without_the_gateway_run_stream_receives_json_and_fails(dialect, json_only):
    async def main():
        async with Agent(model_of(dialect, json_only)).run_stream(HELLO) as result:
            return await result.get_output()

    with pytest.raises(UnexpectedModelBehavior, match="ended without content"):
        asyncio.get_event_loop().run_until_complete(main())


def test_without_the_gateway_a_client_that_requests_the_right_form_works(sse_only, json_only):
    sse, json = client_of(openai.OpenAI, sse_only), client_of(openai.OpenAI, json_only)
    chunks = list(sse.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True))
    events = list(sse.responses.create(model=MODEL, input=MESSAGES, stream=True))
    completion = json.chat.completions.create(model=MODEL, messages=MESSAGES)
    response = json.responses.create(model=MODEL, input=MESSAGES)

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == HELLO_ANSWER
    assert events[-1].response.output_text == HELLO_ANSWER
    assert completion.choices[0].message.content == HELLO_ANSWER
    assert response.output_text == HELLO_ANSWER


# ---- pydantic-ai


def test_text(model, run):
    output, result = run(Agent(model, instructions=INSTRUCTIONS), HELLO)

    assert output == HELLO_ANSWER
    assert usage_of(result) == (1, 11, 7)
    assert result.response.finish_reason == "stop"


def test_a_tool_and_its_result(model, run):
    cities = []
    output, result = run(weather_agent(model, cities), WEATHER)

    assert cities == ["Paris"]
    assert output == 'get_weather({"city":"Paris"}) returned: sunny, 21 °C.'
    assert usage_of(result) == (2, 22, 14)


def test_two_tools_at_once(model, run):
    cities = []
    output, result = run(weather_agent(model, cities), BOTH)

    assert sorted(cities) == ["London", "Paris"]
    assert 'get_weather({"city":"Paris"}) returned: sunny, 21 °C' in output
    assert 'get_weather({"city":"London"}) returned: rainy, 12 °C' in output
    assert usage_of(result)[0] == 2


@pytest.mark.parametrize("output_type", [City, NativeOutput(City)], ids=["output_tool", "json_schema"])
def test_structured_output(model, run, output_type):
    output, _ = run(Agent(model, output_type=output_type), FACTS)

    assert output == LONDON


def test_structured_output_after_a_tool(model, run):
    cities = []
    output, result = run(weather_agent(model, cities, output_type=City), FACTS)

    assert cities == ["London"]
    assert output == LONDON
    assert usage_of(result)[0] == 2


def test_a_conversation_continues(model, run):
    cities = []
    agent = weather_agent(model, cities)
    _, first = run(agent, BOTH)
    output, _ = run(agent, WEATHER, message_history=first.all_messages())

    assert sorted(cities) == ["London", "Paris", "Paris"]
    assert output == 'get_weather({"city":"Paris"}) returned: sunny, 21 °C.'


def test_text_is_streamed_in_deltas(model):
    async def main():
        async with Agent(model, instructions=INSTRUCTIONS).run_stream(HELLO) as result:
            return [delta async for delta in result.stream_text(delta=True, debounce_by=None)]

    assert "".join(asyncio.get_event_loop().run_until_complete(main())) == HELLO_ANSWER


# ---- openai-python

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
TOOL = {"name": "get_weather", "parameters": PARAMETERS, "strict": True}


def test_responses_as_json(client):
    response = client.responses.create(model=MODEL, input=HELLO, instructions=INSTRUCTIONS, stream=False)

    assert response.object == "response" and response.status == "completed"
    assert response.output_text == HELLO_ANSWER
    assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.total_tokens) == (11, 7, 18)
    assert response.usage.input_tokens_details.cached_tokens == 3
    assert response.usage.output_tokens_details.reasoning_tokens == 2


def test_responses_as_a_stream(client):
    events = list(client.responses.create(model=MODEL, input=HELLO, instructions=INSTRUCTIONS, stream=True))
    kinds = [event.type for event in events]

    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds.count("response.completed") == 1 and kinds[-1] == "response.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == HELLO_ANSWER
    assert events[-1].response.output_text == HELLO_ANSWER
    assert events[-1].response.usage.total_tokens == 18


def test_chat_as_json(client):
    completion = client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=False)
    [choice] = completion.choices

    assert completion.object == "chat.completion"
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", HELLO_ANSWER, "stop")
    assert choice.message.tool_calls is None
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (11, 7, 18)
    assert usage.prompt_tokens_details.cached_tokens == 3
    assert usage.completion_tokens_details.reasoning_tokens == 2


@pytest.mark.parametrize("usage", [True, False], ids=["usage", "no_usage"])
def test_chat_as_a_stream(client, usage):
    options = {"stream_options": {"include_usage": True}} if usage else {}
    chunks = list(client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True, **options))
    choices = [choice for chunk in chunks for choice in chunk.choices]

    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert [choice.delta.role for choice in choices if choice.delta.role] == ["assistant"]
    assert "".join(choice.delta.content or "" for choice in choices) == HELLO_ANSWER
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["stop"]
    # The gateway may request the usage; a client that did not request it must not receive it.
    assert [chunk.usage.total_tokens for chunk in chunks if chunk.usage] == ([18] if usage else [])


def test_tools_over_responses(client):
    tools = [{"type": "function", **TOOL}]
    whole = client.responses.create(model=MODEL, input=BOTH, tools=tools, stream=False)
    with client.responses.stream(model=MODEL, input=BOTH, tools=tools) as stream:
        for _ in stream:
            pass
        streamed = stream.get_final_response()

    for response in whole, streamed:
        assert [(item.type, item.name, item.arguments) for item in response.output] == [
            ("function_call", "get_weather", '{"city":"Paris"}'),
            ("function_call", "get_weather", '{"city":"London"}'),
        ]
        assert len({item.call_id for item in response.output}) == 2


def test_tools_over_chat(client):
    tools = [{"type": "function", "function": TOOL}]
    messages = [{"role": "user", "content": BOTH}]
    whole = client.chat.completions.create(model=MODEL, messages=messages, tools=tools, stream=False)
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
        for _ in stream:
            pass
        streamed = stream.get_final_completion()

    for completion in whole, streamed:
        [choice] = completion.choices
        assert choice.finish_reason == "tool_calls" and not choice.message.content
        assert [(call.type, call.function.name, call.function.arguments) for call in choice.message.tool_calls] == [
            ("function", "get_weather", '{"city":"Paris"}'),
            ("function", "get_weather", '{"city":"London"}'),
        ]
        assert len({call.id for call in choice.message.tool_calls}) == 2


# ---- backend failures


def send(client, dialect, question, stream):
    if dialect == "chat":
        answer = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": question}], stream=stream)
    else:
        answer = client.responses.create(model=MODEL, input=question, stream=stream)
    return list(answer) if stream else answer


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
def test_an_error_keeps_its_status(client, dialect, stream):
    with pytest.raises(openai.RateLimitError) as raised:
        send(client, dialect, "Please hit the rate limit.", stream)

    assert raised.value.code == "rate_limit_exceeded"


def test_a_broken_body_is_not_a_success(client, dialect):
    try:
        answer = send(client, dialect, "Please break.", stream=False)
    except openai.APIStatusError as failed:
        assert failed.status_code >= 500
        return
    assert dialect == "responses", "a chat body cannot report it otherwise"
    assert answer.status == "failed"
    assert answer.error.code == "server_error"
    assert answer.output, "the output before the break is kept"


def test_a_broken_stream_does_not_end_with_success(client, dialect):
    try:
        events = send(client, dialect, "Please break.", stream=True)
    except openai.APIError:
        return
    assert dialect == "responses", "a chat stream cannot report it otherwise"
    assert events[-1].type in ("response.failed", "error")
