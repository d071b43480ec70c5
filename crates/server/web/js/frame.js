// Pages by models and servers, each in a sandboxed frame with an origin of its own, and what they may say to this page.
import { html, useEffect, useModel, useRef, useState } from "./view.js";
import { api, at } from "./api.js";
import { theme } from "./colours.js";

const LEAST = 120;
const MOST = 640;

/** Tells how high the page is; added to what is shown, since a frame of another origin cannot be measured. */
const MEASURE = `<script>(() => {
  const tell = () => parent.postMessage({ switchboard: "size", height: document.documentElement.scrollHeight }, "*");
  new ResizeObserver(tell).observe(document.documentElement); addEventListener("load", tell); tell();
})()</script>`;

/**
 * Markup by somebody else. `bridge(message, say)` takes what the page says beyond its size; it may answer with `say`.
 */
export function ForeignFrame({ markup, title, bridge }) {
  const frame = useRef(null);
  const [height, setHeight] = useState(LEAST);
  useEffect(() => {
    let given = false;
    const say = (message) => frame.current?.contentWindow?.postMessage(message, "*");
    const take = (event) => {
      if (!frame.current || event.source !== frame.current.contentWindow) return;
      const { data } = event;
      if (data?.switchboard === "ready" && !given) {
        given = true;
        say({ markup: markup + MEASURE });
      } else if (data?.switchboard === "size") size(data.height);
      else if (data?.method === "ui/notifications/size-changed") size(data.params?.height);
      else bridge?.(data, say);
    };
    const size = (wanted) => {
      if (Number.isFinite(wanted)) setHeight(Math.min(MOST, Math.max(LEAST, Math.ceil(wanted))));
    };
    window.addEventListener("message", take);
    return () => window.removeEventListener("message", take);
  }, [markup]);
  // The address last: the frame speaks first, and somebody must listen by then.
  useEffect(() => {
    frame.current.src = at("/assets/frames/foreign.html");
  }, [markup]);
  return html`<iframe class="foreign" ref=${frame} title=${title} sandbox="allow-scripts" referrerpolicy="no-referrer" loading="eager" height=${height} />`;
}

const VERSION = "2026-01-26";

/** The page of a tool (MCP Apps): it is told the tool's input and result, and may ask for a link to be opened. */
export function AppOfTool({ item, uri }) {
  const [page, setPage] = useState(null);
  const [error, setError] = useState(null);
  useModel(theme);
  useEffect(() => {
    let gone = false;
    api.appPage(item.server, uri).then((found) => { if (!gone) setPage(found); }, (problem) => { if (!gone) setError(problem.message); });
    return () => { gone = true; };
  }, [item.server, uri]);
  if (error) return html`<p class="muted">The tool's page cannot be shown: ${error}</p>`;
  if (!page) return html`<p class="muted">Loading the tool's page…</p>`;
  return html`<${AppPage} item=${item} markup=${page.html} />`;
}

/** A page of MCP Apps, however it came here. */
export function AppPage({ item, markup }) {
  return html`<figure class="tool-page"><figcaption class="muted">Page of ${item.server ?? "the tool"}</figcaption>
    <${ForeignFrame} markup=${markup} title=${`Page of ${item.tool || item.name}`} bridge=${(message, say) => answer(message, say, item)} /></figure>`;
}

function answer(message, say, item) {
  if (message?.jsonrpc !== "2.0") return;
  const { id, method, params } = message;
  const result = (value) => say({ jsonrpc: "2.0", id, result: value });
  switch (method) {
    case "ui/initialize":
      result({
        protocolVersion: VERSION,
        hostInfo: { name: "switchboard", version: "1" },
        hostCapabilities: { openLinks: {} },
        hostContext: { theme: theme.dark ? "dark" : "light", displayMode: "inline", availableDisplayModes: ["inline"], locale: navigator.language },
      });
      return;
    case "ui/notifications/initialized":
      say({ jsonrpc: "2.0", method: "ui/notifications/tool-input", params: { arguments: typeof item.input === "object" ? item.input : {} } });
      say({ jsonrpc: "2.0", method: "ui/notifications/tool-result", params: asMcp(item.result) });
      return;
    case "ping":
      result({});
      return;
    case "ui/open-link":
      if (openLink(params?.url, item)) result({});
      else say({ jsonrpc: "2.0", id, error: { code: -32000, message: "The person did not want that." } });
      return;
    default:
      if (id !== undefined && method) say({ jsonrpc: "2.0", id, error: { code: -32601, message: `This host has no ${method}.` } });
  }
}

/** Calls whose page was told no; it is not to ask again. */
const refused = new WeakSet();

function openLink(address, item) {
  if (typeof address !== "string" || !/^https?:\/\//i.test(address) || !URL.canParse(address) || refused.has(item)) return false;
  if (!window.confirm(`The tool's page wants to open ${new URL(address).host}:\n\n${address}`)) {
    refused.add(item);
    return false;
  }
  window.open(address, "_blank", "noopener,noreferrer");
  return true;
}

/** A result in the words of MCP. */
function asMcp({ content = [], structured, is_error }) {
  const parts = content.map((part) => {
    const { type, media_type, source, uri, text, blob, name, description } = part;
    if (type === "image" || type === "audio") return { type, mimeType: media_type, data: source?.base64 ?? "" };
    if (type === "resource") return { type, resource: { uri, mimeType: media_type, ...(blob === undefined ? { text } : { blob }) } };
    if (type === "resource_link") return { type, uri, name, mimeType: media_type, description };
    return type === "text" ? { type, text } : part.value;
  });
  return { content: parts, ...(structured === undefined ? {} : { structuredContent: structured }), isError: Boolean(is_error) };
}
