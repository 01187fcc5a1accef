// JSON answers: without `stream`.

import assert from "node:assert/strict";
import { HELLO, MODEL, create, test } from "./demo.mjs";

test("an answer is a chat completion", async () => {
  const answer = await create({ messages: HELLO });
  const content = answer.choices[0].message.content;

  assert.equal(answer.object, "chat.completion");
  assert.match(answer.id, /^chatcmpl-./);
  assert.equal(answer.model, MODEL);
  assert.ok(Number.isInteger(answer.created));
  assert.ok(content);
  assert.deepEqual(answer.choices, [
    {
      index: 0,
      message: { role: "assistant", content, refusal: null },
      logprobs: null,
      finish_reason: "stop",
    },
  ]);
});

test("usage adds up", async () => {
  const { usage } = await create({ messages: HELLO });

  assert.ok(usage.prompt_tokens > 0);
  assert.ok(usage.completion_tokens > 0);
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
});
