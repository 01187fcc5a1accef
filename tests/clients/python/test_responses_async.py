"""The Responses API through openai-python's asynchronous client."""

import asyncio

import openai

from demo import HELLO, MODEL, PARIS, SUNNY, THINK, WEATHER
from responses import TOOL, joined, results


def run(settings, work):
    async def main():
        async with openai.AsyncOpenAI(**settings) as client:
            return await work(client.responses)

    return asyncio.run(main())


def test_a_stream_makes_the_complete_answer(settings):
    async def work(responses):
        whole = await responses.create(model=MODEL, input=THINK)
        stream = await responses.create(model=MODEL, input=THINK, stream=True)
        return whole, [event async for event in stream]

    whole, events = run(settings, work)
    assert whole.status == "completed"
    assert joined(events, "output_text") == whole.output_text


def test_the_stream_helper_makes_the_round_trip(settings):
    async def work(responses):
        async with responses.stream(model=MODEL, input=WEATHER, tools=[TOOL]) as stream:
            calls = (await stream.get_final_response()).output
        conversation = [*WEATHER, *calls, *results(calls, SUNNY)]
        async with responses.stream(model=MODEL, input=conversation, tools=[TOOL]) as stream:
            return calls, await stream.get_final_response()

    [call], answer = run(settings, work)
    assert (call.name, call.arguments) == ("get_weather", PARIS)
    assert "Paris" in answer.output_text


def test_streams_at_the_same_time_do_not_mix(settings):
    async def read(responses, input):
        return [event async for event in await responses.create(model=MODEL, input=input, stream=True)]

    async def work(responses):
        wholes = [await responses.create(model=MODEL, input=input) for input in (HELLO, THINK)]
        streams = await asyncio.gather(*(read(responses, input) for input in (HELLO, THINK) * 4))
        return [whole.output_text for whole in wholes], streams

    texts, streams = run(settings, work)
    assert [joined(events, "output_text") for events in streams] == texts * 4
    assert [[e.sequence_number for e in events] for events in streams] == [
        list(range(len(events))) for events in streams
    ]
    assert len({events[0].response.id for events in streams}) == 8
