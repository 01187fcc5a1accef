// Requests of the Responses API, and helpers to read its streams.

import { GET_WEATHER, MODEL, client } from "./demo.mjs";

export const TOOL = { type: "function", strict: true, ...GET_WEATHER.function };

export const create = (params) => client.responses.create({ model: MODEL, ...params });
export const helper = (params) => client.responses.stream({ model: MODEL, ...params });

export async function eventsOf(params) {
  const events = [];
  for await (const event of await create({ ...params, stream: true })) events.push(event);
  return events;
}

/** The types in order, with consecutive deltas merged into one. */
export const typesOf = (events) =>
  events
    .map((event) => event.type)
    .filter((type, at, types) => !(type.endsWith(".delta") && type === types[at - 1]));

export const joined = (events, kind) =>
  events
    .filter((event) => event.type === `response.${kind}.delta`)
    .map((event) => event.delta)
    .join("");

/** The results of the calls among the output, as a client sends them back. */
export const results = (output, ...texts) =>
  output
    .filter((item) => item.type === "function_call")
    .map(({ call_id }, at) => ({ type: "function_call_output", call_id, output: texts[at] }));
