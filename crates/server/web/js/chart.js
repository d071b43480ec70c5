// Converts charts in the formats of models to Chart.js configurations: plain data, no functions.
import { html } from "./view.js";
import { Drawing } from "./drawing.js";
import { isObject } from "./schema.js";
import { DARK_PALETTE, LIGHT_PALETTE } from "./graph-view.js";

const RADIAL_TYPES = new Set(["pie", "doughnut", "polarArea"]);
const CHART_TYPES = new Set(["bar", "line", "pie", "doughnut", "radar", "polarArea", "scatter", "bubble"]);
const TYPE_ALIASES = { column: "bar", area: "line", donut: "doughnut", point: "scatter", arc: "pie", horizontalBar: "bar" };

export function Chart({ text, title, fallback }) {
  const chart = parseChart(text);
  if (!chart) return html`<p class="muted">Unsupported chart format. Source:</p>${fallback}`;
  const label = `${chart.type} chart: ${title}. ${describe(chart)}`;
  return html`<${Drawing} request=${{ kind: "chart", source: text, buildConfig: (dark) => toChartJsConfig(chart, dark) }} label=${label} fallback=${fallback} />`;
}

/**
 * Parses a Chart.js configuration, a Vega-Lite specification with inline data, or
 * `{type, data: [{…}]}`. Returns null for other formats.
 */
function parseChart(text) {
  let spec;
  try {
    spec = JSON.parse(text);
  } catch {
    return null;
  }
  if (!isObject(spec)) return null;
  return fromChartJs(spec) ?? fromVegaLite(spec) ?? fromRows(spec);
}

/** Resolves the aliases of a chart type. Returns null for unsupported types. */
function normalizeType(typeName) {
  const name = TYPE_ALIASES[typeName] ?? typeName;
  return CHART_TYPES.has(name) ? name : null;
}

function fromChartJs({ type, chartType, data, datasets, labels, options }) {
  const normalized = normalizeType(type ?? chartType);
  const inputSets = data?.datasets ?? datasets;
  if (!normalized || !Array.isArray(inputSets)) return null;
  return { type: normalized, fill: type === "area", horizontal: type === "horizontalBar" || options?.indexAxis === "y",
    labels: data?.labels ?? labels ?? [], series: inputSets.filter(isObject).map((set) => ({ label: asText(set.label), data: set.data ?? [], type: normalizeType(set.type) })),
    axes: { x: asText(options?.scales?.x?.title?.text), y: asText(options?.scales?.y?.title?.text) }, stacked: Boolean(options?.scales?.x?.stacked) };
}

function fromVegaLite({ mark, encoding, data }) {
  const type = normalizeType(isObject(mark) ? mark.type : mark);
  const rows = data?.values;
  if (!type || !isObject(encoding) || !Array.isArray(rows)) return null;
  const x = encoding.x ?? encoding.theta ?? encoding.color;
  const y = encoding.y ?? encoding.theta;
  if (!x?.field || !y?.field) return null;
  const radial = RADIAL_TYPES.has(type);
  return groupRows(rows, type, radial ? encoding.color?.field : x.field, [y.field], radial ? null : encoding.color?.field, mark === "area" || mark?.type === "area");
}

function fromRows({ type, chartType, data, series, xKey, x, yKeys, y, labels, values }) {
  const normalized = normalizeType(type ?? chartType) ?? "bar";
  if (Array.isArray(labels) && Array.isArray(values)) return groupRows(labels.map((label, index) => ({ label, value: values[index] })), normalized, "label", ["value"]);
  const rows = Array.isArray(data) ? data.filter(isObject) : [];
  if (!rows.length) return null;
  const keys = Object.keys(rows[0]);
  const xField = asText(xKey ?? x) ?? keys.find((key) => typeof rows[0][key] !== "number") ?? keys[0];
  const explicitFields = yKeys ?? (Array.isArray(series) ? series.map((entry) => entry?.key ?? entry?.dataKey ?? entry) : y === undefined ? null : [y].flat());
  const yFields = (explicitFields ?? keys.filter((key) => key !== xField && typeof rows[0][key] === "number")).filter((key) => typeof key === "string");
  return yFields.length ? groupRows(rows, normalized, xField, yFields, null, type === "area") : null;
}

/** Builds a chart with one series for each combination of group and y field. */
function groupRows(rows, type, xField, yFields, groupField = null, fill = false) {
  const labels = [...new Set(rows.map((row) => row[xField]))];
  const groups = groupField ? [...new Set(rows.map((row) => row[groupField]))] : [null];
  const series = groups.flatMap((group) => yFields.map((key) => ({
    label: group === null ? key : String(group),
    data: type === "scatter"
      ? rows.filter((row) => group === null || row[groupField] === group).map((row) => ({ x: Number(row[xField]), y: Number(row[key]) }))
      : labels.map((label) => rows.find((row) => row[xField] === label && (group === null || row[groupField] === group))?.[key] ?? null),
  })));
  return { type, fill, labels: labels.map((label) => (typeof label === "object" ? JSON.stringify(label) : label)), series, axes: { x: xField, y: yFields.length === 1 ? yFields[0] : null } };
}

/** Returns strings and numbers as text, and null for all other values. */
function asText(value) {
  return typeof value === "string" || typeof value === "number" ? String(value) : null;
}

function toChartJsConfig({ type, fill, horizontal, labels, series, axes, stacked }, dark) {
  const colours = dark ? DARK_PALETTE : LIGHT_PALETTE;
  const radial = RADIAL_TYPES.has(type);
  const datasets = series.map(({ label, data, type: seriesType }, index) => {
    const colour = colours[index % colours.length];
    return { label: label ?? `Series ${index + 1}`, data, ...(seriesType ? { type: seriesType } : {}),
      backgroundColor: radial ? data.map((_, dataIndex) => colours[dataIndex % colours.length]) : fill || type === "radar" ? `${colour}33` : colour,
      borderColor: radial ? (dark ? "#1a1d21" : "#ffffff") : colour, borderWidth: type === "bar" ? 0 : 2, borderRadius: type === "bar" ? 4 : undefined,
      maxBarThickness: 44, fill: fill || type === "radar", tension: 0.25, pointRadius: 3 };
  });
  const axis = (text) => ({ stacked, beginAtZero: true, title: { display: Boolean(text), text: text ?? "" } });
  const scales = radial || type === "radar" ? {} : { x: { ...axis(axes.x), grid: { display: false } }, y: axis(axes.y) };
  return { type, data: { labels, datasets }, options: { indexAxis: horizontal ? "y" : "x", scales, plugins: { legend: { display: radial || series.length > 1, position: "bottom" } } } };
}

/** Returns a text alternative for a chart: the first values of up to three series. */
function describe({ labels, series }) {
  return series.slice(0, 3).map(({ label, data }) => {
    const values = data.slice(0, 12).map((value, index) => (value && typeof value === "object" ? `${value.x} ${value.y}` : `${labels[index] ?? index + 1} ${value}`));
    return `${label ?? "Values"}: ${values.join(", ")}${data.length > 12 ? " and more" : ""}`;
  }).join(". ");
}
