// One run as it is shown: what its events add up to. The same events give the same picture, live or replayed.
import { Model } from "./view.js";

/** A piece of a run; `rev` grows with each change, so that only what changed is shown anew. */
let keys = 0;
function piece(kind, fields) {
  keys += 1;
  return { key: keys, rev: 0, kind, ...fields };
}

export class Run extends Model {
  /** `running`, `waiting` (parked or for a person), `interrupted` or `finished`. */
  state = "running";
  pieces = [];
  report = null;
  model = "";
  phase = null;
  started = null;
  ended = null;
  /** Of all answers of the model so far. */
  usage = {};
  /** The number of the last event that was taken in. */
  seq = 0;
  /** How the server says that the run stands, and up to which event that holds. */
  standing = null;
  calls = new Map();
  questions = new Map();
  stopping = false;

  /** `changes(run, what)` is told of what concerns more than this run. */
  constructor(id, changes = () => {}) {
    super();
    this.id = id;
    this.changes = changes;
  }

  get live() {
    return this.state === "running" || this.state === "waiting";
  }

  /** What the model said, as it wrote it. */
  get answer() {
    return this.report?.answer || this.pieces.map((it) => (it.kind === "text" ? it.text : it.artifact?.content ?? "")).filter(Boolean).join("\n\n");
  }

  /** The calls that wait for somebody's word. */
  get waiting() {
    return this.pieces.filter((it) => it.kind === "tool" && it.status === "awaiting");
  }

  get openQuestions() {
    return this.pieces.filter((it) => it.kind === "question" && !it.action);
  }

  take(event) {
    // Events may come twice when a line was taken up again.
    if (event.seq <= this.seq) return;
    this.seq = event.seq;
    this.started ??= event.time;
    if (this.standing && event.seq > this.standing.at) this.standing = null;
    HANDLERS[event.type]?.call(this, event);
    // What is replayed tells how the run was, not how it stands.
    if (this.standing && this.state !== "finished") this.state = this.standing.state;
    this.touch();
  }

  push(kind, fields) {
    const last = this.pieces.at(-1);
    if (last) this.settle(last);
    const added = piece(kind, fields);
    this.pieces.push(added);
    return added;
  }

  changed(it) {
    it.rev += 1;
  }

  settle(it) {
    if (it.open) {
      it.open = false;
      this.changed(it);
    }
  }

  /** `lasting`: it may be as true for the next run. */
  note(tone, text, lasting = false) {
    this.push("note", { tone, text, lasting });
  }

  /** Text that goes on in the last piece if that is of the same kind. */
  write(kind, text) {
    const last = this.pieces.at(-1);
    if (last?.kind === kind && last.open) {
      last.text += text;
      this.changed(last);
    } else {
      this.push(kind, { text, open: true });
    }
  }

  call(id) {
    let it = this.calls.get(id);
    if (!it) {
      it = this.push("tool", {
        id, name: "", server: null, tool: "", inputText: "", input: undefined, status: "writing",
        repairs: [], retries: [], progress: null, result: null, approval: null, decided: null, deciding: false,
      });
      this.calls.set(id, it);
    }
    return it;
  }

  tool(id, change) {
    const it = this.call(id);
    Object.assign(it, change);
    this.changed(it);
    return it;
  }

  /** Removes the calls that the model had begun to write: their answer broke off. */
  dropWritten() {
    const isVoid = (it) => it.kind === "tool" && it.status === "writing";
    for (const it of this.pieces) if (isVoid(it)) this.calls.delete(it.id);
    this.pieces = this.pieces.filter((it) => !isVoid(it));
  }

  /** What `GET /runs/{id}` says beyond the events: who waits for what. */
  details({ run, waiting = [], questions = [], report }) {
    for (const request of waiting) {
      const id = request.tool_use?.id;
      if (!this.calls.has(id)) continue;
      const input = request.input ?? request.tool_use.input?.object;
      this.tool(id, { approval: request, ...(input ? { input } : {}) });
    }
    for (const { id, question } of questions) {
      if (question && !this.questions.has(id)) HANDLERS.question_asked.call(this, { id, question });
    }
    if ((run?.state === "interrupted" || run?.state === "waiting") && this.state !== "finished" && run.last_event >= this.seq) {
      this.standing = { state: run.state, at: run.last_event };
      this.state = run.state;
    }
    if (report && this.state !== "finished") this.finish(report);
    this.touch();
  }

  finish(report, time = null) {
    this.state = "finished";
    this.stopping = false;
    this.report = report;
    this.ended = time;
    this.usage = report.usage ?? this.usage;
    for (const it of this.pieces) this.settle(it);
    const content = report.content ?? [];
    if (content.some((item) => item.type === "artifact")) {
      // The text that was streamed is the same as plain Markdown; the items say more.
      const from = this.answerFrom ?? this.pieces.findLastIndex((it) => it.kind === "tool") + 1;
      this.pieces = this.pieces.filter((it, at) => at < from || it.kind !== "text");
      for (const item of content) {
        if (item.type === "artifact") this.push("artifact", { artifact: item });
        else if (item.text) this.push("text", { text: item.text, open: false });
      }
    } else {
      if (report.answer && !this.pieces.some((it) => it.kind === "text")) this.push("text", { text: report.answer, open: false });
      this.pieces = this.pieces.flatMap((it) => (it.kind === "text" ? drawn(it) : [it]));
    }
    for (const it of this.pieces) {
      if (it.kind === "tool" && !it.result && it.status !== "denied") {
        it.status = "stopped";
        this.changed(it);
      }
      if (it.kind === "question" && !it.action) {
        it.action = "cancel";
        this.changed(it);
      }
    }
  }
}

/** A text with its diagrams apart, as pieces. */
function drawn(it) {
  const parts = it.text.split(/^(`{3,})mermaid[ \t]*\n([\s\S]*?)\n\1[ \t]*$/m);
  if (parts.length === 1) return [it];
  const made = [];
  for (let at = 0; at < parts.length; at += 3) {
    if (parts[at].trim()) made.push(piece("text", { text: parts[at], open: false }));
    const content = parts[at + 2];
    if (content !== undefined) made.push(piece("artifact", { artifact: { artifactType: "mermaid", title: "Diagram", content } }));
  }
  return made;
}

function words(choice) {
  const left = choice?.why ?? choice?.how;
  return left ? `Tool choice: ${left}` : null;
}

/** One for each kind of event; kinds that are not known are left out, since later versions may have more. */
const HANDLERS = {
  run_started({ model, resumed }) {
    this.model = model;
    this.state = "running";
    if (!resumed) return;
    // What a model was saying when its process ended is said again; what was asked meanwhile is asked again.
    if (this.thinking) {
      for (const it of this.pieces.splice(this.answerSince)) if (it.kind === "tool") this.calls.delete(it.id);
      this.thinking = false;
    }
    for (const it of this.openQuestions) {
      it.action = "cancel";
      this.changed(it);
    }
    this.note("info", "The run goes on.");
  },
  tools_unavailable({ server, message }) {
    this.note("warn", `${server}: ${message}`, true);
  },
  server_changed({ change }) {
    this.changes(this, "servers");
    if (change.type === "server_state" && change.state !== "ready") {
      this.note("warn", `Server ${change.server} is ${change.state}${change.reason ? `: ${change.reason}` : "."}`);
    } else if (change.type === "tool_redefined") {
      this.note("warn", `Server ${change.server} changed what its tool ${change.tool} is. Approvals of it are asked for again.`);
    }
  },
  phase_started({ phase }) {
    this.phase = phase;
    if (phase === "formatting") {
      const last = this.pieces.at(-1);
      if (last) this.settle(last);
      this.answerFrom = this.pieces.length;
    }
  },
  history_trimmed({ left_out, summarised }) {
    this.note("info", `${left_out} older messages are ${summarised ? "summarised" : "left out"}, so that the conversation fits the model.`);
  },
  model_switched({ from, to, reason }) {
    this.model = to;
    this.note("warn", `${to} goes on instead of ${from}: ${reason}`);
  },
  tools_dropped({ reason }) {
    this.note("warn", `The model goes on without tools: ${reason}`);
  },
  asked_again({ reason }) {
    this.note("info", `The model was asked again: ${reason}`);
  },
  format_repaired({ repairs }) {
    this.note("info", `The form of the answer was mended: ${repairs.join("; ")}`);
  },
  model_call_started({ step, model }) {
    this.model = model;
    this.step = step;
    this.thinking = true;
    this.answerSince = this.pieces.length;
  },
  text_delta({ text }) {
    this.write("text", text);
  },
  reasoning_delta({ text }) {
    this.write("reasoning", text);
  },
  tool_input_started({ id, name }) {
    this.tool(id, { name, status: "writing" });
  },
  tool_input_delta({ id, json }) {
    const it = this.call(id);
    this.tool(id, { inputText: it.inputText + json });
  },
  provider_block({ kind, text }) {
    this.push("provider", { name: kind, text });
  },
  model_call_finished({ usage, tool_choice }) {
    this.thinking = false;
    const last = this.pieces.at(-1);
    if (last) this.settle(last);
    for (const [name, count] of Object.entries(usage ?? {})) {
      if (count != null) this.usage = { ...this.usage, [name]: (this.usage[name] ?? 0) + count };
    }
    if (tool_choice?.outcome === "relaxed") this.note("info", words(tool_choice));
  },
  model_call_retried({ attempt, delay_ms, reason }) {
    this.dropWritten();
    this.note("info", `${reason}. The model is asked again${delay_ms < 1000 ? "" : ` in ${Math.round(delay_ms / 1000)} s`} (attempt ${attempt}).`);
  },
  model_call_failed({ error }) {
    this.thinking = false;
    this.dropWritten();
    this.note("bad", error.message);
  },
  warning(event) {
    const { type, seq, time, run_id, ...rest } = event;
    this.note("info", rest.message ?? rest.detail ?? JSON.stringify(rest));
  },
  tool_planned({ id, server, tool, input }) {
    const it = this.tool(id, { server, tool, input, status: "planned" });
    it.name ||= tool;
  },
  tool_input_repaired({ id, repairs, input }) {
    this.tool(id, { repairs: [...this.call(id).repairs, ...repairs], input });
  },
  tool_awaiting_approval({ id }) {
    this.tool(id, { status: "awaiting" });
    this.changes(this, "waiting");
  },
  tool_approved({ id, scope, edited, remembered }) {
    this.tool(id, { status: "approved", decided: { allowed: true, scope, edited, remembered }, deciding: false });
  },
  tool_denied({ id, reason }) {
    this.tool(id, { status: "denied", decided: { allowed: false, reason }, deciding: false });
  },
  tool_started({ id }) {
    this.tool(id, { status: "running", since: Date.now() });
  },
  tool_progressed({ id, progress, total, message }) {
    this.tool(id, { progress: { progress, total, message } });
  },
  tool_retried({ id, attempt, reason }) {
    this.tool(id, { retries: [...this.call(id).retries, { attempt, reason }] });
  },
  tool_finished(event) {
    const denied = this.call(event.id).status === "denied";
    this.tool(event.id, { status: denied ? "denied" : event.is_error ? "failed" : "done", result: event, progress: null, deciding: false });
  },
  question_asked({ id, question }) {
    if (this.questions.has(id)) return;
    this.questions.set(id, this.push("question", { id, question, action: null }));
    this.changes(this, "question");
  },
  question_answered({ id, action }) {
    const it = this.questions.get(id);
    if (!it) return;
    it.action = action;
    this.changed(it);
  },
  run_parked() {
    this.state = "waiting";
    this.changes(this, "waiting");
  },
  run_finished({ report, time }) {
    this.finish(report, time);
    this.changes(this, "finished");
  },
};

/** A run from the messages of its session, where its events are no longer kept. */
export function runOfMessages(id, messages) {
  const run = new Run(id);
  for (const { parts } of messages) {
    for (const part of parts ?? []) {
      if (part.type === "text") run.write("text", part.text);
      else if (part.type === "reasoning" && part.text) run.write("reasoning", part.text);
      else if (part.type === "tool_use") {
        const input = part.input?.object ?? part.input?.malformed?.raw;
        run.tool(part.id, { name: part.name, tool: part.name, input, status: "planned" });
      } else if (part.type === "tool_result") {
        const { content, structured, is_error } = part;
        run.tool(part.tool_use_id, { status: is_error ? "failed" : "done", result: { content, structured, is_error } });
      } else if (part.type === "opaque") run.push("provider", { name: part.kind, text: part.text });
    }
  }
  for (const it of run.pieces) run.settle(it);
  run.pieces = run.pieces.flatMap((it) => (it.kind === "text" ? drawn(it) : [it]));
  run.state = "finished";
  return run;
}

/** Whether a run that is over said these messages of its session. */
export function isRunOf(run, messages) {
  const bare = (text) => text.replace(/\s+/g, "");
  const parts = messages.flatMap((message) => message.parts ?? []);
  const text = bare(parts.map((part) => (part.type === "text" ? part.text : "")).join(""));
  const calls = parts.filter((part) => part.type === "tool_use");
  if (calls.length && !calls.some((part) => run.calls.has(part.id))) return false;
  const answer = bare(run.report?.answer ?? "");
  if (run.report?.outcome === "completed" && answer) return text.endsWith(answer);
  // Half an answer is shown, but is in no message.
  return calls.length > 0 || bare(run.pieces.map((it) => it.text ?? "").join("")).includes(text);
}
