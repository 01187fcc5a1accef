"""The same through openai-python's asynchronous client."""

import asyncio

import openai

from demo import GET_WEATHER, HELLO, MODEL, STORY, WEATHER, choice_frames, text_of


def run(settings, work):
    async def main():
        async with openai.AsyncOpenAI(**settings) as client:
            return await work(client.chat.completions)

    return asyncio.run(main())


def test_a_stream_makes_the_complete_answer(settings):
    async def work(chat):
        whole = await chat.create(model=MODEL, messages=STORY)
        chunks = [chunk async for chunk in await chat.create(model=MODEL, messages=STORY, stream=True)]
        return whole, chunks

    whole, chunks = run(settings, work)
    assert text_of(choice_frames(chunks)) == whole.choices[0].message.content


def test_the_stream_helper_gathers_a_call(settings):
    async def work(chat):
        async with chat.stream(model=MODEL, messages=WEATHER, tools=[GET_WEATHER]) as stream:
            return await stream.get_final_completion()

    [choice] = run(settings, work).choices
    [call] = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city":"Paris"}')


def test_streams_at_the_same_time_do_not_mix(settings):
    async def read(chat, messages):
        return [chunk async for chunk in await chat.create(model=MODEL, messages=messages, stream=True)]

    async def work(chat):
        wholes = [await chat.create(model=MODEL, messages=messages) for messages in (HELLO, STORY)]
        streams = await asyncio.gather(*(read(chat, m) for m in (HELLO, STORY) * 4))
        return [whole.choices[0].message.content for whole in wholes], streams

    texts, streams = run(settings, work)
    assert [text_of(choice_frames(chunks)) for chunks in streams] == texts * 4
    assert [len({chunk.id for chunk in chunks}) for chunks in streams] == [1] * 8
    assert len({chunks[0].id for chunks in streams}) == 8
