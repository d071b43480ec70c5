// Incremental rendering of Markdown. Complete blocks stay in the DOM. When text is appended, only
// the last block is parsed and rendered again.
import { Component, html } from "./view.js";
import { highlightCode, parseBlocks, renderBlocks } from "./markdown.js";

/** Renders growing Markdown text into an element. */
export class IncrementalRenderer {
  /** Length of the text in complete blocks. */
  completeLength = 0;
  renderedLength = 0;
  /** Nodes of the last block, which can still change. */
  lastNodes = [];
  /** The unclosed code block at the end of the text, if any. */
  openFence = null;
  hasHtml = false;
  headings = { base: null };

  constructor(element) {
    this.element = element;
  }

  update(text, open) {
    if (text.length < this.renderedLength) this.reset();
    if (text.length === this.renderedLength && open) return;
    if (!(this.openFence && open && this.#appendToFence(text))) this.#renderBlocks(text, open);
    this.renderedLength = text.length;
    // Render the finished text as a whole if a block can depend on later blocks: link definitions
    // can follow their links, and HTML can span several blocks.
    if (!open && (this.hasHtml || /^ {0,3}\[[^\]]+\]:\s/m.test(text))) {
      this.reset();
      this.element.append(renderBlocks(parseBlocks(text)));
      this.completeLength = this.renderedLength = text.length;
    }
  }

  reset() {
    this.element.replaceChildren();
    this.completeLength = 0;
    this.renderedLength = 0;
    this.lastNodes = [];
    this.openFence = null;
    this.hasHtml = false;
    this.headings = { base: null };
  }

  #renderBlocks(text, open) {
    for (const node of this.lastNodes) node.remove();
    this.lastNodes = [];
    this.openFence = null;
    const tokens = parseBlocks(text.slice(this.completeLength));
    this.hasHtml ||= tokens.some((token) => token.type === "html");
    // More text can change the last block: a paragraph can become a heading or a table, and a list
    // can become longer.
    let lastIndex = tokens.length - 1;
    while (open && lastIndex > 0 && tokens[lastIndex].type === "space") lastIndex -= 1;
    const completeCount = open ? Math.max(0, lastIndex) : tokens.length;
    if (completeCount > 0) {
      const complete = tokens.slice(0, completeCount);
      complete.links = tokens.links;
      this.element.append(renderBlocks(complete, this.headings));
      for (const token of complete) this.completeLength += token.raw.length;
    }
    const remaining = tokens.slice(completeCount);
    if (!remaining.length) return;
    remaining.links = tokens.links;
    const fragment = renderBlocks(remaining, { ...this.headings });
    this.lastNodes = [...fragment.childNodes];
    this.element.append(fragment);
    const token = remaining[0];
    const opening = /^( {0,3})(`{3,}|~{3,})[^\n]*\n/.exec(token.raw);
    if (token.type === "code" && opening && !hasClosingFence(token.raw.slice(opening[0].length), opening[2])) {
      const code = this.lastNodes[0]?.querySelector?.("code");
      if (code) this.openFence = { marker: opening[2], code, start: this.completeLength + opening[0].length };
    }
  }

  /**
   * Updates the text of the unclosed code block without parsing. Returns false if the block may
   * have been closed.
   */
  #appendToFence(text) {
    const { marker, code, start } = this.openFence;
    const body = text.slice(start);
    const lineStart = body.lastIndexOf("\n", this.renderedLength - start - 1) + 1;
    if (hasClosingFence(body.slice(lineStart), marker)) return false;
    code.textContent = body;
    return true;
  }
}

/** Returns whether a line of the text closes a fence or is the start of a closing fence. */
function hasClosingFence(text, marker) {
  return text.split("\n").some((line) => /^ {0,3}(`+|~+)\s*$/.exec(line)?.[1]?.[0] === marker[0]);
}

/** A text of the model. `item` is a run item. */
export class Text extends Component {
  shouldComponentUpdate({ item }) {
    this.updateText(item);
    return false;
  }

  componentDidMount() {
    this.updateText(this.props.item);
  }

  updateText(item) {
    if (!this.element) return;
    this.renderer ??= new IncrementalRenderer(this.element);
    this.renderer.update(item.text, item.open);
  }

  render() {
    return html`<div class="text" ref=${(element) => { this.element = element; }} />`;
  }
}

/** A code block, highlighted if the language is known. */
export class Code extends Component {
  shouldComponentUpdate({ text, language }) {
    return text !== this.props.text || language !== this.props.language;
  }

  componentDidMount() {
    highlightCode(this.element, this.props.language);
  }

  componentDidUpdate() {
    this.element.textContent = this.props.text;
    this.element.classList.remove("hljs");
    highlightCode(this.element, this.props.language);
  }

  render() {
    const { label = "Code" } = this.props;
    return html`<pre class="plain" tabindex="0" role="group" aria-label=${label}><code ref=${(element) => {
      if (!element || element === this.element) return;
      this.element = element;
      element.textContent = this.props.text;
    }} /></pre>`;
  }
}
