// Knowledge graphs: nodes coloured by type, and edges labeled with their predicates.
import { html, useMemo, useModel, useState } from "./view.js";
import { plural } from "./format.js";
import { isObject } from "./schema.js";
import { DARK_PALETTE, LIGHT_PALETTE, theme } from "./colours.js";

/** Number of nodes that are drawn at first. The nodes with the most edges are drawn. */
const INITIAL_NODES = 40;
/** Maximum number of nodes that one expansion adds. */
const MAX_ADDED_NODES = 30;
/**
 * Maximum numbers of nodes and edges that are drawn. Larger drawings would block the page. When the
 * maximum is reached, added nodes replace others.
 */
const MAX_NODES = 200;
const MAX_EDGES = 600;
/** Longer paths are described by their length only. */
const MAX_NAMED_NODES = 20;
/** More labels would overlap. The tooltip of an edge always shows its label. */
const MAX_EDGE_LABELS = 40;
const MAX_LABEL_LENGTH = 22;
const WIDTH = 760;
const HEIGHT = 460;
/** Space for the labels of the outer nodes. */
const MARGIN_X = 76;
const MARGIN_Y = 36;

/**
 * Parses a graph of the form `{nodes: [{id, label, type}], edges: [{source, target, label}]}`.
 * Returns null for other values and for graphs without nodes.
 */
function parseGraph(value) {
  if (!isObject(value) || !Array.isArray(value.nodes) || !Array.isArray(value.edges)) return null;
  const nodes = new Map();
  for (const node of value.nodes) {
    if (!isObject(node) || typeof node.id !== "string") return null;
    nodes.set(node.id, { id: node.id, label: String(node.label ?? node.id), type: String(node.type ?? "Other"), neighbours: new Set() });
  }
  const edges = value.edges.filter((edge) => nodes.has(edge?.source) && nodes.has(edge.target));
  for (const { source, target } of edges) {
    nodes.get(source).neighbours.add(target);
    nodes.get(target).neighbours.add(source);
  }
  return nodes.size ? { nodes, edges } : null;
}

/** Returns the ids of the nodes that are drawn at first. */
function initialNodes({ nodes }) {
  const byDegree = [...nodes.values()].sort((a, b) => b.neighbours.size - a.neighbours.size);
  return new Set(byDegree.slice(0, INITIAL_NODES).map(({ id }) => id));
}

/** Returns the ids of the nodes on a shortest path, or null if the nodes are not connected. */
function shortestPath({ nodes }, start, end) {
  const previous = new Map([[start, null]]);
  const queue = [start];
  // The iteration includes the nodes that are added during the loop.
  for (const id of queue) {
    if (id === end) {
      const path = [];
      for (let step = end; step !== null; step = previous.get(step)) path.unshift(step);
      return path;
    }
    for (const neighbour of nodes.get(id).neighbours) {
      if (previous.has(neighbour)) continue;
      previous.set(neighbour, id);
      queue.push(neighbour);
    }
  }
  return null;
}

/** Returns the drawn edges: those between visible nodes, up to the maximum. */
function visibleEdges({ edges }, visible) {
  return edges.filter(({ source, target }) => visible.has(source) && visible.has(target)).slice(0, MAX_EDGES);
}

/**
 * Returns the position of each visible node: a force-directed layout that starts with `positions`.
 * It contains no randomness, so the same graph always looks the same.
 */
function layOut(graph, visible, positions) {
  const ids = [...visible];
  const points = ids.map((id, index) => {
    const angle = index * 2.4;
    const distance = 18 * Math.sqrt(index + 1);
    return { ...(positions.get(id) ?? { x: WIDTH / 2 + distance * Math.cos(angle), y: HEIGHT / 2 + distance * Math.sin(angle) }) };
  });
  const indexes = new Map(ids.map((id, index) => [id, index]));
  const links = visibleEdges(graph, visible).map(({ source, target }) => [indexes.get(source), indexes.get(target)]).filter(([a, b]) => a !== b);
  const spacing = Math.sqrt((WIDTH * HEIGHT) / ids.length) * 0.8;
  for (let step = 0; step < 150; step += 1) {
    // A weak force towards the centre keeps separate parts of the graph together.
    const forces = points.map(({ x, y }) => ({ x: (WIDTH / 2 - x) * 0.02, y: (HEIGHT / 2 - y) * 0.02 }));
    const push = (a, b, strength, dx, dy) => {
      forces[a].x += dx * strength;
      forces[a].y += dy * strength;
      forces[b].x -= dx * strength;
      forces[b].y -= dy * strength;
    };
    for (let a = 0; a < points.length; a += 1) {
      for (let b = a + 1; b < points.length; b += 1) {
        const dx = points[a].x - points[b].x || 0.1;
        const dy = points[a].y - points[b].y || 0.1;
        push(a, b, (spacing * spacing) / (dx * dx + dy * dy) / 4, dx, dy);
      }
    }
    for (const [a, b] of links) {
      const dx = points[a].x - points[b].x;
      const dy = points[a].y - points[b].y;
      push(a, b, -Math.hypot(dx, dy) / spacing / 8, dx, dy);
    }
    const limit = spacing * (1 - step / 150) * 0.3;
    points.forEach((point, index) => {
      const { x, y } = forces[index];
      const length = Math.hypot(x, y) || 1;
      const scale = Math.min(length, limit) / length;
      point.x += x * scale;
      point.y += y * scale;
    });
  }
  fit(points, "x", MARGIN_X, WIDTH - MARGIN_X);
  fit(points, "y", MARGIN_Y, HEIGHT - MARGIN_Y);
  return new Map(ids.map((id, index) => [id, points[index]]));
}

/** Scales a coordinate of all points to the given range. */
function fit(points, axis, low, high) {
  const values = points.map((point) => point[axis]);
  const [least, greatest] = [Math.min(...values), Math.max(...values)];
  const range = greatest - least;
  for (const point of points) point[axis] = range < 1 ? (low + high) / 2 : low + ((point[axis] - least) / range) * (high - low);
}

function shorten(text) {
  return text.length > MAX_LABEL_LENGTH ? `${text.slice(0, MAX_LABEL_LENGTH - 1)}…` : text;
}

/** The graph in the JSON text of an artifact, or `fallback` if the text contains none. */
export function GraphDocument({ text, title, fallback }) {
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    // The text is not JSON.
  }
  return html`<${GraphValue} value=${value} label=${title} fallback=${fallback} />`;
}

/** The graph in a JSON value, or `fallback` if the value contains none. */
export function GraphValue({ value, label, fallback = null }) {
  const graph = useMemo(() => parseGraph(value), [value]);
  return graph ? html`<${GraphView} graph=${graph} label=${label} />` : fallback;
}

/** An interactive drawing of a graph of `parseGraph`. */
function GraphView({ graph, label }) {
  useModel(theme);
  const [drawing, setDrawing] = useState(() => {
    const visible = initialNodes(graph);
    return { visible, positions: layOut(graph, visible, new Map()) };
  });
  const [selected, setSelected] = useState(null);
  const [pathStart, setPathStart] = useState(null);
  const [path, setPath] = useState(null);
  const { visible, positions } = drawing;
  const types = [...new Set([...graph.nodes.values()].map(({ type }) => type))];
  const palette = theme.dark ? DARK_PALETTE : LIGHT_PALETTE;
  const colourOf = (type) => palette[types.indexOf(type) % palette.length];
  const edges = visibleEdges(graph, visible);
  const node = selected === null ? null : graph.nodes.get(selected);
  const hidden = node ? [...node.neighbours].filter((id) => !visible.has(id)).slice(0, MAX_ADDED_NODES) : [];
  const isOnPath = (id) => Boolean(path?.includes(id));
  const isPathEdge = ({ source, target }) => Boolean(path?.some((id, index) => (id === source && path[index + 1] === target) || (id === target && path[index + 1] === source)));

  const show = (ids) => {
    if (ids.every((id) => visible.has(id))) return;
    const shown = new Set([...new Set([...ids, ...visible])].slice(0, MAX_NODES));
    setDrawing({ visible: shown, positions: layOut(graph, shown, positions) });
  };
  const select = (id) => {
    setSelected(id);
    if (pathStart === null || pathStart === id) return;
    const found = shortestPath(graph, pathStart, id);
    setPath(found ?? []);
    setPathStart(null);
    if (found) show(found);
  };
  const handleKeyDown = (event, id) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    select(id);
  };
  const clear = () => {
    setPath(null);
    setPathStart(null);
  };

  return html`<div class="graph">
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label=${label}>
      ${edges.map((edge) => {
        const [a, b] = [positions.get(edge.source), positions.get(edge.target)];
        return html`<g class="graph-edge ${isPathEdge(edge) ? "on-path" : ""}">
          <line x1=${a.x} y1=${a.y} x2=${b.x} y2=${b.y} /><title>${`${graph.nodes.get(edge.source).label} – ${edge.label ?? ""} → ${graph.nodes.get(edge.target).label}`}</title>
          ${edges.length <= MAX_EDGE_LABELS && html`<text x=${(a.x + b.x) / 2} y=${(a.y + b.y) / 2 - 3}>${shorten(String(edge.label ?? ""))}</text>`}
        </g>`;
      })}
      ${[...visible].map((id) => {
        const { label: name, type, neighbours } = graph.nodes.get(id);
        const { x, y } = positions.get(id);
        return html`<g key=${id} class="graph-node ${isOnPath(id) ? "on-path" : ""} ${id === selected ? "selected" : ""}" data-node=${id} role="button" tabindex="0"
          aria-label=${`${name}, ${type}, ${plural(neighbours.size, "connection")}`} aria-pressed=${id === selected ? "true" : "false"} onClick=${() => select(id)} onKeyDown=${(event) => handleKeyDown(event, id)}>
          <rect class="graph-hit" x=${x - 24} y=${y - 16} width="48" height="46" /><circle cx=${x} cy=${y} r=${6 + Math.min(8, Math.sqrt(neighbours.size) * 2)} fill=${colourOf(type)} /><text x=${x} y=${y + 26}>${shorten(name)}</text>
        </g>`;
      })}
    </svg>
    <ul class="graph-legend muted small">${types.slice(0, 12).map((type) => html`<li><svg width="10" height="10" aria-hidden="true"><circle cx="5" cy="5" r="5" fill=${colourOf(type)} /></svg> ${type}</li>`)}</ul>
    <p class="graph-status muted small" role="status">${statusText(graph, { visible, edges, node, pathStart, path })}</p>
    <div class="actions">
      ${hidden.length > 0 && html`<button type="button" class="small" onClick=${() => show([selected, ...hidden])}>Show ${plural(hidden.length, "more neighbour")}</button>`}
      ${node && pathStart === null && html`<button type="button" class="small" onClick=${() => { setPath(null); setPathStart(node.id); }}>Find path from ${shorten(node.label)}</button>`}
      ${(path || pathStart !== null) && html`<button type="button" class="small" onClick=${clear}>Clear path</button>`}
    </div>
  </div>`;
}

function statusText(graph, { visible, edges, node, pathStart, path }) {
  if (pathStart !== null) return `Select the end of the path from ${graph.nodes.get(pathStart).label}.`;
  if (path?.length === 0) return "The nodes are not connected.";
  if (path?.length > MAX_NAMED_NODES) return `Path of ${path.length} nodes`;
  if (path) return `Path: ${path.map((id) => graph.nodes.get(id).label).join(" → ")}`;
  if (node) return `${node.label} · ${node.type} · ${plural(node.neighbours.size, "connection")}`;
  const total = graph.nodes.size;
  if (visible.size < total) return `${visible.size} of ${total} nodes are shown. Select a node to show its neighbours.`;
  return edges.length < graph.edges.length ? `${edges.length} of ${graph.edges.length} edges are shown.` : `${plural(total, "node")}, ${plural(edges.length, "edge")}`;
}
