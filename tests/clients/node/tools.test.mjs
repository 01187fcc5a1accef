// Tool calls: requested, answered, accumulated, and run by the SDK.

import assert from "node:assert/strict";
import {
  BOTH,
  GET_WEATHER,
  LONDON,
  MODEL,
  PARIS,
  RAINY,
  SUNNY,
  WEATHER,
  choiceFrames,
  chunksOf,
  client,
  create,
  test,
} from "./demo.mjs";

const weatherRequest = { messages: WEATHER, tools: [GET_WEATHER] };
const bothRequest = { messages: BOTH, tools: [GET_WEATHER] };

/** The SDK's own loop, and the arguments of the calls it made. */
function runTools(messages, stream) {
  const calls = [];
  const run = (args) => {
    calls.push(args);
    return args.city === "Paris" ? SUNNY : RAINY;
  };
  const tool = { type: "function", function: { ...GET_WEATHER.function, parse: JSON.parse, function: run } };
  return { calls, runner: client.chat.completions.runTools({ model: MODEL, messages, tools: [tool], stream }) };
}

test("the answer is one call", async () => {
  const { choices } = await create(weatherRequest);
  const { id } = choices[0].message.tool_calls[0];

  assert.ok(id);
  assert.deepEqual(choices, [
    {
      index: 0,
      message: {
        role: "assistant",
        content: null,
        refusal: null,
        tool_calls: [{ id, type: "function", function: { name: "get_weather", arguments: PARIS } }],
      },
      logprobs: null,
      finish_reason: "tool_calls",
    },
  ]);
});

test("a streamed call is named once, before its arguments", async () => {
  const deltas = choiceFrames(await chunksOf(weatherRequest)).map((frame) => frame.delta);
  const [role, opening, ...argumentDeltas] = deltas.slice(0, -1);
  const { id } = opening.tool_calls[0];
  const texts = argumentDeltas.map((delta) => delta.tool_calls[0].function.arguments);

  assert.equal(role.role, "assistant");
  assert.deepEqual(opening, {
    tool_calls: [{ index: 0, id, type: "function", function: { name: "get_weather", arguments: "" } }],
  });
  assert.deepEqual(
    argumentDeltas,
    texts.map((text) => ({ tool_calls: [{ index: 0, function: { arguments: text } }] })),
  );
  assert.ok(texts.length > 1);
  assert.equal(texts.join(""), PARIS);
  assert.deepEqual(deltas.at(-1), {});
});

test("the stream helper gathers the arguments", async () => {
  const stream = client.chat.completions.stream({ model: MODEL, ...weatherRequest });
  const [choice] = (await stream.finalChatCompletion()).choices;
  const [call, ...others] = choice.message.tool_calls;

  assert.deepEqual([call.type, call.function.name, call.function.arguments], ["function", "get_weather", PARIS]);
  assert.deepEqual(others, []);
  assert.equal(choice.finish_reason, "tool_calls");
});

test("the result is followed by text", async () => {
  const { message } = (await create(weatherRequest)).choices[0];
  const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: SUNNY };
  const [choice] = (await create({ ...weatherRequest, messages: [...WEATHER, message, result] })).choices;

  assert.match(choice.message.content, /Paris/);
  assert.equal(choice.message.tool_calls, undefined);
  assert.equal(choice.finish_reason, "stop");
});

test("two calls are two entries", async () => {
  const [choice] = (await create(bothRequest)).choices;
  const calls = choice.message.tool_calls;

  assert.deepEqual(
    calls.map((call) => [call.type, call.function.name, call.function.arguments]),
    [
      ["function", "get_weather", PARIS],
      ["function", "get_weather", LONDON],
    ],
  );
  assert.notEqual(calls[0].id, calls[1].id);
  assert.equal(choice.finish_reason, "tool_calls");
});

test("the stream helper gathers two calls", async () => {
  const stream = client.chat.completions.stream({ model: MODEL, ...bothRequest });
  const [choice] = (await stream.finalChatCompletion()).choices;

  assert.deepEqual(
    choice.message.tool_calls.map((call) => call.function.arguments),
    [PARIS, LONDON],
  );
});

for (const stream of [false, true]) {
  test(`runTools makes the round trip ${stream ? "over streams" : "over JSON"}`, async () => {
    const { calls, runner } = runTools(WEATHER, stream);
    const content = await runner.finalContent();

    assert.deepEqual(calls, [{ city: "Paris" }]);
    assert.match(content, /Paris/);
    assert.deepEqual(
      runner.messages.map((message) => message.role),
      ["user", "assistant", "tool", "assistant"],
    );
  });

  test(`runTools runs two calls ${stream ? "over streams" : "over JSON"}`, async () => {
    const { calls, runner } = runTools(BOTH, stream);
    const content = await runner.finalContent();

    assert.deepEqual(calls, [{ city: "Paris" }, { city: "London" }]);
    assert.ok(content);
    assert.deepEqual(
      runner.messages.map((message) => message.role),
      ["user", "assistant", "tool", "tool", "assistant"],
    );
  });
}
