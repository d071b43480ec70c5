// The colour theme: light, dark or the system setting.
import { Model, announce } from "./view.js";

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
