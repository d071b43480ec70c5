// Entry point: the page layout, routing by URL hash, and global keyboard handling.
import { Icon, Model, html, render, useEffect, useModel, useRef, useState } from "./view.js";
import { access } from "./api.js";
import { catalogue } from "./catalogue.js";
import { Composer } from "./composer.js";
import { Servers, ServersButton } from "./servers.js";
import { Session } from "./session.js";
import { Sessions, Sidebar } from "./sidebar.js";
import { theme } from "./colours.js";
import { Transcript, formatTokenUsage } from "./transcript.js";
import { formatDollars } from "./format.js";

const DRAFT_KEY = "switchboard.draft";

/**
 * The message being written. Each conversation has its own draft, which survives a reload of the
 * tab.
 */
class Draft extends Model {
  send = () => {};
  retry = () => {};
  text = "";
  /** Id of the conversation, or null for a new one. */
  sessionId = null;
  #texts = new Map();

  constructor() {
    super();
    try {
      this.#texts = new Map(JSON.parse(sessionStorage.getItem(DRAFT_KEY)));
    } catch {
      // Storage is unavailable or has another format: there are no drafts.
    }
    this.open(null);
  }

  /** Shows the draft of a conversation. */
  open(sessionId) {
    this.sessionId = sessionId;
    this.text = this.#texts.get(sessionId) ?? "";
    this.notify();
  }

  /** Moves the draft of the new conversation to the id that the server assigned. */
  assign(sessionId) {
    this.#store(null, "");
    this.sessionId = sessionId;
    this.set(this.text);
  }

  /** Sets the draft of a conversation, by default of the open one. */
  set(text, sessionId = this.sessionId) {
    if (sessionId === this.sessionId) this.text = text;
    this.#store(sessionId, text);
    this.notify();
  }

  #store(sessionId, text) {
    if (text) this.#texts.set(sessionId, text);
    else this.#texts.delete(sessionId);
    try {
      sessionStorage.setItem(DRAFT_KEY, JSON.stringify([...this.#texts]));
    } catch {
      // Storage is unavailable: the drafts are lost on reload.
    }
  }
}

class Page extends Model {
  sessions = new Sessions();
  draft = new Draft();
  session = this.#createSession();

  #createSession() {
    return new Session((change, detail) => this.#handleSessionChange(change, detail));
  }

  #handleSessionChange(change, detail) {
    if (change === "sessions") {
      // Once the server has created the session, the URL contains its id, so a reload reopens it.
      const hash = `#/s/${encodeURIComponent(this.session.id)}`;
      if (location.hash !== hash) history.replaceState(null, "", hash);
      if (this.draft.sessionId === null) this.draft.assign(this.session.id);
      this.sessions.reload();
      this.notify();
    }
    if (change === "finished") this.sessions.reload();
    if (change === "servers") catalogue.loadServers();
    if (change === "send") this.draft.send(detail);
    if (change === "retry") this.draft.retry();
    if (change === "reload") this.open(true);
    if (change === "reconnected") {
      this.sessions.load();
      catalogue.load();
    }
    if (change === "editFailed") {
      this.session.turns = this.session.turns.filter((turn) => turn !== detail);
      this.session.notify();
      this.draft.set(detail.user.parts[0].text);
      document.getElementById("message")?.focus();
    }
  }

  start() {
    catalogue.load();
    this.open(true);
  }

  /** Opens the conversation in the URL hash, or a new one. `force` reopens the current one. */
  open(force = false) {
    const id = sessionIdOf(location.hash);
    if (!force && id === this.session.id && (id || this.session.state === "new")) return;
    this.session.close();
    this.session = this.#createSession();
    this.draft.open(id);
    if (id) this.session.open(id);
    this.sessions.load();
    this.notify();
  }
}

/** Returns the session id in a URL hash, or null. */
function sessionIdOf(hash) {
  const encoded = /^#\/s\/(.+)$/.exec(hash)?.[1] ?? null;
  try {
    return encoded && decodeURIComponent(encoded);
  } catch {
    // The percent encoding is invalid, as in a mistyped URL. The server reports it as not found.
    return encoded;
  }
}

/**
 * Returns whether Escape on `element` stops the run: in the message field, or in the document when
 * no element has the focus.
 */
function escapeStopsRun(element) {
  return element.id === "message" || element === document.body || element === document.documentElement;
}

const page = new Page();

function App() {
  useModel(page);
  useModel(access);
  const { session, sessions, draft } = page;
  const [sidebarOpen, setSidebarOpen] = useState(false);
  const [serversOpen, setServersOpen] = useState(false);
  useEffect(() => {
    const handleHashChange = () => page.open();
    const handleKeyDown = (event) => {
      // Open dialogs, and components that called preventDefault, have handled the key.
      if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      if (sidebarOpen) setSidebarOpen(false);
      else if (escapeStopsRun(event.target)) page.session.cancel();
    };
    window.addEventListener("hashchange", handleHashChange);
    window.addEventListener("keydown", handleKeyDown);
    return () => {
      window.removeEventListener("hashchange", handleHashChange);
      window.removeEventListener("keydown", handleKeyDown);
    };
  }, [sidebarOpen]);
  return html`<div class="app">
    <${Sidebar} sessions=${sessions} current=${session} open=${sidebarOpen} onClose=${() => setSidebarOpen(false)}
      onDeleted=${(id) => { if (id === session.id) location.hash = "#/"; }} />
    ${sidebarOpen && html`<div class="backdrop" onClick=${() => setSidebarOpen(false)} />`}
    <main class="main">
      <${Header} session=${session} sessions=${sessions} sidebarOpen=${sidebarOpen} onOpenSidebar=${() => setSidebarOpen(true)} onOpenServers=${() => setServersOpen(true)} />
      <${ConnectionStatus} connection=${session.connection} />
      <${Transcript} key=${session.connection} session=${session} />
      <${Composer} session=${session} draft=${draft} />
    </main>
    ${serversOpen && html`<${Servers} onClose=${() => setServersOpen(false)} />`}
    ${access.tokenRequired && html`<${TokenDialog} />`}
  </div>`;
}

/** Icon and label of each theme choice. */
const THEMES = { auto: ["auto", "system"], light: ["sun", "light"], dark: ["moon", "dark"] };

function Header({ session, sessions, sidebarOpen, onOpenSidebar, onOpenServers }) {
  useModel(session);
  useModel(sessions);
  useModel(theme);
  const run = useModel(session.current);
  const needsInput = Boolean(run?.isActive && (run.pendingApprovals.length || run.openQuestions.length));
  const title = sessions.list.find((it) => it.id === session.id)?.title || session.title || "New conversation";
  useEffect(() => {
    // The tab title shows a pending request while another tab is active.
    document.title = `${needsInput ? "Input needed – " : ""}${session.id ? `${title} – ` : ""}Switchboard`;
  }, [title, session.id, needsInput]);
  const [icon, label] = THEMES[theme.choice];
  return html`<header class="header">
    <button type="button" class="quiet icon-button only-narrow" onClick=${onOpenSidebar} aria-label="Conversations" aria-expanded=${sidebarOpen ? "true" : "false"} aria-controls="sidebar"><${Icon} name="menu" /></button>
    <h1>${title}</h1>
    <${UsageTotal} session=${session} />
    <${ServersButton} onOpen=${onOpenServers} />
    <button type="button" class="quiet icon-button" onClick=${() => theme.cycle()} aria-label=${`Theme: ${label} (change)`} title=${`Theme: ${label}`}><${Icon} name=${icon} /></button>
  </header>`;
}

/** Total tokens and estimated cost of the conversation. */
function UsageTotal({ session }) {
  useModel(catalogue);
  useModel(session.current);
  const total = {};
  let cost = 0;
  for (const { run } of session.turns) {
    for (const [name, count] of Object.entries(run?.usage ?? {})) total[name] = count == null ? total[name] : (total[name] ?? 0) + count;
    cost += run ? catalogue.cost(run.model, run.usage) ?? 0 : 0;
  }
  const parts = formatTokenUsage({ input_tokens: total.input_tokens, output_tokens: total.output_tokens });
  if (cost) parts.push(`about ${formatDollars(cost)}`);
  return parts.length ? html`<p class="total muted" title="Tokens of this conversation">${parts.join(" · ")}</p>` : null;
}

function ConnectionStatus({ connection }) {
  useModel(connection);
  const [, forceUpdate] = useState(0);
  useEffect(() => {
    if (connection.state !== "lost") return undefined;
    const timer = setInterval(() => forceUpdate((count) => count + 1), 1_000);
    return () => clearInterval(timer);
  }, [connection.state]);
  if (connection.state !== "lost") return null;
  const seconds = Math.max(0, Math.round((connection.nextAttemptAt - Date.now()) / 1_000));
  return html`<div class="connection-state" role="status"><${Icon} name="warn" /> Connection lost. ${connection.retry && seconds ? `Reconnecting in ${seconds} s…` : "Reconnecting…"}
    <button type="button" class="small" onClick=${() => connection.retry?.()}>Reconnect now</button></div>`;
}

function TokenDialog() {
  const [token, setToken] = useState("");
  const opened = useRef(false);
  const openDialog = (dialog) => {
    if (dialog && !opened.current) {
      opened.current = true;
      dialog.showModal();
    }
  };
  const handleSubmit = (event) => {
    event.preventDefault();
    access.setToken(token);
    page.start();
  };
  return html`<dialog ref=${openDialog} aria-labelledby="token-title" onCancel=${(event) => event.preventDefault()}>
    <h2 id="token-title">Access token</h2>
    <p>Enter an access token to continue. It is kept until this tab is closed.</p>
    <form onSubmit=${handleSubmit}>
      <label for="token">Token</label>
      <input id="token" type="password" autocomplete="off" value=${token} onInput=${(event) => setToken(event.target.value)} aria-describedby="token-error" />
      <p id="token-error" class="error" role="alert">${access.tokenRejected ? "This token is not valid." : ""}</p>
      <div class="actions"><button type="submit" class="primary" disabled=${!token.trim()}>Continue</button></div>
    </form>
  </dialog>`;
}

const root = document.getElementById("page");
root.replaceChildren();
render(html`<${App} />`, root);
page.start();
document.getElementById("message")?.focus();
