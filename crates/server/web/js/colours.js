// The colour theme: light, dark or the system setting.
import { Model, announce } from "./view.js";

/** Colours of the series of charts and of the node types of graphs. */
export const LIGHT_PALETTE = ["#0f766e", "#b45309", "#4f5bd5", "#be185d", "#4d7c0f", "#0369a1", "#7c3aed", "#a16207"];
export const DARK_PALETTE = ["#5cc4b4", "#f0a95b", "#9aa5ff", "#f284b6", "#a9cf5f", "#6cc0f0", "#c09bff", "#e0c15a"];

const STORAGE_KEY = "switchboard.theme";
const darkPreference = matchMedia("(prefers-color-scheme: dark)");

class Theme extends Model {
  /** `auto`, `light` or `dark`. */
  choice = document.documentElement.dataset.theme ?? "auto";

  get dark() {
    return this.choice === "dark" || (this.choice === "auto" && darkPreference.matches);
  }

  /** Switches to the next choice, in the order `auto`, `light`, `dark`. */
  cycle() {
    this.choice = { auto: "light", light: "dark", dark: "auto" }[this.choice];
    if (this.choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.choice;
    try {
      localStorage.setItem(STORAGE_KEY, this.choice);
    } catch {
      // Without storage, the choice lasts until the page is reloaded.
    }
    announce(`Theme: ${this.choice === "auto" ? "system" : this.choice}.`);
    this.notify();
  }
}

export const theme = new Theme();
darkPreference.addEventListener("change", () => theme.notify());
