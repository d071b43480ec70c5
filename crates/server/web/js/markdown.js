// Converts untrusted Markdown to sanitized DOM nodes. This is the only module that converts text to
// markup.
import DOMPurify from "../vendor/purify.js";
import { Lexer, Parser, Renderer } from "../vendor/marked.js";

const ALLOWED_TAGS = [
  "a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
  "i", "img", "input", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "s", "samp", "small", "span", "strong", "sub", "summary", "sup",
  "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "var", "wbr",
];
const ALLOWED_ATTRIBUTES = ["align", "alt", "checked", "class", "colspan", "disabled", "href", "open", "rowspan", "scope", "src", "start", "title", "type"];

const SANITIZER_OPTIONS = {
  ALLOWED_TAGS,
  ALLOWED_ATTR: ALLOWED_ATTRIBUTES,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

/** Allowed URL schemes of links. */
const LINK_SCHEMES = /^(?:https?:|mailto:)/i;
/** Images embedded in the text. Model output must never cause requests to other hosts. */
const EMBEDDED_IMAGE = /^data:image\/(?:png|jpeg|gif|webp|avif|svg\+xml);/i;

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  switch (node.tagName) {
    case "A":
      hardenLink(node);
      break;
    case "IMG":
      if (!EMBEDDED_IMAGE.test(node.getAttribute("src") ?? "")) node.replaceWith(imagePlaceholder(node));
      break;
    case "INPUT":
      // Allow only the checkboxes of task lists.
      if (node.getAttribute("type") !== "checkbox") node.remove();
      else {
        node.disabled = true;
        node.setAttribute("aria-label", node.checked ? "done" : "open");
      }
      break;
    default:
  }
  const classes = node.getAttribute?.("class");
  // Allow only classes of the highlighter and the Markdown parser. With other classes, untrusted
  // text could look like controls of this page.
  if (classes && !classes.split(/\s+/).every((name) => /^(?:language-|hljs(?:-|$)|[a-z]+_+$)/.test(name))) node.removeAttribute("class");
});

/**
 * Makes a link open in a new tab. The target receives no referrer and no reference to this page.
 * Removes the address if its scheme is not allowed.
 */
function hardenLink(link) {
  const href = link.getAttribute("href") ?? "";
  if (!LINK_SCHEMES.test(href)) {
    link.removeAttribute("href");
    return;
  }
  link.setAttribute("target", "_blank");
  link.setAttribute("rel", "noopener noreferrer nofollow");
}

/** Returns a link or a text that replaces an external image. */
function imagePlaceholder(image) {
  const src = image.getAttribute("src") ?? "";
  const name = image.getAttribute("alt") || "image";
  if (!/^https?:/i.test(src)) return document.createTextNode(`[${name}]`);
  const link = document.createElement("a");
  link.href = src;
  hardenLink(link);
  link.textContent = `${name} (external image not loaded: ${link.hostname})`;
  return link;
}

/**
 * Sanitizes markup and returns its nodes. They run no scripts, load no resources and do not look
 * like parts of this page.
 */
function sanitize(markup) {
  return DOMPurify.sanitize(markup, SANITIZER_OPTIONS);
}

/** Matches `<`, and the rest of the tag if it is a complete tag with an allowed name. */
const TAG_PATTERN = new RegExp(`<(?:(/?)(${ALLOWED_TAGS.join("|")})(?:\\s+[\\w:-]+(?:\\s*=\\s*(?:"[^"]*"|'[^']*'|[^\\s"'=<>\`]+))?)*\\s*/?>)?`, "gi");
/** Tags that are valid without an end tag. */
const TAGS_WITHOUT_END = new Set(["br", "dd", "dt", "hr", "img", "input", "li", "p", "tbody", "td", "tfoot", "th", "thead", "tr", "wbr"]);
/** Maximum nesting of tags. Deeper nesting would block the page. */
const MAX_OPEN_TAGS = 200;
let openTags = 0;

/**
 * Escapes the `<` of incomplete, unknown and too deeply nested tags, so that text such as `Vec<u8>`
 * stays visible.
 */
function escapeTag(tag, slash, name) {
  if (name === undefined) return "&lt;";
  if (!TAGS_WITHOUT_END.has(name.toLowerCase())) {
    if (slash) openTags = Math.max(0, openTags - 1);
    else if (openTags >= MAX_OPEN_TAGS) return `&lt;${tag.slice(1)}`;
    else openTags += 1;
  }
  return tag;
}

/** Matches a block that starts with an allowed tag. */
const ALLOWED_BLOCK = new RegExp(`^\\s*</?(?:${ALLOWED_TAGS.join("|")})[\\s/>]`, "i");
const renderer = new Renderer();
renderer.html = ({ text, block }) => {
  if (block && !ALLOWED_BLOCK.test(text)) return `<pre><code class="language-html">${escapeText(text)}</code></pre>`;
  // The sanitizer removes styles. However, parsing a `style` attribute already reports a violation
  // of the content security policy on the console.
  return text.replace(TAG_PATTERN, escapeTag).replace(/\sstyle\s*=/gi, " data-style=");
};
/** Class of the code elements that contain the TeX source of formulas. */
const FORMULA_CLASS = "language-math";
const DISPLAY_FORMULA_CLASS = "language-math-display";

/**
 * Formulas between `$$` or `\[` and `\]`, and in a line between `$` or `\(` and `\)`. As in Pandoc,
 * `$` must touch the formula, and no digit may follow, so that prices are not formulas.
 */
const DISPLAY_FORMULA = /^(?:\$\$([^$]{1,2000})\$\$|\\\[([\s\S]{1,2000}?)\\\])/;
const LINE_FORMULA = /^(?:\$(?![\s$])((?:\\[\s\S]|[^$\\\n`])*?(?:\\[^\s]|[^$\\\s`]))\$(?!\d)|\\\(([\s\S]{1,2000}?)\\\))/;
const DISPLAY_FORMULA_BLOCK = new RegExp(`${DISPLAY_FORMULA.source} *(?:\\n+|$)`);

function formulaToken(match, isDisplay) {
  return match ? { type: "formula", raw: match[0], tex: (match[1] ?? match[2]).trim(), isDisplay } : undefined;
}

const extensions = {
  block: [(source) => formulaToken(DISPLAY_FORMULA_BLOCK.exec(source), true)],
  inline: [(source) => formulaToken(DISPLAY_FORMULA.exec(source), true) ?? formulaToken(LINE_FORMULA.exec(source), false)],
  startInline: [(source) => {
    const index = source.search(/\$|\\[([]/);
    return index < 0 ? undefined : index;
  }],
  renderers: { formula: ({ tex, isDisplay }) => `<code class="${FORMULA_CLASS}${isDisplay ? ` ${DISPLAY_FORMULA_CLASS}` : ""}">${escapeText(tex)}</code>` },
  childTokens: {},
};

function escapeText(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
}

// Inside some tags, the default renderer does not escape text.
renderer.text = function text(token) {
  return Renderer.prototype.text.call(this, { ...token, escaped: false });
};

const PARSER_OPTIONS = { gfm: true, breaks: false, async: false, renderer, extensions };

/** Maximum nesting of quotes, lists and emphasis. Deeper source text is shown unparsed. */
const MAX_DEPTH = 40;
/**
 * Maximum product of delimiter count and length of a paragraph. For each delimiter, the lexer
 * searches the rest of the paragraph. Paragraphs beyond the limit are shown unparsed.
 */
const MAX_INLINE_WORK = 5_000_000;
const DELIMITERS = /[*_~`<[$\\]/g;

const textToken = (raw) => ({ type: "text", raw, text: raw });
const paragraphToken = (raw) => ({ type: "paragraph", raw, text: raw, tokens: [textToken(raw)] });

/** A lexer with bounded run time for untrusted text. */
class BoundedLexer extends Lexer {
  depth = 0;

  #nested(source, tokens, toPlainToken, parse) {
    if (this.depth >= MAX_DEPTH) {
      if (source) tokens.push(toPlainToken(source));
      return tokens;
    }
    this.depth += 1;
    try {
      return parse();
    } finally {
      this.depth -= 1;
    }
  }

  blockTokens(source, tokens = [], ...rest) {
    return this.#nested(source, tokens, paragraphToken, () => super.blockTokens(source, tokens, ...rest));
  }

  inlineTokens(source, tokens = []) {
    if (source.length * (source.match(DELIMITERS)?.length ?? 0) > MAX_INLINE_WORK) {
      tokens.push(textToken(source));
      return tokens;
    }
    return this.#nested(source, tokens, textToken, () => super.inlineTokens(source, tokens));
  }
}

/** Parses a text into block tokens. Their concatenated `raw` values are the text. */
export function parseBlocks(text) {
  try {
    return new BoundedLexer(PARSER_OPTIONS).lex(text);
  } catch (error) {
    // Show the source text instead of nothing.
    reportError(error);
    return [paragraphToken(text)];
  }
}

/**
 * Renders block tokens to nodes. `headings.base` is set to the level of the first heading of the
 * text and must be reused for its later blocks.
 */
export function renderBlocks(tokens, headings = { base: null }) {
  const fragment = renderTokens(tokens);
  decorate(fragment);
  normalizeHeadings(fragment, headings);
  return fragment;
}

function renderTokens(tokens) {
  openTags = 0;
  try {
    return sanitize(Parser.parse(tokens, PARSER_OPTIONS));
  } catch (error) {
    reportError(error);
    const fragment = document.createDocumentFragment();
    const paragraph = document.createElement("p");
    paragraph.className = "plain-text";
    paragraph.textContent = tokens.map(({ raw }) => raw).join("");
    fragment.append(paragraph);
    return fragment;
  }
}

/** Shifts heading levels so that the first is `h3`. The page uses `h1` and `h2` itself. */
function normalizeHeadings(fragment, headings) {
  for (const heading of fragment.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const level = Number(heading.tagName[1]);
    headings.base ??= level;
    const replacement = document.createElement(`h${Math.min(6, Math.max(3, 3 + level - headings.base))}`);
    replacement.append(...heading.childNodes);
    heading.replaceWith(replacement);
  }
}

/** Renders a complete text to nodes. */
export function renderMarkdown(text) {
  return renderBlocks(parseBlocks(text));
}

/** Wraps tables in scrollable frames, adds a header to code blocks, and renders formulas. */
function decorate(fragment) {
  for (const table of fragment.querySelectorAll("table")) {
    const frame = document.createElement("div");
    frame.className = "scroll-frame";
    // A focusable frame makes wide tables scrollable with the keyboard.
    frame.tabIndex = 0;
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", "Table");
    table.replaceWith(frame);
    frame.append(table);
  }
  for (const code of fragment.querySelectorAll(`.${FORMULA_CLASS}`)) {
    if (code.parentElement?.tagName !== "PRE") renderFormula(code, code.classList.contains(DISPLAY_FORMULA_CLASS));
  }
  for (const code of fragment.querySelectorAll("pre > code")) {
    const language = [...code.classList].find((name) => name.startsWith("language-"))?.slice(9) ?? "";
    const pre = code.parentElement;
    const frame = codeFrame(code.textContent.replace(/\n$/, ""), language);
    pre.replaceWith(frame);
  }
}

/** Returns a code block with its language and a copy button. */
function codeFrame(text, language) {
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
  highlightCode(code, language);
  return frame;
}

export async function copyText(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = copyBySelection(text) ? "Copied" : "Copy failed";
    button.focus();
  }
  setTimeout(() => { button.textContent = label; }, 1500);
}

/** Copies text through a selection. The clipboard API needs a secure context. */
function copyBySelection(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  document.body.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } finally {
    field.remove();
  }
}

let highlighter = null;
/** Maximum length of highlighted code, in characters. Longer code would block the page. */
const MAX_HIGHLIGHTED = 100_000;

/** Highlights code when the highlighter is loaded. The code stays plain if loading fails. */
export async function highlightCode(code, language) {
  const text = code.textContent;
  if (!language || text.length > MAX_HIGHLIGHTED) return;
  highlighter ??= import("../vendor/highlight.js").then((module) => module.default, () => null);
  const hljs = await highlighter;
  if (!hljs?.getLanguage(language) || code.textContent !== text) return;
  const { value } = hljs.highlight(text, { language, ignoreIllegals: true });
  code.replaceChildren(sanitize(value));
  code.classList.add("hljs");
}

const FORMULA_SANITIZER_OPTIONS = {
  ALLOWED_TAGS: [
    "math", "menclose", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mprescripts", "mroot", "mrow", "mspace",
    "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover", "none",
  ],
  ALLOWED_ATTR: [
    "accent", "columnalign", "depth", "display", "displaystyle", "fence", "form", "height", "largeop", "linethickness", "lspace",
    "mathvariant", "maxsize", "minsize", "movablelimits", "notation", "rspace", "scriptlevel", "separator", "stretchy", "symmetric",
    "voffset", "width",
  ],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

let formulaLibrary = null;
/** Maximum length of a rendered formula, in characters. Longer formulas would block the page. */
const MAX_FORMULA_LENGTH = 2_000;

/**
 * Replaces the TeX source in `code` with a formula when the library is loaded. The source stays
 * visible if it is invalid or loading fails.
 */
async function renderFormula(code, isDisplay) {
  const tex = code.textContent;
  if (tex.length > MAX_FORMULA_LENGTH) return;
  formulaLibrary ??= import("../vendor/temml.js").then((module) => module.default, () => null);
  const library = await formulaLibrary;
  if (!library) return;
  try {
    const markup = library.renderToString(tex, { displayMode: isDisplay, throwOnError: true, annotate: false });
    // The content security policy blocks inline styles.
    code.replaceWith(DOMPurify.sanitize(markup.replace(/\sstyle="[^"]*"/g, ""), FORMULA_SANITIZER_OPTIONS));
  } catch {
    // The TeX source is invalid or uses unsupported commands.
  }
}
