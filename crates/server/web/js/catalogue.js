// What the server has to offer: models, recipes, servers and their tools.
import { api, Refused } from "./api.js";
import { Model } from "./view.js";

class Catalogue extends Model {
  models = [];
  standard = null;
  recipes = [];
  servers = [];
  tools = [];
  problems = [];
  /** Tools with a page of their own: `{server, tool, uri}`. */
  apps = [];
  #asked = null;
  #known = null;
  error = null;

  async load() {
    await Promise.all([this.loadModels(), this.loadRecipes(), this.loadServers()]);
  }

  async #try(load) {
    try {
      await load();
      this.error = null;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.error = error;
    }
    this.touch();
  }

  loadModels() {
    return this.#try(async () => {
      const found = await api.models();
      this.models = (found.models ?? []).map((it) => ({ ...it, id: it.id ?? it.model }));
      this.standard = found.default ?? this.models.find((it) => it.default)?.id ?? null;
    });
  }

  loadRecipes() {
    return this.#try(async () => {
      this.recipes = (await api.recipes()).recipes ?? [];
    });
  }

  loadServers() {
    return this.#try(async () => {
      const [servers, tools] = await Promise.all([api.servers(), api.tools()]);
      this.servers = servers.servers ?? [];
      this.apps = (await this.#apps()).apps ?? [];
      this.tools = tools.tools ?? [];
      this.problems = tools.problems ?? [];
    });
  }

  /** Servers are asked for these, so not again every few seconds while their states are looked at. */
  #apps() {
    const now = this.servers.map(({ name, state, pid }) => `${name} ${state} ${pid}`).join();
    if (this.#asked !== now) {
      this.#asked = now;
      this.#known = api.apps();
      this.#known.catch(() => { this.#asked = null; });
    }
    return this.#known;
  }

  toolOf({ server, tool, name }) {
    return this.tools.find((it) => it.name === name) ?? this.tools.find((it) => it.server === server && it.tool === tool) ?? null;
  }

  schemaOf(item) {
    return this.toolOf(item)?.input_schema ?? null;
  }

  /** The address of the page that a tool has for showing its results (MCP Apps). */
  pageOf(server, tool) {
    return this.apps.find((it) => it.server === server && it.tool === tool)?.uri ?? null;
  }

  /**
   * What this many tokens cost with a model, about, in US dollars by list prices; null where nobody says. What came out of a prompt cache
   * counts in full, so it is rather less.
   */
  cost(model, { input_tokens, output_tokens }) {
    const known = this.models.find((it) => it.id === model);
    const { input_price: input, output_price: output } = known ?? {};
    if (input == null || output == null || (input_tokens == null && output_tokens == null)) return null;
    return ((input_tokens ?? 0) * input + (output_tokens ?? 0) * output) / 1_000_000;
  }
}

export const catalogue = new Catalogue();
