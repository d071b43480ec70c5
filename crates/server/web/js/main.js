// The page as a whole: what is open, and what the keys do.
import { Icon, Model, html, render, useEffect, useModel, useRef, useState } from "./view.js";
import { access } from "./api.js";
import { catalogue } from "./catalogue.js";
import { Composer } from "./composer.js";
import { Servers, ServersButton } from "./servers.js";
import { Session } from "./session.js";
import { Sessions, Sidebar } from "./sidebar.js";
import { theme } from "./colours.js";
import { Transcript, tokens } from "./transcript.js";
import { dollars } from "./words.js";

const DRAFT = "switchboard.draft";

/** What is being written; it stays when another conversation is opened, and when the page is loaded again in this tab. */
class Draft extends Model {
  send = () => {};

  constructor() {
    super();
    try {
      this.text = sessionStorage.getItem(DRAFT) ?? "";
    } catch {
      this.text = "";
    }
  }

  set(text) {
    this.text = text;
    try {
      sessionStorage.setItem(DRAFT, text);
    } catch {
      // It holds until the page is loaded again.
    }
    this.touch();
  }
}

class Page extends Model {
  sessions = new Sessions();
  draft = new Draft();
  session = this.#fresh();

  #fresh() {
    return new Session((what, detail) => this.#told(what, detail));
  }

  #told(what, detail) {
    if (what === "sessions") {
      // A conversation has its address from its first answer on, so that loading the page again comes back to it.
      const address = `#/s/${encodeURIComponent(this.session.id)}`;
      if (location.hash !== address) history.replaceState(null, "", address);
      this.sessions.load();
      this.touch();
    }
    if (what === "finished") this.sessions.load();
    if (what === "servers") catalogue.loadServers();
    if (what === "send") this.draft.send(detail);
    if (what === "again") this.open(true);
    if (what === "edit") {
      this.session.turns = this.session.turns.filter((turn) => turn !== detail);
      this.session.touch();
      this.draft.set(detail.user.parts[0].text);
      document.getElementById("message")?.focus();
    }
  }

  start() {
    this.sessions.load();
    catalogue.load();
    this.open(true);
  }

  /** Opens what the address names. */
  open(again = false) {
    const id = named(location.hash);
    if (!again && id === this.session.id && (id || this.session.state === "new")) return;
    this.session.close();
    this.session = this.#fresh();
    if (id) this.session.open(id);
    this.touch();
  }
}

/** The conversation that an address names, or null. */
function named(address) {
  const name = /^#\/s\/(.+)$/.exec(address)?.[1] ?? null;
  try {
    return name && decodeURIComponent(name);
  } catch {
    // Somebody wrote it by hand. The server says that there is none of this name.
    return name;
  }
}

/** Whether Escape on this element stops the run: where the question is written, or where nothing has the focus. */
function stopsTheRun(element) {
  return element.id === "message" || element === document.body || element === document.documentElement;
}

const page = new Page();

function App() {
  useModel(page);
  useModel(access);
  const { session, sessions, draft } = page;
  const [list, setList] = useState(false);
  const [servers, setServers] = useState(false);
  useEffect(() => {
    const moved = () => page.open();
    const key = (event) => {
      // In a dialog, and where something else already took it, the key means that.
      if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      if (list) setList(false);
      else if (stopsTheRun(event.target)) page.session.cancel();
    };
    window.addEventListener("hashchange", moved);
    window.addEventListener("keydown", key);
    return () => {
      window.removeEventListener("hashchange", moved);
      window.removeEventListener("keydown", key);
    };
  }, [list]);
  return html`<div class="app">
    <${Sidebar} sessions=${sessions} current=${session} open=${list} onClose=${() => setList(false)}
      onForgotten=${(id) => { if (id === session.id) location.hash = "#/"; }} />
    ${list && html`<div class="shade" onClick=${() => setList(false)} />`}
    <main class="main">
      <${Header} session=${session} sessions=${sessions} list=${list} onList=${() => setList(true)} onServers=${() => setServers(true)} />
      <${LineState} line=${session.line} />
      <${Transcript} key=${session.line} session=${session} />
      <${Composer} session=${session} draft=${draft} />
    </main>
    ${servers && html`<${Servers} onClose=${() => setServers(false)} />`}
    ${access.wanted && html`<${TokenDialog} />`}
  </div>`;
}

const THEMES = { auto: ["auto", "as the system"], light: ["sun", "light"], dark: ["moon", "dark"] };

function Header({ session, sessions, list, onList, onServers }) {
  useModel(session);
  useModel(sessions);
  useModel(theme);
  const run = useModel(session.current);
  const asks = Boolean(run?.live && (run.waiting.length || run.openQuestions.length));
  const title = sessions.list.find((it) => it.id === session.id)?.title || session.title || "New conversation";
  useEffect(() => {
    // For who looks at another tab meanwhile.
    document.title = `${asks ? "Your word is needed – " : ""}${session.id ? `${title} – ` : ""}Switchboard`;
  }, [title, session.id, asks]);
  const [icon, words] = THEMES[theme.choice];
  return html`<header class="header">
    <button type="button" class="quiet icon-button only-narrow" onClick=${onList} aria-label="Conversations" aria-expanded=${list ? "true" : "false"} aria-controls="sidebar"><${Icon} name="menu" /></button>
    <h1>${title}</h1>
    <${Total} session=${session} />
    <${ServersButton} onOpen=${onServers} />
    <button type="button" class="quiet icon-button" onClick=${() => theme.next()} aria-label=${`Colours: ${words}. Change`} title=${`Colours: ${words}`}><${Icon} name=${icon} /></button>
  </header>`;
}

/** What the conversation came to. */
function Total({ session }) {
  useModel(catalogue);
  useModel(session.current);
  const sum = {};
  let cost = 0;
  for (const { run } of session.turns) {
    for (const [name, number] of Object.entries(run?.usage ?? {})) sum[name] = number == null ? sum[name] : (sum[name] ?? 0) + number;
    cost += run ? catalogue.cost(run.model, run.usage) ?? 0 : 0;
  }
  const parts = tokens({ input_tokens: sum.input_tokens, output_tokens: sum.output_tokens });
  if (cost) parts.push(`about ${dollars(cost)}`);
  return parts.length ? html`<p class="total muted" title="Tokens of this conversation">${parts.join(" · ")}</p>` : null;
}

function LineState({ line }) {
  useModel(line);
  const [, again] = useState(0);
  useEffect(() => {
    if (line.state !== "lost") return undefined;
    const tick = setInterval(() => again((count) => count + 1), 1_000);
    return () => clearInterval(tick);
  }, [line.state]);
  if (line.state !== "lost") return null;
  const seconds = Math.max(0, Math.round((line.nextTry - Date.now()) / 1_000));
  return html`<div class="line-state" role="status"><${Icon} name="warn" /> The connection is lost. ${line.retry && seconds ? `Trying again in ${seconds} s.` : "Trying again…"}
    <button type="button" class="small" onClick=${() => line.retry?.()}>Try now</button></div>`;
}

function TokenDialog() {
  const [token, setToken] = useState("");
  const shown = useRef(false);
  const show = (dialog) => {
    if (dialog && !shown.current) {
      shown.current = true;
      dialog.showModal();
    }
  };
  const use = (event) => {
    event.preventDefault();
    access.use(token);
    page.start();
  };
  return html`<dialog ref=${show} aria-labelledby="token-title" onCancel=${(event) => event.preventDefault()}>
    <h2 id="token-title">Access token</h2>
    <p>This server wants a token. It is kept until this tab is closed.</p>
    <form onSubmit=${use}>
      <label for="token">Token</label>
      <input id="token" type="password" autocomplete="off" value=${token} onInput=${(event) => setToken(event.target.value)} aria-describedby="token-error" />
      <p id="token-error" class="error" role="alert">${access.refused ? "The server did not take that token." : ""}</p>
      <div class="actions"><button type="submit" class="primary" disabled=${!token.trim()}>Use it</button></div>
    </form>
  </dialog>`;
}

const place = document.getElementById("page");
place.replaceChildren();
render(html`<${App} />`, place);
page.start();
document.getElementById("message")?.focus();
