// Diagrams and charts. A hidden sandboxed frame renders them; this page only shows the images.
import { html, useEffect, useModel, useRef, useState } from "./view.js";
import { urlOf } from "./api.js";
import { theme } from "./colours.js";

/** Time-out for one drawing, in milliseconds. The rendering of some diagrams never ends. */
const RENDER_TIMEOUT = 20_000;

/**
 * Renders drawings in a hidden frame, one at a time, so that a time-out affects only one drawing.
 * The first drawing creates the frame. A time-out removes it, and the next drawing creates a new
 * one.
 */
class FrameRenderer {
  #frame = null;
  #ready = null;
  #abortController = null;
  /** Receives the responses of the frame to the current request. */
  #handleResponse = null;
  #lastNumber = 0;
  #queue = Promise.resolve();

  render(request) {
    const image = this.#queue.then(() => this.#renderNext(request));
    this.#queue = image.catch(() => {});
    return image;
  }

  async #renderNext(request) {
    await this.#start();
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#stop();
        reject(new Error("rendering timed out"));
      }, RENDER_TIMEOUT);
      this.#handleResponse = ({ number: answered, error, ...image }) => {
        if (answered !== number) return;
        clearTimeout(timer);
        if (error) reject(new Error(error));
        else resolve(image);
      };
      this.#frame.contentWindow.postMessage({ number, ...request }, "*");
    });
  }

  #start() {
    this.#ready ??= new Promise((resolve) => {
      this.#abortController = new AbortController();
      const frame = document.createElement("iframe");
      frame.className = "render-frame";
      frame.setAttribute("sandbox", "allow-scripts");
      frame.setAttribute("aria-hidden", "true");
      frame.tabIndex = -1;
      frame.title = "Drawing";
      window.addEventListener("message", (event) => {
        if (event.source !== frame.contentWindow || !event.source) return;
        const { switchboard, picture = "" } = event.data ?? {};
        if (switchboard === "ready") resolve();
        // Accept only images, because the frame processes untrusted input.
        if (switchboard !== "picture" || !/^(?:data:image\/(?:png;base64|svg\+xml;charset=utf-8),|$)/.test(picture)) return;
        this.#handleResponse?.(event.data);
      }, { signal: this.#abortController.signal });
      frame.src = urlOf("/assets/frames/drawing.html");
      document.body.append(frame);
      this.#frame = frame;
    });
    return this.#ready;
  }

  #stop() {
    this.#abortController.abort();
    this.#frame.remove();
    this.#frame = null;
    this.#ready = null;
  }
}

const renderer = new FrameRenderer();

/**
 * Renders `request` as an image: `{kind: "mermaid", text}` or
 * `{kind: "chart", source, buildConfig}`, where `buildConfig(dark)` returns the chart configuration.
 * Shows `fallback` if rendering fails.
 */
export function Drawing({ request, label, fallback }) {
  const [image, setImage] = useState(null);
  const [error, setError] = useState(null);
  const container = useRef(null);
  useModel(theme);
  const { dark } = theme;
  useEffect(() => {
    let stale = false;
    const width = Math.round(Math.max(300, Math.min(760, container.current?.clientWidth ?? 600)));
    const { buildConfig, ...rest } = request;
    renderer.render({ ...rest, ...(buildConfig ? { config: buildConfig(dark) } : {}), dark, width }).then(
      (result) => { if (!stale) setImage(result); },
      (failure) => { if (!stale) setError(failure.message); },
    );
    return () => { stale = true; };
  }, [request.text, request.source, dark]);
  if (error) return html`<p class="warning">Couldn't render: ${error}</p>${fallback}`;
  return html`<div class="drawing" ref=${container}>${image
    ? html`<img src=${image.picture} width=${image.width} height=${image.height} alt=${label} />`
    : html`<p class="muted">Rendering…</p>`}</div>`;
}
