// Data of the server: models, recipes, MCP servers and their tools.
import { ApiError, api } from "./api.js";
import { Model } from "./view.js";

class Catalogue extends Model {
  models = [];
  defaultModel = null;
  recipes = [];
  servers = [];
  tools = [];
  problems = [];
  /** Tools with an app (MCP Apps): `{server, tool, uri}`. */
  apps = [];
  /** States of the servers at the time of the last request for apps. */
  #appsKey = null;
  #appsRequest = null;
  error = null;

  async load() {
    await Promise.all([this.loadModels(), this.loadRecipes(), this.loadServers()]);
  }

  /** Runs a request and stores its error, if any. */
  async #request(load) {
    try {
      await load();
      this.error = null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.error = error;
    }
    this.notify();
  }

  loadModels() {
    return this.#request(async () => {
      const response = await api.models();
      this.models = (response.models ?? []).map((model) => ({ ...model, id: model.id ?? model.model }));
      this.defaultModel = response.default ?? this.models.find((model) => model.default)?.id ?? null;
    });
  }

  loadRecipes() {
    return this.#request(async () => {
      this.recipes = (await api.recipes()).recipes ?? [];
    });
  }

  loadServers() {
    return this.#request(async () => {
      const [servers, tools] = await Promise.all([api.servers(), api.tools()]);
      this.servers = servers.servers ?? [];
      this.apps = (await this.#apps()).apps ?? [];
      this.tools = tools.tools ?? [];
      this.problems = tools.problems ?? [];
    });
  }

  /**
   * Requests the apps of all tools. This request goes on to the MCP servers, so polling reuses its
   * result until the state of a server changes.
   */
  #apps() {
    const key = this.servers.map(({ name, state, pid }) => `${name} ${state} ${pid}`).join();
    if (this.#appsKey !== key) {
      this.#appsKey = key;
      this.#appsRequest = api.apps();
      this.#appsRequest.catch(() => { this.#appsKey = null; });
    }
    return this.#appsRequest;
  }

  toolOf({ server, tool, name }) {
    return this.tools.find((entry) => entry.name === name) ?? this.tools.find((entry) => entry.server === server && entry.tool === tool) ?? null;
  }

  schemaOf(item) {
    return this.toolOf(item)?.input_schema ?? null;
  }

  /** Returns the URI of the app of a tool (MCP Apps), or null. */
  appUriOf(server, tool) {
    return this.apps.find((entry) => entry.server === server && entry.tool === tool)?.uri ?? null;
  }

  /**
   * Returns the approximate cost in US dollars at list prices, or null if the prices are unknown.
   * Cached input tokens count at the full price, so the actual cost can be lower.
   */
  cost(model, { input_tokens, output_tokens }) {
    const entry = this.models.find(({ id }) => id === model);
    const { input_price: input, output_price: output } = entry ?? {};
    if (input == null || output == null || (input_tokens == null && output_tokens == null)) return null;
    return ((input_tokens ?? 0) * input + (output_tokens ?? 0) * output) / 1_000_000;
  }
}

export const catalogue = new Catalogue();
