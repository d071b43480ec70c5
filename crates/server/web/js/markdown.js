// From text that nobody vouches for to what is shown. The only place where text becomes markup.
import DOMPurify from "../vendor/purify.js";
import { Lexer, Parser, Renderer } from "../vendor/marked.js";

const TAGS = [
  "a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
  "i", "img", "input", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "s", "samp", "small", "span", "strong", "sub", "summary", "sup",
  "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "var", "wbr",
];
const ATTRIBUTES = ["align", "alt", "checked", "class", "colspan", "disabled", "href", "open", "rowspan", "scope", "src", "start", "title", "type"];

const RULES = {
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ATTRIBUTES,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

/** What a link may lead to. */
const LINK = /^(?:https?:|mailto:)/i;
/** Images that come with the text; nothing is fetched from elsewhere because a model wants it. */
const IMAGE = /^data:image\/(?:png|jpeg|gif|webp|avif|svg\+xml);/i;

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  switch (node.tagName) {
    case "A":
      outward(node);
      break;
    case "IMG":
      if (!IMAGE.test(node.getAttribute("src") ?? "")) node.replaceWith(notLoaded(node));
      break;
    case "INPUT":
      // The boxes of task lists, and no other field.
      if (node.getAttribute("type") !== "checkbox") node.remove();
      else {
        node.disabled = true;
        node.setAttribute("aria-label", node.checked ? "done" : "open");
      }
      break;
    default:
  }
  const classes = node.getAttribute?.("class");
  // Only the names that the highlighter and the Markdown reader use: a text must not look like our own buttons.
  if (classes && !classes.split(/\s+/).every((name) => /^(?:language-|hljs(?:-|$)|[a-z]+_+$)/.test(name))) node.removeAttribute("class");
});

/** A link to another site, which learns nothing of this page and has no hold of it. */
export function outward(link) {
  const target = link.getAttribute("href") ?? "";
  if (!LINK.test(target)) {
    link.removeAttribute("href");
    return;
  }
  link.setAttribute("target", "_blank");
  link.setAttribute("rel", "noopener noreferrer nofollow");
}

function notLoaded(image) {
  const address = image.getAttribute("src") ?? "";
  const name = image.getAttribute("alt") || "image";
  if (!/^https?:/i.test(address)) return document.createTextNode(`[${name}]`);
  const link = document.createElement("a");
  link.href = address;
  outward(link);
  link.textContent = `${name} (image, not loaded: ${link.hostname})`;
  return link;
}

/** Markup as nodes, without anything that runs, loads or looks like a part of this page. */
export function clean(markup) {
  return DOMPurify.sanitize(markup, RULES);
}

/** A `<`, with the rest of the tag if it begins a whole one of those that are shown. */
const TAG = new RegExp(`<(?:(/?)(${TAGS.join("|")})(?:\\s+[\\w:-]+(?:\\s*=\\s*(?:"[^"]*"|'[^']*'|[^\\s"'=<>\`]+))?)*\\s*/?>)?`, "gi");
/** Tags that need no end. */
const ENDLESS = new Set(["br", "dd", "dt", "hr", "img", "input", "li", "p", "tbody", "td", "tfoot", "th", "thead", "tr", "wbr"]);
/** More tags in one another would only stop the page. */
const MOST_OPEN = 200;
let opened = 0;

/** What is no whole tag, or too deep, stays what it is: a text must not lose words such as `Vec<u8>`. */
function shownTag(tag, end, name) {
  if (name === undefined) return "&lt;";
  if (!ENDLESS.has(name.toLowerCase())) {
    if (end) opened = Math.max(0, opened - 1);
    else if (opened >= MOST_OPEN) return `&lt;${tag.slice(1)}`;
    else opened += 1;
  }
  return tag;
}

const KNOWN = new RegExp(`^\\s*</?(?:${TAGS.join("|")})[\\s/>]`, "i");
const renderer = new Renderer();
renderer.html = ({ text, block }) => {
  if (block && !KNOWN.test(text)) return `<pre><code class="language-html">${text.replace(/&/g, "&amp;").replace(/</g, "&lt;")}</code></pre>`;
  // Styles are taken out by the sanitizer; but reading markup that has them is told on the console, as an offence against our policy.
  return text.replace(TAG, shownTag).replace(/\sstyle\s*=/gi, " data-style=");
};
// Within some tags the reader would hand text on as markup.
renderer.text = function text(token) {
  return Renderer.prototype.text.call(this, { ...token, escaped: false });
};

const OPTIONS = { gfm: true, breaks: false, async: false, renderer };

/** Quotes, lists and emphasis are read this deep in one another; what is deeper is shown as it is written. */
const DEEPEST = 40;
/** The reader looks for the end of each mark in all that follows: marks times characters, in one paragraph. Beyond it is plain text. */
const MOST_WORK = 5_000_000;
const MARKS = /[*_~`<[]/g;

const written = (raw) => ({ type: "text", raw, text: raw });
const paragraph = (raw) => ({ type: "paragraph", raw, text: raw, tokens: [written(raw)] });

/** Reads no text for longer than a person would wait, whatever is in it. */
class Reader extends Lexer {
  depth = 0;

  #deeper(source, tokens, plain, read) {
    if (this.depth >= DEEPEST) {
      if (source) tokens.push(plain(source));
      return tokens;
    }
    this.depth += 1;
    try {
      return read();
    } finally {
      this.depth -= 1;
    }
  }

  blockTokens(source, tokens = [], ...rest) {
    return this.#deeper(source, tokens, paragraph, () => super.blockTokens(source, tokens, ...rest));
  }

  inlineTokens(source, tokens = []) {
    if (source.length * (source.match(MARKS)?.length ?? 0) > MOST_WORK) {
      tokens.push(written(source));
      return tokens;
    }
    return this.#deeper(source, tokens, written, () => super.inlineTokens(source, tokens));
  }
}

/** The blocks of a text: paragraphs, lists, code and so on. Their `raw` together is the text. */
export function blocks(text) {
  try {
    return new Reader(OPTIONS).lex(text);
  } catch (error) {
    // Better as it is written than not at all.
    reportError(error);
    return [paragraph(text)];
  }
}

/** Blocks as nodes. `headings.base` is the level of the text's first heading, once there was one. */
export function show(tokens, headings = { base: null }) {
  const fragment = fragmentOf(tokens);
  decorate(fragment);
  lower(fragment, headings);
  return fragment;
}

function fragmentOf(tokens) {
  opened = 0;
  try {
    return clean(Parser.parse(tokens, OPTIONS));
  } catch (error) {
    reportError(error);
    const fragment = document.createDocumentFragment();
    const place = document.createElement("p");
    place.className = "plain-text";
    place.textContent = tokens.map(({ raw }) => raw).join("");
    fragment.append(place);
    return fragment;
  }
}

/** The page has two levels of headings of its own; a text's first heading is of the third, whatever the model gave it. */
function lower(fragment, headings) {
  for (const heading of fragment.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const level = Number(heading.tagName[1]);
    headings.base ??= level;
    const lowered = document.createElement(`h${Math.min(6, Math.max(3, 3 + level - headings.base))}`);
    lowered.append(...heading.childNodes);
    heading.replaceWith(lowered);
  }
}

/** A whole text as nodes. */
export function markdown(text) {
  return show(blocks(text));
}

function decorate(fragment) {
  for (const table of fragment.querySelectorAll("table")) {
    const frame = document.createElement("div");
    frame.className = "wide";
    // What is wider than its place must be reachable without a mouse.
    frame.tabIndex = 0;
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", "Table");
    table.replaceWith(frame);
    frame.append(table);
  }
  for (const code of fragment.querySelectorAll("pre > code")) {
    const language = [...code.classList].find((name) => name.startsWith("language-"))?.slice(9) ?? "";
    const pre = code.parentElement;
    const frame = codeFrame(code.textContent.replace(/\n$/, ""), language);
    pre.replaceWith(frame);
  }
}

/** A piece of code with its language and a button that copies it. */
export function codeFrame(text, language) {
  const frame = document.createElement("div");
  frame.className = "code";
  const head = document.createElement("div");
  head.className = "code-head";
  const name = document.createElement("span");
  name.textContent = language || "text";
  const copy = document.createElement("button");
  copy.type = "button";
  copy.className = "quiet small";
  copy.textContent = "Copy";
  copy.addEventListener("click", () => copyText(code.textContent, copy));
  head.append(name, copy);
  const pre = document.createElement("pre");
  pre.tabIndex = 0;
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", language ? `Code, ${language}` : "Code");
  const code = document.createElement("code");
  code.textContent = text;
  pre.append(code);
  frame.append(head, pre);
  colour(code, language);
  return frame;
}

export async function copyText(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = copyBySelection(text) ? "Copied" : "Not allowed";
    button.focus();
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

/** The old way, for pages that came over a plain connection: the clipboard is not offered to them. */
function copyBySelection(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } finally {
    field.remove();
  }
}

let highlighter = null;
/** More than this is shown without colours: it would stop the page for too long. */
const MOST_COLOURED = 100_000;

/** Colours, once the highlighter is there; until then, and without it, the plain text stands. */
export async function colour(code, language) {
  const text = code.textContent;
  if (!language || text.length > MOST_COLOURED) return;
  highlighter ??= import("../vendor/highlight.js").then((module) => module.default, () => null);
  const hljs = await highlighter;
  if (!hljs?.getLanguage(language) || code.textContent !== text) return;
  const { value } = hljs.highlight(text, { language, ignoreIllegals: true });
  code.replaceChildren(clean(value));
  code.classList.add("hljs");
}
