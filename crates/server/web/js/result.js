// What a tool gave. None of it is trusted: text stays text, pages go into frames, nothing is loaded from elsewhere.
import { html, useEffect, useState } from "./view.js";
import { Code } from "./text.js";
import { DataTable } from "./table.js";
import { pretty } from "./words.js";

/** More text than this is shown in part, until somebody wants it all. */
const MOST_TEXT = 20_000;

export function Result({ result, item }) {
  const { content = [], structured, is_error } = result;
  return html`<h3>${is_error ? "Error" : "Result"}</h3>
    ${content.map((part, at) => html`<${Part} key=${at} part=${part} item=${item} />`)}
    ${content.length === 0 && structured === undefined && html`<p class="muted">Nothing.</p>`}
    ${structured !== undefined && html`<details class="inner"><summary>Data</summary><${Data} value=${structured} /></details>`}`;
}

function Data({ value }) {
  const rows = rowsOf(value);
  return rows ? html`<${DataTable} rows=${rows} label="Data of the result" />` : html`<${Code} text=${pretty(value)} language="json" label="Data of the result" />`;
}

/** A list of plain objects, also as the one list in an object. */
function rowsOf(value) {
  const list = Array.isArray(value) ? value : Object.values(value ?? {}).find((it) => Array.isArray(it) && it.length > 0);
  const others = Array.isArray(value) ? 0 : Object.values(value ?? {}).filter((it) => typeof it === "object" && it !== list).length;
  const flat = (row) => row && typeof row === "object" && !Array.isArray(row) && Object.values(row).every((it) => typeof it !== "object" || it === null);
  return list?.length && others === 0 && list.every(flat) ? list : null;
}

const PICTURES = /^image\/(?:png|jpeg|gif|webp|avif|svg\+xml)$/;

function Part({ part, item }) {
  switch (part.type) {
    case "text": return html`<${PlainText} text=${part.text} />`;
    case "image":
      if (part.source?.base64 && PICTURES.test(part.media_type)) {
        return html`<img class="picture" alt="Image that the tool gave" src=${`data:${part.media_type};base64,${part.source.base64}`} />`;
      }
      return html`<${Elsewhere} name=${`image, ${part.media_type}`} uri=${part.source?.url} />`;
    case "audio":
      if (part.source?.base64) return html`<audio controls aria-label="Audio that the tool gave" src=${`data:${part.media_type};base64,${part.source.base64}`} />`;
      return html`<${Elsewhere} name=${`audio, ${part.media_type}`} uri=${part.source?.url} />`;
    case "resource": return html`<${Resource} part=${part} item=${item} />`;
    case "resource_link": return html`<${Elsewhere} name=${part.name} uri=${part.uri} description=${part.description} />`;
    default: return html`<${Code} text=${pretty(part.value ?? part)} language="json" />`;
  }
}

function Resource({ part, item }) {
  const { uri, media_type = "", text, blob } = part;
  if (/^ui:\/\//i.test(uri) && text !== undefined) return html`<${Foreign} markup=${text} item=${item} />`;
  if (blob && PICTURES.test(media_type)) return html`<img class="picture" alt=${`Image ${uri}`} src=${`data:${media_type};base64,${blob}`} />`;
  return html`<p class="muted">${uri}</p>${text !== undefined ? html`<${PlainText} text=${text} />` : html`<p class="muted">${media_type || "bytes"}</p>`}`;
}

/** Markup by somebody else; with `item`, the page of that tool's call. Frames are loaded when there is something to put into one. */
export function Foreign({ markup, title, item }) {
  const [Frame, setFrame] = useState(null);
  useEffect(() => {
    import("./frame.js").then((module) => setFrame(() => (item ? module.AppPage : module.ForeignFrame)));
  }, []);
  return Frame ? html`<${Frame} markup=${markup} title=${title} item=${item} />` : html`<p class="muted">Loading…</p>`;
}

export function Elsewhere({ name, uri, description }) {
  const safe = /^https?:\/\//i.test(uri ?? "");
  return html`<p>${safe ? html`<a href=${uri} target="_blank" rel="noopener noreferrer nofollow">${name}</a>` : html`${name} <span class="muted">${uri}</span>`}
    ${description && html`<span class="muted"> ${description}</span>`}</p>`;
}

export function PlainText({ text }) {
  const [all, setAll] = useState(false);
  const json = asJson(text);
  const shown = json ?? text;
  const cut = !all && shown.length > MOST_TEXT;
  return html`<${Code} text=${cut ? shown.slice(0, MOST_TEXT) : shown} language=${json ? "json" : ""} label="Text of the result" />
    ${cut && html`<button type="button" class="quiet small" onClick=${() => setAll(true)}>Show all ${shown.length.toLocaleString()} characters</button>`}`;
}

function asJson(text) {
  if (text.length > MOST_TEXT || !/^\s*[[{]/.test(text)) return null;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}
