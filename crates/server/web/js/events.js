// Server-sent events over fetch, because EventSource cannot send an authorization header. A broken
// stream reconnects and continues after the last received event.
import { ApiError, request } from "./api.js";
import { Model } from "./view.js";

/**
 * Maximum silence in milliseconds. The server sends a comment at least every 15 seconds, so a
 * connection that is silent for this long is dead.
 */
const SILENCE_TIMEOUT = 45_000;
/** Delay in milliseconds before each reconnect attempt. The last delay repeats. */
const RETRY_DELAYS = [500, 1_000, 2_000, 4_000, 8_000, 15_000];

/** An incremental parser of the event stream format (HTML standard, section 9.2.6). */
export class EventStreamParser {
  buffer = "";
  id = null;
  data = [];

  /** Parses the next chunk and returns the events that it completes, as `{id, data}`. */
  push(chunk) {
    const events = [];
    let text = this.buffer + chunk;
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
    this.buffer = text.slice(from);
    return events;
  }
}

/** The state of the event stream connection: `idle`, `connecting`, `open` or `lost`. */
export class Connection extends Model {
  state = "idle";
  /** Time of the next attempt, in milliseconds since 1970. */
  nextAttemptAt = 0;
  /** Starts the next attempt immediately. Null unless an attempt is scheduled. */
  retry = null;

  set(state, nextAttemptAt = 0) {
    if (this.state === state && this.nextAttemptAt === nextAttemptAt) return;
    this.state = state;
    this.nextAttemptAt = nextAttemptAt;
    this.notify();
  }
}

/** Statuses that a retry cannot change: invalid request, missing resource or denied access. */
const PERMANENT_ERRORS = [400, 401, 403, 404, 410, 422];

/**
 * Follows the events of `path` after number `after`, and reconnects when the stream breaks. Ends
 * when `signal` is aborted or the server responds with a permanent error.
 *
 * `connection` reflects the connection state. `onEvent(event)` receives each event,
 * `onError(error)` a permanent error. `onReconnect()` runs after each reconnect.
 */
export async function follow(path, after, { connection, signal, onEvent, onError, onReconnect }) {
  let last = after;
  let failures = 0;
  while (!signal.aborted) {
    connection.set(failures ? "lost" : "connecting");
    const controller = new AbortController();
    const abortRequest = () => controller.abort();
    signal.addEventListener("abort", abortRequest, { once: true });
    let silenceTimer = setTimeout(abortRequest, SILENCE_TIMEOUT);
    let received = false;
    try {
      const response = await request(`${path}?after=${last}`, { accept: "text/event-stream", signal: controller.signal });
      connection.set("open");
      if (failures) onReconnect();
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventStreamParser();
      for (let chunk = await readChunk(reader); chunk !== null; chunk = await readChunk(reader)) {
        clearTimeout(silenceTimer);
        silenceTimer = setTimeout(abortRequest, SILENCE_TIMEOUT);
        received = true;
        for (const { id, data } of parser.push(chunk)) {
          const seq = Number(id);
          if (id !== null && !(seq > last)) continue;
          if (id !== null) last = seq;
          onEvent(JSON.parse(data));
        }
      }
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof ApiError && PERMANENT_ERRORS.includes(error.status)) {
        connection.set("idle");
        onError(error);
        return;
      }
      // Other API errors and aborts are temporary, for example during a server restart. Any other
      // error is a bug in this page, so report it.
      if (!(error instanceof ApiError) && error?.name !== "AbortError") reportError(error);
    } finally {
      clearTimeout(silenceTimer);
      signal.removeEventListener("abort", abortRequest);
      controller.abort();
    }
    if (signal.aborted) break;
    failures = received ? 1 : failures + 1;
    await waitBeforeRetry(RETRY_DELAYS[Math.min(failures, RETRY_DELAYS.length) - 1], connection, signal);
  }
  connection.set("idle");
}

/** Reads the next chunk of text. Returns null at the end and when the connection broke. */
async function readChunk(reader) {
  try {
    const { done, value } = (await reader?.read()) ?? { done: true };
    return done ? null : value;
  } catch {
    return null;
  }
}

/** Waits for about `delay`, until the network returns, or until the user requests a reconnect. */
function waitBeforeRetry(delay, connection, signal) {
  // Jitter keeps open pages from reconnecting simultaneously after a server restart.
  const wait = delay * (0.8 + Math.random() * 0.4);
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      window.removeEventListener("online", done);
      signal.removeEventListener("abort", done);
      connection.retry = null;
      resolve();
    };
    const timer = setTimeout(done, wait);
    window.addEventListener("online", done);
    signal.addEventListener("abort", done);
    connection.retry = done;
    connection.set("lost", Date.now() + wait);
  });
}
