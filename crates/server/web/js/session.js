// The open conversation: its turns, its event stream, and the actions of the user.
import { ApiError, api } from "./api.js";
import { Connection, follow } from "./events.js";
import { Run, runFromMessages, runMatchesMessages } from "./run.js";
import { Model, announce } from "./view.js";

/** Delay before an unreachable server is contacted again, in milliseconds. */
const RETRY_DELAY = 3_000;

/** Maximum number of replayed events. Earlier turns are built from the stored messages. */
const MAX_REPLAYED_EVENTS = 20_000;

export class Session extends Model {
  id = null;
  title = "";
  /** `{key, user, run}`. `run` is null until the server has started it. */
  turns = [];
  runs = new Map();
  connection = new Connection();
  state = "new";
  error = null;
  abortController = new AbortController();
  #lastKey = 0;
  /**
   * Replayed runs whose turn is not confirmed yet, with the turn that each may belong to and the
   * stored answer messages of that turn.
   */
  #candidates = new Map();

  /**
   * `onChange(change, detail)` reports changes of the session list or the servers, and actions that
   * the page handles.
   */
  constructor(onChange = () => {}) {
    super();
    this.onChange = onChange;
  }

  get current() {
    return this.turns.at(-1)?.run ?? null;
  }

  get busy() {
    const last = this.turns.at(-1);
    return Boolean(last && !last.failed && (!last.run || last.run.isActive));
  }

  close() {
    this.abortController.abort();
  }

  #addTurn(user, run) {
    const turn = { key: (this.#lastKey += 1), user, run };
    this.turns.push(turn);
    return turn;
  }

  #addRun(id) {
    const run = new Run(id, (changed, change) => this.#handleRunChange(changed, change));
    this.runs.set(id, run);
    return run;
  }

  /** Loads a stored session and follows its events. */
  async open(id) {
    this.id = id;
    if (this.state !== "failed") this.state = "loading";
    this.notify();
    let found;
    try {
      found = await api.session(id);
    } catch (error) {
      if (this.abortController.signal.aborted) return;
      this.state = "failed";
      this.error = error;
      this.notify();
      // The server was unreachable, for example because it restarts.
      if (error.status === 0) setTimeout(() => this.#reopen(id), RETRY_DELAY);
      return;
    }
    if (this.abortController.signal.aborted) return;
    if (this.error) this.onChange("reconnected");
    this.error = null;
    this.title = found.session?.title ?? "";
    const runs = [...(found.runs ?? [])].sort((a, b) => (a.events_before - b.events_before) || (a.id < b.id ? -1 : 1));
    const after = this.#buildTurns(found.messages ?? [], runs);
    this.state = "ready";
    this.notify();
    this.#follow(after);
    const last = runs.at(-1);
    if (last && last.state !== "finished") this.#loadDetails(this.runs.get(last.id));
  }

  #reopen(id) {
    if (!this.abortController.signal.aborted) this.open(id);
  }

  /**
   * Builds the turns from the stored messages and runs. Returns the event number to follow from.
   *
   * Only the last run certainly answers the last user message. Earlier user messages may come from
   * history that the client sent, without a run. Earlier runs may belong to messages that were sent
   * again. These turns show the stored messages until the replayed events of a run match them.
   */
  #buildTurns(messages, runs) {
    const userIndexes = messages.flatMap((message, index) => (message.role === "user" ? [index] : []));
    // Another program started these runs without a user message.
    if (!userIndexes.length) for (const record of runs) this.#addTurn(null, this.#addRun(record.id));
    const lastEvent = (record) => record.events_before + record.last_event;
    const firstReplayed = Math.max(0, (runs.length ? lastEvent(runs.at(-1)) : 0) - MAX_REPLAYED_EVENTS);
    const offset = userIndexes.length - runs.length;
    // With more runs than user messages, the superseded runs are unknown. Replay only the last run.
    let after = userIndexes.length && offset < 0 ? lastEvent(runs.at(-2)) : runs[0]?.events_before ?? 0;
    userIndexes.forEach((index, position) => {
      const record = runs[position - offset];
      const isLast = position === userIndexes.length - 1;
      const isReplayed = record && record.events_before >= firstReplayed;
      if (isLast && isReplayed) {
        this.#addTurn(messages[index], this.#addRun(record.id));
        return;
      }
      const answers = messages.slice(index + 1, userIndexes[position + 1] ?? messages.length);
      const turn = this.#addTurn(messages[index], runFromMessages(isLast ? record?.id ?? null : null, answers));
      if (!record || offset < 0) return;
      if (isReplayed) this.#candidates.set(this.#addRun(record.id), { turn, answers });
      else after = lastEvent(record);
    });
    return after;
  }

  #follow(after) {
    follow(`/sessions/${encodeURIComponent(this.id)}/events`, after, {
      connection: this.connection,
      signal: this.abortController.signal,
      onEvent: (event) => this.#handleEvent(event),
      // The server may have restarted without resuming the run.
      onReconnect: () => {
        if (this.current?.isActive) this.#loadDetails(this.current);
      },
      onError: (error) => {
        this.state = "failed";
        this.error = error;
        this.notify();
      },
    });
  }

  #handleEvent(event) {
    let run = this.runs.get(event.run_id);
    if (!run) {
      run = this.#addRun(event.run_id);
      const pending = this.turns.find((turn) => !turn.run && !turn.failed);
      if (pending) pending.run = run;
      else this.#loadUserMessage(this.#addTurn(null, run));
      this.notify();
    }
    run.applyEvent(event);
  }

  /** Loads the user message of a run that another client started in this session. */
  async #loadUserMessage(turn) {
    try {
      const { messages } = await api.session(this.id);
      const userMessages = messages.filter((message) => message.role === "user");
      turn.user = userMessages.at(-1) ?? null;
      // A message that was sent again supersedes its earlier turn and all turns after it.
      const earlier = this.turns.slice(0, this.turns.indexOf(turn)).filter((it) => it.user && !it.failed);
      const superseded = userMessages.length ? earlier.slice(userMessages.length - 1) : [];
      this.turns = this.turns.filter((it) => !superseded.includes(it));
      this.notify();
    } catch {
      // The turn shows the answer without the user message.
    }
  }

  async #loadDetails(run) {
    if (!run) return;
    try {
      run.applyDetails(await api.run(run.id));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
    this.notify();
  }

  #handleRunChange(run, change) {
    const candidate = change === "finished" && this.#candidates.get(run);
    if (candidate) {
      this.#candidates.delete(run);
      if (runMatchesMessages(run, candidate.answers)) candidate.turn.run = run;
    }
    if (change === "waiting") this.#loadDetails(run);
    if (change === "finished" || change === "servers") this.onChange(change);
    this.notify();
    if (!this.isReplay(run)) this.#announceChange(run, change);
  }

  /** Returns whether the run is only replayed. Its changes are not announced. */
  isReplay(run) {
    return run !== this.current;
  }

  #announceChange(run, change) {
    const call = run.pendingApprovals.at(-1);
    if (change === "waiting" && call) announce(`Approval needed for ${call.tool || call.name}.`, { urgent: true });
    if (change === "question") announce(`${run.openQuestions.at(-1)?.question.server ?? "A server"} needs information from you.`, { urgent: true });
    if (change === "finished") {
      const answer = run.report?.answer ?? "";
      const outcomes = { completed: "The answer is complete.", limited: "The run stopped at a limit.", failed: "The run failed.", cancelled: "The run was stopped." };
      announce(`${outcomes[run.report?.outcome] ?? "The run has ended."} ${answer.slice(0, 400)}`);
    }
  }

  /**
   * Sends a user message, and creates the session if there is none. With `replaceLast`, it replaces
   * the last user message and its answer. Resolves to whether the server accepted the message.
   */
  async send(message, { model, recipe, strategy, replaceLast = false } = {}) {
    // Sending the same text again replaces its failed turn.
    this.turns = this.turns.filter((it) => !it.failed || it.user.parts[0].text !== message);
    const replaced = replaceLast ? this.turns.pop() : null;
    const turn = this.#addTurn({ role: "user", parts: [{ type: "text", text: message }] }, null);
    this.state = "ready";
    this.notify();
    announce("Message sent.");
    const isNew = this.id === null;
    try {
      const body = { message, ...(isNew ? {} : { session_id: this.id }), ...(model ? { model } : {}), ...(recipe ? { recipe } : {}), ...(strategy ? { parameters: { strategy } } : {}), ...(replaceLast ? { replace_last: true } : {}) };
      const { session_id, run_id } = await api.startRun(body);
      if (this.abortController.signal.aborted) return true;
      if (!turn.run) turn.run = this.runs.get(run_id) ?? this.#addRun(run_id);
      if (isNew) {
        this.id = session_id;
        this.#follow(0);
      }
      this.onChange("sessions");
      this.notify();
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (replaced) {
        this.turns = this.turns.map((it) => (it === turn ? replaced : it));
        replaced.run.problem = error.message;
        replaced.run.notify();
      } else turn.failed = error;
      this.notify();
      announce(error.message, { urgent: true });
      return false;
    }
  }

  /** Performs an action on the run, and shows the error if the server refuses it. */
  async #perform(run, action) {
    try {
      await action();
      run.problem = null;
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      run.problem = error.message;
      announce(error.message, { urgent: true });
      return false;
    } finally {
      run.notify();
      this.notify();
    }
  }

  async decide(run, call, body) {
    run.updateCall(call.id, { decisionPending: true });
    run.notify();
    const parked = run.state === "waiting";
    const accepted = await this.#perform(run, () => api.decide(run.id, call.id, body));
    if (!accepted) run.updateCall(call.id, { decisionPending: false });
    // No process executes a parked run, so resume it after its last decision.
    else if (parked && !run.pendingApprovals.some((it) => it !== call && !it.decisionPending)) this.#resumeIfStopped(run);
    run.notify();
    return accepted;
  }

  async #resumeIfStopped(run) {
    try {
      const { run: record } = await api.run(run.id);
      if (record?.state === "waiting" || record?.state === "interrupted") await api.resume(run.id);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }

  answer(run, question, body) {
    return this.#perform(run, () => api.answer(run.id, question.id, body));
  }

  cancel() {
    const run = this.current;
    if (!run?.isActive || run.stopping) return;
    run.stopping = true;
    announce("Stopping the run.");
    this.#perform(run, () => api.cancel(run.id)).then((accepted) => {
      if (!accepted) run.stopping = false;
      this.notify();
    });
  }

  async resume(run) {
    if (await this.#perform(run, () => api.resume(run.id))) {
      run.reportedState = null;
      if (run.state !== "finished") run.state = "running";
      run.notify();
      this.notify();
    }
  }
}
