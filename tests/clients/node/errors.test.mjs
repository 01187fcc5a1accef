// Rejected requests raise openai-node's own exceptions before any stream starts; and the list of models.

import assert from "node:assert/strict";
import { HELLO, MODEL, OpenAI, client, create, failure, test } from "./demo.mjs";

const refusal = async (params, kind) => (await failure(create(params), kind)).error;

for (const stream of [false, true]) {
  const form = stream ? "stream" : "json";

  test(`${form}: messages are required`, async () => {
    const { message, ...others } = await refusal({ stream }, OpenAI.BadRequestError);

    assert.match(message, /messages/);
    assert.deepEqual(others, {
      type: "invalid_request_error",
      param: "messages",
      code: "missing_required_parameter",
    });
  });

  test(`${form}: an unknown model is not found`, async () => {
    const error = await refusal({ model: "nope", messages: HELLO, stream }, OpenAI.NotFoundError);

    assert.deepEqual(Object.keys(error).sort(), ["code", "message", "param", "type"]);
    assert.equal(error.code, "model_not_found");
    assert.match(error.message, /nope/);
  });
}

test("the demo model is listed", async () => {
  const models = [];
  for await (const model of client.models.list()) models.push(model);
  const [demo] = models.filter((model) => model.id === MODEL);

  assert.equal(demo?.object, "model");
  assert.ok(Number.isInteger(demo.created));
  assert.ok(demo.owned_by);
});
