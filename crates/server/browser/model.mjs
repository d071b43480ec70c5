// A model server on loopback in the words of Chat Completions. It says what the test wants, and waits where the test wants.
import http from "node:http";

/** Something that is waited for until it is opened. */
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
 * An answer is a list of steps: a string is said in small pieces, `{call: {id, name, input, gate}}` calls a tool and
 * waits in the middle of its input where there is a gate, a `Gate` alone is waited for, and
 * `{form: [items]}` is the answer in the form of texts and artifacts, however the program asks for that. A function makes a step of the
 * request.
 */
export class Model {
  answers = [];
  requests = [];

  async start() {
    this.server = http.createServer((request, response) => {
      this.#take(request, response).catch((error) => {
        response.destroy();
        // The client went away, which some tests want.
        if (error?.code !== "ECONNRESET" && error?.code !== "ERR_STREAM_DESTROYED") console.error("model:", error);
      });
    });
    await new Promise((resolve) => { this.server.listen(0, "127.0.0.1", resolve); });
    return this;
  }

  get baseUrl() {
    return `http://127.0.0.1:${this.server.address().port}/v1`;
  }

  say(...answers) {
    this.answers.push(...answers);
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async #take(request, response) {
    let text = "";
    for await (const piece of request) text += piece;
    if (!request.url.endsWith("/chat/completions")) {
      response.writeHead(404).end();
      return;
    }
    const body = JSON.parse(text);
    this.requests.push(body);
    const answer = this.answers.shift() ?? ["I have nothing more to say."];
    if (!body.stream) throw new Error("the page's runs are streamed");
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (chunk) => response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "scripted", ...chunk })}\n\n`);
    const delta = (said, finish_reason = null) => send({ choices: [{ index: 0, delta: said, finish_reason }] });
    delta({ role: "assistant", content: "" });
    let calls = 0;
    const call = async ({ id, name, input, gate }) => {
      const written = JSON.stringify(input);
      const middle = Math.ceil(written.length / 2);
      const index = calls;
      calls += 1;
      delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: written.slice(0, middle) } }] });
      await gate?.wait();
      delta({ tool_calls: [{ index, function: { arguments: written.slice(middle) } }] });
    };
    for (const said of answer) {
      const step = typeof said === "function" ? said(body) : said;
      if (step instanceof Gate) await step.wait();
      else if (typeof step === "string") for (const piece of step.match(/[\s\S]{1,9}/g) ?? []) delta({ content: piece });
      else if (step.call) await call(step.call);
      else if (step.form) {
        const value = { conversation: step.form };
        const tool = body.tools?.find((it) => it.function.name === "response_formatter");
        if (tool) await call({ id: "call_form", name: "response_formatter", input: value });
        else delta({ content: JSON.stringify(value) });
      }
    }
    delta({}, calls ? "tool_calls" : "stop");
    send({ choices: [], usage: { prompt_tokens: 1200, completion_tokens: 340, total_tokens: 1540 } });
    response.end("data: [DONE]\n\n");
  }
}
