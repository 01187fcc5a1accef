// Truncated answers, refusals, failures, broken streams, and reasoning.

import assert from "node:assert/strict";
import {
  BREAK,
  CUT,
  FAIL,
  MODEL,
  OpenAI,
  REFUSE,
  THINK,
  choiceFrames,
  chunksOf,
  client,
  create,
  failure,
  test,
  textOf,
} from "./demo.mjs";

const ERROR_KEYS = ["code", "message", "param", "type"];
const helper = (messages) => client.chat.completions.stream({ model: MODEL, messages });

test("a truncated answer has finish reason length", async () => {
  const [whole] = (await create({ messages: CUT })).choices;
  const [final] = (await helper(CUT).finalChatCompletion()).choices;

  assert.ok(whole.message.content);
  assert.equal(whole.finish_reason, "length");
  assert.deepEqual([final.message.content, final.finish_reason], [whole.message.content, "length"]);
});

test("a refusal is not content", async () => {
  const [{ message, finish_reason }] = (await create({ messages: REFUSE })).choices;
  const frames = choiceFrames(await chunksOf({ messages: REFUSE }));
  const [final] = (await helper(REFUSE).finalChatCompletion()).choices;

  assert.ok(message.refusal);
  assert.deepEqual(message, { role: "assistant", content: null, refusal: message.refusal });
  assert.equal(finish_reason, "stop");
  assert.equal(textOf(frames), "");
  assert.equal(frames.map((frame) => frame.delta.refusal ?? "").join(""), message.refusal);
  assert.equal(final.message.refusal, message.refusal);
});

test("reasoning stays out of the content", async () => {
  const [{ message, finish_reason }] = (await create({ messages: THINK })).choices;
  const [final] = (await helper(THINK).finalChatCompletion()).choices;

  assert.ok(message.content);
  assert.equal(finish_reason, "stop");
  assert.equal(final.message.content, message.content);
});

for (const stream of [false, true]) {
  test(`${stream ? "stream" : "json"}: a failure before the first word has its status`, async () => {
    const error = await failure(create({ messages: FAIL, stream }), OpenAI.InternalServerError);

    assert.equal(error.status, 503);
    assert.deepEqual(Object.keys(error.error).sort(), ERROR_KEYS);
  });
}

test("a broken body is an error", async () => {
  const error = await failure(create({ messages: BREAK }), OpenAI.InternalServerError);

  assert.deepEqual(Object.keys(error.error).sort(), ERROR_KEYS);
});

test("a broken stream throws after its text", async () => {
  const chunks = [];
  const reading = async () => {
    for await (const chunk of await create({ messages: BREAK, stream: true })) chunks.push(chunk);
  };
  const error = await failure(reading(), OpenAI.APIError);
  const frames = choiceFrames(chunks);

  assert.ok(textOf(frames));
  assert.deepEqual(frames.filter((frame) => frame.finish_reason !== null), []);
  assert.deepEqual(Object.keys(error.error).sort(), ERROR_KEYS);
});

test("the stream helper rejects when the stream breaks", async () => {
  await failure(helper(BREAK).finalChatCompletion(), OpenAI.OpenAIError);
});
