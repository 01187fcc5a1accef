// Incomplete responses, refusals, failures, rejected requests, and reasoning.

import assert from "node:assert/strict";
import { BREAK, CUT, FAIL, HELLO, OpenAI, REFUSE, THINK, failure, test } from "./demo.mjs";
import { create, eventsOf, helper, joined } from "./responses.mjs";

const requests = {
  json: (input) => create({ input }),
  stream: (input) => helper({ input }).finalResponse(),
};

for (const [form, request] of Object.entries(requests)) {
  test(`${form}: a truncated answer is incomplete`, async () => {
    const { status, incomplete_details, output, output_text } = await request(CUT);

    assert.equal(status, "incomplete");
    assert.deepEqual(incomplete_details, { reason: "max_output_tokens" });
    assert.deepEqual(output.map((item) => item.status), ["incomplete"]);
    assert.ok(output_text);
  });

  test(`${form}: a refusal is a separate part`, async () => {
    const { status, output, output_text } = await request(REFUSE);
    const { content } = output[0];

    assert.equal(status, "completed");
    assert.deepEqual(content.map((part) => part.type), ["refusal"]);
    assert.ok(content[0].refusal);
    assert.equal(output_text, "");
  });

  test(`${form}: reasoning comes before the message, and can be sent back`, async () => {
    const { output, output_text } = await request(THINK);
    const [reasoning, message] = output;
    const { output_text: next } = await request([...THINK, ...output, ...HELLO]);

    assert.deepEqual([reasoning.type, message.type], ["reasoning", "message"]);
    assert.deepEqual(reasoning.summary.map((part) => part.type), ["summary_text"]);
    assert.ok(reasoning.summary[0].text && output_text);
    assert.equal(next, (await request(HELLO)).output_text);
  });

  test(`${form}: a failure before the first word has its status`, async () => {
    const error = await failure(request(FAIL), OpenAI.InternalServerError);

    assert.equal(error.status, 503);
    assert.deepEqual(Object.keys(error.error).sort(), ["code", "message", "param", "type"]);
  });
}

test("a broken body has status failed", async () => {
  const answer = await create({ input: BREAK });

  assert.equal(answer.status, "failed");
  assert.equal(answer.error.code, "server_error");
  assert.ok(answer.output_text, "what came before the break is kept");
});

test("a broken stream ends with failed", async () => {
  const events = await eventsOf({ input: BREAK });
  const { type, response } = events.at(-1);

  assert.ok(joined(events, "output_text"));
  assert.equal(type, "response.failed");
  assert.equal(response.status, "failed");
  assert.equal(response.error.code, "server_error");
});

test("the stream helper reports the failure", async () => {
  const { status, error } = await requests.stream(BREAK);

  assert.equal(status, "failed");
  assert.ok(error.message);
});

for (const stream of [false, true]) {
  test(`${stream ? "stream" : "json"}: an earlier response is not found`, async () => {
    const pending = create({ input: HELLO, previous_response_id: "resp_unknown", stream });
    const { message, ...others } = (await failure(pending, OpenAI.BadRequestError)).error;

    assert.ok(message);
    assert.deepEqual(others, {
      type: "invalid_request_error",
      param: "previous_response_id",
      code: "previous_response_not_found",
    });
  });
}
