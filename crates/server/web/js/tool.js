// A tool call: input, status, result and approval form.
import { Component, Icon, html, useEffect, useRef, useState } from "./view.js";
import { Code } from "./text.js";
import { Result } from "./result.js";
import { parseObject } from "./schema.js";
import { catalogue } from "./catalogue.js";
import { formatDuration, formatValue } from "./format.js";

/** Icon, label and CSS class by call status. */
const STATUSES = {
  writing: ["wait", "preparing…", ""],
  planned: ["wait", "queued", ""],
  awaiting: ["ask", "needs approval", "ask"],
  approved: ["wait", "queued", ""],
  running: ["wait", "running…", ""],
  done: ["check", "done", "good"],
  failed: ["cross", "failed", "bad"],
  denied: ["cross", "denied", "bad"],
  stopped: ["cross", "stopped", ""],
};

/** Labels of `result.failure`. */
const FAILURE_LABELS = {
  denied: "denied", not_approved: "not approved", unknown_tool: "unknown tool", malformed_input: "invalid JSON", invalid_input: "invalid input",
  skipped: "skipped", limit_reached: "limit reached", repeated: "duplicate call", withheld: "answer withheld", unavailable: "server unavailable", refused: "refused by the server",
  timeout: "timed out", broken: "connection lost", not_stored: "not run: storage failed", interrupted: "interrupted", cancelled: "stopped", tool_error: "failed", invalid_output: "unexpected result",
};

/** A tool call. `item` is a run item of kind `tool`. */
export class Tool extends Component {
  shouldComponentUpdate({ rev, run, problem }) {
    return rev !== this.props.rev || run !== this.props.run || problem !== this.props.problem;
  }

  render() {
    const { item, run, session } = this.props;
    const [icon, label, tone] = STATUSES[item.status];
    const failure = item.result?.failure;
    const state = item.status === "failed" && failure ? FAILURE_LABELS[failure] ?? label : label;
    const busy = ["writing", "planned", "approved", "running"].includes(item.status);
    return html`<section class="tool ${tone}" aria-label=${`Tool ${item.tool || item.name}: ${state}`} data-tool=${item.tool || item.name} data-status=${item.status}>
      <details>
        <summary>
          <span class="tool-icon ${busy ? "busy" : ""}"><${Icon} name=${icon} /></span>
          <span class="tool-name"><strong>${item.tool || item.name || "tool"}</strong>${item.server && html` <span class="muted">${item.server}</span>`}</span>
          <span class="tool-brief muted">${summarizeInput(item)}</span>
          <span class="tool-state">${state}<${CallStats} item=${item} /></span>
          <span class="chevron"><${Icon} name="chevron" /></span>
        </summary>
        <div class="tool-body">
          <${Input} item=${item} />
          <${History} item=${item} />
          ${item.result && html`<${Result} result=${item.result} item=${item} run=${run} />`}
        </div>
      </details>
      ${item.progress && html`<${Progress} progress=${item.progress} />`}
      ${item.status === "awaiting" && html`<${Approval} item=${item} run=${run} session=${session} />`}
      ${item.result && html`<${ToolApp} item=${item} />`}
    </section>`;
  }
}

/** Returns the start of the input, or its end while the model is writing it. */
function summarizeInput({ input, inputText, status }) {
  if (status === "writing") return inputText.slice(-80);
  if (input === undefined) return "";
  const text = typeof input === "string" ? input : JSON.stringify(input);
  return text === "{}" ? "" : text.length > 120 ? `${text.slice(0, 119)}…` : text;
}

/** Duration, cache use and attempts of a call. */
function CallStats({ item }) {
  const { result } = item;
  if (!result || result.duration_ms === undefined) return null;
  const parts = [];
  if (result.cached) parts.push("cached");
  else if (result.attempts) parts.push(formatDuration(result.duration_ms));
  if (result.attempts > 1) parts.push(`${result.attempts} attempts`);
  return parts.length ? html`<span class="muted"> · ${parts.join(" · ")}</span>` : null;
}

function Input({ item }) {
  const text = item.status === "writing" ? item.inputText : formatValue(item.input ?? item.inputText);
  if (!text) return html`<p class="muted">No input.</p>`;
  return html`<h3>Input</h3><${Code} text=${text} language=${item.status === "writing" ? "" : "json"} label="Input of the tool" />`;
}

/** Repairs, retries and the approval decision of a call. */
function History({ item }) {
  const { repairs, retries, decision } = item;
  const lines = [
    ...repairs.map((repair) => `Input corrected: ${repair}`),
    ...retries.map(({ attempt, reason }) => `Retried (attempt ${attempt}): ${reason}`),
  ];
  if (decision?.allowed) {
    const scopes = { session: " for this conversation", always: " for all conversations" };
    const remembered = decision.remembered ? " (remembered)" : "";
    lines.push(`Allowed${scopes[decision.scope] ?? ""}${remembered}${decision.edited ? " · input edited" : ""}`);
  } else if (decision) lines.push(`Denied: ${decision.reason}`);
  return lines.length ? html`<ul class="call-history">${lines.map((line) => html`<li>${line}</li>`)}</ul>` : null;
}

function Progress({ progress: { progress, total, message } }) {
  const label = message ?? "Progress";
  return html`<div class="progress">
    <progress aria-label=${label} max=${total ?? undefined} value=${total ? progress : undefined} />
    <span class="muted">${message ?? ""} ${total ? `${Math.round((100 * progress) / total)}%` : ""}</span>
  </div>`;
}

/**
 * The app of a tool. It is shown outside the details, because it is the main output of the call.
 */
function ToolApp({ item }) {
  const [Frame, setFrame] = useState(null);
  const uri = catalogue.appUriOf(item.server, item.tool);
  useEffect(() => {
    if (uri) import("./frame.js").then((module) => setFrame(() => module.AppLoader));
  }, [uri]);
  return uri && Frame ? html`<${Frame} item=${item} uri=${uri} />` : null;
}

/** Annotation, value and description. */
const EFFECTS = [
  ["destructive", true, "may delete or overwrite data"],
  ["read_only", true, "read-only"],
  ["open_world", true, "accesses external systems"],
  ["idempotent", true, "safe to repeat"],
];

function Approval({ item, run, session }) {
  const request = item.approval;
  const originalInput = formatValue(request?.input ?? item.input ?? {});
  const [edited, setEdited] = useState(null);
  const [error, setError] = useState(null);
  const [reason, setReason] = useState("");
  const [denying, setDenying] = useState(false);
  const [scope, setScope] = useState("once");
  const field = useRef(null);
  const form = useRef(null);
  const restoreFocus = useRef(false);
  const id = `approval-${item.key}`;
  useEffect(() => {
    if (edited !== null || denying) field.current?.focus();
    else if (restoreFocus.current) form.current?.querySelector(".actions button[type=button]")?.focus();
    restoreFocus.current = false;
  }, [edited === null, denying]);

  const submit = async (body) => {
    await session.decide(run, item, scope === "once" ? body : { ...body, scope });
    // The focused button is removed, so the focus moves to the message field.
    document.getElementById("message")?.focus();
  };
  const allow = () => {
    if (edited === null) {
      submit({ decision: "allow" });
      return;
    }
    const { value, error: problem } = parseObject(edited, catalogue.schemaOf(item));
    setError(problem ?? null);
    if (problem) field.current?.focus();
    else submit(edited === originalInput ? { decision: "allow" } : { decision: "allow", input: value });
  };
  const deny = () => submit({ decision: "deny", ...(reason.trim() ? { reason: reason.trim() } : {}) });
  // Closes only the focused field. `preventDefault` keeps the page from handling Escape as well.
  const handleKeyDown = (event) => {
    if (event.key !== "Escape" || event.isComposing || event.target !== field.current) return;
    event.preventDefault();
    restoreFocus.current = true;
    if (denying) setDenying(false);
    else {
      setEdited(null);
      setError(null);
    }
  };
  const effects = EFFECTS.filter(([key, value]) => request?.annotations?.[key] === value).map(([, , description]) => description);
  const changeInput = (text) => {
    setEdited(text);
    setError(parseObject(text, catalogue.schemaOf(item)).error ?? null);
  };

  return html`<form class="approval" ref=${form} onKeyDown=${handleKeyDown} aria-labelledby=${`${id}-title`} onSubmit=${(event) => { event.preventDefault(); if (denying) deny(); else allow(); }}>
    <h3 id=${`${id}-title`}>Allow ${item.server ? html`<code>${item.server}</code> to run ` : ""}<code>${item.tool || item.name}</code> with this input?</h3>
    ${request?.redefined && html`<p class="warning"><${Icon} name="warn" /> The server changed the definition of this tool after its last approval. Check it again.</p>`}
    ${request?.description && html`<p class="muted clip">${request.description}</p>`}
    ${effects.length > 0 && html`<p class="muted">According to the server: ${effects.join(" · ")}</p>`}
    ${request?.expires_at && html`<p class="muted">Expires at ${new Date(request.expires_at).toLocaleTimeString()}</p>`}
    ${edited === null
      ? html`<${Code} text=${originalInput} language="json" label="Input of the call" />`
      : html`<label for=${`${id}-input`}>Input (JSON)</label>
        <textarea id=${`${id}-input`} class="json" ref=${field} rows=${Math.min(16, edited.split("\n").length + 1)} spellcheck="false" autocapitalize="off"
          aria-invalid=${error ? "true" : "false"} aria-describedby=${`${id}-error`} value=${edited} onInput=${(event) => changeInput(event.target.value)} />
        <p id=${`${id}-error`} class="error" role="alert">${error ?? ""}</p>`}
    ${denying && html`<label for=${`${id}-reason`}>Reason (sent to the model)</label>
      <input id=${`${id}-reason`} type="text" ref=${field} value=${reason} autocomplete="off" onInput=${(event) => setReason(event.target.value)} />`}
    <div class="actions">
      ${!denying && html`<button type="submit" class="primary" disabled=${item.decisionPending || Boolean(error)}>Allow${edited !== null && edited !== originalInput ? " with changes" : ""}</button>`}
      ${!denying && (edited === null
        ? html`<button type="button" onClick=${() => setEdited(originalInput)} disabled=${item.decisionPending}>Edit</button>`
        : html`<button type="button" onClick=${() => { setEdited(null); setError(null); }}>Discard changes</button>`)}
      ${denying
        ? html`<button key="confirm" type="submit" class="danger" disabled=${item.decisionPending}>Deny</button>
          <button type="button" onClick=${() => setDenying(false)}>Back</button>`
        : html`<button key="deny" type="button" class="danger" onClick=${() => setDenying(true)} disabled=${item.decisionPending}>Deny</button>`}
      <label class="inline">Applies to
        <select value=${scope} onChange=${(event) => setScope(event.target.value)}>
          <option value="once">This call</option>
          <option value="session">This conversation</option>
          <option value="always">All conversations</option>
        </select>
      </label>
    </div>
  </form>`;
}
