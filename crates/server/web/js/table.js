// Tables of untrusted data. Cells contain text, never markup.
import { html, useState } from "./view.js";

/** Number of rows that are shown before the user expands the table. */
const INITIAL_ROWS = 200;

/** A table with one row for each object in `rows`. */
export function DataTable({ rows, label }) {
  const [expanded, setExpanded] = useState(false);
  const columns = [...new Set(rows.slice(0, 1_000).flatMap(Object.keys))];
  const shown = expanded ? rows : rows.slice(0, INITIAL_ROWS);
  return html`<div class="scroll-frame" tabindex="0" role="group" aria-label=${label}>
      <table><thead><tr>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${shown.map((row) => html`<tr>${columns.map((name) => html`<${Cell} value=${row[name]} />`)}</tr>`)}</tbody></table>
    </div>
    ${shown.length < rows.length && html`<button type="button" class="quiet small" onClick=${() => setExpanded(true)}>Show all ${rows.length} rows</button>`}`;
}

/** Longer texts may be wrapped. */
const MAX_UNWRAPPED_LENGTH = 24;

function Cell({ value }) {
  const text = cellText(value);
  const isNumber = /^[-+−]?\d[\d.,]*\s?%?$/.test(text);
  const isShort = text.length <= MAX_UNWRAPPED_LENGTH;
  return html`<td class="${isNumber ? "number" : ""} ${isShort ? "short" : ""}">${text}</td>`;
}

function cellText(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/**
 * Parses a table artifact into row objects. Supports JSON and text with commas, semicolons or tabs
 * as delimiters. Returns null for other formats.
 */
export function readTable(text) {
  return fromJson(text) ?? fromDelimited(text);
}

function fromJson(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const { columns, headers, rows } = value ?? {};
  const columnList = columns ?? headers;
  if (Array.isArray(columnList) && Array.isArray(rows)) {
    const keys = columnList.map((column) => (typeof column === "object" ? String(column?.key ?? column?.name ?? column?.title) : String(column)));
    return rows.map((row) => (Array.isArray(row) ? Object.fromEntries(keys.map((key, index) => [key, row[index]])) : row));
  }
  const list = Array.isArray(value) ? value : rows ?? value?.data;
  if (!Array.isArray(list) || !list.length) return null;
  if (list.every(Array.isArray)) return list.slice(1).map((row) => Object.fromEntries(list[0].map((key, index) => [String(key), row[index]])));
  return list.every((row) => row && typeof row === "object") ? list : null;
}

function fromDelimited(text) {
  const [firstLine] = text.split("\n", 1);
  const delimiter = ["\t", ";", ","].find((candidate) => firstLine.includes(candidate));
  if (!delimiter || firstLine.includes("|")) return null;
  const [header, ...rows] = parseRecords(text.trim(), delimiter);
  if (!rows.length || rows.some((row) => row.length > header.length)) return null;
  return rows.map((row) => Object.fromEntries(header.map((name, index) => [name, row[index] ?? ""])));
}

/** Parses records according to RFC 4180, with a custom delimiter. */
function parseRecords(text, delimiter) {
  const records = [];
  let row = [];
  let value = "";
  let quoted = false;
  const endValue = () => {
    row.push(value.trim());
    value = "";
  };
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (quoted) {
      if (character !== '"') value += character;
      else if (text[index + 1] === '"') {
        value += character;
        index += 1;
      } else quoted = false;
    } else if (character === '"' && value.trim() === "") {
      value = "";
      quoted = true;
    } else if (character === delimiter) endValue();
    else if (character === "\n") {
      endValue();
      records.push(row);
      row = [];
    } else if (character !== "\r") value += character;
  }
  endValue();
  records.push(row);
  return records;
}
