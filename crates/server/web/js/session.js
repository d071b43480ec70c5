// The open conversation: its turns, the line on which its events come, and what the person does with it.
import { api, Refused } from "./api.js";
import { Line, follow } from "./events.js";
import { Run, isRunOf, runOfMessages } from "./run.js";
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
  /** Runs that are replayed: the turn that each may be of, and what is said there. */
  #unsure = new Map();

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

  /**
   * Turns of messages and runs. Only the last run is sure to answer the last message of the person: other questions may be of the
   * client's own history, which no run answered, and other runs may be of questions that were asked again. Those questions are shown
   * from their messages, until the events of a run turn out to be their answer.
   */
  #build(messages, runs) {
    const asked = messages.flatMap((message, at) => (message.role === "user" ? [at] : []));
    // Runs that another program began, without a word of a person.
    if (!asked.length) for (const record of runs) this.#turn(null, this.#run(record.id));
    const end = (record) => record.events_before + record.last_event;
    const from = Math.max(0, (runs.length ? end(runs.at(-1)) : 0) - MOST_EVENTS);
    const offset = asked.length - runs.length;
    // With more runs than questions nobody says which of them were set aside, and only the last one is replayed.
    let after = asked.length && offset < 0 ? end(runs.at(-2)) : runs[0]?.events_before ?? 0;
    asked.forEach((at, number) => {
      const record = runs[number - offset];
      const isLast = number === asked.length - 1;
      const isReplayed = record && record.events_before >= from;
      if (isLast && isReplayed) {
        this.#turn(messages[at], this.#run(record.id));
        return;
      }
      const said = messages.slice(at + 1, asked[number + 1] ?? messages.length);
      const turn = this.#turn(messages[at], runOfMessages(isLast ? record?.id ?? null : null, said));
      if (!record || offset < 0) return;
      if (isReplayed) this.#unsure.set(this.#run(record.id), { turn, said });
      else after = end(record);
    });
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
      const asked = messages.filter((message) => message.role === "user");
      turn.user = asked.at(-1) ?? null;
      // Where a question was asked again, its answer until now is set aside with all that came after it.
      const before = this.turns.slice(0, this.turns.indexOf(turn)).filter((it) => it.user && !it.failed);
      const aside = asked.length ? before.slice(asked.length - 1) : [];
      this.turns = this.turns.filter((it) => !aside.includes(it));
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
    const place = what === "finished" && this.#unsure.get(run);
    if (place) {
      this.#unsure.delete(run);
      if (isRunOf(run, place.said)) place.turn.run = run;
    }
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
