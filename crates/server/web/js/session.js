// The open conversation: its turns, the line on which its events come, and what the person does with it.
import { api, Refused } from "./api.js";
import { Line, follow } from "./events.js";
import { Run, runOfMessages } from "./run.js";
import { Model, announce } from "./view.js";

/** More events than this are not replayed; the turns before are shown from their messages. */
const MOST_EVENTS = 20_000;

export class Session extends Model {
  id = null;
  title = "";
  /** `{key, user, run}`; `run` is missing until the server has begun it. */
  turns = [];
  runs = new Map();
  line = new Line();
  state = "new";
  error = null;
  stop = new AbortController();
  #keys = 0;

  /** `onChange(what)` is told what concerns the list of sessions or the servers. */
  constructor(onChange = () => {}) {
    super();
    this.onChange = onChange;
  }

  get current() {
    return this.turns.at(-1)?.run ?? null;
  }

  get busy() {
    const last = this.turns.at(-1);
    return Boolean(last && !last.failed && (!last.run || last.run.live));
  }

  close() {
    this.stop.abort();
  }

  #turn(user, run) {
    const turn = { key: (this.#keys += 1), user, run };
    this.turns.push(turn);
    return turn;
  }

  #run(id) {
    const run = new Run(id, (it, what) => this.#told(it, what));
    this.runs.set(id, run);
    return run;
  }

  /** Shows a session of the server and follows it. */
  async open(id) {
    this.id = id;
    this.state = "loading";
    this.touch();
    let found;
    try {
      found = await api.session(id);
    } catch (error) {
      if (this.stop.signal.aborted) return;
      this.state = "failed";
      this.error = error;
      this.touch();
      return;
    }
    if (this.stop.signal.aborted) return;
    this.title = found.session?.title ?? "";
    const runs = [...(found.runs ?? [])].sort((a, b) => (a.events_before - b.events_before) || (a.id < b.id ? -1 : 1));
    const after = this.#build(found.messages ?? [], runs);
    this.state = "ready";
    this.touch();
    this.#follow(after);
    const last = runs.at(-1);
    if (last && last.state !== "finished") this.#details(this.runs.get(last.id));
  }

  /** Turns of messages and runs: each run answers one message of the person, the last one the last message. */
  #build(messages, runs) {
    const asked = messages.flatMap((message, at) => (message.role === "user" ? [at] : []));
    const total = runs.at(-1) ? runs.at(-1).events_before + runs.at(-1).last_event : 0;
    const from = Math.max(0, total - MOST_EVENTS);
    let after = 0;
    const offset = asked.length - runs.length;
    // Runs whose question was asked again are still among them, and which they are nobody says: then only the last one is sure.
    const sure = offset < 0 ? asked.length - 1 : 0;
    asked.forEach((at, number) => {
      const record = runs[number - offset];
      if (record && number >= sure && record.events_before >= from) {
        this.#turn(messages[at], this.#run(record.id));
        return;
      }
      if (record) after = record.events_before + record.last_event;
      const end = asked[number + 1] ?? messages.length;
      this.#turn(messages[at], runOfMessages(number >= sure ? record?.id ?? null : null, messages.slice(at + 1, end)));
    });
    // Runs that another program began, without a word of a person.
    if (!asked.length) for (const record of runs) this.#turn(null, this.#run(record.id));
    return after;
  }

  #follow(after) {
    follow(`/sessions/${encodeURIComponent(this.id)}/events`, after, {
      line: this.line,
      stop: this.stop.signal,
      take: (event) => this.#take(event),
      // The server may be another process now, which has not taken the run up.
      back: () => {
        if (this.current?.live) this.#details(this.current);
      },
      end: (error) => {
        this.state = "failed";
        this.error = error;
        this.touch();
      },
    });
  }

  #take(event) {
    let run = this.runs.get(event.run_id);
    if (!run) {
      run = this.#run(event.run_id);
      const pending = this.turns.find((turn) => !turn.run && !turn.failed);
      if (pending) pending.run = run;
      else this.#adopt(this.#turn(null, run));
      this.touch();
    }
    run.take(event);
  }

  /** Somebody else asked something in this session: its words are among the messages. */
  async #adopt(turn) {
    try {
      const { messages } = await api.session(this.id);
      turn.user = messages.findLast((message) => message.role === "user") ?? null;
      this.touch();
    } catch {
      // The answer is shown without its question.
    }
  }

  async #details(run) {
    if (!run) return;
    try {
      run.details(await api.run(run.id));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
    this.touch();
  }

  #told(run, what) {
    if (what === "waiting") this.#details(run);
    if (what === "finished" || what === "servers") this.onChange(what);
    this.touch();
    if (!this.replayed(run)) this.#say(run, what);
  }

  /** Whether the run is being replayed, so that nobody needs to hear of it. */
  replayed(run) {
    return run !== this.current;
  }

  #say(run, what) {
    const call = run.waiting.at(-1);
    if (what === "waiting" && call) announce(`Your word is needed: may ${call.tool || call.name} run?`, { urgent: true });
    if (what === "question") announce(`${run.openQuestions.at(-1)?.question.server ?? "A server"} asks you something.`, { urgent: true });
    if (what === "finished") {
      const answer = run.report?.answer ?? "";
      const ends = { completed: "The answer is complete.", limited: "The answer ended at a limit.", failed: "The run failed.", cancelled: "The run was stopped." };
      announce(`${ends[run.report?.outcome] ?? "The run is over."} ${answer.slice(0, 400)}`);
    }
  }

  /** Asks something; a session is made if there is none. Resolves to whether the server took it. */
  async send(message, { model, recipe } = {}) {
    // What the server did not take is asked again by this.
    this.turns = this.turns.filter((it) => !it.failed || it.user.parts[0].text !== message);
    const turn = this.#turn({ role: "user", parts: [{ type: "text", text: message }] }, null);
    this.state = "ready";
    this.touch();
    announce("Sent. The answer is being written.");
    const fresh = this.id === null;
    try {
      const body = { message, ...(fresh ? {} : { session_id: this.id }), ...(model ? { model } : {}), ...(recipe ? { recipe } : {}) };
      const { session_id, run_id } = await api.start(body);
      if (this.stop.signal.aborted) return true;
      if (!turn.run) turn.run = this.runs.get(run_id) ?? this.#run(run_id);
      if (fresh) {
        this.id = session_id;
        this.#follow(0);
      }
      this.onChange("sessions");
      this.touch();
      return true;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      turn.failed = error;
      this.touch();
      announce(error.message, { urgent: true });
      return false;
    }
  }

  /** Does something about the run and shows what the server has against it. */
  async #act(run, action) {
    try {
      await action();
      run.problem = null;
      return true;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      run.problem = error.message;
      announce(error.message, { urgent: true });
      return false;
    } finally {
      run.touch();
      this.touch();
    }
  }

  async decide(run, call, body) {
    run.tool(call.id, { deciding: true });
    run.touch();
    const parked = run.state === "waiting";
    const taken = await this.#act(run, () => api.decide(run.id, call.id, body));
    if (!taken) run.tool(call.id, { deciding: false });
    // A run that no process has must be taken up again by somebody.
    else if (parked && !run.waiting.some((it) => it !== call && !it.deciding)) this.#wake(run);
    run.touch();
    return taken;
  }

  async #wake(run) {
    try {
      const { run: record } = await api.run(run.id);
      if (record?.state === "waiting" || record?.state === "interrupted") await api.resume(run.id);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
  }

  answer(run, question, body) {
    return this.#act(run, () => api.answer(run.id, question.id, body));
  }

  cancel() {
    const run = this.current;
    if (!run?.live || run.stopping) return;
    run.stopping = true;
    announce("Stopping.");
    this.#act(run, () => api.cancel(run.id)).then((taken) => {
      if (!taken) run.stopping = false;
      this.touch();
    });
  }

  async resume(run) {
    if (await this.#act(run, () => api.resume(run.id))) {
      run.standing = null;
      if (run.state !== "finished") run.state = "running";
      run.touch();
      this.touch();
    }
  }
}
