// Tests of the AI SDK's `Chat`, the class behind `useChat`, against a Switchboard server.

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

import { ACCOUNT_QUESTION, ACCOUNT_VALUE, APPROVAL_URL, AUTO_APPROVE_URL, TICKET_REQUEST, headers } from "./server.js";

const createTransport = (serverUrl) => new DefaultChatTransport({ api: `${serverUrl}/api/chat`, headers });

function createChat(serverUrl, options = {}) {
  const errors = [];
  const chat = new Chat({
    id: generateId(),
    transport: createTransport(serverUrl),
    onError: (error) => errors.push(error),
    ...options,
  });
  return Object.assign(chat, { errors });
}

const text = (message) =>
  message.parts
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n");
const toolParts = (message) => message.parts.filter(isToolUIPart);

test("a question is answered with a tool call", async () => {
  const chat = createChat(AUTO_APPROVE_URL);
  await chat.sendMessage({ text: ACCOUNT_QUESTION });
  assert.deepEqual(chat.errors, []);
  assert.equal(chat.status, "ready");
  const [question, answer] = chat.messages;
  assert.equal(question.role, "user");
  assert.ok(text(answer).includes(ACCOUNT_VALUE), text(answer));
  const [call] = toolParts(answer);
  assert.equal(call.type, "dynamic-tool");
  assert.equal(call.state, "output-available");
  assert.equal(call.toolMetadata.server, "customer-service");
  assert.ok(Array.isArray(call.output.content));
  assert.equal(answer.metadata.outcome, "completed");
  assert.equal(answer.metadata.sessionId, chat.id);
});

test("the response has the header of the stream protocol", async () => {
  const response = await fetch(`${AUTO_APPROVE_URL}/api/chat`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({
      id: generateId(),
      messages: [{ id: "1", role: "user", parts: [{ type: "text", text: ACCOUNT_QUESTION }] }],
      trigger: "submit-message",
    }),
  });
  assert.equal(response.headers.get("x-vercel-ai-ui-message-stream"), "v1");
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
  assert.ok((await response.text()).endsWith("data: [DONE]\n\n"));
});

test("a chat continues, and its last answer can be regenerated", async () => {
  const chat = createChat(AUTO_APPROVE_URL);
  await chat.sendMessage({ text: ACCOUNT_QUESTION });
  await chat.sendMessage({ text: "What is the account value of customer 7?" });
  assert.deepEqual(chat.errors, []);
  assert.equal(chat.messages.length, 4);
  assert.notEqual(chat.messages[1].id, chat.messages[3].id);
  const firstAnswerId = chat.messages[3].id;
  await chat.regenerate();
  assert.deepEqual(chat.errors, []);
  assert.equal(chat.messages.length, 4);
  assert.notEqual(chat.messages[3].id, firstAnswerId);
  // The new answer replaces the first one in the stored session too.
  const response = await fetch(`${AUTO_APPROVE_URL}/sessions/${chat.id}`, { headers });
  const { messages } = await response.json();
  assert.equal(messages.filter((message) => message.role === "user").length, 2);
  assert.equal(messages.filter((message) => message.role === "assistant").length, 4, "one call and one answer for each question");
  assert.equal(toolParts(chat.messages[3])[0].input.customer_id ?? Object.values(toolParts(chat.messages[3])[0].input)[0], 7);
});

test("readUIMessageStream reads the stream", async () => {
  const stream = await createTransport(AUTO_APPROVE_URL).sendMessages({
    chatId: generateId(),
    messages: [{ id: "1", role: "user", parts: [{ type: "text", text: ACCOUNT_QUESTION }] }],
    trigger: "submit-message",
  });
  let last;
  let states = 0;
  for await (const message of readUIMessageStream({ stream, terminateOnError: true })) {
    last = message;
    states += 1;
  }
  assert.ok(states > 3);
  assert.ok(text(last).includes(ACCOUNT_VALUE));
});

/** Requests a call that needs approval, sends the decision and waits for the resumed answer. */
async function decide(chat, decision) {
  await chat.sendMessage({ text: TICKET_REQUEST });
  assert.deepEqual(chat.errors, []);
  const [call] = toolParts(chat.lastMessage);
  assert.equal(call.state, "approval-requested");
  const resumed = new Promise((resolve) => {
    chat.onResumed = resolve;
  });
  await chat.addToolApprovalResponse({ id: call.approval.id, ...decision });
  await resumed;
  assert.deepEqual(chat.errors, []);
  assert.equal(chat.messages.length, 2, "the answer continues in the same message");
  return chat.lastMessage;
}

/** Returns a chat that sends approval decisions automatically. */
function approvalChat() {
  let finishCount = 0;
  const chat = createChat(APPROVAL_URL, {
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onFinish: () => {
      // The first answer ends at the approval request.
      finishCount += 1;
      if (finishCount === 2) chat.onResumed();
    },
  });
  return chat;
}

test("an approved call runs", async () => {
  const answer = await decide(approvalChat(), { approved: true });
  const [call] = toolParts(answer);
  assert.equal(call.state, "output-available", JSON.stringify(call));
  assert.equal(call.approval.approved, true);
  assert.equal(answer.metadata.outcome, "completed");
  assert.notEqual(text(answer), "");
});

test("a denied call does not run", async () => {
  const answer = await decide(approvalChat(), { approved: false, reason: "not today" });
  assert.equal(toolParts(answer)[0].state, "output-denied");
});

test("a second client can resume a run that waits for approval", async () => {
  const first = approvalChat();
  await first.sendMessage({ text: TICKET_REQUEST });
  const second = createChat(APPROVAL_URL, { id: first.id, messages: [first.messages[0]] });
  await second.resumeStream();
  assert.deepEqual(second.errors, []);
  const [call] = toolParts(second.lastMessage);
  assert.equal(call.state, "approval-requested");
  await second.addToolApprovalResponse({ id: call.approval.id, approved: true });
  await second.sendMessage();
  assert.deepEqual(second.errors, []);
  assert.equal(toolParts(second.lastMessage)[0].state, "output-available");
});

test("an unknown chat has no stream to reconnect to", async () => {
  assert.equal(await createTransport(AUTO_APPROVE_URL).reconnectToStream({ chatId: generateId() }), null);
});

test("a new message ends a run that waits for approval", async () => {
  const chat = createChat(APPROVAL_URL);
  await chat.sendMessage({ text: TICKET_REQUEST });
  assert.equal(toolParts(chat.lastMessage)[0].state, "approval-requested");
  await chat.sendMessage({ text: ACCOUNT_QUESTION });
  assert.deepEqual(chat.errors, []);
  assert.ok(text(chat.lastMessage).includes(ACCOUNT_VALUE));
});

test("an unknown provider is reported as a problem with status 422", async () => {
  const chat = createChat(AUTO_APPROVE_URL, {
    transport: new DefaultChatTransport({
      api: `${AUTO_APPROVE_URL}/api/chat`,
      headers,
      body: { model: "nobody/knows-it" },
    }),
  });
  await chat.sendMessage({ text: ACCOUNT_QUESTION });
  assert.equal(chat.status, "error");
  const problem = JSON.parse(chat.errors[0].message);
  assert.equal(problem.status, 422);
});
