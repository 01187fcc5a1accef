// Text through the Responses API: as JSON, as raw events, and by openai-node's own accumulator.

import assert from "node:assert/strict";
import { HELLO, MODEL, STORY, test } from "./demo.mjs";
import { create, eventsOf, helper, joined, typesOf } from "./responses.mjs";

test("an answer is a response", async () => {
  const answer = await create({ input: "hello" });
  const [{ id }] = answer.output;

  assert.match(answer.id, /^resp_./);
  assert.deepEqual([answer.object, answer.model, answer.status], ["response", MODEL, "completed"]);
  assert.deepEqual([answer.error, answer.incomplete_details], [null, null]);
  assert.ok(answer.output_text);
  assert.deepEqual(answer.output, [
    {
      id,
      type: "message",
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", text: answer.output_text, annotations: [], logprobs: [] }],
    },
  ]);
});

test("what was not sent has its default", async () => {
  const answer = await create({ input: "hello" });
  const defaults = {
    temperature: 1,
    tool_choice: "auto",
    tools: [],
    parallel_tool_calls: true,
    truncation: "disabled",
    metadata: {},
  };

  assert.deepEqual(Object.fromEntries(Object.keys(defaults).map((key) => [key, answer[key]])), defaults);
  assert.deepEqual(answer.text.format, { type: "text" });
});

test("usage adds up", async () => {
  const { usage } = await create({ input: "hello" });

  assert.ok(usage.input_tokens > 0);
  assert.ok(usage.output_tokens > 0);
  assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
});

for (const [name, input] of Object.entries({ hello: HELLO, story: STORY })) {
  test(`${name}: the events come in order`, async () => {
    assert.deepEqual(typesOf(await eventsOf({ input })), [
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
  });

  test(`${name}: the events are numbered, and of one response`, async () => {
    const events = await eventsOf({ input });
    const ids = new Set(events.flatMap((event) => event.response?.id ?? []));
    const items = new Set(events.flatMap((event) => event.item_id ?? event.item?.id ?? []));

    assert.deepEqual(events.map((event) => event.sequence_number), [...events.keys()]);
    assert.deepEqual([ids.size, items.size], [1, 1]);
  });

  test(`${name}: the deltas make the complete answer`, async () => {
    const whole = await create({ input });

    assert.equal(joined(await eventsOf({ input }), "output_text"), whole.output_text);
  });

  test(`${name}: the stream helper gives the complete answer`, async () => {
    const whole = await create({ input });
    const deltas = [];
    const stream = helper({ input }).on("response.output_text.delta", (event) => deltas.push(event));
    const final = await stream.finalResponse();

    assert.equal(final.status, "completed");
    assert.equal(final.output_text, whole.output_text);
    assert.deepEqual(final.usage, whole.usage);
    assert.equal(joined(deltas, "output_text"), whole.output_text);
    assert.equal(deltas.at(-1).snapshot, whole.output_text);
  });
}
