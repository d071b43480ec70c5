// Shared base of the components: templates, hooks, observable models and icons.
import { h, Component, render } from "../vendor/preact.js";
import htm from "../vendor/htm.js";
import { useEffect, useLayoutEffect, useReducer } from "../vendor/preact-hooks.js";

export { Component, render };
export { useState, useEffect, useRef, useMemo } from "../vendor/preact-hooks.js";

export const html = htm.bind(h);

/** Changed models whose listeners are not notified yet. One batch runs before the next paint. */
const changedModels = new Set();
let notificationScheduled = false;

function notifyListeners() {
  notificationScheduled = false;
  const models = [...changedModels];
  changedModels.clear();
  for (const model of models) for (const listener of [...model.listeners]) listener();
}

/** Observable state that components render. */
export class Model {
  listeners = new Set();

  /** Schedules a notification of the listeners. Call it after each change. */
  notify() {
    changedModels.add(this);
    if (notificationScheduled) return;
    notificationScheduled = true;
    // Browsers do not run animation frames in hidden pages.
    if (document.hidden) setTimeout(notifyListeners, 50);
    else requestAnimationFrame(notifyListeners);
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

// An animation frame requested before the page was hidden would not run until it is visible again.
document.addEventListener("visibilitychange", () => {
  if (document.hidden && notificationScheduled) setTimeout(notifyListeners, 0);
});

/** Re-renders the component when `model` changes. Returns `model`. */
export function useModel(model) {
  const [, forceUpdate] = useReducer((count) => count + 1, 0);
  useLayoutEffect(() => model?.subscribe(() => forceUpdate()), [model]);
  return model;
}

/** A decorative icon, hidden from screen readers. */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${ICON_PATHS[name]} /></svg>`;
}

const ICON_PATHS = {
  plus: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M8 8h8v8H8z",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  trash: "M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12M10.5 10.5v5.5M13.5 10.5v5.5",
  pen: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
  servers: "M4 5h16v5H4zM4 14h16v5H4zM7.5 7.5h.01M7.5 16.5h.01",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M5.6 18.4l1.1-1.1M17.3 6.7l1.1-1.1",
  moon: "M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z",
  auto: "M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16zM12 4v16M14.5 5v14M17 6.6v10.8",
  tool: "M14.5 6.5a3.5 3.5 0 0 1 4.6-3.3L16.8 5.5l1.7 1.7 2.3-2.3a3.5 3.5 0 0 1-4.6 4.5L8 17.6a1.6 1.6 0 0 1-2.3-2.3l8.3-8.2z",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M7 7l10 10M17 7L7 17",
  wait: "M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16zM12 8v4.5l3 2",
  ask: "M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16zM9.8 9.8a2.3 2.3 0 1 1 3.2 2.1c-.7.3-1 .8-1 1.6M12 16.2v.01",
  info: "M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16zM12 11.2v5M12 8v.01",
  warn: "M12 4.5l8.5 15h-17zM12 10v4M12 16.8v.01",
  chevron: "M9 6l6 6-6 6",
  copy: "M9 9h10v10H9zM15 9V5H5v10h4",
  think: "M9 18h6M10 21h4M8 14.5A6 6 0 1 1 16 14.5c-.7.6-1 1.2-1 2H9c0-.8-.3-1.4-1-2z",
  file: "M7 3.5h7l4 4v13H7zM13.5 3.5v4.5h4.5",
  down: "M12 5v14M6 13l6 6 6-6",
};

/** Announces `text` to screen readers through a live region. */
export function announce(text, { urgent = false } = {}) {
  const region = document.getElementById(urgent ? "urgent" : "said");
  if (!region) return;
  // Screen readers announce changes only. Clearing the region makes a repeated text a change.
  region.textContent = "";
  setTimeout(() => { region.textContent = text; }, 40);
}
