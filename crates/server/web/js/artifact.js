// Artifacts: documents, code, tables, diagrams, charts and pages within an answer.
import { Component, Icon, html, useEffect, useState } from "./view.js";
import { Code } from "./text.js";
import { copyText, renderMarkdown } from "./markdown.js";
import { DataTable, readTable } from "./table.js";
import { UntrustedHtml } from "./result.js";

/**
 * Returns the kind of an artifact type by the same rules as the server: `mermaid` for
 * `application/vnd.mermaid`, `svg` for `image/svg+xml`.
 */
function artifactKind(type = "") {
  const subtype = type.split(/[/.]/).at(-1).split(/[+;]/)[0].trim().toLowerCase();
  return subtype.replace(/^x-/, "");
}

const FILE_EXTENSIONS = { markdown: "md", mermaid: "mmd", html: "html", svg: "svg", json: "json", csv: "csv", table: "txt", chart: "json", "knowledge-graph": "json" };

export class Artifact extends Component {
  shouldComponentUpdate({ artifact }, { source }) {
    return artifact !== this.props.artifact || source !== this.state.source;
  }

  render({ artifact }, { source = false }) {
    const { artifactType, title, content, language } = artifact;
    const kind = artifactKind(artifactType);
    const view = source ? null : renderView(kind, artifact);
    const sourceOnly = !renderView(kind, artifact);
    const text = content.replace(/^\n+/, "").trimEnd();
    return html`<figure class="artifact" data-kind=${kind}>
      <figcaption>
        <span class="artifact-icon"><${Icon} name="file" /></span>
        <span class="artifact-title"><strong>${title || "Untitled"}</strong> <span class="muted">${language || kind}</span></span>
        <span class="artifact-actions">
          ${!sourceOnly && html`<button type="button" class="quiet small" aria-pressed=${source ? "true" : "false"} onClick=${() => this.setState({ source: !source })}>Source</button>`}
          <button type="button" class="quiet small" onClick=${(event) => copyText(content, event.currentTarget)}>Copy</button>
          <button type="button" class="quiet small" onClick=${(event) => downloadShown(event.currentTarget, artifact, kind)}>Download</button>
        </span>
      </figcaption>
      <div class="artifact-body">${view ?? html`<${Code} text=${text} language=${codeLanguage(kind, language)} label=${`Source of ${title}`} />`}</div>
    </figure>`;
  }
}

function codeLanguage(kind, language) {
  return { html: "xml", svg: "xml", json: "json", chart: "json", "knowledge-graph": "json", markdown: "markdown" }[kind] ?? language ?? "";
}

/** Downloads what is shown: the image of a diagram or chart, or else the source. */
function downloadShown(button, artifact, kind) {
  const image = button.closest("figure").querySelector(".drawing img");
  if (!image || kind === "svg") download(artifact, kind);
  else save(image.src, `${fileName(artifact)}.${image.src.startsWith("data:image/png") ? "png" : "svg"}`);
}

/** Returns the rendered view of an artifact, or null if only its source can be shown. */
function renderView(kind, { title, content, language }) {
  const source = html`<${Code} text=${content.trim()} language=${codeLanguage(kind, language)} label=${`Source of ${title}`} />`;
  switch (kind) {
    case "markdown": return html`<${Document} text=${content} />`;
    case "table":
    case "csv": {
      const rows = readTable(content);
      if (rows?.length) return html`<${DataTable} rows=${rows} label=${title} />`;
      return kind === "table" && content.includes("|") ? html`<${Document} text=${content} />` : null;
    }
    case "mermaid": return html`<${Lazy} load=${() => import("./drawing.js").then((module) => module.Drawing)} request=${{ kind: "mermaid", text: content }} label=${`Diagram: ${title}`} fallback=${source} />`;
    case "chart": return html`<${Lazy} load=${() => import("./chart.js").then((module) => module.Chart)} text=${content} title=${title} fallback=${source} />`;
    case "html": return html`<${UntrustedHtml} markup=${content} title=${title} />`;
    case "knowledge-graph": return html`<${Lazy} load=${() => import("./graph.js").then((module) => module.GraphDocument)} text=${content} title=${title} fallback=${source} />`;
    // An SVG in an `img` element cannot run scripts or load resources.
    case "svg": return html`<div class="drawing"><img alt=${title} src=${`data:image/svg+xml;charset=utf-8,${encodeURIComponent(content.trim())}`} /></div>`;
    default: return null;
  }
}

/** Loads a component and renders it with the remaining props. */
function Lazy({ load, ...rest }) {
  const [Loaded, setLoaded] = useState(null);
  useEffect(() => {
    load().then((component) => setLoaded(() => component));
  }, []);
  return Loaded ? html`<${Loaded} ...${rest} />` : html`<p class="muted">Loading…</p>`;
}

/** A Markdown document. */
class Document extends Component {
  shouldComponentUpdate({ text }) {
    return text !== this.props.text;
  }

  componentDidMount() {
    this.element.replaceChildren(renderMarkdown(this.props.text));
  }

  componentDidUpdate() {
    this.componentDidMount();
  }

  render() {
    return html`<div class="text" ref=${(element) => { this.element = element; }} />`;
  }
}

function fileName({ title }) {
  return (title || "artifact").replace(/[^\p{L}\p{N}._ -]+/gu, "_").slice(0, 80);
}

function download(artifact, kind) {
  const { content, language } = artifact;
  const name = fileName(artifact);
  const extension = FILE_EXTENSIONS[kind] ?? (language && /^[a-z0-9+#]{1,10}$/i.test(language) ? language : "txt");
  // With a generic type, browsers never show the content as a page of this origin.
  const url = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  save(url, name.includes(".") ? name : `${name}.${extension}`);
  setTimeout(() => URL.revokeObjectURL(url), 1_000);
}

function save(url, name) {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}
