// An elicitation: a form or a URL that an MCP server sends to the user during a call.
import { Icon, html, useRef, useState } from "./view.js";
import { enumOptions, isObject, primaryType, validateValue } from "./schema.js";

/** An elicitation with its outcome. `item` is a run item of kind `question`. */
export function Question({ item, run, session }) {
  const { question, action } = item;
  const { server, message, form } = question;
  if (action) {
    const outcomes = { accept: "You answered.", decline: "You declined.", cancel: "Not answered." };
    return html`<section class="question over" aria-label=${`Question from ${server}`}><p><${Icon} name="ask" /> <strong>${server}</strong> asked: ${message} <span class="muted">${outcomes[action] ?? action}</span></p></section>`;
  }
  const Form = form === "url" ? UrlForm : FieldsForm;
  return html`<section class="question" aria-labelledby=${`question-${item.key}`} data-question=${item.id}>
    <h3 id=${`question-${item.key}`}><${Icon} name="ask" /> <code>${server}</code> needs information</h3>
    <p class="asked">${message}</p>
    <${Form} item=${item} question=${question} onAnswer=${async (body) => {
      if (await session.answer(run, item, body)) document.getElementById("message")?.focus();
    }} />
    ${run.problem && html`<p class="error" role="alert">${run.problem}</p>`}
  </section>`;
}

function DeclineButtons({ onAnswer }) {
  return html`<button type="button" onClick=${() => onAnswer({ action: "decline" })}>Decline</button>
    <button type="button" class="quiet" onClick=${() => onAnswer({ action: "cancel" })}>Not now</button>`;
}

function FieldsForm({ item, question, onAnswer }) {
  const schema = isObject(question.schema) ? question.schema : {};
  const fields = Object.entries(isObject(schema.properties) ? schema.properties : {});
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const [values, setValues] = useState(() => Object.fromEntries(fields.map(([name, field]) => [name, initialState(field)])));
  const [errors, setErrors] = useState({});
  const form = useRef(null);
  const submit = (event) => {
    event.preventDefault();
    const content = {};
    const newErrors = {};
    for (const [name, field] of fields) {
      const value = parseState(values[name], field);
      if (value === undefined) {
        if (required.has(name)) newErrors[name] = "This field is required.";
        continue;
      }
      const violation = validateValue(value, field);
      if (violation) newErrors[name] = `The value ${violation}.`;
      content[name] = value;
    }
    setErrors(newErrors);
    const [firstInvalid] = Object.keys(newErrors);
    if (firstInvalid === undefined) onAnswer({ action: "accept", content });
    else form.current?.querySelector(`[data-field="${CSS.escape(firstInvalid)}"]`)?.focus();
  };
  return html`<form ref=${form} noValidate onSubmit=${submit}>
    ${fields.map(([name, field]) => html`<${Field} key=${name} id=${`field-${item.key}-${name}`} name=${name} schema=${field} required=${required.has(name)}
      value=${values[name]} error=${errors[name]} onChange=${(value) => setValues({ ...values, [name]: value })} />`)}
    <p class="muted">Your answer goes to ${question.server}. Don't enter passwords or API keys.</p>
    <div class="actions"><button type="submit" class="primary">Answer</button><${DeclineButtons} onAnswer=${onAnswer} /></div>
  </form>`;
}

/**
 * Returns the initial state of a field: a boolean for a checkbox, an array of option indices for a
 * checkbox list, an option index as a string for a select, and a string for all other fields.
 */
function initialState(schema) {
  const kind = primaryType(schema);
  const options = enumOptions(kind === "array" ? schema.items ?? {} : schema);
  if (kind === "boolean") return schema.default === true;
  if (kind === "array") return options ? options.flatMap((option, index) => (schema.default?.includes?.(option.value) ? [index] : [])) : (schema.default ?? []).join(", ");
  if (options) return schema.default === undefined ? "" : String(options.findIndex((option) => option.value === schema.default));
  return schema.default === undefined ? "" : String(schema.default);
}

/** Converts the state of a field to its JSON value. Returns undefined for an empty field. */
function parseState(value, schema) {
  const kind = primaryType(schema);
  const options = enumOptions(kind === "array" ? schema.items ?? {} : schema);
  if (kind === "boolean") return value;
  if (kind === "array") {
    const items = options ? value.map((index) => options[index].value) : value.split(",").map((item) => item.trim()).filter(Boolean);
    return items.length || schema.minItems ? items : undefined;
  }
  if (value === "") return undefined;
  if (options) return options[Number(value)]?.value;
  if (kind === "integer" || kind === "number") return Number(value);
  if (schema.format === "date-time") return Number.isNaN(Date.parse(value)) ? value : new Date(value).toISOString();
  return value;
}

/** `type` attributes of inputs by JSON Schema format. */
const INPUT_TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

/** Converts a property name to a label: `first_name` becomes “First name”. */
function toLabel(name) {
  const words = name.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/[_-]+/g, " ").trim();
  return words ? words[0].toUpperCase() + words.slice(1) : name;
}

function Field({ id, name, schema, required, value, error, onChange }) {
  const kind = primaryType(schema);
  const label = schema.title ?? toLabel(name);
  const options = enumOptions(kind === "array" ? schema.items ?? {} : schema);
  const descriptionId = `${id}-about`;
  const inputProps = { id, "data-field": name, "aria-describedby": descriptionId, "aria-invalid": error ? "true" : "false", "aria-required": required ? "true" : undefined };
  const description = html`<p id=${descriptionId} class="field-about"><span class="muted">${schema.description ?? ""}</span>${error && html` <span class="error" role="alert">${error}</span>`}</p>`;
  const requiredMark = required ? html` <span class="muted">(required)</span>` : "";

  if (kind === "boolean") {
    return html`<div class="field"><label class="box"><input type="checkbox" ...${inputProps} checked=${value} onChange=${(event) => onChange(event.target.checked)} /> ${label}</label>${description}</div>`;
  }
  if (kind === "array" && options) {
    const toggle = (index, checked) => onChange(checked ? [...value, index].sort((a, b) => a - b) : value.filter((other) => other !== index));
    return html`<fieldset class="field" aria-describedby=${descriptionId}><legend>${label}${requiredMark}</legend>
      ${options.map((option, index) => html`<label class="box"><input type="checkbox" data-field=${index === 0 ? name : undefined} checked=${value.includes(index)} onChange=${(event) => toggle(index, event.target.checked)} /> ${option.label}</label>`)}
      ${description}</fieldset>`;
  }
  if (options) {
    return html`<div class="field"><label for=${id}>${label}${requiredMark}</label>
      <select ...${inputProps} value=${value} onChange=${(event) => onChange(event.target.value)}>
        <option value="">${required ? "Choose…" : "—"}</option>
        ${options.map((option, index) => html`<option value=${String(index)}>${option.label}</option>`)}
      </select>${description}</div>`;
  }
  const isNumber = kind === "integer" || kind === "number";
  const multiline = !isNumber && (schema.maxLength ?? 0) > 200;
  const type = isNumber ? "number" : INPUT_TYPES[schema.format] ?? "text";
  return html`<div class="field"><label for=${id}>${label}${requiredMark}</label>
    ${multiline
      ? html`<textarea ...${inputProps} rows="3" value=${value} onInput=${(event) => onChange(event.target.value)} />`
      : html`<input ...${inputProps} type=${type} step=${kind === "integer" ? "1" : isNumber ? "any" : undefined} autocomplete="off" value=${value} onInput=${(event) => onChange(event.target.value)} />`}
    ${description}</div>`;
}

/**
 * The target of a URL elicitation. The server's message may misrepresent the target, so the actual
 * host is shown in large type.
 */
function UrlForm({ question, onAnswer }) {
  const { url } = question;
  const target = URL.canParse(url) ? new URL(url) : null;
  if (!target || !/^https?:$/.test(target.protocol)) {
    return html`<p class="warning"><${Icon} name="warn" /> This link is not a web address, so it can't be opened here:</p><p><code class="address">${url}</code></p>
      <div class="actions"><${DeclineButtons} onAnswer=${onAnswer} /></div>`;
  }
  const warnings = [];
  if (target.protocol === "http:" && !/^(?:localhost|127\.|\[::1\])/.test(target.host)) warnings.push("The connection is not encrypted.");
  if (/(?:^|\.)xn--/.test(target.hostname)) warnings.push("The host name contains characters that look like other characters.");
  if (target.username || target.password) warnings.push("The address contains a user name, which can hide the real host.");
  return html`<p>It wants to open a page on</p>
    <p class="host">${target.host}</p>
    <p><code class="address">${target.href}</code></p>
    <p class="warning"><${Icon} name="warn" /> Open it only if you expected this and trust the host. That site, not this one, sees what you enter there. ${warnings.join(" ")}</p>
    <div class="actions">
      <a class="button primary" href=${target.href} target="_blank" rel="noopener noreferrer nofollow" onClick=${() => onAnswer({ action: "accept", content: {} })}>Open ${target.host}</a>
      <${DeclineButtons} onAnswer=${onAnswer} />
    </div>`;
}
