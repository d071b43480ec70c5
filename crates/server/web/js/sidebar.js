// The conversations that there are.
import { Icon, Model, announce, html, useModel, useRef, useState } from "./view.js";
import { api, Refused, at } from "./api.js";
import { when } from "./words.js";

const SOME = 200;
/** The server gives no more at once. */
const MOST = 1_000;

export class Sessions extends Model {
  list = [];
  limit = SOME;
  /** How often something was changed from here. */
  #changes = 0;
  state = "loading";
  error = null;

  async load() {
    const changes = this.#changes;
    try {
      const { sessions = [] } = await api.sessions(this.limit);
      // Something was deleted or renamed meanwhile, which this may not know yet.
      if (changes !== this.#changes) return this.load();
      this.list = sessions;
      this.state = "ready";
      this.error = null;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.state = "failed";
      this.error = error;
    }
    this.touch();
    return undefined;
  }

  /** Whether there may be older ones than those in the list. */
  get hasOlder() {
    return this.limit < MOST && this.list.length >= this.limit;
  }

  older() {
    this.limit = MOST;
    return this.load();
  }

  /** Resolves to why it did not work, or null; so does `rename`. */
  async forget(id) {
    return this.#change(() => api.forget(id), () => this.list.filter((it) => it.id !== id));
  }

  async rename(id, title) {
    return this.#change(() => api.rename(id, title), () => this.list.map((it) => (it.id === id ? { ...it, title } : it)));
  }

  async #change(ask, changed) {
    try {
      await ask();
      this.#changes += 1;
      this.list = changed();
      this.touch();
      return null;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return error.message;
    }
  }
}

export function Sidebar({ sessions, current, open, onClose, onForgotten }) {
  useModel(sessions);
  useModel(current);
  const [wanted, setWanted] = useState("");
  const [doomed, setDoomed] = useState(null);
  const [renamed, setRenamed] = useState(null);
  const words = wanted.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const shown = sessions.list.filter((it) => words.every((word) => name(it).toLowerCase().includes(word)));
  return html`<aside class="sidebar ${open ? "open" : ""}" id="sidebar" aria-label="Conversations">
    <div class="brand"><img src=${at("/assets/icon.svg")} alt="" width="26" height="26" /><span>Switchboard</span>
      <button type="button" class="quiet icon-button only-narrow" onClick=${onClose} aria-label="Close the list"><${Icon} name="close" /></button></div>
    <a class="button new" href="#/" onClick=${onClose}><${Icon} name="plus" /> New conversation</a>
    <div class="search"><${Icon} name="search" /><input type="search" aria-label="Search conversations" placeholder="Search" value=${wanted} onInput=${(event) => setWanted(event.target.value)} /></div>
    <nav aria-label="Conversations"><ul class="sessions">
      ${shown.map((it) => html`<li key=${it.id} class=${it.id === current.id ? "current" : ""}>
        <a href=${`#/s/${encodeURIComponent(it.id)}`} aria-current=${it.id === current.id ? "page" : undefined} onClick=${onClose}>
          <span class="session-name">${name(it)}</span><span class="muted small">${when(it.created_at)}</span></a>
        <button type="button" class="quiet icon-button" aria-label=${`Rename “${name(it)}”`} onClick=${() => setRenamed(it)}><${Icon} name="pen" /></button>
        <button type="button" class="quiet icon-button" aria-label=${`Delete “${name(it)}”`} onClick=${() => setDoomed(it)}><${Icon} name="trash" /></button>
      </li>`)}
    </ul></nav>
    ${sessions.hasOlder && html`<p class="pad"><button type="button" class="quiet small" onClick=${() => sessions.older()}>Older ones as well</button></p>`}
    ${sessions.state === "ready" && shown.length === 0 && html`<p class="muted small pad">${words.length ? "None with these words." : "Nothing yet."}</p>`}
    ${sessions.state === "failed" && html`<p class="error small pad">${sessions.error.message} <button type="button" class="small" onClick=${() => sessions.load()}>Try again</button></p>`}
    ${renamed && html`<${Rename} session=${renamed} sessions=${sessions} onEnd=${() => setRenamed(null)} />`}
    ${doomed && html`<${Forget} session=${doomed} sessions=${sessions} onEnd=${(forgotten) => { if (forgotten) onForgotten(doomed.id); setDoomed(null); }} />`}
  </aside>`;
}

function name(session) {
  return session.title || "Untitled conversation";
}

/** Opens a dialog as soon as it is there, and keeps it in `place`. */
function useDialog(place) {
  return (dialog) => {
    if (!dialog || place.current) return;
    place.current = dialog;
    dialog.showModal();
  };
}

function Rename({ session, sessions, onEnd }) {
  const [title, setTitle] = useState(session.title);
  const [error, setError] = useState(null);
  const place = useRef(null);
  const show = useDialog(place);
  const rename = async (event) => {
    event.preventDefault();
    const problem = await sessions.rename(session.id, title.trim());
    setError(problem);
    // Closing gives the focus back to where it was.
    if (!problem) place.current.close();
  };
  return html`<dialog ref=${show} aria-labelledby="rename-title" onClose=${onEnd}>
    <h2 id="rename-title">Rename this conversation</h2>
    <form onSubmit=${rename}>
      <label for="rename-field">Title</label>
      <input id="rename-field" type="text" maxlength="200" autocomplete="off" value=${title} onInput=${(event) => setTitle(event.target.value)} aria-describedby="rename-error" />
      <p id="rename-error" class="error" role="alert">${error ?? ""}</p>
      <div class="actions"><button type="submit" class="primary" disabled=${!title.trim()}>Rename</button><button type="button" onClick=${() => place.current.close()}>Leave it</button></div>
    </form>
  </dialog>`;
}

function Forget({ session, sessions, onEnd }) {
  const [error, setError] = useState(null);
  const place = useRef(null);
  const show = useDialog(place);
  const forget = async () => {
    const problem = await sessions.forget(session.id);
    setError(problem);
    if (problem) return;
    announce("The conversation is deleted.");
    onEnd(true);
    document.getElementById("message")?.focus();
  };
  return html`<dialog ref=${show} aria-labelledby="forget-title" onClose=${() => onEnd(false)}>
    <h2 id="forget-title">Delete this conversation?</h2>
    <p>“${name(session)}” and everything in it will be gone. This cannot be undone.</p>
    ${error && html`<p class="error" role="alert">${error}</p>`}
    <form method="dialog" class="actions"><button type="button" class="danger solid" onClick=${forget}>Delete</button><button type="submit">Keep it</button></form>
  </dialog>`;
}
