// Legacy completions, with the demo's prompts.

import assert from "node:assert/strict";
import { BREAK, CUT, FAIL, HELLO, MODEL, OpenAI, STORY, client, failure, test } from "./demo.mjs";

const [hello, story, cut, fail, broken] = [HELLO, STORY, CUT, FAIL, BREAK].map(([{ content }]) => content);
const create = (params) => client.completions.create({ model: MODEL, ...params });

async function chunksOf(params) {
  const chunks = [];
  for await (const chunk of await create({ ...params, stream: true })) chunks.push(chunk);
  return chunks;
}

const textOf = (chunks) => chunks.flatMap((chunk) => chunk.choices).map((choice) => choice.text).join("");

for (const [name, prompt] of Object.entries({ hello, story })) {
  test(`${name}: an answer is a text completion`, async () => {
    const answer = await create({ prompt });
    const [{ text }] = answer.choices;

    assert.match(answer.id, /^cmpl-./);
    assert.deepEqual([answer.object, answer.model], ["text_completion", MODEL]);
    assert.ok(text);
    assert.deepEqual(answer.choices, [{ text, index: 0, logprobs: null, finish_reason: "stop" }]);
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
  });

  test(`${name}: the deltas make the complete answer`, async () => {
    const whole = await create({ prompt });
    const chunks = await chunksOf({ prompt });
    const finishes = chunks.map((chunk) => chunk.choices[0].finish_reason);

    assert.equal(textOf(chunks), whole.choices[0].text);
    assert.deepEqual(finishes, [...finishes.slice(1).map(() => null), "stop"]);
    assert.deepEqual(new Set(chunks.map((chunk) => chunk.id)).size, 1);
  });

  test(`${name}: usage is the last chunk when requested`, async () => {
    const whole = await create({ prompt });
    const last = (await chunksOf({ prompt, stream_options: { include_usage: true } })).at(-1);

    assert.deepEqual([last.choices, last.usage], [[], whole.usage]);
  });
}

test("the prompt may be a list of one", async () => {
  const [whole, listed] = [await create({ prompt: hello }), await create({ prompt: [hello] })];

  assert.deepEqual(listed.choices, whole.choices);
});

test("a truncated answer has finish reason length", async () => {
  const [choice] = (await create({ prompt: cut })).choices;

  assert.ok(choice.text);
  assert.equal(choice.finish_reason, "length");
});

for (const stream of [false, true]) {
  test(`${stream ? "stream" : "json"}: a failure before the first word has its status`, async () => {
    const error = await failure(create({ prompt: fail, stream }), OpenAI.InternalServerError);

    assert.equal(error.status, 503);
  });
}

test("a broken stream throws", async () => {
  await failure(chunksOf({ prompt: broken }), OpenAI.APIError);
});
