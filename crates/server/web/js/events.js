// Server-sent events over fetch, because EventSource sends no token. A stream that breaks is taken up again where it was.
import { ask, Refused } from "./api.js";
import { Model } from "./view.js";

/** The server sends a comment at least every 15 seconds; a line that is silent for longer is dead. */
const SILENCE = 45_000;
const PAUSES = [500, 1_000, 2_000, 4_000, 8_000, 15_000];

/** Splits a growing text into events (the HTML standard, section 9.2.6). */
export class Lines {
  rest = "";
  id = null;
  data = [];

  /** The events that are complete with this piece: `{id, data}`. */
  take(piece) {
    const events = [];
    let text = this.rest + piece;
    let from = 0;
    for (;;) {
      const end = text.indexOf("\n", from);
      if (end < 0) break;
      const line = text.slice(from, text[end - 1] === "\r" && end > from ? end - 1 : end);
      from = end + 1;
      if (line === "") {
        if (this.data.length) events.push({ id: this.id, data: this.data.join("\n") });
        this.data = [];
      } else if (line[0] !== ":") {
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
        if (name === "data") this.data.push(value);
        else if (name === "id") this.id = value;
      }
    }
    this.rest = text.slice(from);
    return events;
  }
}

/** How the line to the server is: `idle`, `connecting`, `open` or `lost`. */
export class Line extends Model {
  state = "idle";
  /** Milliseconds since 1970 of the next attempt. */
  nextTry = 0;
  retry = null;

  set(state, nextTry = 0) {
    if (this.state === state && this.nextTry === nextTry) return;
    this.state = state;
    this.nextTry = nextTry;
    this.touch();
  }
}

/** An answer that never comes again: what is asked for is not there, or not for us. */
const FINAL = [400, 401, 403, 404, 410, 422];

/**
 * Follows the events of `path` from number `after` on and gives each to `take(event)`, until `stop` is aborted or the server says that
 * there is no such thing: `end` is told why. `back` is told when the line is there again after it was lost.
 */
export async function follow(path, after, { line, stop, take, end, back }) {
  let last = after;
  let failures = 0;
  while (!stop.aborted) {
    line.set(failures ? "lost" : "connecting");
    const broken = new AbortController();
    const giveUp = () => broken.abort();
    stop.addEventListener("abort", giveUp, { once: true });
    let watch = setTimeout(giveUp, SILENCE);
    let got = false;
    try {
      const response = await ask(`${path}?after=${last}`, { accept: "text/event-stream", signal: broken.signal });
      line.set("open");
      if (failures) back();
      const pieces = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      const lines = new Lines();
      for (let piece = await read(pieces); piece !== null; piece = await read(pieces)) {
        clearTimeout(watch);
        watch = setTimeout(giveUp, SILENCE);
        got = true;
        for (const { id, data } of lines.take(piece)) {
          const number = Number(id);
          if (id !== null && !(number > last)) continue;
          if (id !== null) last = number;
          take(JSON.parse(data));
        }
      }
    } catch (error) {
      if (stop.aborted) break;
      if (error instanceof Refused && FINAL.includes(error.status)) {
        line.set("idle");
        end(error);
        return;
      }
      // Everything else that the network does passes: the server starts anew, the machine slept. A mistake of ours is told.
      if (!(error instanceof Refused) && error?.name !== "AbortError") reportError(error);
    } finally {
      clearTimeout(watch);
      stop.removeEventListener("abort", giveUp);
      broken.abort();
    }
    if (stop.aborted) break;
    failures = got ? 1 : failures + 1;
    await pause(PAUSES[Math.min(failures, PAUSES.length) - 1], line, stop);
  }
  line.set("idle");
}

/** The next piece of the text; null at its end, and when the line broke. */
async function read(pieces) {
  try {
    const { done, value } = (await pieces?.read()) ?? { done: true };
    return done ? null : value;
  } catch {
    return null;
  }
}

/** Waits, but no longer than until the network is back or the person wants it now. */
function pause(length, line, stop) {
  // Not all pages at once, when the server comes back.
  const wait = length * (0.8 + Math.random() * 0.4);
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      stop.removeEventListener("abort", done);
      line.retry = null;
      resolve();
    };
    const timer = setTimeout(done, wait);
    window.addEventListener("online", done);
    stop.addEventListener("abort", done);
    line.retry = done;
    line.set("lost", Date.now() + wait);
  });
}
