// Text as a stream: the raw chunks, and openai-node's own accumulator.

import assert from "node:assert/strict";
import { HELLO, MODEL, STORY, choiceFrames, chunksOf, client, create, test, textOf } from "./demo.mjs";

for (const [name, messages] of Object.entries({ hello: HELLO, story: STORY })) {
  test(`${name}: frames are a role, then text, then a finish`, async () => {
    const frames = choiceFrames(await chunksOf({ messages }));
    const frame = (delta, finish_reason = null) => ({ index: 0, delta, logprobs: null, finish_reason });

    assert.deepEqual(frames, [
      frame({ role: "assistant", content: "", refusal: null }),
      ...frames.slice(1, -1).map(({ delta }) => frame({ content: delta.content })),
      frame({}, "stop"),
    ]);
  });

  test(`${name}: every chunk is of the same answer`, async () => {
    const chunks = await chunksOf({ messages });
    const { id, created } = chunks[0];

    assert.match(id, /^chatcmpl-./);
    assert.deepEqual(
      chunks.map((c) => [c.id, c.created, c.model, c.object]),
      chunks.map(() => [id, created, MODEL, "chat.completion.chunk"]),
    );
  });

  test(`${name}: the deltas make the complete answer`, async () => {
    const whole = await create({ messages });

    assert.equal(textOf(choiceFrames(await chunksOf({ messages }))), whole.choices[0].message.content);
  });

  test(`${name}: usage is not sent unless requested`, async () => {
    const chunks = await chunksOf({ messages });

    assert.deepEqual(chunks.filter((c) => "usage" in c || c.choices.length === 0), []);
  });

  test(`${name}: usage is the last chunk when requested`, async () => {
    const whole = await create({ messages });
    const chunks = await chunksOf({ messages, stream_options: { include_usage: true } });
    const last = chunks.pop();

    assert.deepEqual(
      chunks.map((c) => [c.choices.length, c.usage]),
      chunks.map(() => [1, null]),
    );
    assert.deepEqual([last.choices, last.usage], [[], whole.usage]);
  });

  test(`${name}: the stream helper gives the complete answer`, async () => {
    const whole = await create({ messages });
    const deltas = [];
    const stream = client.chat.completions
      .stream({ model: MODEL, messages, stream_options: { include_usage: true } })
      .on("content", (delta) => deltas.push(delta));
    const final = await stream.finalChatCompletion();

    const { content } = whole.choices[0].message;
    assert.equal(deltas.join(""), content);
    assert.deepEqual(
      final.choices.map((c) => [c.index, c.message.role, c.message.content, c.message.refusal, c.finish_reason]),
      [[0, "assistant", content, null, "stop"]],
    );
    assert.deepEqual(final.usage, whole.usage);
  });
}
