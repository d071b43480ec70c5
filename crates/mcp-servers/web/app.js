
// The graph in a host of MCP Apps (extension io.modelcontextprotocol/ui, 2026-01-26). The host and
// this page exchange JSON-RPC messages. This text follows graph-view.js in the same module.

/** Maximum number of neighbours of a node that one call loads. */
const MAX_LOADED_NEIGHBOURS = 100;
/** Maximum length of error messages, in characters. */
const MAX_ERROR_LENGTH = 300;

const container = document.getElementById("graph");
const pendingRequests = new Map();
let lastId = 0;
let hostCapabilities = {};
/** Arguments of the displayed call. */
let input = {};

const send = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");

function request(method, params) {
  lastId += 1;
  const id = lastId;
  send({ id, method, params });
  return new Promise((resolve, reject) => { pendingRequests.set(id, { resolve, reject }); });
}

const notificationHandlers = {
  "ui/notifications/tool-input": (params) => { input = params.arguments ?? {}; },
  "ui/notifications/tool-result": showResult,
  "ui/notifications/tool-cancelled": () => showText("The call was cancelled."),
  "ui/notifications/host-context-changed": applyHostContext,
};

addEventListener("message", ({ source, data }) => {
  if (source !== parent || data?.jsonrpc !== "2.0") return;
  const { id, method, params = {}, result, error } = data;
  if (method === undefined) {
    const pending = pendingRequests.get(id);
    pendingRequests.delete(id);
    if (error) pending?.reject(new Error(String(error.message).slice(0, MAX_ERROR_LENGTH)));
    else pending?.resolve(result);
  } else if (id === undefined) notificationHandlers[method]?.(params);
  else if (method === "ping" || method === "ui/resource-teardown") send({ id, result: {} });
  else send({ id, error: { code: -32601, message: `Method not found: ${method}` } });
});

/** Applies the theme and the colours of the host. A notification contains only what has changed. */
function applyHostContext({ theme, styles }) {
  const { style } = document.documentElement;
  if (theme === "light" || theme === "dark") style.colorScheme = theme;
  for (const [name, value] of Object.entries(styles?.variables ?? {})) style.setProperty(name, value ?? "");
}

function showText(text) {
  const paragraph = document.createElement("p");
  paragraph.className = "text";
  paragraph.textContent = text;
  container.replaceChildren(paragraph);
}

function showResult({ content = [], structuredContent }) {
  const graph = parseGraph(structuredContent);
  if (graph) new GraphView(container, graph, { label: "Knowledge graph", loadNeighbours: hostCapabilities.serverTools ? loadNeighbours : null });
  else showText(content.map(({ text = "" }) => text).join("\n"));
}

/** Returns the neighbours of a node and the edges to them. */
async function loadNeighbours(id) {
  // The context selects the graph of the conversation. Hosts without conversations omit it.
  const { databaseContext } = input;
  const { content, isError, structuredContent } = await request("tools/call", {
    name: "find_connections", arguments: { from: id, limit: MAX_LOADED_NEIGHBOURS, ...(databaseContext ? { databaseContext } : {}) },
  });
  if (isError) throw new Error(String(content?.[0]?.text).slice(0, MAX_ERROR_LENGTH));
  const { neighbours } = structuredContent;
  return { nodes: neighbours, edges: neighbours.flatMap(({ edges = [] }) => edges) };
}

const { hostContext = {}, ...host } = await request("ui/initialize", {
  protocolVersion: "2026-01-26", appInfo: { name: "switchboard-graph", version: "1" }, appCapabilities: { availableDisplayModes: ["inline"] },
});
hostCapabilities = host.hostCapabilities ?? {};
applyHostContext(hostContext);
send({ method: "ui/notifications/initialized" });
new ResizeObserver(() => {
  const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
  send({ method: "ui/notifications/size-changed", params: { width: innerWidth, height } });
}).observe(document.documentElement);
