// The message field, with the choice of model, recipe and strategy.
import { Icon, html, useEffect, useModel, useRef, useState } from "./view.js";
import { catalogue } from "./catalogue.js";
import { messageText } from "./format.js";

const CHOICE_KEY = "switchboard.choice";

function loadChoice() {
  try {
    return JSON.parse(localStorage.getItem(CHOICE_KEY)) ?? {};
  } catch {
    return {};
  }
}

function storeChoice(choice) {
  try {
    localStorage.setItem(CHOICE_KEY, JSON.stringify(choice));
  } catch {
    // Storage is unavailable: the choice is lost on reload.
  }
}

export function Composer({ session, draft }) {
  useModel(session);
  useModel(catalogue);
  useModel(session.current);
  useModel(draft);
  const field = useRef(null);
  const [choice, setChoice] = useState(loadChoice);
  const { busy } = session;
  const run = session.current;

  const updateChoice = (changes) => {
    const updated = { ...choice, ...changes };
    setChoice(updated);
    // A typed model name may be wrong, so it is stored only after a run completed with it.
    if (!updated.model || catalogue.models.some((it) => it.id === updated.model)) storeChoice(updated);
  };
  const outcome = run?.report?.outcome;
  useEffect(() => {
    if (outcome === "completed" && choice.model && run.model.endsWith(choice.model)) storeChoice(choice);
  }, [run?.id, outcome]);
  const model = choice.model ?? "";
  const recipe = catalogue.recipes.some((it) => it.name === choice.recipe) ? choice.recipe : "";
  const strategy = choice.strategy ?? "";

  const send = async () => {
    const text = draft.text.trim();
    if (!text || busy) return;
    const { sessionId } = draft;
    draft.set("");
    const accepted = await session.send(text, { model, recipe, strategy });
    if (!accepted && !(draft.sessionId === sessionId && draft.text)) draft.set(text, sessionId);
  };
  useEffect(() => {
    draft.send = (text) => {
      draft.set(text);
      send();
    };
    draft.retry = () => session.send(messageText(session.turns.at(-1).user), { model, recipe, strategy, replaceLast: true });
  });
  useEffect(() => {
    const textarea = field.current;
    textarea.style.height = "auto";
    textarea.style.height = `${Math.min(textarea.scrollHeight, 220)}px`;
  }, [draft.text]);

  const handleKeyDown = (event) => {
    // During composition, Enter confirms the characters of an input method editor.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  };

  return html`<form class="composer" onSubmit=${(event) => { event.preventDefault(); send(); }}>
    <div class="composer-box">
      <label class="visually-hidden" for="message">Your message</label>
      <textarea id="message" ref=${field} rows="1" placeholder="Ask anything…" value=${draft.text} aria-describedby="keys" enterkeyhint="send"
        onInput=${(event) => draft.set(event.target.value)} onKeyDown=${handleKeyDown} />
      <div class="composer-row">
        <${ModelChoice} model=${model} onChoose=${(chosen) => updateChoice({ model: chosen })} />
        <label class="choice"><span class="visually-hidden">Recipe</span>
          <select id="recipe" value=${recipe} onChange=${(event) => updateChoice({ recipe: event.target.value })}>
            <option value="">No recipe</option>
            ${catalogue.recipes.map((it) => html`<option value=${it.name}>${it.title || it.name}</option>`)}
          </select></label>
        <label class="choice"><span class="visually-hidden">Strategy</span>
          <select id="strategy" value=${strategy} onChange=${(event) => updateChoice({ strategy: event.target.value })}>
            <option value="">Default strategy</option>
            <option value="loop">Call tools, then answer</option>
            <option value="gather-format">Gather data, then format</option>
          </select></label>
        <span class="grow" />
        <span id="keys" class="keys muted">${busy ? html`<kbd>Esc</kbd> to stop` : html`<kbd>Enter</kbd> to send · <kbd>Shift</kbd>+<kbd>Enter</kbd> for a new line`}</span>
        ${busy
          ? html`<button type="button" class="round stop" onClick=${() => session.cancel()} disabled=${!run || run.stopping} aria-label="Stop" title="Stop"><${Icon} name="stop" /></button>`
          : html`<button type="submit" class="round primary" disabled=${!draft.text.trim()} aria-label="Send" title="Send"><${Icon} name="send" /></button>`}
      </div>
    </div>
  </form>`;
}

/** Option value for entering another model. No model name contains a line break. */
const OTHER = "\n";

/** Selects a model from the catalogue, or accepts the name of any other model. */
function ModelChoice({ model, onChoose }) {
  const [editing, setEditing] = useState(false);
  // Catalogue updates re-render the field while the user types, so the text is kept in the state.
  const [typed, setTyped] = useState("");
  const field = useRef(null);
  const fieldOpen = useRef(false);
  useEffect(() => {
    if (editing) field.current.focus();
  }, [editing]);
  if (editing) {
    // Closing the field with a key also triggers its blur event, which must not choose again.
    const closeField = (chosen) => {
      if (!fieldOpen.current) return;
      fieldOpen.current = false;
      setEditing(false);
      if (chosen !== null) onChoose(chosen.trim());
    };
    const handleKeyDown = (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      closeField(event.key === "Enter" ? event.target.value : null);
      document.getElementById("message")?.focus();
    };
    return html`<label class="choice"><span class="visually-hidden">Model (provider/model)</span>
      <input id="model" key="field" ref=${field} type="text" placeholder="provider/model" autocomplete="off" autocapitalize="off" spellcheck="false" value=${typed}
        onInput=${(event) => setTyped(event.target.value)} onKeyDown=${handleKeyDown} onBlur=${(event) => closeField(event.target.value)} /></label>`;
  }
  const listed = catalogue.models.some((it) => it.id === model);
  const handleSelect = (chosen) => {
    if (chosen !== OTHER) {
      onChoose(chosen);
      return;
    }
    fieldOpen.current = true;
    setTyped(model);
    setEditing(true);
  };
  return html`<label class="choice"><span class="visually-hidden">Model</span>
    <select id="model" key="list" value=${model} onChange=${(event) => handleSelect(event.target.value)}>
      <option value="">${catalogue.defaultModel ? `${catalogue.defaultModel} (default)` : "Default model"}</option>
      ${catalogue.models.map((it) => html`<option value=${it.id} disabled=${it.ready === false}>${it.id}${it.ready === false ? " – needs an API key" : ""}</option>`)}
      ${model && !listed && html`<option value=${model}>${model}</option>`}
      <option value=${OTHER}>Other model…</option>
    </select></label>`;
}
