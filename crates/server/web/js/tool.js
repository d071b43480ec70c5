// A tool's call: what it is asked, how far it is, what came of it, and whether it may run.
import { Component, Icon, html, useEffect, useRef, useState } from "./view.js";
import { Code } from "./text.js";
import { Result } from "./result.js";
import { readObject } from "./schema.js";
import { catalogue } from "./catalogue.js";
import { duration, pretty } from "./words.js";

const STATES = {
  writing: ["wait", "is being written", ""],
  planned: ["wait", "is about to run", ""],
  awaiting: ["ask", "needs your word", "ask"],
  approved: ["wait", "is about to run", ""],
  running: ["wait", "is running", ""],
  done: ["check", "done", "good"],
  failed: ["cross", "failed", "bad"],
  denied: ["cross", "denied", "bad"],
  stopped: ["cross", "did not finish", ""],
};

const FAILURES = {
  denied: "denied", not_approved: "not approved", unknown_tool: "no such tool", malformed_input: "its input is no JSON", invalid_input: "its input does not fit",
  skipped: "skipped", limit_reached: "a limit was reached", repeated: "made before", withheld: "withheld", unavailable: "server not available", refused: "refused by the server",
  timeout: "no answer in time", broken: "connection broke", not_stored: "could not be stored", interrupted: "interrupted", cancelled: "stopped", tool_error: "failed", invalid_output: "unexpected result",
};

/** `item` is a piece of a run of kind `tool`. */
export class Tool extends Component {
  shouldComponentUpdate({ rev, run, problem }) {
    return rev !== this.props.rev || run !== this.props.run || problem !== this.props.problem;
  }

  render() {
    const { item, run, session } = this.props;
    const [icon, words, tone] = STATES[item.status];
    const failure = item.result?.failure;
    const state = item.status === "failed" && failure ? FAILURES[failure] ?? words : words;
    const busy = ["writing", "planned", "approved", "running"].includes(item.status);
    return html`<section class="tool ${tone}" aria-label=${`Tool ${item.tool || item.name}: ${state}`} data-tool=${item.tool || item.name} data-status=${item.status}>
      <details>
        <summary>
          <span class="tool-icon ${busy ? "busy" : ""}"><${Icon} name=${icon} /></span>
          <span class="tool-name"><strong>${item.tool || item.name || "tool"}</strong>${item.server && html` <span class="muted">${item.server}</span>`}</span>
          <span class="tool-brief muted">${brief(item)}</span>
          <span class="tool-state">${state}<${Took} item=${item} /></span>
          <span class="chevron"><${Icon} name="chevron" /></span>
        </summary>
        <div class="tool-body">
          <${Input} item=${item} />
          <${Story} item=${item} />
          ${item.result && html`<${Result} result=${item.result} item=${item} run=${run} />`}
        </div>
      </details>
      ${item.progress && html`<${Progress} progress=${item.progress} />`}
      ${item.status === "awaiting" && html`<${Approval} item=${item} run=${run} session=${session} />`}
      ${item.result && html`<${Page} item=${item} />`}
    </section>`;
  }
}

function brief({ input, inputText, status }) {
  if (status === "writing") return inputText.slice(-80);
  if (input === undefined) return "";
  const text = typeof input === "string" ? input : JSON.stringify(input);
  return text === "{}" ? "" : text.length > 120 ? `${text.slice(0, 119)}…` : text;
}

function Took({ item }) {
  const { result } = item;
  if (!result || result.duration_ms === undefined) return null;
  const parts = [];
  if (result.cached) parts.push("from the cache");
  else if (result.attempts) parts.push(duration(result.duration_ms));
  if (result.attempts > 1) parts.push(`${result.attempts} attempts`);
  return parts.length ? html`<span class="muted"> · ${parts.join(" · ")}</span>` : null;
}

function Input({ item }) {
  const written = item.status === "writing" ? item.inputText : pretty(item.input ?? item.inputText);
  if (!written) return html`<p class="muted">No input.</p>`;
  return html`<h3>Input</h3><${Code} text=${written} language=${item.status === "writing" ? "" : "json"} label="Input of the tool" />`;
}

function Story({ item }) {
  const { repairs, retries, decided } = item;
  const lines = [
    ...repairs.map((repair) => `Changed: ${repair}`),
    ...retries.map(({ attempt, reason }) => `Attempt ${attempt}, because: ${reason}`),
  ];
  if (decided?.allowed) {
    const scopes = { session: "for this session", always: "for good" };
    const scope = scopes[decided.scope] ? ` ${scopes[decided.scope]}` : "";
    lines.push(`${decided.remembered ? "Allowed by an earlier answer" : "Allowed"}${scope}${decided.edited ? ", with an edited input" : ""}.`);
  } else if (decided) lines.push(`Denied: ${decided.reason}`);
  return lines.length ? html`<ul class="story">${lines.map((line) => html`<li>${line}</li>`)}</ul>` : null;
}

function Progress({ progress: { progress, total, message } }) {
  const label = message ?? "Progress";
  return html`<div class="progress">
    <progress aria-label=${label} max=${total ?? undefined} value=${total ? progress : undefined} />
    <span class="muted">${message ?? ""} ${total ? `${Math.round((100 * progress) / total)} %` : ""}</span>
  </div>`;
}

/** Shown outside of the details: a tool with a page of its own is about that page. */
function Page({ item }) {
  const [Frame, setFrame] = useState(null);
  const wanted = catalogue.pageOf(item.server, item.tool);
  useEffect(() => {
    if (wanted) import("./frame.js").then((module) => setFrame(() => module.AppOfTool));
  }, [wanted]);
  return wanted && Frame ? html`<${Frame} item=${item} uri=${wanted} />` : null;
}

const EFFECTS = [
  ["destructive", true, "may destroy data"],
  ["read_only", true, "only reads, as it says"],
  ["open_world", true, "reaches beyond this machine"],
  ["idempotent", true, "may be repeated without harm"],
];

function Approval({ item, run, session }) {
  const request = item.approval;
  const before = pretty(request?.input ?? item.input ?? {});
  const [edited, setEdited] = useState(null);
  const [error, setError] = useState(null);
  const [reason, setReason] = useState("");
  const [denying, setDenying] = useState(false);
  const [scope, setScope] = useState("once");
  const field = useRef(null);
  const form = useRef(null);
  const closed = useRef(false);
  const name = `approval-${item.key}`;
  useEffect(() => {
    if (edited !== null || denying) field.current?.focus();
    else if (closed.current) form.current?.querySelector(".actions button[type=button]")?.focus();
    closed.current = false;
  }, [edited === null, denying]);

  const send = async (body) => {
    await session.decide(run, item, scope === "once" ? body : { ...body, scope });
    // The buttons are gone; whoever used the keyboard goes on where they were.
    document.getElementById("message")?.focus();
  };
  const allow = () => {
    if (edited === null) {
      send({ decision: "allow" });
      return;
    }
    const { value, error: wrong } = readObject(edited, catalogue.schemaOf(item));
    setError(wrong ?? null);
    if (wrong) field.current?.focus();
    else send(edited === before ? { decision: "allow" } : { decision: "allow", input: value });
  };
  const deny = () => send({ decision: "deny", ...(reason.trim() ? { reason: reason.trim() } : {}) });
  // Closes the field that has the focus, and nothing else.
  const key = (event) => {
    if (event.key !== "Escape" || event.isComposing || event.target !== field.current) return;
    event.preventDefault();
    closed.current = true;
    if (denying) setDenying(false);
    else {
      setEdited(null);
      setError(null);
    }
  };
  const notes = EFFECTS.filter(([key, value]) => request?.annotations?.[key] === value).map(([, , words]) => words);
  const edit = (text) => {
    setEdited(text);
    setError(readObject(text, catalogue.schemaOf(item)).error ?? null);
  };

  return html`<form class="approval" ref=${form} onKeyDown=${key} aria-labelledby=${`${name}-title`} onSubmit=${(event) => { event.preventDefault(); if (denying) deny(); else allow(); }}>
    <h3 id=${`${name}-title`}>May <code>${item.tool || item.name}</code>${item.server ? html` of <code>${item.server}</code>` : ""} run with this input?</h3>
    ${request?.redefined && html`<p class="warning"><${Icon} name="warn" /> The server has changed what this tool is since it was last approved. Look at it again.</p>`}
    ${request?.description && html`<p class="muted clip">${request.description}</p>`}
    ${notes.length > 0 && html`<p class="muted">It ${notes.join(", ")}.</p>`}
    ${request?.expires_at && html`<p class="muted">An answer counts until ${new Date(request.expires_at).toLocaleTimeString()}.</p>`}
    ${edited === null
      ? html`<${Code} text=${before} language="json" label="Input that will run" />`
      : html`<label for=${`${name}-input`}>Input, as JSON</label>
        <textarea id=${`${name}-input`} class="json" ref=${field} rows=${Math.min(16, edited.split("\n").length + 1)} spellcheck="false" autocapitalize="off"
          aria-invalid=${error ? "true" : "false"} aria-describedby=${`${name}-error`} value=${edited} onInput=${(event) => edit(event.target.value)} />
        <p id=${`${name}-error`} class="error" role="alert">${error ?? ""}</p>`}
    ${denying && html`<label for=${`${name}-reason`}>Why not? The model reads this.</label>
      <input id=${`${name}-reason`} type="text" ref=${field} value=${reason} autocomplete="off" onInput=${(event) => setReason(event.target.value)} />`}
    <div class="actions">
      ${!denying && html`<button type="submit" class="primary" disabled=${item.deciding || Boolean(error)}>Allow${edited !== null && edited !== before ? " edited" : ""}</button>`}
      ${!denying && (edited === null
        ? html`<button type="button" onClick=${() => setEdited(before)} disabled=${item.deciding}>Edit</button>`
        : html`<button type="button" onClick=${() => { setEdited(null); setError(null); }}>Undo edit</button>`)}
      ${denying
        ? html`<button key="sure" type="submit" class="danger" disabled=${item.deciding}>Deny</button>
          <button type="button" onClick=${() => setDenying(false)}>Back</button>`
        : html`<button key="deny" type="button" class="danger" onClick=${() => setDenying(true)} disabled=${item.deciding}>Deny</button>`}
      <label class="inline">For
        <select value=${scope} onChange=${(event) => setScope(event.target.value)} aria-label="For how long the answer holds">
          <option value="once">this call</option>
          <option value="session">this session</option>
          <option value="always">always</option>
        </select>
      </label>
    </div>
  </form>`;
}
