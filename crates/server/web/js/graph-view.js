// The drawing of a knowledge graph: nodes coloured by type, and edges labeled with their predicates.
// This file imports nothing, because the MCP App of the bundled server `graph`
// (`crates/mcp-servers/src/graph`) includes its text in a page.

/** Colours of the node types of graphs and of the series of charts. */
export const LIGHT_PALETTE = ["#0f766e", "#b45309", "#4f5bd5", "#be185d", "#4d7c0f", "#0369a1", "#7c3aed", "#a16207"];
export const DARK_PALETTE = ["#5cc4b4", "#f0a95b", "#9aa5ff", "#f284b6", "#a9cf5f", "#6cc0f0", "#c09bff", "#e0c15a"];

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
 * `matchingNodes` and `matchingEdges` are the total numbers, if the value is one page of a graph.
 * Returns null for other values and for graphs without nodes.
 */
export function parseGraph(value) {
  if (!Array.isArray(value?.nodes) || !Array.isArray(value.edges)) return null;
  if (!value.nodes.length || value.nodes.some((node) => typeof node?.id !== "string")) return null;
  const graph = { nodes: new Map(), edges: [], totalNodes: Number(value.matchingNodes) || 0, totalEdges: Number(value.matchingEdges) || 0 };
  addToGraph(graph, value);
  return graph;
}

/** Adds nodes and edges to a graph. Skips known nodes, known edges and edges of unknown nodes. */
function addToGraph(graph, { nodes, edges }) {
  for (const { id, label, type } of nodes) {
    if (!graph.nodes.has(id)) graph.nodes.set(id, { id, label: String(label ?? id), type: String(type ?? "Other"), neighbours: new Set() });
  }
  const knownEdges = new Set(graph.edges.map(({ id }) => id));
  for (const edge of edges) {
    const [source, target] = [graph.nodes.get(edge?.source), graph.nodes.get(edge?.target)];
    if (!source || !target || (edge.id !== undefined && knownEdges.has(edge.id))) continue;
    graph.edges.push(edge);
    source.neighbours.add(target.id);
    target.neighbours.add(source.id);
  }
  graph.totalNodes = Math.max(graph.totalNodes, graph.nodes.size);
  graph.totalEdges = Math.max(graph.totalEdges, graph.edges.length);
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

const plural = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

const SVG_NAMES = new Set(["svg", "g", "line", "title", "text", "rect", "circle"]);

/** Returns a new element. Attributes that are functions are event listeners. */
function create(name, attributes, ...children) {
  const element = SVG_NAMES.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

const button = (text, click) => create("button", { type: "button", class: "small", click }, text);

/** An interactive drawing of a graph of `parseGraph`, which replaces the content of `container`. */
export class GraphView {
  #graph;
  #loadNeighbours;
  #loaded = new Set();
  #visible;
  #positions;
  #selected = null;
  #pathStart = null;
  #path = null;
  #root;
  #picture;
  #legend = create("ul", { class: "graph-legend muted small" });
  #status = create("p", { class: "graph-status muted small", role: "status" });
  #actions = create("div", { class: "actions" });

  /**
   * The optional function `loadNeighbours(id)` returns a promise of nodes and edges. A view with
   * this function adds the neighbours of a node when the node is selected for the first time.
   */
  constructor(container, graph, { label, loadNeighbours = null }) {
    this.#graph = graph;
    this.#loadNeighbours = loadNeighbours;
    this.#visible = initialNodes(graph);
    this.#positions = layOut(graph, this.#visible, new Map());
    this.#picture = create("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": label });
    this.#root = create("div", { class: "graph" }, this.#picture, this.#legend, this.#status, this.#actions);
    container.replaceChildren(this.#root);
    this.#draw();
  }

  /** Draws the current state. `notice` replaces the text of the status. */
  #draw(notice = null) {
    const { nodes } = this.#graph;
    const edges = visibleEdges(this.#graph, this.#visible);
    const types = [...new Set([...nodes.values()].map(({ type }) => type))];
    const path = this.#path ?? [];
    const isPathEdge = ({ source, target }) => path.some((id, index) => (id === source && path[index + 1] === target) || (id === target && path[index + 1] === source));
    const focused = this.#root.contains(document.activeElement) ? document.activeElement.dataset.node ?? this.#selected : null;
    this.#picture.replaceChildren(
      ...edges.map((edge) => this.#edgeElement(edge, isPathEdge(edge), edges.length <= MAX_EDGE_LABELS)),
      ...[...this.#visible].map((id) => this.#nodeElement(nodes.get(id), types, path.includes(id))),
    );
    this.#legend.replaceChildren(...types.slice(0, 12).map((type) =>
      create("li", {}, create("svg", { width: 10, height: 10, "aria-hidden": "true" }, colourCircle(5, 5, 5, types.indexOf(type))), ` ${type}`)));
    this.#status.textContent = notice ?? this.#statusText(edges);
    this.#actions.replaceChildren(...this.#buttons());
    // The focused element was replaced, or it was a button that no longer exists.
    if (focused !== null) this.#picture.querySelector(`[data-node="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  #edgeElement({ source, target, label }, isOnPath, isLabeled) {
    const { nodes } = this.#graph;
    const [a, b] = [this.#positions.get(source), this.#positions.get(target)];
    const element = create("g", { class: isOnPath ? "graph-edge on-path" : "graph-edge" },
      create("line", { x1: a.x, y1: a.y, x2: b.x, y2: b.y }),
      create("title", {}, `${nodes.get(source).label} – ${label ?? ""} → ${nodes.get(target).label}`));
    if (isLabeled) element.append(create("text", { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 - 3 }, shorten(String(label ?? ""))));
    return element;
  }

  #nodeElement({ id, label, type, neighbours }, types, isOnPath) {
    const { x, y } = this.#positions.get(id);
    const isSelected = id === this.#selected;
    const keydown = (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.#select(id);
    };
    return create("g", {
      class: `graph-node${isOnPath ? " on-path" : ""}${isSelected ? " selected" : ""}`, "data-node": id, role: "button", tabindex: 0, click: () => this.#select(id), keydown,
      "aria-label": `${label}, ${type}, ${plural(neighbours.size, "connection")}`, "aria-pressed": isSelected,
    },
    create("rect", { class: "graph-hit", x: x - 24, y: y - 16, width: 48, height: 46 }),
    colourCircle(x, y, 6 + Math.min(8, Math.sqrt(neighbours.size) * 2), types.indexOf(type)),
    create("text", { x, y: y + 26 }, shorten(label)));
  }

  #buttons() {
    const node = this.#graph.nodes.get(this.#selected);
    const hidden = node ? this.#hiddenNeighbours(node) : [];
    const buttons = [];
    if (hidden.length > 0) buttons.push(button(`Show ${plural(hidden.length, "more neighbour")}`, () => this.#show([node.id, ...hidden])));
    if (node && this.#pathStart === null) buttons.push(button(`Find path from ${shorten(node.label)}`, () => this.#setPath(null, node.id)));
    if (this.#path || this.#pathStart !== null) buttons.push(button("Clear path", () => this.#setPath(null, null)));
    return buttons;
  }

  /** Returns the ids of the neighbours that one expansion adds. */
  #hiddenNeighbours({ neighbours }) {
    return [...neighbours].filter((id) => !this.#visible.has(id)).slice(0, MAX_ADDED_NODES);
  }

  #setPath(path, start) {
    this.#path = path;
    this.#pathStart = start;
    this.#draw();
  }

  #select(id) {
    this.#selected = id;
    if (this.#pathStart !== null && this.#pathStart !== id) {
      this.#path = shortestPath(this.#graph, this.#pathStart, id) ?? [];
      this.#pathStart = null;
      this.#show(this.#path);
    } else {
      this.#draw();
      if (this.#loadNeighbours && !this.#loaded.has(id)) this.#expand(id);
    }
  }

  /** Loads and shows the neighbours of a node. */
  async #expand(id) {
    this.#loaded.add(id);
    try {
      addToGraph(this.#graph, await this.#loadNeighbours(id));
      this.#show([id, ...this.#hiddenNeighbours(this.#graph.nodes.get(id))]);
    } catch (error) {
      // The next selection tries again.
      this.#loaded.delete(id);
      this.#draw(`Couldn't load the neighbours: ${error.message}`);
    }
  }

  /** Shows these nodes in addition to the visible ones. */
  #show(ids) {
    if (ids.some((id) => !this.#visible.has(id))) {
      this.#visible = new Set([...new Set([...ids, ...this.#visible])].slice(0, MAX_NODES));
      this.#positions = layOut(this.#graph, this.#visible, this.#positions);
    }
    this.#draw();
  }

  #statusText(edges) {
    const { nodes, totalNodes, totalEdges } = this.#graph;
    const node = nodes.get(this.#selected);
    const path = this.#path;
    if (this.#pathStart !== null) return `Select the end of the path from ${nodes.get(this.#pathStart).label}.`;
    if (path?.length === 0) return nodes.size < totalNodes ? "No path was found in the loaded part of the graph." : "The nodes are not connected.";
    if (path?.length > MAX_NAMED_NODES) return `Path of ${path.length} nodes`;
    if (path) return `Path: ${path.map((id) => nodes.get(id).label).join(" → ")}`;
    if (node) return `${node.label} · ${node.type} · ${plural(node.neighbours.size, "connection")}`;
    const canExpand = this.#loadNeighbours || this.#visible.size < nodes.size;
    if (this.#visible.size < totalNodes) return `${this.#visible.size} of ${totalNodes} nodes are shown.${canExpand ? " Select a node to show its neighbours." : ""}`;
    return edges.length < totalEdges ? `${edges.length} of ${totalEdges} edges are shown.` : `${plural(totalNodes, "node")}, ${plural(edges.length, "edge")}`;
  }
}

/** Returns a circle in the colour of a node type, for both themes. */
function colourCircle(cx, cy, r, type) {
  const index = type % LIGHT_PALETTE.length;
  const circle = create("circle", { cx, cy, r, fill: LIGHT_PALETTE[index] });
  circle.style.fill = `light-dark(${LIGHT_PALETTE[index]}, ${DARK_PALETTE[index]})`;
  return circle;
}
