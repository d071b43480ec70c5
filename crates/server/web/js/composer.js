// Where the person writes, and chooses who answers.
import { Icon, html, useEffect, useModel, useRef, useState } from "./view.js";
import { catalogue } from "./catalogue.js";

const CHOICE = "switchboard.choice";

function remembered() {
  try {
    return JSON.parse(localStorage.getItem(CHOICE)) ?? {};
  } catch {
    return {};
  }
}

export function Composer({ session, draft }) {
  useModel(session);
  useModel(catalogue);
  useModel(session.current);
  useModel(draft);
  const field = useRef(null);
  const [choice, setChoice] = useState(remembered);
  const { busy } = session;
  const run = session.current;

  const choose = (change) => {
    const chosen = { ...choice, ...change };
    setChoice(chosen);
    try {
      localStorage.setItem(CHOICE, JSON.stringify(chosen));
    } catch {
      // It holds until the page is loaded again.
    }
  };
  const model = choice.model ?? "";
  const recipe = catalogue.recipes.some((it) => it.name === choice.recipe) ? choice.recipe : "";

  const send = async () => {
    const text = draft.text.trim();
    if (!text || busy) return;
    draft.set("");
    const taken = await session.send(text, { model, recipe });
    if (!taken && !draft.text) draft.set(text);
  };
  useEffect(() => {
    draft.send = (text) => {
      draft.set(text);
      send();
    };
  });
  useEffect(() => {
    const area = field.current;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 220)}px`;
  }, [draft.text]);

  const key = (event) => {
    // Enter also ends the choice of a character in some languages.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  };

  return html`<form class="composer" onSubmit=${(event) => { event.preventDefault(); send(); }}>
    <div class="composer-box">
      <label class="unseen" for="message">Your message</label>
      <textarea id="message" ref=${field} rows="1" placeholder="Ask something" value=${draft.text} aria-describedby="keys" enterkeyhint="send"
        onInput=${(event) => draft.set(event.target.value)} onKeyDown=${key} />
      <div class="composer-row">
        <${ModelChoice} model=${model} choose=${(chosen) => choose({ model: chosen })} />
        <label class="choice"><span class="unseen">Recipe</span>
          <select id="recipe" value=${recipe} onChange=${(event) => choose({ recipe: event.target.value })}>
            <option value="">No recipe chosen</option>
            ${catalogue.recipes.map((it) => html`<option value=${it.name}>${it.title || it.name}</option>`)}
          </select></label>
        <span class="grow" />
        <span id="keys" class="keys muted">${busy ? html`<kbd>Esc</kbd> stops` : html`<kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> a new line`}</span>
        ${busy
          ? html`<button type="button" class="round stop" onClick=${() => session.cancel()} disabled=${!run || run.stopping} aria-label="Stop"><${Icon} name="stop" /></button>`
          : html`<button type="submit" class="round primary" disabled=${!draft.text.trim()} aria-label="Send"><${Icon} name="send" /></button>`}
      </div>
    </div>
  </form>`;
}

/** No model is called so. */
const OTHER = "\n";

/** The models that the server knows, and any other of its providers by name. */
function ModelChoice({ model, choose }) {
  const [other, setOther] = useState(false);
  // What is being typed is kept here: the lists that come meanwhile draw the field anew.
  const [typed, setTyped] = useState("");
  const field = useRef(null);
  const open = useRef(false);
  useEffect(() => {
    if (other) field.current.focus();
  }, [other]);
  if (other) {
    // The field also loses the focus because it was left by a key.
    const leave = (chosen) => {
      if (!open.current) return;
      open.current = false;
      setOther(false);
      if (chosen !== null) choose(chosen.trim());
    };
    const key = (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      leave(event.key === "Enter" ? event.target.value : null);
      document.getElementById("message")?.focus();
    };
    return html`<label class="choice"><span class="unseen">Model, as provider/model</span>
      <input id="model" key="field" ref=${field} type="text" placeholder="provider/model" autocomplete="off" autocapitalize="off" spellcheck="false" value=${typed}
        onInput=${(event) => setTyped(event.target.value)} onKeyDown=${key} onBlur=${(event) => leave(event.target.value)} /></label>`;
  }
  const listed = catalogue.models.some((it) => it.id === model);
  const pick = (chosen) => {
    if (chosen !== OTHER) {
      choose(chosen);
      return;
    }
    open.current = true;
    setTyped(model);
    setOther(true);
  };
  return html`<label class="choice"><span class="unseen">Model</span>
    <select id="model" key="list" value=${model} onChange=${(event) => pick(event.target.value)}>
      <option value="">${catalogue.standard ? `${catalogue.standard} (default)` : "Default model"}</option>
      ${catalogue.models.map((it) => html`<option value=${it.id} disabled=${it.ready === false}>${it.id}${it.ready === false ? " (not ready)" : ""}</option>`)}
      ${model && !listed && html`<option value=${model}>${model}</option>`}
      <option value=${OTHER}>Another one…</option>
    </select></label>`;
}
