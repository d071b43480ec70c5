// Dark or light: the system's colours, or those that the person chose.
import { Model, announce } from "./view.js";

const KEY = "switchboard.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

class Theme extends Model {
  /** `auto`, `light` or `dark`. */
  choice = document.documentElement.dataset.theme ?? "auto";

  get dark() {
    return this.choice === "dark" || (this.choice === "auto" && system.matches);
  }

  /** The next one, in a circle. */
  next() {
    this.choice = { auto: "light", light: "dark", dark: "auto" }[this.choice];
    if (this.choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.choice;
    try {
      localStorage.setItem(KEY, this.choice);
    } catch {
      // It holds until the page is loaded again.
    }
    announce(`Colours: ${this.choice === "auto" ? "as the system" : this.choice}.`);
    this.touch();
  }
}

export const theme = new Theme();
system.addEventListener("change", () => theme.touch());
