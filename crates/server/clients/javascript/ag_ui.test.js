// Tests of the official AG-UI client against a Switchboard server.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { HttpAgent, buildResumeArray } from "@ag-ui/client";

import { ACCOUNT_QUESTION, ACCOUNT_VALUE, APPROVAL_URL, AUTO_APPROVE_URL, TICKET_REQUEST, headers } from "./server.js";

function createAgent(serverUrl, question) {
  const agent = new HttpAgent({ url: `${serverUrl}/ag-ui`, headers, threadId: randomUUID() });
  agent.addMessage({ id: randomUUID(), role: "user", content: question });
  return agent;
}

/** Runs an agent. Returns the outcome and the types of all events. */
async function run(agent, parameters) {
  const types = [];
  const warnings = [];
  const warn = console.warn;
  console.warn = (...parts) => warnings.push(parts.join(" "));
  try {
    const outcome = await agent.runAgent(parameters, {
      onEvent: ({ event }) => void types.push(event.type),
    });
    // The client warns about fields that it drops because the protocol does not define them.
    assert.deepEqual(warnings, []);
    return { ...outcome, types };
  } finally {
    console.warn = warn;
  }
}

test("a question is answered with a tool call", async () => {
  const agent = createAgent(AUTO_APPROVE_URL, ACCOUNT_QUESTION);
  const { result, newMessages, types } = await run(agent);
  assert.equal(types[0], "RUN_STARTED");
  assert.equal(types.at(-1), "RUN_FINISHED");
  for (const type of ["STEP_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]) {
    assert.ok(types.includes(type), type);
  }
  const callMessage = newMessages.find((message) => message.toolCalls);
  const resultMessage = newMessages.find((message) => message.role === "tool");
  assert.equal(resultMessage.toolCallId, callMessage.toolCalls[0].id);
  const last = newMessages.at(-1);
  assert.equal(last.role, "assistant");
  assert.ok(last.content.includes(ACCOUNT_VALUE), last.content);
  assert.equal(result.answer, last.content);
});

test("a thread continues with a second question", async () => {
  const agent = createAgent(AUTO_APPROVE_URL, ACCOUNT_QUESTION);
  await run(agent);
  agent.addMessage({ id: randomUUID(), role: "user", content: "What is the account value of customer 7?" });
  const { newMessages } = await run(agent);
  const call = newMessages.find((message) => message.toolCalls).toolCalls[0];
  assert.ok(Object.values(JSON.parse(call.function.arguments)).includes(7));
});

for (const [name, payload, isError] of [
  ["an approved call runs", { approved: true }, false],
  ["a denied call does not run", { approved: false, reason: "not today" }, true],
]) {
  test(name, async () => {
    const agent = createAgent(APPROVAL_URL, TICKET_REQUEST);
    const first = await run(agent);
    assert.equal(first.types.at(-1), "RUN_FINISHED");
    const [interrupt] = agent.pendingInterrupts;
    assert.equal(interrupt.reason, "tool_approval");
    const calls = first.newMessages.flatMap((message) => message.toolCalls ?? []);
    assert.equal(interrupt.toolCallId, calls[0].id);
    const resume = buildResumeArray([interrupt], { [interrupt.id]: { status: "resolved", payload } });
    const second = await run(agent, { resume });
    assert.deepEqual(agent.pendingInterrupts, []);
    const resultMessage = second.newMessages.find((message) => message.role === "tool");
    assert.equal(resultMessage.toolCallId, calls[0].id);
    assert.equal(resultMessage.content.includes("not today"), isError, resultMessage.content);
    assert.equal(second.result.outcome, "completed");
  });
}

test("a client tool call ends the run, and a run with its result completes the answer", async () => {
  const agent = createAgent(AUTO_APPROVE_URL, "What is the weather in Paris?");
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
  const first = await run(agent, { tools });
  assert.equal(first.types.at(-1), "RUN_FINISHED");
  assert.ok(!first.types.includes("TOOL_CALL_RESULT"));
  const [call] = first.newMessages.flatMap((message) => message.toolCalls ?? []);
  assert.equal(call.function.name, "get_weather");
  assert.deepEqual(JSON.parse(call.function.arguments), { city: "Paris" });
  agent.addMessage({ id: randomUUID(), role: "tool", toolCallId: call.id, content: "17 degrees and rain" });
  const second = await run(agent, { tools });
  assert.equal(second.result.outcome, "completed");
  assert.ok(second.result.answer.includes("17 degrees"), second.result.answer);
  assert.ok(!second.types.includes("TOOL_CALL_RESULT"), "the client already has the result");
  // The thread continues with the client's result in its history.
  agent.addMessage({ id: randomUUID(), role: "user", content: ACCOUNT_QUESTION });
  const third = await run(agent, { tools });
  assert.ok(third.result.answer.includes(ACCOUNT_VALUE));
});

test("an unsupported field is rejected by name", async () => {
  const agent = createAgent(AUTO_APPROVE_URL, ACCOUNT_QUESTION);
  agent.setState({ mine: 1 });
  const error = console.error;
  console.error = () => {};
  try {
    await assert.rejects(agent.runAgent(), /HTTP 400.*state/s);
  } finally {
    console.error = error;
  }
});
