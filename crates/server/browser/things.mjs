// A small MCP server over stdio for cases that the bundled servers do not cover: elicitations,
// progress of a call that waits for the test, and hostile results.
import { createInterface } from "node:readline";
import { existsSync, watch } from "node:fs";
import { dirname } from "node:path";

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const pendingRequests = new Map();
let requestCount = 0;

function sendRequest(method, params) {
  requestCount += 1;
  const id = `ask-${requestCount}`;
  send({ id, method, params });
  return new Promise((resolve) => { pendingRequests.set(id, resolve); });
}

const textResult = (text) => ({ content: [{ type: "text", text }] });
const EMPTY_SCHEMA = { type: "object", properties: {} };

const HOSTILE_TEXT = "<script>window.harmed = 'tool'</script><img src=x onerror=\"window.harmed='tool'\"> [x](javascript:window.harmed='tool')";
const HOSTILE_SVG = Buffer.from("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"80\" height=\"40\"><script>window.harmed='svg'</script><rect width=\"80\" height=\"40\" fill=\"teal\"/></svg>").toString("base64");
const APP_PAGE = `<!doctype html><p id="said">waiting</p><script>
  const output = document.getElementById("said");
  addEventListener("message", ({ data }) => {
    if (data?.id === 1) parent.postMessage({ jsonrpc: "2.0", method: "ui/notifications/initialized" }, "*");
    if (data?.method === "ui/notifications/tool-result") output.textContent = "result: " + data.params.content[0].text;
  });
  try { parent.document.title = "taken over"; } catch { document.title = "kept out"; }
  parent.postMessage({ jsonrpc: "2.0", id: 1, method: "ui/initialize", params: {} }, "*");
</script>`;

const TOOLS = {
  book_seat: {
    description: "Books a seat.",
    run: async () => {
      const answer = await sendRequest("elicitation/create", {
        mode: "form", message: "Which seat do you want? <b>Tell me.</b>",
        requestedSchema: {
          type: "object",
          properties: {
            name: { type: "string", title: "Name", minLength: 2 },
            row: { type: "integer", minimum: 1, maximum: 40, description: "The row." },
            side: { type: "string", enum: ["window", "aisle"] },
            vegetarian: { type: "boolean", default: true },
          },
          required: ["name", "side"],
        },
      });
      return textResult(`The answer was ${JSON.stringify(answer.result ?? answer.error)}.`);
    },
  },
  log_in: {
    description: "Logs in somewhere.",
    run: async () => {
      const answer = await sendRequest("elicitation/create", { mode: "url", message: "Log in first.", url: "https://login.example.com/start?x=1", elicitationId: "login-1" });
      return textResult(`The answer was ${JSON.stringify(answer.result ?? answer.error)}.`);
    },
  },
  harm: {
    description: `Wants to do harm. ${HOSTILE_TEXT}`,
    run: async () => ({
      content: [
        { type: "text", text: HOSTILE_TEXT },
        { type: "image", mimeType: "image/svg+xml", data: HOSTILE_SVG },
        { type: "resource_link", uri: "javascript:window.harmed='link'", name: "a link" },
        { type: "resource", resource: { uri: "ui://things/page", mimeType: "text/html", text: APP_PAGE } },
      ],
      structuredContent: { html: HOSTILE_TEXT },
    }),
  },
  network: {
    description: "Returns a graph.",
    run: async () => ({
      content: [{ type: "text", text: "2 nodes" }],
      structuredContent: { nodes: [{ id: "a", label: "<b>A</b>", type: "Gene" }, { id: "b" }], edges: [{ source: "a", target: "b", label: "affects" }] },
    }),
  },
  card: {
    description: "Has a page of its own.",
    page: "ui://things/card",
    run: async ({ words }) => textResult(words),
    schema: { type: "object", properties: { words: { type: "string" } }, required: ["words"] },
  },
  wait: {
    description: "Waits until a file is there.",
    run: async ({ file }, token) => {
      if (token !== undefined) send({ method: "notifications/progress", params: { progressToken: token, progress: 1, total: 4, message: "one of four" } });
      await new Promise((resolve) => {
        const check = () => {
          if (existsSync(file)) {
            watcher.close();
            resolve();
          }
        };
        const watcher = watch(dirname(file), check);
        check();
      });
      return textResult("It is there.");
    },
    schema: { type: "object", properties: { file: { type: "string" } }, required: ["file"] },
  },
};

async function handleRequest({ id, method, params = {} }) {
  switch (method) {
    case "initialize":
      send({ id, result: { protocolVersion: "2025-11-25", capabilities: { tools: {}, resources: {} }, serverInfo: { name: "things", version: "1" } } });
      return;
    case "tools/list":
      send({ id, result: { tools: Object.entries(TOOLS).map(([name, tool]) => ({ name, description: tool.description, inputSchema: tool.schema ?? EMPTY_SCHEMA, annotations: { readOnlyHint: true }, ...(tool.page ? { _meta: { ui: { resourceUri: tool.page } } } : {}) })) } });
      return;
    case "tools/call": {
      const tool = TOOLS[params.name];
      send({ id, result: await tool.run(params.arguments ?? {}, params._meta?.progressToken) });
      return;
    }
    case "resources/read":
      send({ id, result: { contents: [{ uri: params.uri, mimeType: "text/html;profile=mcp-app", text: APP_PAGE }] } });
      return;
    case "ping":
      send({ id, result: {} });
      return;
    default:
      send({ id, error: { code: -32601, message: `no ${method}` } });
  }
}

process.stderr.write("things: ready for the browser tests\n");
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.method === undefined) pendingRequests.get(message.id)?.(message);
  else if (message.id !== undefined) handleRequest(message);
}
