// The AI SDK's chat, as `useChat` of `@ai-sdk/react` has it, pointed at a Switchboard server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Chat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  generateId,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  readUIMessageStream,
} from "ai";

import { ASKING, CHANGE, FREE, QUESTION, VALUE, headers } from "./server.js";

const transport = (address) => new DefaultChatTransport({ api: `${address}/api/chat`, headers });

function chat(address, options = {}) {
  const errors = [];
  const made = new Chat({
    id: generateId(),
    transport: transport(address),
    onError: (error) => errors.push(error),
    ...options,
  });
  return Object.assign(made, { errors });
}

const text = (message) =>
  message.parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n");
const tools = (message) => message.parts.filter(isToolUIPart);

test("a question that needs a tool is answered", async () => {
  const talk = chat(FREE);
  await talk.sendMessage({ text: QUESTION });
  assert.deepEqual(talk.errors, []);
  assert.equal(talk.status, "ready");
  const [question, answer] = talk.messages;
  assert.equal(question.role, "user");
  assert.ok(text(answer).includes(VALUE), text(answer));
  const [call] = tools(answer);
  assert.equal(call.type, "dynamic-tool");
  assert.equal(call.state, "output-available");
  assert.equal(call.toolMetadata.server, "customer-service");
  assert.ok(Array.isArray(call.output.content));
  assert.equal(answer.metadata.outcome, "completed");
  assert.equal(answer.metadata.sessionId, talk.id);
});

test("the protocol's name and version are in the headers", async () => {
  const response = await fetch(`${FREE}/api/chat`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({
      id: generateId(),
      messages: [{ id: "1", role: "user", parts: [{ type: "text", text: QUESTION }] }],
      trigger: "submit-message",
    }),
  });
  assert.equal(response.headers.get("x-vercel-ai-ui-message-stream"), "v1");
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
  assert.ok((await response.text()).endsWith("data: [DONE]\n\n"));
});

test("the chat goes on, and an answer is given anew", async () => {
  const talk = chat(FREE);
  await talk.sendMessage({ text: QUESTION });
  await talk.sendMessage({ text: "What is the account value of customer 7?" });
  assert.deepEqual(talk.errors, []);
  assert.equal(talk.messages.length, 4);
  assert.notEqual(talk.messages[1].id, talk.messages[3].id);
  const before = talk.messages[3].id;
  await talk.regenerate();
  assert.deepEqual(talk.errors, []);
  assert.equal(talk.messages.length, 4);
  assert.notEqual(talk.messages[3].id, before);
  // The new answer has the place of the first one in the session too.
  const response = await fetch(`${FREE}/sessions/${talk.id}`, { headers });
  const { messages } = await response.json();
  assert.equal(messages.filter((message) => message.role === "user").length, 2);
  assert.equal(messages.filter((message) => message.role === "assistant").length, 4, "a call and an answer each");
  assert.equal(tools(talk.messages[3])[0].input.customer_id ?? Object.values(tools(talk.messages[3])[0].input)[0], 7);
});

test("the stream's own reader takes it", async () => {
  const stream = await transport(FREE).sendMessages({
    chatId: generateId(),
    messages: [{ id: "1", role: "user", parts: [{ type: "text", text: QUESTION }] }],
    trigger: "submit-message",
  });
  let last;
  let states = 0;
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) {
    last = message;
    states += 1;
  }
  assert.ok(states > 3);
  assert.ok(text(last).includes(VALUE));
});

/** Asks for what needs a word, says it, and waits for what comes of it. */
async function decided(talk, word) {
  await talk.sendMessage({ text: CHANGE });
  assert.deepEqual(talk.errors, []);
  const [call] = tools(talk.lastMessage);
  assert.equal(call.state, "approval-requested");
  const settled = new Promise((resolve) => {
    // Called once more when the answer to the word was read.
    talk.settled = resolve;
  });
  await talk.addToolApprovalResponse({ id: call.approval.id, ...word });
  await settled;
  assert.deepEqual(talk.errors, []);
  assert.equal(talk.messages.length, 2, "it is the same message that goes on");
  return talk.lastMessage;
}

function asking() {
  let finished = 0;
  const talk = chat(ASKING, {
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onFinish: () => {
      finished += 1;
      if (finished === 2) talk.settled();
    },
  });
  return talk;
}

test("a call runs once it is approved", async () => {
  const answer = await decided(asking(), { approved: true });
  const [call] = tools(answer);
  assert.equal(call.state, "output-available", JSON.stringify(call));
  assert.equal(call.approval.approved, true);
  assert.equal(answer.metadata.outcome, "completed");
  assert.notEqual(text(answer), "");
});

test("a call that is declined does not run", async () => {
  const answer = await decided(asking(), { approved: false, reason: "not today" });
  assert.equal(tools(answer)[0].state, "output-denied");
});

test("somebody who comes back sees the run that waits, and can go on with it", async () => {
  const first = asking();
  await first.sendMessage({ text: CHANGE });
  const second = chat(ASKING, { id: first.id, messages: [first.messages[0]] });
  await second.resumeStream();
  assert.deepEqual(second.errors, []);
  const [call] = tools(second.lastMessage);
  assert.equal(call.state, "approval-requested");
  await second.addToolApprovalResponse({ id: call.approval.id, approved: true });
  await second.sendMessage();
  assert.deepEqual(second.errors, []);
  assert.equal(tools(second.lastMessage)[0].state, "output-available");
});

test("nothing is under way in a chat that nobody began", async () => {
  assert.equal(await transport(FREE).reconnectToStream({ chatId: generateId() }), null);
});

test("something new said to a run that waits ends it", async () => {
  const talk = chat(ASKING);
  await talk.sendMessage({ text: CHANGE });
  assert.equal(tools(talk.lastMessage)[0].state, "approval-requested");
  await talk.sendMessage({ text: QUESTION });
  assert.deepEqual(talk.errors, []);
  assert.ok(text(talk.lastMessage).includes(VALUE));
});

test("an error says what to do", async () => {
  const talk = chat(FREE, {
    transport: new DefaultChatTransport({
      api: `${FREE}/api/chat`,
      headers,
      body: { model: "nobody/knows-it" },
    }),
  });
  await talk.sendMessage({ text: QUESTION });
  assert.equal(talk.status, "error");
  const problem = JSON.parse(talk.errors[0].message);
  assert.equal(problem.status, 422);
});
