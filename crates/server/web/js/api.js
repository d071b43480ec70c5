// HTTP client of the server API. Adds the access token, and converts failures to readable errors.
import { Model } from "./view.js";

const TOKEN_KEY = "switchboard.token";

/** Base URL of the server: two folders above this file, so routes may be nested at any path. */
const BASE_URL = new URL("../../", import.meta.url);

/** Returns the URL of a server path, such as "/chat". */
export const urlOf = (path) => new URL(`.${path}`, BASE_URL).href;

/** The access token, stored for this tab only. `tokenRequired` shows the token dialog. */
class Access extends Model {
  tokenRequired = false;
  tokenRejected = false;

  constructor() {
    super();
    try {
      this.token = sessionStorage.getItem(TOKEN_KEY) ?? "";
    } catch {
      this.token = "";
    }
  }

  setToken(token) {
    this.token = token.trim();
    this.tokenRequired = false;
    this.tokenRejected = false;
    try {
      sessionStorage.setItem(TOKEN_KEY, this.token);
    } catch {
      // Storage is unavailable: the token is lost on reload.
    }
    this.notify();
  }

  /** Shows the token dialog, with an error if the server rejected the current token. */
  requestToken() {
    this.tokenRejected = this.token !== "";
    this.tokenRequired = true;
    this.notify();
  }
}

export const access = new Access();

/** An HTTP error response. `status` is 0 if the server is unreachable. */
export class ApiError extends Error {
  constructor(status, title, detail) {
    super(detail || title);
    this.status = status;
    this.title = title;
  }
}

/** Converts an error response to an `ApiError`. */
async function apiErrorFrom(response) {
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // Not a problem document: the response may come from a proxy.
  }
  const title = problem.title ?? `The server responded with status ${response.status}.`;
  return new ApiError(response.status, title, problem.detail ?? title);
}

/** Sends a request. Throws an `ApiError` unless the status is 2xx. */
export async function request(path, { method = "GET", body, signal, accept = "application/json", headers = {} } = {}) {
  const allHeaders = { accept, ...headers };
  if (access.token) allHeaders.authorization = `Bearer ${access.token}`;
  if (body !== undefined) allHeaders["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(urlOf(path), {
      method, signal, headers: allHeaders,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin", cache: "no-store", redirect: "error",
    });
  } catch (error) {
    if (error?.name === "AbortError") throw error;
    throw new ApiError(0, "Can't reach the server.", "Can't reach the server. Is it still running?");
  }
  if (response.status === 401) access.requestToken();
  if (!response.ok) throw await apiErrorFrom(response);
  return response;
}

/** Sends a request and parses its JSON response. An empty response gives `{}`. */
async function requestJson(path, options) {
  const response = await request(path, options);
  const text = await response.text();
  return text ? JSON.parse(text) : {};
}

const encode = encodeURIComponent;

export const api = {
  startRun: (body) => requestJson("/chat", { method: "POST", body: { ...body, background: true } }),
  sessions: (limit) => requestJson(`/sessions?limit=${limit}`),
  session: (session) => requestJson(`/sessions/${encode(session)}`),
  deleteSession: (session) => requestJson(`/sessions/${encode(session)}`, { method: "DELETE" }),
  rename: (session, title) => requestJson(`/sessions/${encode(session)}`, { method: "PATCH", body: { title } }),
  run: (run) => requestJson(`/runs/${encode(run)}`),
  decide: (run, call, body) => requestJson(`/runs/${encode(run)}/approvals/${encode(call)}`, { method: "POST", body }),
  answer: (run, question, body) => requestJson(`/runs/${encode(run)}/questions/${encode(question)}`, { method: "POST", body }),
  cancel: (run) => requestJson(`/runs/${encode(run)}/cancel`, { method: "POST" }),
  resume: (run) => requestJson(`/runs/${encode(run)}/continue`, { method: "POST" }),
  models: () => requestJson("/models"),
  recipes: () => requestJson("/recipes"),
  servers: () => requestJson("/mcp/servers"),
  tools: () => requestJson("/mcp/tools"),
  apps: () => requestJson("/mcp/apps"),
  appPage: (server, uri) => requestJson(`/mcp/apps/page?server=${encode(server)}&uri=${encode(uri)}`),
};
