// Tables of data that somebody else wrote: as text, in cells.
import { html, useState } from "./view.js";

const MOST_ROWS = 200;

/** `rows` are objects with plain values. */
export function DataTable({ rows, label }) {
  const [all, setAll] = useState(false);
  const columns = [...new Set(rows.slice(0, 1_000).flatMap(Object.keys))];
  const shown = all ? rows : rows.slice(0, MOST_ROWS);
  return html`<div class="wide" tabindex="0" role="group" aria-label=${label}>
      <table><thead><tr>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${shown.map((row) => html`<tr>${columns.map((name) => html`<td class=${typeof row[name] === "number" ? "number" : ""}>${cell(row[name])}</td>`)}</tr>`)}</tbody></table>
    </div>
    ${shown.length < rows.length && html`<button type="button" class="quiet small" onClick=${() => setAll(true)}>Show all ${rows.length} rows</button>`}`;
}

function cell(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A table artifact as rows: a list in JSON, or values with commas, semicolons or tabs between them. Null if it is neither. */
export function readTable(text) {
  return fromJson(text) ?? fromSeparated(text);
}

function fromJson(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const { columns, headers, rows } = value ?? {};
  const names = columns ?? headers;
  if (Array.isArray(names) && Array.isArray(rows)) {
    const keys = names.map((it) => (typeof it === "object" ? String(it?.key ?? it?.name ?? it?.title) : String(it)));
    return rows.map((row) => (Array.isArray(row) ? Object.fromEntries(keys.map((key, at) => [key, row[at]])) : row));
  }
  const list = Array.isArray(value) ? value : rows ?? value?.data;
  if (!Array.isArray(list) || !list.length) return null;
  if (list.every(Array.isArray)) return list.slice(1).map((row) => Object.fromEntries(list[0].map((key, at) => [String(key), row[at]])));
  return list.every((it) => it && typeof it === "object") ? list : null;
}

function fromSeparated(text) {
  const [head] = text.split("\n", 1);
  const mark = ["\t", ";", ","].find((it) => head.includes(it));
  if (!mark || head.includes("|")) return null;
  const [names, ...rows] = records(text.trim(), mark);
  if (!rows.length || rows.some((row) => row.length > names.length)) return null;
  return rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at] ?? ""])));
}

/** RFC 4180, with any separator. */
function records(text, mark) {
  const all = [];
  let row = [];
  let value = "";
  let quoted = false;
  const end = () => {
    row.push(value.trim());
    value = "";
  };
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (quoted) {
      if (sign !== '"') value += sign;
      else if (text[at + 1] === '"') {
        value += sign;
        at += 1;
      } else quoted = false;
    } else if (sign === '"' && value.trim() === "") {
      value = "";
      quoted = true;
    } else if (sign === mark) end();
    else if (sign === "\n") {
      end();
      all.push(row);
      row = [];
    } else if (sign !== "\r") value += sign;
  }
  end();
  all.push(row);
  return all;
}
