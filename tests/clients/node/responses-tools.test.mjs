// Function calls in the Responses API: requested, answered and accumulated.

import assert from "node:assert/strict";
import { BOTH, LONDON, PARIS, RAINY, SUNNY, WEATHER, test } from "./demo.mjs";
import { TOOL, create, eventsOf, helper, joined, results, typesOf } from "./responses.mjs";

const tools = [TOOL];
const requests = {
  json: (input) => create({ input, tools }),
  stream: (input) => helper({ input, tools }).finalResponse(),
};

test("a streamed call is opened before its arguments", async () => {
  const events = await eventsOf({ input: WEATHER, tools });

  assert.deepEqual(typesOf(events), [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
    "response.completed",
  ]);
  assert.equal(joined(events, "function_call_arguments"), PARIS);
});

test("the stream helper shows the arguments as they grow", async () => {
  const deltas = [];
  const stream = helper({ input: WEATHER, tools }).on("response.function_call_arguments.delta", (event) =>
    deltas.push(event),
  );
  await stream.done();

  assert.equal(joined(deltas, "function_call_arguments"), PARIS);
  assert.equal(deltas.at(-1).snapshot, PARIS);
});

for (const [form, request] of Object.entries(requests)) {
  test(`${form}: the answer is one call`, async () => {
    const { status, output } = await request(WEATHER);
    const [{ id, call_id, parsed_arguments, ...call }, ...others] = output;

    assert.equal(status, "completed");
    assert.deepEqual(call, { type: "function_call", status: "completed", name: "get_weather", arguments: PARIS });
    assert.ok(id && call_id && id !== call_id);
    assert.deepEqual(others, []);
  });

  test(`${form}: the result is followed by text`, async () => {
    const { output } = await request(WEATHER);
    const answer = await request([...WEATHER, ...output, ...results(output, SUNNY)]);

    assert.deepEqual(answer.output.map((item) => item.type), ["message"]);
    assert.match(answer.output_text, /Paris/);
  });

  test(`${form}: two calls are two items, and their results are answered`, async () => {
    const { output } = await request(BOTH);
    const answer = await request([...BOTH, ...output, ...results(output, SUNNY, RAINY)]);

    assert.deepEqual(
      output.map((item) => [item.type, item.name, item.arguments]),
      [
        ["function_call", "get_weather", PARIS],
        ["function_call", "get_weather", LONDON],
      ],
    );
    assert.notEqual(output[0].call_id, output[1].call_id);
    assert.deepEqual(answer.output.map((item) => item.type), ["message"]);
    assert.ok(answer.output_text);
  });
}
