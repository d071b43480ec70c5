// Knowledge graphs in artifacts and tool results.
import { html, useEffect, useMemo, useRef } from "./view.js";
import { GraphView, parseGraph } from "./graph-view.js";

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
  return graph ? html`<${GraphDrawing} graph=${graph} label=${label} />` : fallback;
}

function GraphDrawing({ graph, label }) {
  const container = useRef(null);
  useEffect(() => {
    new GraphView(container.current, graph, { label });
  }, [graph, label]);
  return html`<div ref=${container} />`;
}
