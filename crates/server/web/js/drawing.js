// Pictures of diagrams and charts. They are made in a sandboxed frame that is out of sight; here they are only images.
import { html, useEffect, useModel, useRef, useState } from "./view.js";
import { at } from "./api.js";
import { theme } from "./colours.js";

/** A diagram that takes longer than this never ends. */
const LONGEST = 20_000;

/** The frame is there while something is drawn, and a while longer. */
class Studio {
  #frame = null;
  #ready = null;
  #open = new Map();
  #numbers = 0;

  async draw(wish) {
    await this.#start();
    this.#numbers += 1;
    const number = this.#numbers;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#open.delete(number);
        this.#stop();
        reject(new Error("It took too long to draw."));
      }, LONGEST);
      this.#open.set(number, ({ error, ...made }) => {
        clearTimeout(timer);
        if (error) reject(new Error(error));
        else resolve(made);
      });
      this.#frame.contentWindow.postMessage({ number, ...wish }, "*");
    });
  }

  #start() {
    this.#ready ??= new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.className = "studio";
      frame.setAttribute("sandbox", "allow-scripts");
      frame.setAttribute("aria-hidden", "true");
      frame.tabIndex = -1;
      frame.title = "Drawing";
      window.addEventListener("message", (event) => {
        if (event.source !== frame.contentWindow || !event.source) return;
        const { switchboard, number, picture = "" } = event.data ?? {};
        if (switchboard === "ready") resolve();
        // Only a picture may come out of there.
        if (switchboard !== "picture" || !/^(?:data:image\/(?:png;base64|svg\+xml;charset=utf-8),|$)/.test(picture)) return;
        this.#open.get(number)?.(event.data);
        this.#open.delete(number);
      });
      frame.src = at("/assets/frames/drawing.html");
      document.body.append(frame);
      this.#frame = frame;
    });
    return this.#ready;
  }

  #stop() {
    this.#frame?.remove();
    this.#frame = null;
    this.#ready = null;
  }
}

const studio = new Studio();

/** A picture of `wish` (`{kind: "mermaid", text}` or `{kind: "chart", config}`); `otherwise` is shown if there is none. */
export function Drawing({ wish, label, otherwise }) {
  const [made, setMade] = useState(null);
  const [error, setError] = useState(null);
  const place = useRef(null);
  useModel(theme);
  const { dark } = theme;
  useEffect(() => {
    let gone = false;
    const width = Math.round(Math.max(300, Math.min(760, place.current?.clientWidth ?? 600)));
    const { paint, ...plain } = wish;
    studio.draw({ ...plain, ...(paint ? { config: paint(dark) } : {}), dark, width }).then(
      (picture) => { if (!gone) setMade(picture); },
      (problem) => { if (!gone) setError(problem.message); },
    );
    return () => { gone = true; };
  }, [wish.text, wish.source, dark]);
  if (error) return html`<p class="warning">It cannot be drawn: ${error}</p>${otherwise}`;
  return html`<div class="drawing" ref=${place}>${made
    ? html`<img src=${made.picture} width=${made.width} height=${made.height} alt=${label} />`
    : html`<p class="muted">Drawing…</p>`}</div>`;
}
