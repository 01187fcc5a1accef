// Prompts for the embedded demo, the client, and helpers to read its streams.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import nodeTest from "node:test";

// The SDK is installed in the cache, not next to this file, so a plain import would not find it.
const installed = createRequire(join(process.env.REFRAME_NODE_MODULES, "here"));
export const { default: OpenAI } = installed("openai");

export const client = new OpenAI({
  baseURL: process.env.REFRAME_BASE_URL,
  apiKey: "any-key",
  maxRetries: 0, // An answer that succeeds only on the second attempt is a failure.
  timeout: 20_000,
});

// The SDK's timeout covers only the headers; this one also covers a stream that never ends.
export const test = (name, body) => nodeTest(name, { timeout: 30_000 }, body);

export const MODEL = "demo";
const user = (content) => [{ role: "user", content }];
export const HELLO = user("hello");
export const STORY = user("A Story, please.");
export const TWO_ANSWERS = user("Give me two answers.");
export const WEATHER = user("What is the weather in Paris?");
export const BOTH = user("What is the weather in both Paris and London?");
export const THINK = user("Think before you answer.");
export const CUT = user("Cut the answer off.");
export const REFUSE = user("Please refuse.");
export const FAIL = user("Please fail before the first word.");
export const BREAK = user("Please break after a few words.");

export const GET_WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    },
  },
};

export const PARIS = '{"city":"Paris"}';
export const LONDON = '{"city":"London"}';
export const SUNNY = '{"sky":"sunny","celsius":21}';
export const RAINY = '{"sky":"rainy","celsius":12}';

/** The error that `promise` ends with, which must be of that kind. */
export async function failure(promise, kind) {
  let error;
  await assert.rejects(promise, (thrown) => ((error = thrown), true));
  assert.ok(error instanceof kind, `${error.name}: ${error.message}`);
  return error;
}

export const create = (params) => client.chat.completions.create({ model: MODEL, ...params });

export async function chunksOf(params) {
  const chunks = [];
  for await (const chunk of await create({ ...params, stream: true })) chunks.push(chunk);
  return chunks;
}

/** Every choice object of one index, as it was on the wire. */
export const choiceFrames = (chunks, index = 0) =>
  chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.index === index);

export const textOf = (frames) => frames.map((frame) => frame.delta.content ?? "").join("");
