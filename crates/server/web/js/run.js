// The displayed state of one run, built from its events. A replay gives the same state as the live
// events.
import { Model } from "./view.js";

let lastKey = 0;

/**
 * Creates a displayed item of a run. `rev` increases with each change, so that only changed items
 * are rendered.
 */
function createItem(kind, fields) {
  lastKey += 1;
  return { key: lastKey, rev: 0, kind, ...fields };
}

export class Run extends Model {
  /** `running`, `waiting` (parked or waiting for the user), `interrupted` or `finished`. */
  state = "running";
  items = [];
  report = null;
  model = "";
  phase = null;
  started = null;
  ended = null;
  /** Token usage, summed over all finished model calls. */
  usage = {};
  /** Sequence number of the last processed event. */
  seq = 0;
  /** `{state, at}`: the state that the server reported, valid up to event number `at`. */
  reportedState = null;
  calls = new Map();
  questions = new Map();
  stopping = false;

  /** `onChange(run, change)` reports the changes that affect more than this run. */
  constructor(id, onChange = () => {}) {
    super();
    this.id = id;
    this.onChange = onChange;
  }

  get isActive() {
    return this.state === "running" || this.state === "waiting";
  }

  /** The answer as the model wrote it, in Markdown. */
  get answer() {
    return this.report?.answer || this.items.map((it) => (it.kind === "text" ? it.text : it.artifact?.content ?? "")).filter(Boolean).join("\n\n");
  }

  /** The tool calls that wait for an approval decision. */
  get pendingApprovals() {
    return this.items.filter((it) => it.kind === "tool" && it.status === "awaiting");
  }

  get openQuestions() {
    return this.items.filter((it) => it.kind === "question" && !it.action);
  }

  applyEvent(event) {
    // A reconnected stream may repeat events.
    if (event.seq <= this.seq) return;
    this.seq = event.seq;
    this.started ??= event.time;
    if (this.reportedState && event.seq > this.reportedState.at) this.reportedState = null;
    HANDLERS[event.type]?.call(this, event);
    // Replayed events describe the past, so the state that the server reported takes precedence.
    if (this.reportedState && this.state !== "finished") this.state = this.reportedState.state;
    this.notify();
  }

  /** Appends an item and closes the one before it. */
  append(kind, fields) {
    const last = this.items.at(-1);
    if (last) this.closeItem(last);
    const item = createItem(kind, fields);
    this.items.push(item);
    return item;
  }

  markChanged(item) {
    item.rev += 1;
  }

  /** Marks an item as complete, so no more text is appended to it. */
  closeItem(item) {
    if (item.open) {
      item.open = false;
      this.markChanged(item);
    }
  }

  /**
   * Appends a note. A `persistent` note may apply to the next runs too, and is not repeated there.
   */
  addNote(tone, text, persistent = false) {
    this.append("note", { tone, text, persistent });
  }

  /** Appends text to the last item if it is open and of the same kind, or to a new item. */
  appendText(kind, text) {
    const last = this.items.at(-1);
    if (last?.kind === kind && last.open) {
      last.text += text;
      this.markChanged(last);
    } else {
      this.append(kind, { text, open: true });
    }
  }

  /** Returns the item of a tool call, and appends it if it is missing. */
  callItem(id) {
    let item = this.calls.get(id);
    if (!item) {
      item = this.append("tool", {
        id, name: "", server: null, tool: "", inputText: "", input: undefined, status: "writing",
        repairs: [], retries: [], progress: null, result: null, approval: null, decision: null, decisionPending: false,
      });
      this.calls.set(id, item);
    }
    return item;
  }

  /** Updates the item of a tool call and returns it. */
  updateCall(id, changes) {
    const item = this.callItem(id);
    Object.assign(item, changes);
    this.markChanged(item);
    return item;
  }

  /** Removes the tool calls that an interrupted model response left incomplete. */
  removePartialCalls() {
    const isPartial = (item) => item.kind === "tool" && item.status === "writing";
    for (const item of this.items) if (isPartial(item)) this.calls.delete(item.id);
    this.items = this.items.filter((item) => !isPartial(item));
  }

  /** Applies the response of `GET /runs/{id}`: pending approvals, open questions and the state. */
  applyDetails({ run, waiting = [], questions = [], report }) {
    for (const request of waiting) {
      const id = request.tool_use?.id;
      if (!this.calls.has(id)) continue;
      const input = request.input ?? request.tool_use.input?.object;
      this.updateCall(id, { approval: request, ...(input ? { input } : {}) });
    }
    for (const { id, question } of questions) {
      if (question && !this.questions.has(id)) HANDLERS.question_asked.call(this, { id, question });
    }
    if ((run?.state === "interrupted" || run?.state === "waiting") && this.state !== "finished" && run.last_event >= this.seq) {
      this.reportedState = { state: run.state, at: run.last_event };
      this.state = run.state;
    }
    if (report && this.state !== "finished") this.finish(report);
    this.notify();
  }

  finish(report, time = null) {
    this.state = "finished";
    this.stopping = false;
    this.report = report;
    this.ended = time;
    this.usage = report.usage ?? this.usage;
    // The status of the run shows this error.
    this.items = this.items.filter((it) => it.kind !== "note" || it.text !== report.error?.message);
    for (const item of this.items) this.closeItem(item);
    const content = report.content ?? [];
    if (content.some((block) => block.type === "artifact")) {
      // The streamed text is the same answer as plain Markdown. The content adds the artifacts.
      const start = this.answerStart ?? this.items.findLastIndex((it) => it.kind === "tool") + 1;
      this.items = this.items.filter((it, index) => index < start || it.kind !== "text");
      for (const block of content) {
        // Reports of earlier versions have the text in the field `text`.
        const text = block.content ?? block.text;
        if (block.type === "artifact") this.append("artifact", { artifact: block });
        else if (text) this.append("text", { text, open: false });
      }
    } else {
      if (report.answer && !this.items.some((it) => it.kind === "text")) this.append("text", { text: report.answer, open: false });
      this.items = this.items.flatMap((it) => (it.kind === "text" ? splitDiagrams(it) : [it]));
    }
    for (const item of this.items) {
      if (item.kind === "tool" && !item.result && item.status !== "denied") {
        item.status = "stopped";
        this.markChanged(item);
      }
      if (item.kind === "question" && !item.action) {
        item.action = "cancel";
        this.markChanged(item);
      }
    }
  }
}

/** Splits a text item into text and Mermaid diagram items. */
function splitDiagrams(item) {
  const parts = item.text.split(/^(`{3,})mermaid[ \t]*\n([\s\S]*?)\n\1[ \t]*$/m);
  if (parts.length === 1) return [item];
  // Each match adds two captures: the fence and the source of the diagram.
  const items = [];
  for (let index = 0; index < parts.length; index += 3) {
    if (parts[index].trim()) items.push(createItem("text", { text: parts[index], open: false }));
    const content = parts[index + 2];
    if (content !== undefined) items.push(createItem("artifact", { artifact: { artifactType: "mermaid", title: "Diagram", content } }));
  }
  return items;
}

function toolChoiceNote(choice) {
  const reason = choice?.why ?? choice?.how;
  return reason ? `Tool choice: ${reason}` : null;
}

/** Handlers by event type. Unknown types are ignored: later server versions may add some. */
const HANDLERS = {
  run_started({ model, resumed }) {
    this.model = model;
    this.state = "running";
    if (!resumed) return;
    // A resumed run repeats an interrupted model call and its open questions, so discard both.
    if (this.thinking) {
      for (const item of this.items.splice(this.modelCallStart)) if (item.kind === "tool") this.calls.delete(item.id);
      this.thinking = false;
    }
    for (const item of this.openQuestions) {
      item.action = "cancel";
      this.markChanged(item);
    }
    this.addNote("info", "Resumed.");
  },
  tools_unavailable({ server, message }) {
    this.addNote("warn", `${server}: ${message}`, true);
  },
  server_changed({ change }) {
    this.onChange(this, "servers");
    if (change.type === "server_state" && change.state !== "ready") {
      this.addNote("warn", `Server "${change.server}" is ${change.state}${change.reason ? `: ${change.reason}` : "."}`);
    } else if (change.type === "tool_redefined") {
      this.addNote("warn", `Server "${change.server}" changed the definition of its tool "${change.tool}". Earlier approvals of this tool no longer apply.`);
    }
  },
  phase_started({ phase }) {
    this.phase = phase;
    if (phase === "formatting") {
      const last = this.items.at(-1);
      if (last) this.closeItem(last);
      this.answerStart = this.items.length;
    }
  },
  history_trimmed({ left_out, summarised }) {
    this.addNote("info", `${left_out} older messages were ${summarised ? "summarised" : "left out"} to fit the conversation into the model's context window.`);
  },
  model_switched({ from, to, reason }) {
    this.model = to;
    this.addNote("warn", `Switched from ${from} to ${to}: ${reason}`);
  },
  tools_dropped({ reason }) {
    this.addNote("warn", `Continued without tools: ${reason}`);
  },
  asked_again({ reason }) {
    this.addNote("info", `Retried the model call: ${reason}`);
  },
  format_repaired({ repairs }) {
    this.addNote("info", `The answer's format was repaired: ${repairs.join("; ")}`);
  },
  model_call_started({ step, model }) {
    this.model = model;
    this.step = step;
    this.thinking = true;
    this.modelCallStart = this.items.length;
  },
  text_delta({ text }) {
    this.appendText("text", text);
  },
  reasoning_delta({ text }) {
    this.appendText("reasoning", text);
  },
  tool_input_started({ id, name }) {
    this.updateCall(id, { name, status: "writing" });
  },
  tool_input_delta({ id, json }) {
    const item = this.callItem(id);
    this.updateCall(id, { inputText: item.inputText + json });
  },
  provider_block({ kind, text }) {
    this.append("provider", { name: kind, text });
  },
  model_call_finished({ usage, tool_choice }) {
    this.thinking = false;
    const last = this.items.at(-1);
    if (last) this.closeItem(last);
    for (const [name, count] of Object.entries(usage ?? {})) {
      if (count != null) this.usage = { ...this.usage, [name]: (this.usage[name] ?? 0) + count };
    }
    if (tool_choice?.outcome === "relaxed") this.addNote("info", toolChoiceNote(tool_choice));
  },
  model_call_retried({ attempt, delay_ms, reason }) {
    this.removePartialCalls();
    this.addNote("info", `${reason}. Retrying${delay_ms < 1000 ? "" : ` in ${Math.round(delay_ms / 1000)} s`} (attempt ${attempt}).`);
  },
  model_call_failed({ error }) {
    this.thinking = false;
    this.removePartialCalls();
    this.addNote("bad", error.message);
  },
  warning(event) {
    const { type, seq, time, run_id, ...rest } = event;
    this.addNote("info", rest.message ?? rest.detail ?? JSON.stringify(rest));
  },
  tool_planned({ id, server, tool, input }) {
    const item = this.updateCall(id, { server, tool, input, status: "planned" });
    item.name ||= tool;
  },
  tool_input_repaired({ id, repairs, input }) {
    this.updateCall(id, { repairs: [...this.callItem(id).repairs, ...repairs], input });
  },
  tool_awaiting_approval({ id }) {
    this.updateCall(id, { status: "awaiting" });
    this.onChange(this, "waiting");
  },
  tool_approved({ id, scope, edited, remembered }) {
    this.updateCall(id, { status: "approved", decision: { allowed: true, scope, edited, remembered }, decisionPending: false });
  },
  tool_denied({ id, reason }) {
    this.updateCall(id, { status: "denied", decision: { allowed: false, reason }, decisionPending: false });
  },
  tool_started({ id }) {
    this.updateCall(id, { status: "running", since: Date.now() });
  },
  tool_progressed({ id, progress, total, message }) {
    this.updateCall(id, { progress: { progress, total, message } });
  },
  tool_retried({ id, attempt, reason }) {
    this.updateCall(id, { retries: [...this.callItem(id).retries, { attempt, reason }] });
  },
  tool_finished(event) {
    const denied = this.callItem(event.id).status === "denied";
    this.updateCall(event.id, { status: denied ? "denied" : event.is_error ? "failed" : "done", result: event, progress: null, decisionPending: false });
  },
  question_asked({ id, question }) {
    if (this.questions.has(id)) return;
    this.questions.set(id, this.append("question", { id, question, action: null }));
    this.onChange(this, "question");
  },
  question_answered({ id, action }) {
    const item = this.questions.get(id);
    if (!item) return;
    item.action = action;
    this.markChanged(item);
  },
  run_parked() {
    this.state = "waiting";
    this.onChange(this, "waiting");
  },
  run_finished({ report, time }) {
    this.finish(report, time);
    this.onChange(this, "finished");
  },
};

/** Builds a run from the stored messages of its session, for runs whose events are not replayed. */
export function runFromMessages(id, messages) {
  const run = new Run(id);
  for (const { parts } of messages) {
    for (const part of parts ?? []) {
      if (part.type === "text") run.appendText("text", part.text);
      else if (part.type === "reasoning" && part.text) run.appendText("reasoning", part.text);
      else if (part.type === "tool_use") {
        const input = part.input?.object ?? part.input?.malformed?.raw;
        run.updateCall(part.id, { name: part.name, tool: part.name, input, status: "planned" });
      } else if (part.type === "tool_result") {
        const { content, structured, is_error } = part;
        run.updateCall(part.tool_use_id, { status: is_error ? "failed" : "done", result: { content, structured, is_error } });
      } else if (part.type === "opaque") run.append("provider", { name: part.kind, text: part.text });
    }
  }
  for (const item of run.items) run.closeItem(item);
  run.items = run.items.flatMap((it) => (it.kind === "text" ? splitDiagrams(it) : [it]));
  run.state = "finished";
  return run;
}

/** Returns whether a finished run produced these messages of its session. */
export function runMatchesMessages(run, messages) {
  const withoutSpace = (text) => text.replace(/\s+/g, "");
  const parts = messages.flatMap((message) => message.parts ?? []);
  const text = withoutSpace(parts.map((part) => (part.type === "text" ? part.text : "")).join(""));
  const calls = parts.filter((part) => part.type === "tool_use");
  if (calls.length && !calls.some((part) => run.calls.has(part.id))) return false;
  const answer = withoutSpace(run.report?.answer ?? "");
  if (run.report?.outcome === "completed" && answer) return text.endsWith(answer);
  // An interrupted answer is displayed but not stored as a message.
  return calls.length > 0 || withoutSpace(run.items.map((it) => it.text ?? "").join("")).includes(text);
}
