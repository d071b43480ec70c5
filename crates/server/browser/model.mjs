// A scripted model server on loopback for the Chat Completions protocol. Tests queue its answers
// and can pause it in the middle of one.
import http from "node:http";

/** Blocks `wait` until `open` is called. `reached` resolves at the first call of `wait`. */
export class Gate {
  constructor() {
    this.reached = new Promise((resolve) => { this.arrive = resolve; });
    this.opened = new Promise((resolve) => { this.open = resolve; });
  }

  wait() {
    this.arrive();
    return this.opened;
  }
}

/**
 * Answers each request with the next queued answer. An answer is a list of steps:
 *
 * - A string is streamed in small pieces.
 * - `{call: {id, name, input, gate}}` calls a tool. The optional gate pauses in the middle of its
 *   input.
 * - A `Gate` pauses until it is opened.
 * - `{form: [items]}` answers with texts and artifacts, as a call of `response_formatter` if the
 *   request offers this tool, else as JSON text.
 * - A function receives the request and returns a step.
 *
 * A number instead of a list is the HTTP status of a failed answer.
 */
export class ScriptedModel {
  answers = [];
  requests = [];

  async start() {
    this.server = http.createServer((request, response) => {
      this.#handle(request, response).catch((error) => {
        response.destroy();
        // Some tests make the client disconnect.
        if (error?.code !== "ECONNRESET" && error?.code !== "ERR_STREAM_DESTROYED") console.error("model:", error);
      });
    });
    await new Promise((resolve) => { this.server.listen(0, "127.0.0.1", resolve); });
    return this;
  }

  get baseUrl() {
    return `http://127.0.0.1:${this.server.address().port}/v1`;
  }

  enqueue(...answers) {
    this.answers.push(...answers);
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async #handle(request, response) {
    let text = "";
    for await (const chunk of request) text += chunk;
    if (!request.url.endsWith("/chat/completions")) {
      response.writeHead(404).end();
      return;
    }
    const body = JSON.parse(text);
    this.requests.push(body);
    const answer = this.answers.shift() ?? ["I have nothing more to say."];
    if (!body.stream) throw new Error("the page's runs are streamed");
    if (typeof answer === "number") {
      response.writeHead(answer, { "content-type": "application/json" }).end(JSON.stringify({ error: { message: "the key was revoked" } }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (chunk) => response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "scripted", ...chunk })}\n\n`);
    const sendDelta = (delta, finish_reason = null) => send({ choices: [{ index: 0, delta, finish_reason }] });
    sendDelta({ role: "assistant", content: "" });
    let callCount = 0;
    const sendCall = async ({ id, name, input, gate }) => {
      const json = JSON.stringify(input);
      const middle = Math.ceil(json.length / 2);
      const index = callCount;
      callCount += 1;
      sendDelta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: json.slice(0, middle) } }] });
      await gate?.wait();
      sendDelta({ tool_calls: [{ index, function: { arguments: json.slice(middle) } }] });
    };
    for (const item of answer) {
      const step = typeof item === "function" ? item(body) : item;
      if (step instanceof Gate) await step.wait();
      else if (typeof step === "string") for (const piece of step.match(/[\s\S]{1,9}/g) ?? []) sendDelta({ content: piece });
      else if (step.call) await sendCall(step.call);
      else if (step.form) {
        const value = { conversation: step.form };
        const tool = body.tools?.find((it) => it.function.name === "response_formatter");
        if (tool) await sendCall({ id: "call_form", name: "response_formatter", input: value });
        else sendDelta({ content: JSON.stringify(value) });
      }
    }
    sendDelta({}, callCount ? "tool_calls" : "stop");
    send({ choices: [], usage: { prompt_tokens: 1200, completion_tokens: 340, total_tokens: 1540 } });
    response.end("data: [DONE]\n\n");
  }
}
