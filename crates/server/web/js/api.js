// The server: requests with the token, and its refusals as errors with words for a person.
import { Model } from "./view.js";

const TOKEN = "switchboard.token";

/** Where the server is: two folders above this file, wherever its routes are nested. */
const ROOT = new URL("../../", import.meta.url);

/** The address of a path of the server, such as "/chat". */
export const at = (path) => new URL(`.${path}`, ROOT).href;

/** Whether a token is needed, and the one that is used. Kept for this tab only. */
class Access extends Model {
  wanted = false;
  refused = false;

  constructor() {
    super();
    try {
      this.token = sessionStorage.getItem(TOKEN) ?? "";
    } catch {
      this.token = "";
    }
  }

  use(token) {
    this.token = token.trim();
    this.wanted = false;
    this.refused = false;
    try {
      sessionStorage.setItem(TOKEN, this.token);
    } catch {
      // It holds until the page is loaded again.
    }
    this.touch();
  }

  want() {
    this.refused = this.token !== "";
    this.wanted = true;
    this.touch();
  }
}

export const access = new Access();

/** What the server refused, or that it could not be reached (`status` 0). */
export class Refused extends Error {
  constructor(status, title, detail) {
    super(detail || title);
    this.status = status;
    this.title = title;
  }
}

async function refusal(response) {
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // Somebody between us and the server answered.
  }
  const title = problem.title ?? `The server answered ${response.status}.`;
  return new Refused(response.status, title, problem.detail ?? title);
}

/** A request; throws `Refused` for everything but 2xx. */
export async function ask(path, { method = "GET", body, signal, accept = "application/json", headers = {} } = {}) {
  const sent = { accept, ...headers };
  if (access.token) sent.authorization = `Bearer ${access.token}`;
  if (body !== undefined) sent["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(at(path), {
      method, signal, headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin", cache: "no-store", redirect: "error",
    });
  } catch (error) {
    if (error?.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer.", "The server does not answer. Is it running?");
  }
  if (response.status === 401) access.want();
  if (!response.ok) throw await refusal(response);
  return response;
}

async function json(path, options) {
  const response = await ask(path, options);
  const text = await response.text();
  return text ? JSON.parse(text) : {};
}

const id = encodeURIComponent;

export const api = {
  start: (body) => json("/chat", { method: "POST", body: { ...body, background: true } }),
  sessions: (limit) => json(`/sessions?limit=${limit}`),
  session: (session) => json(`/sessions/${id(session)}`),
  forget: (session) => json(`/sessions/${id(session)}`, { method: "DELETE" }),
  rename: (session, title) => json(`/sessions/${id(session)}`, { method: "PATCH", body: { title } }),
  run: (run) => json(`/runs/${id(run)}`),
  decide: (run, call, body) => json(`/runs/${id(run)}/approvals/${id(call)}`, { method: "POST", body }),
  answer: (run, question, body) => json(`/runs/${id(run)}/questions/${id(question)}`, { method: "POST", body }),
  cancel: (run) => json(`/runs/${id(run)}/cancel`, { method: "POST" }),
  resume: (run) => json(`/runs/${id(run)}/continue`, { method: "POST" }),
  models: () => json("/models"),
  recipes: () => json("/recipes"),
  servers: () => json("/mcp/servers"),
  tools: () => json("/mcp/tools"),
  apps: () => json("/mcp/apps"),
  appPage: (server, uri) => json(`/mcp/apps/page?server=${id(server)}&uri=${id(uri)}`),
};
