// What a server asks the person in the middle of a call: fields to fill in, or an address to visit.
import { Icon, html, useRef, useState } from "./view.js";
import { choices, fault, isObject, kindOf } from "./schema.js";

/** `item` is a piece of a run of kind `question`. */
export function Question({ item, run, session }) {
  const { question, action } = item;
  const { server, message, form } = question;
  if (action) {
    const ends = { accept: "You answered.", decline: "You declined.", cancel: "It was not answered." };
    return html`<section class="question over" aria-label=${`Question of ${server}`}><p><${Icon} name="ask" /> <strong>${server}</strong> asked: ${message} <span class="muted">${ends[action] ?? action}</span></p></section>`;
  }
  const Form = form === "url" ? Address : Fields;
  return html`<section class="question" aria-labelledby=${`question-${item.key}`} data-question=${item.id}>
    <h3 id=${`question-${item.key}`}><${Icon} name="ask" /> The server <code>${server}</code> asks</h3>
    <p class="asked">${message}</p>
    <${Form} item=${item} question=${question} answer=${async (body) => {
      if (await session.answer(run, item, body)) document.getElementById("message")?.focus();
    }} />
    ${run.problem && html`<p class="error" role="alert">${run.problem}</p>`}
  </section>`;
}

function Others({ answer }) {
  return html`<button type="button" onClick=${() => answer({ action: "decline" })}>Decline</button>
    <button type="button" class="quiet" onClick=${() => answer({ action: "cancel" })}>Dismiss</button>`;
}

function Fields({ item, question, answer }) {
  const schema = isObject(question.schema) ? question.schema : {};
  const fields = Object.entries(isObject(schema.properties) ? schema.properties : {});
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const [values, setValues] = useState(() => Object.fromEntries(fields.map(([name, field]) => [name, initial(field)])));
  const [faults, setFaults] = useState({});
  const place = useRef(null);
  const submit = (event) => {
    event.preventDefault();
    const content = {};
    const found = {};
    for (const [name, field] of fields) {
      const value = read(values[name], field);
      if (value === undefined) {
        if (required.has(name)) found[name] = "This is needed.";
        continue;
      }
      const wrong = fault(value, field);
      if (wrong) found[name] = `It ${wrong}.`;
      content[name] = value;
    }
    setFaults(found);
    const [first] = Object.keys(found);
    if (first === undefined) answer({ action: "accept", content });
    else place.current?.querySelector(`[data-field="${CSS.escape(first)}"]`)?.focus();
  };
  return html`<form ref=${place} noValidate onSubmit=${submit}>
    ${fields.map(([name, field]) => html`<${Field} key=${name} id=${`field-${item.key}-${name}`} name=${name} schema=${field} needed=${required.has(name)}
      value=${values[name]} fault=${faults[name]} set=${(value) => setValues({ ...values, [name]: value })} />`)}
    <p class="muted">Your answer goes to ${question.server}. Give it no passwords or keys.</p>
    <div class="actions"><button type="submit" class="primary">Answer</button><${Others} answer=${answer} /></div>
  </form>`;
}

/** What stands in a field at first; fields hold text, boxes booleans, lists of boxes arrays of positions. */
function initial(schema) {
  const kind = kindOf(schema);
  const listed = choices(kind === "array" ? schema.items ?? {} : schema);
  if (kind === "boolean") return schema.default === true;
  if (kind === "array") return listed ? listed.flatMap((it, at) => (schema.default?.includes?.(it.value) ? [at] : [])) : (schema.default ?? []).join(", ");
  if (listed) return schema.default === undefined ? "" : String(listed.findIndex((it) => it.value === schema.default));
  return schema.default === undefined ? "" : String(schema.default);
}

/** What a field holds as a value; undefined if nothing. */
function read(value, schema) {
  const kind = kindOf(schema);
  const listed = choices(kind === "array" ? schema.items ?? {} : schema);
  if (kind === "boolean") return value;
  if (kind === "array") {
    const all = listed ? value.map((at) => listed[at].value) : value.split(",").map((it) => it.trim()).filter(Boolean);
    return all.length || schema.minItems ? all : undefined;
  }
  if (value === "") return undefined;
  if (listed) return listed[Number(value)]?.value;
  if (kind === "integer" || kind === "number") return Number(value);
  if (schema.format === "date-time") return Number.isNaN(Date.parse(value)) ? value : new Date(value).toISOString();
  return value;
}

const TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

/** A field's name as a label: `first_name` is “First name”. */
function spelt(name) {
  const words = name.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/[_-]+/g, " ").trim();
  return words ? words[0].toUpperCase() + words.slice(1) : name;
}

function Field({ id, name, schema, needed, value, fault: wrong, set }) {
  const kind = kindOf(schema);
  const label = schema.title ?? spelt(name);
  const listed = choices(kind === "array" ? schema.items ?? {} : schema);
  const about = `${id}-about`;
  const shared = { id, "data-field": name, "aria-describedby": about, "aria-invalid": wrong ? "true" : "false", "aria-required": needed ? "true" : undefined };
  const notes = html`<p id=${about} class="field-about"><span class="muted">${schema.description ?? ""}</span>${wrong && html` <span class="error" role="alert">${wrong}</span>`}</p>`;
  const mark = needed ? html` <span class="muted">(needed)</span>` : "";

  if (kind === "boolean") {
    return html`<div class="field"><label class="box"><input type="checkbox" ...${shared} checked=${value} onChange=${(event) => set(event.target.checked)} /> ${label}</label>${notes}</div>`;
  }
  if (kind === "array" && listed) {
    const flip = (at, on) => set(on ? [...value, at].sort((a, b) => a - b) : value.filter((it) => it !== at));
    return html`<fieldset class="field" aria-describedby=${about}><legend>${label}${mark}</legend>
      ${listed.map((it, at) => html`<label class="box"><input type="checkbox" data-field=${at === 0 ? name : undefined} checked=${value.includes(at)} onChange=${(event) => flip(at, event.target.checked)} /> ${it.label}</label>`)}
      ${notes}</fieldset>`;
  }
  if (listed) {
    return html`<div class="field"><label for=${id}>${label}${mark}</label>
      <select ...${shared} value=${value} onChange=${(event) => set(event.target.value)}>
        <option value="">${needed ? "Choose…" : "—"}</option>
        ${listed.map((it, at) => html`<option value=${String(at)}>${it.label}</option>`)}
      </select>${notes}</div>`;
  }
  const number = kind === "integer" || kind === "number";
  const long = !number && (schema.maxLength ?? 0) > 200;
  const type = number ? "number" : TYPES[schema.format] ?? "text";
  return html`<div class="field"><label for=${id}>${label}${mark}</label>
    ${long
      ? html`<textarea ...${shared} rows="3" value=${value} onInput=${(event) => set(event.target.value)} />`
      : html`<input ...${shared} type=${type} step=${kind === "integer" ? "1" : number ? "any" : undefined} autocomplete="off" value=${value} onInput=${(event) => set(event.target.value)} />`}
    ${notes}</div>`;
}

/** Where the person is to go. Whoever asks may be lying about it, so the host is what is shown large. */
function Address({ question, answer }) {
  const { url } = question;
  const address = URL.canParse(url) ? new URL(url) : null;
  if (!address || !/^https?:$/.test(address.protocol)) {
    return html`<p class="warning"><${Icon} name="warn" /> It wants to open an address that is no web address, which is not offered here:</p><p><code class="address">${url}</code></p>
      <div class="actions"><${Others} answer=${answer} /></div>`;
  }
  const cautions = [];
  if (address.protocol === "http:" && !/^(?:localhost|127\.|\[::1\])/.test(address.host)) cautions.push("The connection to it is not encrypted.");
  if (/(?:^|\.)xn--/.test(address.hostname)) cautions.push("Its name is written with letters that may look like others.");
  if (address.username || address.password) cautions.push("The address begins with a user name, which is a way to hide the real host.");
  return html`<p>It wants you to open a page of</p>
    <p class="host">${address.host}</p>
    <p><code class="address">${address.href}</code></p>
    <p class="warning"><${Icon} name="warn" /> Go there only if you expected this and know that host. What you enter there is seen by that site, not by this one. ${cautions.join(" ")}</p>
    <div class="actions">
      <a class="button primary" href=${address.href} target="_blank" rel="noopener noreferrer nofollow" onClick=${() => answer({ action: "accept", content: {} })}>Open ${address.host}</a>
      <${Others} answer=${answer} />
    </div>`;
}
