// Charts as models write them, brought to the form of the chart library: plain data, no functions.
import { html } from "./view.js";
import { Drawing } from "./drawing.js";
import { isObject } from "./schema.js";

const LIGHT = ["#0f766e", "#b45309", "#4f5bd5", "#be185d", "#4d7c0f", "#0369a1", "#7c3aed", "#a16207"];
const DARK = ["#5cc4b4", "#f0a95b", "#9aa5ff", "#f284b6", "#a9cf5f", "#6cc0f0", "#c09bff", "#e0c15a"];
const ROUND = new Set(["pie", "doughnut", "polarArea"]);
const KINDS = new Set(["bar", "line", "pie", "doughnut", "radar", "polarArea", "scatter", "bubble"]);
const OTHER_NAMES = { column: "bar", area: "line", donut: "doughnut", point: "scatter", arc: "pie", horizontalBar: "bar" };

export function Chart({ text, title, otherwise }) {
  const config = read(text);
  if (!config) return html`<p class="muted">The form of this chart is not known, so here is its source.</p>${otherwise}`;
  const label = `${config.type} chart: ${title}. ${spoken(config)}`;
  return html`<${Drawing} wish=${{ kind: "chart", source: text, paint: (dark) => painted(config, dark) }} label=${label} otherwise=${otherwise} />`;
}

/** Chart.js' own form, Vega-Lite with its data inside, or `{type, data: [{…}]}`. Null if it is none of them. */
export function read(text) {
  let given;
  try {
    given = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(given)) return null;
  return ofChartJs(given) ?? ofVegaLite(given) ?? ofRows(given);
}

function kind(word) {
  const name = OTHER_NAMES[word] ?? word;
  return KINDS.has(name) ? name : null;
}

function ofChartJs({ type, chartType, data, datasets, labels, options }) {
  const name = kind(type ?? chartType);
  const sets = data?.datasets ?? datasets;
  if (!name || !Array.isArray(sets)) return null;
  return { type: name, fill: type === "area", flat: type === "horizontalBar" || options?.indexAxis === "y",
    labels: data?.labels ?? labels ?? [], sets: sets.filter(isObject).map((set) => ({ label: words(set.label), data: set.data ?? [], type: kind(set.type) })),
    axes: { x: words(options?.scales?.x?.title?.text), y: words(options?.scales?.y?.title?.text) }, stacked: Boolean(options?.scales?.x?.stacked) };
}

function ofVegaLite({ mark, encoding, data }) {
  const name = kind(isObject(mark) ? mark.type : mark);
  const rows = data?.values;
  if (!name || !isObject(encoding) || !Array.isArray(rows)) return null;
  const x = encoding.x ?? encoding.theta ?? encoding.color;
  const y = encoding.y ?? encoding.theta;
  if (!x?.field || !y?.field) return null;
  const round = ROUND.has(name);
  return grouped(rows, name, round ? encoding.color?.field : x.field, [y.field], round ? null : encoding.color?.field, mark === "area" || mark?.type === "area");
}

function ofRows({ type, chartType, data, series, xKey, x, yKeys, y, labels, values }) {
  const name = kind(type ?? chartType) ?? "bar";
  if (Array.isArray(labels) && Array.isArray(values)) return grouped(labels.map((label, at) => ({ label, value: values[at] })), name, "label", ["value"]);
  const rows = Array.isArray(data) ? data.filter(isObject) : [];
  if (!rows.length) return null;
  const keys = Object.keys(rows[0]);
  const across = words(xKey ?? x) ?? keys.find((key) => typeof rows[0][key] !== "number") ?? keys[0];
  const named = yKeys ?? (Array.isArray(series) ? series.map((it) => it?.key ?? it?.dataKey ?? it) : y === undefined ? null : [y].flat());
  const up = (named ?? keys.filter((key) => key !== across && typeof rows[0][key] === "number")).filter((key) => typeof key === "string");
  return up.length ? grouped(rows, name, across, up, null, type === "area") : null;
}

function grouped(rows, type, across, up, by = null, fill = false) {
  const labels = [...new Set(rows.map((row) => row[across]))];
  const groups = by ? [...new Set(rows.map((row) => row[by]))] : [null];
  const sets = groups.flatMap((group) => up.map((key) => ({
    label: group === null ? key : String(group),
    data: type === "scatter"
      ? rows.filter((row) => group === null || row[by] === group).map((row) => ({ x: Number(row[across]), y: Number(row[key]) }))
      : labels.map((label) => rows.find((row) => row[across] === label && (group === null || row[by] === group))?.[key] ?? null),
  })));
  return { type, fill, labels: labels.map((label) => (typeof label === "object" ? JSON.stringify(label) : label)), sets, axes: { x: across, y: up.length === 1 ? up[0] : null } };
}

function words(value) {
  return typeof value === "string" || typeof value === "number" ? String(value) : null;
}

function painted({ type, fill, flat, labels, sets, axes, stacked }, dark) {
  const colours = dark ? DARK : LIGHT;
  const round = ROUND.has(type);
  const datasets = sets.map(({ label, data, type: own }, at) => {
    const colour = colours[at % colours.length];
    return { label: label ?? `Series ${at + 1}`, data, ...(own ? { type: own } : {}),
      backgroundColor: round ? data.map((_, slice) => colours[slice % colours.length]) : fill || type === "radar" ? `${colour}33` : colour,
      borderColor: round ? (dark ? "#1a1d21" : "#ffffff") : colour, borderWidth: type === "bar" ? 0 : 2, borderRadius: type === "bar" ? 4 : undefined,
      maxBarThickness: 44, fill: fill || type === "radar", tension: 0.25, pointRadius: 3 };
  });
  const axis = (text) => ({ stacked, beginAtZero: true, title: { display: Boolean(text), text: text ?? "" } });
  const scales = round || type === "radar" ? {} : { x: { ...axis(axes.x), grid: { display: false } }, y: axis(axes.y) };
  return { type, data: { labels, datasets }, options: { indexAxis: flat ? "y" : "x", scales, plugins: { legend: { display: round || sets.length > 1, position: "bottom" } } } };
}

/** For those who do not see it: the first values. */
function spoken({ labels, sets }) {
  return sets.slice(0, 3).map(({ label, data }) => {
    const some = data.slice(0, 12).map((value, at) => (value && typeof value === "object" ? `${value.x} ${value.y}` : `${labels[at] ?? at + 1} ${value}`));
    return `${label ?? "Values"}: ${some.join(", ")}${data.length > 12 ? " and more" : ""}`;
  }).join(". ");
}
