"""pydantic-ai's agents, over chat and over responses: answers, streams, tools, history and errors."""

import asyncio

import pytest
from pydantic_ai.exceptions import ContentFilterError, ModelHTTPError, ModelServerError
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart

HELLO = "hello"
STORY = "Tell me a Story, please."
WEATHER = "What is the weather in Paris?"
BOTH = "What is the weather in both Paris and London?"
THINK = "Think before you answer."
CUT = "Cut the answer off."
REFUSE = "Please refuse."
FAIL = "Please fail before the first word."
BREAK = "Please break after a few words."


def streamed(agent, question, **more):
    """The pieces of the answer, and its result when the stream is over."""

    async def main():
        async with agent.run_stream(question, **more) as result:
            return [piece async for piece in result.stream_text(delta=True, debounce_by=None)], result

    return asyncio.get_event_loop().run_until_complete(main())


def parts_of(messages, kind):
    answers = [message for message in messages if isinstance(message, ModelResponse)]
    return [part for answer in answers for part in answer.parts if isinstance(part, kind)]


@pytest.mark.parametrize("question", [HELLO, STORY], ids=["hello", "story"])
def test_a_stream_makes_the_whole_answer(agent, question):
    whole = agent.run_sync(question)
    pieces, result = streamed(agent, question)

    assert whole.output
    assert len(pieces) > 1
    assert "".join(pieces) == whole.output
    assert [part.content for part in parts_of(result.all_messages(), TextPart)] == [whole.output]


def test_both_forms_count_the_same_tokens(agent):
    whole = agent.run_sync(HELLO)
    _, result = streamed(agent, HELLO)

    assert whole.usage.input_tokens > 0
    assert whole.usage.output_tokens > 0
    assert result.usage == whole.usage


@pytest.mark.parametrize("question, finish", [(HELLO, "stop"), (CUT, "length")], ids=["hello", "cut"])
def test_the_reason_to_finish_is_kept(agent, question, finish):
    _, result = streamed(agent, question)

    assert agent.run_sync(question).response.finish_reason == finish
    assert result.response.finish_reason == finish


def test_the_tool_is_called_and_its_result_answered(weather_agent, cities):
    result = weather_agent.run_sync(WEATHER)

    assert cities == ["Paris"]
    assert "Paris" in result.output
    assert result.usage.requests == 2


def test_the_tool_is_called_in_a_stream(weather_agent, cities):
    pieces, result = streamed(weather_agent, WEATHER)

    assert cities == ["Paris"]
    assert "Paris" in "".join(pieces)
    [call] = parts_of(result.all_messages(), ToolCallPart)
    assert (call.tool_name, call.args_as_dict()) == ("get_weather", {"city": "Paris"})


def test_two_calls_are_both_run(weather_agent, cities):
    result = weather_agent.run_sync(BOTH)

    assert sorted(cities) == ["London", "Paris"]
    assert result.output
    assert result.usage.requests == 2


def test_two_calls_are_both_run_in_a_stream(weather_agent, cities):
    pieces, _ = streamed(weather_agent, BOTH)

    assert sorted(cities) == ["London", "Paris"]
    assert "".join(pieces)


def test_a_conversation_goes_on(weather_agent, cities):
    first = weather_agent.run_sync(WEATHER)
    second = weather_agent.run_sync(HELLO, message_history=first.all_messages())

    assert cities == ["Paris"]
    assert second.output == weather_agent.run_sync(HELLO).output


def test_reasoning_is_apart_from_the_answer(agent):
    whole = agent.run_sync(THINK)
    pieces, result = streamed(agent, THINK)
    thoughts = [part.content for part in parts_of(whole.all_messages(), ThinkingPart)]

    assert whole.output and "".join(pieces) == whole.output
    assert [part.content for part in parts_of(result.all_messages(), ThinkingPart)] == thoughts
    # Over chat the reasoning may be left out.
    if agent.model.__class__.__name__ == "OpenAIResponsesModel":
        assert len(thoughts) == 1 and thoughts[0]


def test_reasoning_can_be_sent_back(agent):
    thought = agent.run_sync(THINK)
    answer = agent.run_sync(HELLO, message_history=thought.all_messages())

    assert answer.output == agent.run_sync(HELLO).output


def test_a_failure_before_the_first_word_has_its_status(agent):
    with pytest.raises(ModelHTTPError) as failed:
        agent.run_sync(FAIL)
    with pytest.raises(ModelHTTPError) as failed_stream:
        streamed(agent, FAIL)

    assert (failed.value.status_code, failed_stream.value.status_code) == (503, 503)


def test_an_answer_that_breaks_is_an_error(agent):
    # A chat answer is an HTTP error; a response says itself that it failed, which the client takes for one.
    with pytest.raises((ModelHTTPError, ModelServerError), match="gave up"):
        agent.run_sync(BREAK)
    with pytest.raises((ModelHTTPError, ModelServerError), match="gave up"):
        streamed(agent, BREAK)


def test_a_refusal_is_known_as_one(agent):
    with pytest.raises(ContentFilterError, match="Refusal: "):
        agent.run_sync(REFUSE)
    with pytest.raises(ContentFilterError, match="Refusal: "):
        streamed(agent, REFUSE)
