"""pydantic-ai's agents, over chat and over responses: answers, streams, tools, history and errors."""

import asyncio

import pytest
from pydantic_ai.exceptions import ContentFilterError, ModelHTTPError, ModelServerError
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart

HELLO = "hello"
STORY = "A Story, please."
WEATHER = "What is the weather in Paris?"
BOTH = "What is the weather in both Paris and London?"
THINK = "Think before you answer."
CUT = "Cut the answer off."
REFUSE = "Please refuse."
FAIL = "Please fail before the first word."
BREAK = "Please break after a few words."


def streamed(agent, question, **more):
    """The deltas of the answer, and the final result."""

    async def main():
        async with agent.run_stream(question, **more) as result:
            return [delta async for delta in result.stream_text(delta=True, debounce_by=None)], result

    return asyncio.get_event_loop().run_until_complete(main())


def parts_of(messages, kind):
    answers = [message for message in messages if isinstance(message, ModelResponse)]
    return [part for answer in answers for part in answer.parts if isinstance(part, kind)]


@pytest.mark.parametrize("question", [HELLO, STORY], ids=["hello", "story"])
def test_a_stream_makes_the_complete_answer(agent, question):
    whole = agent.run_sync(question)
    deltas, result = streamed(agent, question)

    assert whole.output
    assert len(deltas) > 1
    assert "".join(deltas) == whole.output
    assert [part.content for part in parts_of(result.all_messages(), TextPart)] == [whole.output]


def test_both_forms_count_the_same_tokens(agent):
    whole = agent.run_sync(HELLO)
    _, result = streamed(agent, HELLO)

    assert whole.usage.input_tokens > 0
    assert whole.usage.output_tokens > 0
    assert result.usage == whole.usage


@pytest.mark.parametrize("question, finish", [(HELLO, "stop"), (CUT, "length")], ids=["hello", "cut"])
def test_the_finish_reason_is_kept(agent, question, finish):
    _, result = streamed(agent, question)

    assert agent.run_sync(question).response.finish_reason == finish
    assert result.response.finish_reason == finish


def test_the_tool_is_called_and_its_result_sent_back(weather_agent, cities):
    result = weather_agent.run_sync(WEATHER)

    assert cities == ["Paris"]
    assert "Paris" in result.output
    assert result.usage.requests == 2


def test_the_tool_is_called_in_a_stream(weather_agent, cities):
    deltas, result = streamed(weather_agent, WEATHER)

    assert cities == ["Paris"]
    assert "Paris" in "".join(deltas)
    [call] = parts_of(result.all_messages(), ToolCallPart)
    assert (call.tool_name, call.args_as_dict()) == ("get_weather", {"city": "Paris"})


def test_two_calls_are_both_run(weather_agent, cities):
    result = weather_agent.run_sync(BOTH)

    assert sorted(cities) == ["London", "Paris"]
    assert result.output
    assert result.usage.requests == 2


def test_two_calls_are_both_run_in_a_stream(weather_agent, cities):
    deltas, _ = streamed(weather_agent, BOTH)

    assert sorted(cities) == ["London", "Paris"]
    assert "".join(deltas)


def test_a_conversation_continues(weather_agent, cities):
    first = weather_agent.run_sync(WEATHER)
    second = weather_agent.run_sync(HELLO, message_history=first.all_messages())

    assert cities == ["Paris"]
    assert second.output == weather_agent.run_sync(HELLO).output


def test_reasoning_is_separate_from_the_answer(agent):
    whole = agent.run_sync(THINK)
    deltas, result = streamed(agent, THINK)
    thoughts = [part.content for part in parts_of(whole.all_messages(), ThinkingPart)]

    assert whole.output and "".join(deltas) == whole.output
    assert [part.content for part in parts_of(result.all_messages(), ThinkingPart)] == thoughts
    # Over chat the reasoning may be omitted.
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


def test_a_broken_answer_is_an_error(agent):
    # A chat answer is an HTTP error; a response has status failed, which the client raises as an error.
    with pytest.raises((ModelHTTPError, ModelServerError), match="gave up"):
        agent.run_sync(BREAK)
    with pytest.raises((ModelHTTPError, ModelServerError), match="gave up"):
        streamed(agent, BREAK)


def test_a_refusal_is_recognized(agent):
    with pytest.raises(ContentFilterError, match="Refusal: "):
        agent.run_sync(REFUSE)
    with pytest.raises(ContentFilterError, match="Refusal: "):
        streamed(agent, REFUSE)
