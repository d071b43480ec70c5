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

const renderer = new Renderer();
// Styles are taken out by the sanitizer; but reading markup that has them is told on the console, as an offence against our policy.
renderer.html = ({ text }) => text.replace(/\sstyle\s*=/gi, " data-style=");

const OPTIONS = { gfm: true, breaks: false, async: false, renderer };

/** The blocks of a text: paragraphs, lists, code and so on. Their `raw` together is the text. */
export function blocks(text) {
  return new Lexer(OPTIONS).lex(text);
}

/** Blocks as nodes. `headings.base` is the level of the text's first heading, once there was one. */
export function show(tokens, headings = { base: null }) {
  const fragment = clean(Parser.parse(tokens, OPTIONS));
  decorate(fragment);
  lower(fragment, headings);
  return fragment;
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
    button.textContent = "Not allowed";
  }
  setTimeout(() => { button.textContent = before; }, 1500);
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
