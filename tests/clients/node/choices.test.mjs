// Two choices in one answer.

import assert from "node:assert/strict";
import { MODEL, TWO_ANSWERS, choiceFrames, chunksOf, client, create, test, textOf } from "./demo.mjs";

const two = { messages: TWO_ANSWERS, n: 2 };
const summary = ({ choices }) => choices.map((c) => [c.index, c.message.role, c.message.content, c.finish_reason]);

test("both choices are complete", async () => {
  const { choices } = await create(two);
  const [first, second] = choices.map((choice) => choice.message.content);

  assert.ok(first && second);
  assert.notEqual(first, second);
  assert.deepEqual(summary({ choices }), [
    [0, "assistant", first, "stop"],
    [1, "assistant", second, "stop"],
  ]);
});

test("each choice has its own role, text and finish", async () => {
  const { choices } = await create(two);
  const chunks = await chunksOf(two);

  for (const { index, message } of choices) {
    const frames = choiceFrames(chunks, index);
    const rest = frames.slice(1).map(() => null);
    assert.deepEqual(frames.map((f) => f.delta.role ?? null), ["assistant", ...rest]);
    assert.deepEqual(frames.map((f) => f.finish_reason), [...rest, "stop"]);
    assert.equal(textOf(frames), message.content);
  }
});

test("the stream helper keeps them apart", async () => {
  const whole = await create(two);
  const final = await client.chat.completions.stream({ model: MODEL, ...two }).finalChatCompletion();

  assert.deepEqual(summary(final), summary(whole));
});
