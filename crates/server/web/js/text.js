// Markdown that grows. What stands stays: only the last block is read and shown again when more comes.
import { Component, html } from "./view.js";
import { blocks, colour, show } from "./markdown.js";

/** Writes a growing text into an element. */
export class Growing {
  /** How much of the text is in blocks that no longer change. */
  settled = 0;
  shown = 0;
  tail = [];
  fence = null;
  markup = false;
  headings = { base: null };

  constructor(element) {
    this.element = element;
  }

  update(text, open) {
    if (text.length < this.shown) this.reset();
    if (text.length === this.shown && open) return;
    if (!(this.fence && open && this.#goesOn(text))) this.#read(text, open);
    this.shown = text.length;
    // A definition may stand behind the link that it is for, and markup reach over several blocks.
    if (!open && (this.markup || /^ {0,3}\[[^\]]+\]:\s/m.test(text))) {
      this.reset();
      this.element.append(show(blocks(text)));
      this.settled = this.shown = text.length;
    }
  }

  reset() {
    this.element.replaceChildren();
    this.settled = 0;
    this.shown = 0;
    this.tail = [];
    this.fence = null;
    this.markup = false;
    this.headings = { base: null };
  }

  #read(text, open) {
    for (const node of this.tail) node.remove();
    this.tail = [];
    this.fence = null;
    const tokens = blocks(text.slice(this.settled));
    this.markup ||= tokens.some((token) => token.type === "html");
    // The last block may still become another one: a paragraph a heading or a table, a list a longer list.
    let last = tokens.length - 1;
    while (open && last > 0 && tokens[last].type === "space") last -= 1;
    const stays = open ? Math.max(0, last) : tokens.length;
    if (stays > 0) {
      const done = tokens.slice(0, stays);
      done.links = tokens.links;
      this.element.append(show(done, this.headings));
      for (const token of done) this.settled += token.raw.length;
    }
    const rest = tokens.slice(stays);
    if (!rest.length) return;
    rest.links = tokens.links;
    const fragment = show(rest, { ...this.headings });
    this.tail = [...fragment.childNodes];
    this.element.append(fragment);
    const token = rest[0];
    const marks = /^( {0,3})(`{3,}|~{3,})[^\n]*\n/.exec(token.raw);
    if (token.type === "code" && marks && !closes(token.raw.slice(marks[0].length), marks[2])) {
      const code = this.tail[0]?.querySelector?.("code");
      if (code) this.fence = { marks: marks[2], code, from: this.settled + marks[0].length };
    }
  }

  /** More of a code block that is not closed: its text is appended, and nothing is read again. */
  #goesOn(text) {
    const { marks, code, from } = this.fence;
    const body = text.slice(from);
    const line = body.lastIndexOf("\n", this.shown - from - 1) + 1;
    if (closes(body.slice(line), marks)) return false;
    code.textContent = body;
    return true;
  }
}

/** Whether a line of the text closes a fence, or may be about to. */
function closes(text, marks) {
  return text.split("\n").some((line) => /^ {0,3}(`+|~+)\s*$/.exec(line)?.[1]?.[0] === marks[0]);
}

/** A text of the model; `item` is a piece of a run. */
export class Text extends Component {
  shouldComponentUpdate({ item }) {
    this.draw(item);
    return false;
  }

  componentDidMount() {
    this.draw(this.props.item);
  }

  draw(item) {
    if (!this.place) return;
    this.growing ??= new Growing(this.place);
    this.growing.update(item.text, item.open);
  }

  render() {
    return html`<div class="text" ref=${(place) => { this.place = place; }} />`;
  }
}

/** Code that does not grow, with colours where the language is known. */
export class Code extends Component {
  shouldComponentUpdate({ text, language }) {
    return text !== this.props.text || language !== this.props.language;
  }

  componentDidMount() {
    colour(this.place, this.props.language);
  }

  componentDidUpdate() {
    this.place.textContent = this.props.text;
    this.place.classList.remove("hljs");
    colour(this.place, this.props.language);
  }

  render() {
    const { label = "Code" } = this.props;
    return html`<pre class="plain" tabindex="0" role="group" aria-label=${label}><code ref=${(place) => {
      if (!place || place === this.place) return;
      this.place = place;
      place.textContent = this.props.text;
    }} /></pre>`;
  }
}
