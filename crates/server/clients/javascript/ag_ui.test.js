// AG-UI's own client, pointed at a Switchboard server.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { HttpAgent, buildResumeArray } from "@ag-ui/client";

import { ASKING, CHANGE, FREE, QUESTION, VALUE, headers } from "./server.js";

function agent(address, question) {
  const made = new HttpAgent({ url: `${address}/ag-ui`, headers, threadId: randomUUID() });
  made.addMessage({ id: randomUUID(), role: "user", content: question });
  return made;
}

/** Runs it, and gives what it said and the types of all events. */
async function run(which, parameters) {
  const types = [];
  const warnings = [];
  const warn = console.warn;
  console.warn = (...words) => warnings.push(words.join(" "));
  try {
    const outcome = await which.runAgent(parameters, {
      onEvent: ({ event }) => void types.push(event.type),
    });
    // The client strips what the protocol does not know, and says so.
    assert.deepEqual(warnings, []);
    return { ...outcome, types };
  } finally {
    console.warn = warn;
  }
}

test("a question that needs a tool is answered", async () => {
  const asked = agent(FREE, QUESTION);
  const { result, newMessages, types } = await run(asked);
  assert.equal(types[0], "RUN_STARTED");
  assert.equal(types.at(-1), "RUN_FINISHED");
  for (const type of ["STEP_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]) {
    assert.ok(types.includes(type), type);
  }
  const caller = newMessages.find((message) => message.toolCalls);
  const answered = newMessages.find((message) => message.role === "tool");
  assert.equal(answered.toolCallId, caller.toolCalls[0].id);
  const last = newMessages.at(-1);
  assert.equal(last.role, "assistant");
  assert.ok(last.content.includes(VALUE), last.content);
  assert.equal(result.answer, last.content);
});

test("the thread goes on", async () => {
  const asked = agent(FREE, QUESTION);
  await run(asked);
  asked.addMessage({ id: randomUUID(), role: "user", content: "What is the account value of customer 7?" });
  const { newMessages } = await run(asked);
  const call = newMessages.find((message) => message.toolCalls).toolCalls[0];
  assert.ok(Object.values(JSON.parse(call.function.arguments)).includes(7));
});

for (const [name, payload, isError] of [
  ["a call runs once it is approved", { approved: true }, false],
  ["a call that is declined does not run", { approved: false, reason: "not today" }, true],
]) {
  test(name, async () => {
    const asked = agent(ASKING, CHANGE);
    const first = await run(asked);
    assert.equal(first.types.at(-1), "RUN_FINISHED");
    const [interrupt] = asked.pendingInterrupts;
    assert.equal(interrupt.reason, "tool_approval");
    const calls = first.newMessages.flatMap((message) => message.toolCalls ?? []);
    assert.equal(interrupt.toolCallId, calls[0].id);
    const resume = buildResumeArray([interrupt], { [interrupt.id]: { status: "resolved", payload } });
    const second = await run(asked, { resume });
    assert.deepEqual(asked.pendingInterrupts, []);
    const answered = second.newMessages.find((message) => message.role === "tool");
    assert.equal(answered.toolCallId, calls[0].id);
    assert.equal(answered.content.includes("not today"), isError, answered.content);
    assert.equal(second.result.outcome, "completed");
  });
}

test("a tool that runs at the client ends the run, which goes on with its result", async () => {
  const asked = agent(FREE, "What is the weather in Paris?");
  const tools = [
    {
      name: "get_weather",
      description: "Gets the current weather in a city.",
      parameters: {
        type: "object",
        properties: { city: { type: "string", description: "The city, such as Paris." } },
        required: ["city"],
      },
    },
  ];
  const first = await run(asked, { tools });
  assert.equal(first.types.at(-1), "RUN_FINISHED");
  assert.ok(!first.types.includes("TOOL_CALL_RESULT"));
  const [call] = first.newMessages.flatMap((message) => message.toolCalls ?? []);
  assert.equal(call.function.name, "get_weather");
  assert.deepEqual(JSON.parse(call.function.arguments), { city: "Paris" });
  asked.addMessage({ id: randomUUID(), role: "tool", toolCallId: call.id, content: "17 degrees and rain" });
  const second = await run(asked, { tools });
  assert.equal(second.result.outcome, "completed");
  assert.ok(second.result.answer.includes("17 degrees"), second.result.answer);
  assert.ok(!second.types.includes("TOOL_CALL_RESULT"), "the client has it already");
  // The thread goes on, with what the client gave as part of it.
  asked.addMessage({ id: randomUUID(), role: "user", content: QUESTION });
  const third = await run(asked, { tools });
  assert.ok(third.result.answer.includes(VALUE));
});

test("what is not supported is refused by its name", async () => {
  const asked = agent(FREE, QUESTION);
  asked.setState({ mine: 1 });
  const error = console.error;
  console.error = () => {};
  try {
    await assert.rejects(asked.runAgent(), /HTTP 400.*state/s);
  } finally {
    console.error = error;
  }
});
