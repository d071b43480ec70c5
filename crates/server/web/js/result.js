// Results of tool calls. All content is untrusted: text stays text, pages run in sandboxed frames,
// and nothing is loaded from other hosts.
import { html, useEffect, useState } from "./view.js";
import { Code } from "./text.js";
import { DataTable } from "./table.js";
import { catalogue } from "./catalogue.js";
import { formatValue } from "./format.js";

/** Maximum length in characters of text that is shown before the user expands it. */
const MAX_TEXT = 20_000;

export function Result({ result, item }) {
  const { content = [], structured, is_error } = result;
  // The app of a tool shows the result itself.
  const isGraph = Array.isArray(structured?.nodes) && Array.isArray(structured.edges) && !catalogue.appUriOf(item.server, item.tool);
  return html`<h3>${is_error ? "Error" : "Result"}</h3>
    ${content.map((part, index) => html`<${ContentPart} key=${index} part=${part} item=${item} />`)}
    ${content.length === 0 && structured === undefined && html`<p class="muted">No content.</p>`}
    ${isGraph && html`<${Graph} value=${structured} />`}
    ${structured !== undefined && html`<details class="inner"><summary>Structured data</summary><${StructuredContent} value=${structured} /></details>`}`;
}

/** Draws structured content that is a graph. The module is loaded with the first graph. */
function Graph({ value }) {
  const [GraphValue, setGraphValue] = useState(null);
  useEffect(() => {
    import("./graph.js").then((module) => setGraphValue(() => module.GraphValue));
  }, []);
  return GraphValue && html`<${GraphValue} value=${value} label="Graph of the result" />`;
}

function StructuredContent({ value }) {
  const rows = findRows(value);
  return rows ? html`<${DataTable} rows=${rows} label="Data of the result" />` : html`<${Code} text=${formatValue(value)} language="json" label="Data of the result" />`;
}

/** Returns `value`, or the only list in it, if it is a list of flat objects. Otherwise null. */
function findRows(value) {
  const list = Array.isArray(value) ? value : Object.values(value ?? {}).find((entry) => Array.isArray(entry) && entry.length > 0);
  const otherObjects = Array.isArray(value) ? 0 : Object.values(value ?? {}).filter((entry) => typeof entry === "object" && entry !== list).length;
  const isFlat = (row) => row && typeof row === "object" && !Array.isArray(row) && Object.values(row).every((field) => typeof field !== "object" || field === null);
  return list?.length && otherObjects === 0 && list.every(isFlat) ? list : null;
}

const IMAGE_TYPES = /^image\/(?:png|jpeg|gif|webp|avif|svg\+xml)$/;

function ContentPart({ part, item }) {
  switch (part.type) {
    case "text": return html`<${PlainText} text=${part.text} />`;
    case "image":
      if (part.source?.base64 && IMAGE_TYPES.test(part.media_type)) {
        return html`<img class="picture" alt="Image from the tool" src=${`data:${part.media_type};base64,${part.source.base64}`} />`;
      }
      return html`<${ExternalLink} name=${`image, ${part.media_type}`} uri=${part.source?.url} />`;
    case "audio":
      if (part.source?.base64) return html`<audio controls aria-label="Audio from the tool" src=${`data:${part.media_type};base64,${part.source.base64}`} />`;
      return html`<${ExternalLink} name=${`audio, ${part.media_type}`} uri=${part.source?.url} />`;
    case "resource": return html`<${Resource} part=${part} item=${item} />`;
    case "resource_link": return html`<${ExternalLink} name=${part.name} uri=${part.uri} description=${part.description} />`;
    default: return html`<${Code} text=${formatValue(part.value ?? part)} language="json" />`;
  }
}

function Resource({ part, item }) {
  const { uri, media_type = "", text, blob } = part;
  if (/^ui:\/\//i.test(uri) && text !== undefined) return html`<${UntrustedHtml} markup=${text} item=${item} />`;
  if (blob && IMAGE_TYPES.test(media_type)) return html`<img class="picture" alt=${`Image ${uri}`} src=${`data:${media_type};base64,${blob}`} />`;
  return html`<p class="muted">${uri}</p>${text !== undefined ? html`<${PlainText} text=${text} />` : html`<p class="muted">${media_type || "binary data"}</p>`}`;
}

/**
 * Untrusted HTML in a sandboxed frame. With `item`, the HTML is the app of that tool call. The
 * frame module is loaded on first use.
 */
export function UntrustedHtml({ markup, title, item }) {
  const [Frame, setFrame] = useState(null);
  useEffect(() => {
    import("./frame.js").then((module) => setFrame(() => (item ? module.AppFrame : module.UntrustedFrame)));
  }, []);
  return Frame ? html`<${Frame} markup=${markup} title=${title} item=${item} />` : html`<p class="muted">Loading…</p>`;
}

/** A reference to external content, as a link for web URLs. */
function ExternalLink({ name, uri, description }) {
  const isWebUrl = /^https?:\/\//i.test(uri ?? "");
  return html`<p>${isWebUrl ? html`<a href=${uri} target="_blank" rel="noopener noreferrer nofollow">${name}</a>` : html`${name} <span class="muted">${uri}</span>`}
    ${description && html`<span class="muted"> ${description}</span>`}</p>`;
}

function PlainText({ text }) {
  const [expanded, setExpanded] = useState(false);
  const json = formatJson(text);
  const content = json ?? text;
  const truncated = !expanded && content.length > MAX_TEXT;
  return html`<${Code} text=${truncated ? content.slice(0, MAX_TEXT) : content} language=${json ? "json" : ""} label="Text of the result" />
    ${truncated && html`<button type="button" class="quiet small" onClick=${() => setExpanded(true)}>Show all ${content.length.toLocaleString()} characters</button>`}`;
}

/** Returns indented JSON, or null if the text is not JSON or is too long. */
function formatJson(text) {
  if (text.length > MAX_TEXT || !/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}
