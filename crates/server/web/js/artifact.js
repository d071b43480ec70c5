// What stands for itself in an answer: documents, code, tables, diagrams, charts, pages.
import { Component, Icon, html, useEffect, useState } from "./view.js";
import { Code } from "./text.js";
import { copyText, markdown } from "./markdown.js";
import { DataTable, readTable } from "./table.js";
import { Foreign } from "./result.js";

/** As the server reads it: `application/vnd.mermaid` is `mermaid`, `image/svg+xml` is `svg`. */
export function kindOf(type = "") {
  const word = type.split(/[/.]/).at(-1).split(/[+;]/)[0].trim().toLowerCase();
  return word.replace(/^x-/, "");
}

const ENDINGS = { markdown: "md", mermaid: "mmd", html: "html", svg: "svg", json: "json", csv: "csv", table: "txt", chart: "json" };

export class Artifact extends Component {
  shouldComponentUpdate({ artifact }, { source }) {
    return artifact !== this.props.artifact || source !== this.state.source;
  }

  render({ artifact }, { source = false }) {
    const { artifactType, title, content, language } = artifact;
    const kind = kindOf(artifactType);
    const shown = source ? null : View(kind, artifact);
    const plain = !View(kind, artifact);
    const text = content.replace(/^\n+/, "").trimEnd();
    return html`<figure class="artifact" data-kind=${kind}>
      <figcaption>
        <span class="artifact-icon"><${Icon} name="file" /></span>
        <span class="artifact-title"><strong>${title || "Untitled"}</strong> <span class="muted">${language || kind}</span></span>
        <span class="artifact-actions">
          ${!plain && html`<button type="button" class="quiet small" aria-pressed=${source ? "true" : "false"} onClick=${() => this.setState({ source: !source })}>Source</button>`}
          <button type="button" class="quiet small" onClick=${(event) => copyText(content, event.currentTarget)}>Copy</button>
          <button type="button" class="quiet small" onClick=${() => download(artifact, kind)}>Save</button>
        </span>
      </figcaption>
      <div class="artifact-body">${shown ?? html`<${Code} text=${text} language=${codeLanguage(kind, language)} label=${`Source of ${title}`} />`}</div>
    </figure>`;
  }
}

function codeLanguage(kind, language) {
  return { html: "xml", svg: "xml", json: "json", chart: "json", markdown: "markdown" }[kind] ?? language ?? "";
}

/** How it is shown; null if as its source. */
function View(kind, { title, content, language }) {
  const source = html`<${Code} text=${content.trim()} language=${codeLanguage(kind, language)} label=${`Source of ${title}`} />`;
  switch (kind) {
    case "markdown": return html`<${Document} text=${content} />`;
    case "table":
    case "csv": {
      const rows = readTable(content);
      if (rows?.length) return html`<${DataTable} rows=${rows} label=${title} />`;
      return kind === "table" && content.includes("|") ? html`<${Document} text=${content} />` : null;
    }
    case "mermaid": return html`<${Lazy} load=${() => import("./drawing.js").then((it) => it.Drawing)} wish=${{ kind: "mermaid", text: content }} label=${`Diagram: ${title}`} otherwise=${source} />`;
    case "chart": return html`<${Lazy} load=${() => import("./chart.js").then((it) => it.Chart)} text=${content} title=${title} otherwise=${source} />`;
    case "html": return html`<${Foreign} markup=${content} title=${title} />`;
    // As an image, an SVG neither runs nor loads anything.
    case "svg": return html`<div class="drawing"><img alt=${title} src=${`data:image/svg+xml;charset=utf-8,${encodeURIComponent(content.trim())}`} /></div>`;
    default: return null;
  }
}

function Lazy({ load, ...rest }) {
  const [Shown, setShown] = useState(null);
  useEffect(() => {
    load().then((component) => setShown(() => component));
  }, []);
  return Shown ? html`<${Shown} ...${rest} />` : html`<p class="muted">Loading…</p>`;
}

class Document extends Component {
  shouldComponentUpdate({ text }) {
    return text !== this.props.text;
  }

  componentDidMount() {
    this.place.replaceChildren(markdown(this.props.text));
  }

  componentDidUpdate() {
    this.componentDidMount();
  }

  render() {
    return html`<div class="text" ref=${(place) => { this.place = place; }} />`;
  }
}

function download({ title, content, language }, kind) {
  const name = (title || "artifact").replace(/[^\p{L}\p{N}._ -]+/gu, "_").slice(0, 80);
  const ending = ENDINGS[kind] ?? (language && /^[a-z0-9+#]{1,10}$/i.test(language) ? language : "txt");
  // Never as a type that a browser would show as a page of ours.
  const address = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name.includes(".") ? name : `${name}.${ending}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1_000);
}
