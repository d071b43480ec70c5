// The list of conversations, with search, rename and delete.
import { Icon, Model, announce, html, useModel, useRef, useState } from "./view.js";
import { ApiError, api, urlOf } from "./api.js";
import { formatTime } from "./format.js";

const INITIAL_LIMIT = 200;
/** Maximum number of sessions that the server returns in one response. */
const MAX_LIMIT = 1_000;

/** Interval of updates while runs are unfinished, in milliseconds. */
const WATCH_INTERVAL = 5_000;

const RUN_STATES = { running: "Running", waiting: "Needs approval or an answer", interrupted: "Interrupted" };

/** The stored sessions, newest first. */
export class Sessions extends Model {
  list = [];
  limit = INITIAL_LIMIT;
  /** State of the unfinished run of each session. */
  runStates = new Map();
  #timer = null;
  /** Number of renames and deletions by this page. */
  #changeCount = 0;
  state = "loading";
  error = null;
  /** Connects the tabs of this browser. Any message means that the list changed. */
  #otherTabs = new BroadcastChannel("switchboard.sessions");

  constructor() {
    super();
    this.#otherTabs.onmessage = () => this.load();
  }

  /** Loads the list in all tabs, after a change by this tab. */
  reload() {
    this.#otherTabs.postMessage(null);
    return this.load();
  }

  /** Loads the list again after a delay while it contains unfinished runs. */
  #watchRuns() {
    clearTimeout(this.#timer);
    const update = () => (document.hidden ? this.#watchRuns() : this.load());
    if (this.runStates.size) this.#timer = setTimeout(update, WATCH_INTERVAL);
  }

  async load() {
    const changeCount = this.#changeCount;
    try {
      const { sessions = [], unfinished_runs = [] } = await api.sessions(this.limit);
      // A rename or deletion during the request makes this response outdated.
      if (changeCount !== this.#changeCount) return this.load();
      this.list = sessions;
      this.runStates = new Map(unfinished_runs.map((run) => [run.session, run.state]));
      this.#watchRuns();
      this.state = "ready";
      this.error = null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.state = "failed";
      this.error = error;
    }
    this.notify();
    return undefined;
  }

  /** Whether the server may have older sessions than the listed ones. */
  get hasOlder() {
    return this.limit < MAX_LIMIT && this.list.length >= this.limit;
  }

  loadOlder() {
    this.limit = MAX_LIMIT;
    return this.load();
  }

  /** Deletes a session. Resolves to an error message, or null on success. */
  async remove(id) {
    return this.#change(() => api.deleteSession(id), () => this.list.filter((it) => it.id !== id));
  }

  /** Renames a session. Resolves to an error message, or null on success. */
  async rename(id, title) {
    return this.#change(() => api.rename(id, title), () => this.list.map((it) => (it.id === id ? { ...it, title } : it)));
  }

  async #change(request, updatedList) {
    try {
      await request();
      this.#changeCount += 1;
      this.#otherTabs.postMessage(null);
      this.list = updatedList();
      this.notify();
      return null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return error.message;
    }
  }
}

export function Sidebar({ sessions, current, open, onClose, onDeleted }) {
  useModel(sessions);
  useModel(current);
  const [query, setQuery] = useState("");
  const [deleting, setDeleting] = useState(null);
  const [renaming, setRenaming] = useState(null);
  const terms = query.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const matches = sessions.list.filter((it) => terms.every((term) => titleOf(it).toLowerCase().includes(term)));
  return html`<aside class="sidebar ${open ? "open" : ""}" id="sidebar" aria-label="Conversations">
    <div class="brand"><img src=${urlOf("/assets/icon.svg")} alt="" width="26" height="26" /><span>Switchboard</span>
      <button type="button" class="quiet icon-button only-narrow" onClick=${onClose} aria-label="Close conversations"><${Icon} name="close" /></button></div>
    <a class="button new" href="#/" onClick=${onClose}><${Icon} name="plus" /> New conversation</a>
    <div class="search"><${Icon} name="search" /><input type="search" aria-label="Search conversations" placeholder="Search" value=${query} onInput=${(event) => setQuery(event.target.value)} /></div>
    <nav aria-label="Conversations"><ul class="sessions">
      ${matches.map((it) => html`<li key=${it.id} class=${it.id === current.id ? "current" : ""}>
        <a href=${`#/s/${encodeURIComponent(it.id)}`} aria-current=${it.id === current.id ? "page" : undefined} onClick=${onClose}>
          <span class="session-name"><${RunMark} state=${sessions.runStates.get(it.id)} />${titleOf(it)}</span><span class="muted small">${formatTime(it.created_at)}</span></a>
        <button type="button" class="quiet icon-button" aria-label=${`Rename “${titleOf(it)}”`} title="Rename" onClick=${() => setRenaming(it)}><${Icon} name="pen" /></button>
        <button type="button" class="quiet icon-button" aria-label=${`Delete “${titleOf(it)}”`} title="Delete" onClick=${() => setDeleting(it)}><${Icon} name="trash" /></button>
      </li>`)}
    </ul></nav>
    ${sessions.hasOlder && html`<p class="pad"><button type="button" class="quiet small" onClick=${() => sessions.loadOlder()}>Load older conversations</button></p>`}
    ${sessions.state === "ready" && matches.length === 0 && html`<p class="muted small pad">${terms.length ? "No matches" : "No conversations yet"}</p>`}
    ${sessions.state === "failed" && html`<p class="error small pad">${sessions.error.message} <button type="button" class="small" onClick=${() => sessions.load()}>Try again</button></p>`}
    ${renaming && html`<${RenameDialog} session=${renaming} sessions=${sessions} onClose=${() => setRenaming(null)} />`}
    ${deleting && html`<${DeleteDialog} session=${deleting} sessions=${sessions} onClose=${(deleted) => { if (deleted) onDeleted(deleting.id); setDeleting(null); }} />`}
  </aside>`;
}

/** Marks a conversation with an unfinished run. */
function RunMark({ state }) {
  const label = RUN_STATES[state];
  return label ? html`<span class="dot ${state}" role="img" aria-label=${label} title=${label} /> ` : null;
}

function titleOf(session) {
  return session.title || "Untitled conversation";
}

/** Returns a ref callback that stores the dialog in `ref` and opens it on mount. */
function openOnMount(ref) {
  return (dialog) => {
    if (!dialog || ref.current) return;
    ref.current = dialog;
    dialog.showModal();
  };
}

function RenameDialog({ session, sessions, onClose }) {
  const [title, setTitle] = useState(session.title);
  const [error, setError] = useState(null);
  const dialog = useRef(null);
  const dialogRef = openOnMount(dialog);
  const rename = async (event) => {
    event.preventDefault();
    const problem = await sessions.rename(session.id, title.trim());
    setError(problem);
    // `close` returns the focus to the element that had it before the dialog.
    if (!problem) dialog.current.close();
  };
  return html`<dialog ref=${dialogRef} aria-labelledby="rename-title" onClose=${onClose}>
    <h2 id="rename-title">Rename this conversation</h2>
    <form onSubmit=${rename}>
      <label for="rename-field">Title</label>
      <input id="rename-field" type="text" maxlength="200" autocomplete="off" value=${title} onInput=${(event) => setTitle(event.target.value)} aria-describedby="rename-error" />
      <p id="rename-error" class="error" role="alert">${error ?? ""}</p>
      <div class="actions"><button type="submit" class="primary" disabled=${!title.trim()}>Rename</button><button type="button" onClick=${() => dialog.current.close()}>Cancel</button></div>
    </form>
  </dialog>`;
}

function DeleteDialog({ session, sessions, onClose }) {
  const [error, setError] = useState(null);
  const dialog = useRef(null);
  const dialogRef = openOnMount(dialog);
  const remove = async () => {
    const problem = await sessions.remove(session.id);
    setError(problem);
    if (problem) return;
    announce("Conversation deleted.");
    onClose(true);
    document.getElementById("message")?.focus();
  };
  return html`<dialog ref=${dialogRef} aria-labelledby="forget-title" onClose=${() => onClose(false)}>
    <h2 id="forget-title">Delete this conversation?</h2>
    <p>“${titleOf(session)}” will be deleted. This cannot be undone.</p>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    <form method="dialog" class="actions"><button type="button" class="danger solid" onClick=${remove}>Delete</button><button type="submit">Cancel</button></form>
  </dialog>`;
}
