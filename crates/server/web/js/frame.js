// Untrusted pages from models and MCP servers, and the messages that they exchange with this page.
// Each page runs in a sandboxed frame with an opaque origin.
import { html, useEffect, useModel, useRef, useState } from "./view.js";
import { api, urlOf } from "./api.js";
import { theme } from "./colours.js";

/** Limits of the frame height, in pixels. */
const MIN_HEIGHT = 120;
const MAX_HEIGHT = 640;

/**
 * Script that is appended to the page and reports its height. This page cannot measure a
 * cross-origin frame.
 */
const SIZE_REPORTER = `<script>(() => {
  const report = () => parent.postMessage({ switchboard: "size", height: document.documentElement.scrollHeight }, "*");
  new ResizeObserver(report).observe(document.documentElement); addEventListener("load", report); report();
})()</script>`;

/**
 * Untrusted HTML in a sandboxed frame. `onMessage(message, send)` receives all messages of the page
 * except its size. `send` posts a message to the page.
 */
export function UntrustedFrame({ markup, title, onMessage }) {
  const frame = useRef(null);
  const [height, setHeight] = useState(MIN_HEIGHT);
  useEffect(() => {
    let markupSent = false;
    const send = (message) => frame.current?.contentWindow?.postMessage(message, "*");
    const handleMessage = (event) => {
      if (!frame.current || event.source !== frame.current.contentWindow) return;
      const { data } = event;
      if (data?.switchboard === "ready" && !markupSent) {
        markupSent = true;
        send({ markup: markup + SIZE_REPORTER });
      } else if (data?.switchboard === "size") resize(data.height);
      else if (data?.method === "ui/notifications/size-changed") resize(data.params?.height);
      else onMessage?.(data, send);
    };
    const resize = (newHeight) => {
      if (Number.isFinite(newHeight)) setHeight(Math.min(MAX_HEIGHT, Math.max(MIN_HEIGHT, Math.ceil(newHeight))));
    };
    window.addEventListener("message", handleMessage);
    return () => window.removeEventListener("message", handleMessage);
  }, [markup]);
  // Set the address after the listener is registered, because the frame posts `ready` on load.
  useEffect(() => {
    frame.current.src = urlOf("/assets/frames/foreign.html");
  }, [markup]);
  return html`<iframe class="untrusted-frame" ref=${frame} title=${title} sandbox="allow-scripts" referrerpolicy="no-referrer" loading="eager" height=${height} />`;
}

/** Protocol version of MCP Apps. */
const PROTOCOL_VERSION = "2026-01-26";

/**
 * Loads and shows the app of a tool (MCP Apps). The app receives the tool's input and result and
 * can request to open a link.
 */
export function AppLoader({ item, uri }) {
  const [page, setPage] = useState(null);
  const [error, setError] = useState(null);
  useModel(theme);
  useEffect(() => {
    let stale = false;
    api.appPage(item.server, uri).then((response) => { if (!stale) setPage(response); }, (failure) => { if (!stale) setError(failure.message); });
    return () => { stale = true; };
  }, [item.server, uri]);
  if (error) return html`<p class="muted">Couldn't load the tool's app: ${error}</p>`;
  if (!page) return html`<p class="muted">Loading the tool's app…</p>`;
  return html`<${AppFrame} item=${item} markup=${page.html} />`;
}

/** An app of a tool, from its HTML. */
export function AppFrame({ item, markup }) {
  return html`<figure class="tool-app"><figcaption class="muted">App from ${item.server ?? "the tool"}</figcaption>
    <${UntrustedFrame} markup=${markup} title=${`App of ${item.tool || item.name}`} onMessage=${(message, send) => handleAppMessage(message, send, item)} /></figure>`;
}

/** Handles one JSON-RPC message of an app. */
function handleAppMessage(message, send, item) {
  if (message?.jsonrpc !== "2.0") return;
  const { id, method, params } = message;
  const respond = (value) => send({ jsonrpc: "2.0", id, result: value });
  switch (method) {
    case "ui/initialize":
      respond({
        protocolVersion: PROTOCOL_VERSION,
        hostInfo: { name: "switchboard", version: "1" },
        hostCapabilities: { openLinks: {} },
        hostContext: { theme: theme.dark ? "dark" : "light", displayMode: "inline", availableDisplayModes: ["inline"], locale: navigator.language },
      });
      return;
    case "ui/notifications/initialized":
      send({ jsonrpc: "2.0", method: "ui/notifications/tool-input", params: { arguments: typeof item.input === "object" ? item.input : {} } });
      send({ jsonrpc: "2.0", method: "ui/notifications/tool-result", params: toMcpResult(item.result) });
      return;
    case "ping":
      respond({});
      return;
    case "ui/open-link":
      if (openLink(params?.url, item)) respond({});
      else send({ jsonrpc: "2.0", id, error: { code: -32000, message: "The user declined to open the link." } });
      return;
    default:
      if (id !== undefined && method) send({ jsonrpc: "2.0", id, error: { code: -32601, message: `Method not found: ${method}` } });
  }
}

/** Calls whose app had a link declined. Their further links are declined without a prompt. */
const declined = new WeakSet();

/** Opens a link of an app if the user confirms. Returns whether the link was opened. */
function openLink(url, item) {
  if (typeof url !== "string" || !/^https?:\/\//i.test(url) || !URL.canParse(url) || declined.has(item)) return false;
  if (!window.confirm(`The tool's app wants to open ${new URL(url).host}:\n\n${url}`)) {
    declined.add(item);
    return false;
  }
  window.open(url, "_blank", "noopener,noreferrer");
  return true;
}

/** Converts a tool result to the format of MCP. */
function toMcpResult({ content = [], structured, is_error }) {
  const mcpContent = content.map((part) => {
    const { type, media_type, source, uri, text, blob, name, description } = part;
    if (type === "image" || type === "audio") return { type, mimeType: media_type, data: source?.base64 ?? "" };
    if (type === "resource") return { type, resource: { uri, mimeType: media_type, ...(blob === undefined ? { text } : { blob }) } };
    if (type === "resource_link") return { type, uri, name, mimeType: media_type, description };
    return type === "text" ? { type, text } : part.value;
  });
  return { content: mcpContent, ...(structured === undefined ? {} : { structuredContent: structured }), isError: Boolean(is_error) };
}
