// The small part of JSON Schema that forms and tool inputs use: what a value must be, in words when it is not.

/** The choices of a field with a closed list: `[{value, label}]`, or null. */
export function choices(schema) {
  if (Array.isArray(schema.enum)) return schema.enum.map((value, at) => ({ value, label: schema.enumNames?.[at] ?? String(value) }));
  const listed = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(listed) && listed.every((it) => "const" in it)) return listed.map((it) => ({ value: it.const, label: it.title ?? String(it.const) }));
  if ("const" in schema) return [{ value: schema.const, label: schema.title ?? String(schema.const) }];
  return null;
}

export function kindOf(schema) {
  const { type } = schema;
  return Array.isArray(type) ? type.find((it) => it !== "null") ?? "string" : type ?? (schema.properties ? "object" : "string");
}

const FORMATS = {
  email: [/^[^\s@]+@[^\s@]+$/, "an e-mail address"],
  date: [/^\d{4}-\d\d-\d\d$/, "a date (YYYY-MM-DD)"],
  "date-time": [/^\d{4}-\d\d-\d\dT\d\d:\d\d/, "a date and time"],
};

/** What is wrong with one value, or null. */
export function fault(value, schema) {
  if (!schema || typeof schema !== "object") return null;
  const listed = choices(schema);
  if (listed && kindOf(schema) !== "array") {
    return listed.some((it) => Object.is(it.value, value)) ? null : `must be one of ${listed.map((it) => it.label).join(", ")}`;
  }
  if (value === null && (schema.type === "null" || schema.type?.includes?.("null"))) return null;
  switch (schema.type === undefined ? null : kindOf(schema)) {
    case "string": return text(value, schema);
    case "integer":
      if (!Number.isInteger(value)) return "must be a whole number";
      return range(value, schema);
    case "number":
      if (typeof value !== "number") return "must be a number";
      return range(value, schema);
    case "boolean": return typeof value === "boolean" ? null : "must be true or false";
    case "array": return list(value, schema);
    case "object": return isObject(value) ? null : "must be an object";
    default: return null;
  }
}

function text(value, { minLength, maxLength, pattern, format }) {
  if (typeof value !== "string") return "must be text";
  const length = [...value].length;
  if (minLength !== undefined && length < minLength) return minLength === 1 ? "must not be empty" : `must have at least ${minLength} characters`;
  if (maxLength !== undefined && length > maxLength) return `must have at most ${maxLength} characters`;
  const [shape, name] = FORMATS[format] ?? [];
  if (shape && !shape.test(value)) return `must be ${name}`;
  if (format === "uri" && !URL.canParse(value)) return "must be an address such as https://…";
  if (pattern && value.length < 2_000 && !matches(value, pattern)) return `must match ${pattern}`;
  return null;
}

function matches(value, pattern) {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    // A pattern of another dialect: the server decides.
    return true;
  }
}

function range(value, { minimum, maximum, exclusiveMinimum, exclusiveMaximum }) {
  if (!Number.isFinite(value)) return "must be a number";
  if (minimum !== undefined && value < minimum) return `must be at least ${minimum}`;
  if (maximum !== undefined && value > maximum) return `must be at most ${maximum}`;
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) return `must be more than ${exclusiveMinimum}`;
  if (exclusiveMaximum !== undefined && value >= exclusiveMaximum) return `must be less than ${exclusiveMaximum}`;
  return null;
}

function list(value, { minItems, maxItems, items }) {
  if (!Array.isArray(value)) return "must be a list";
  if (minItems !== undefined && value.length < minItems) return `needs at least ${minItems}`;
  if (maxItems !== undefined && value.length > maxItems) return `takes at most ${maxItems}`;
  for (const item of value) {
    const wrong = fault(item, items);
    if (wrong) return `each of them ${wrong}`;
  }
  return null;
}

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What is wrong with an object: `{field: words}`, empty if nothing is. */
export function faults(value, schema) {
  const found = {};
  const properties = isObject(schema?.properties) ? schema.properties : {};
  for (const name of Array.isArray(schema?.required) ? schema.required : []) {
    if (!Object.hasOwn(value, name)) found[name] = "is missing";
  }
  for (const [name, given] of Object.entries(value)) {
    if (Object.hasOwn(properties, name)) {
      const wrong = fault(given, properties[name]);
      if (wrong) found[name] = wrong;
    } else if (schema?.additionalProperties === false) found[name] = "is not known to the tool";
  }
  return found;
}

/** Reads a JSON object that a person wrote: `{value}` or `{error}` in words, with the place. */
export function readObject(written, schema) {
  let value;
  try {
    value = JSON.parse(written);
  } catch (error) {
    return { error: `This is not JSON: ${place(error.message, written)}` };
  }
  if (!isObject(value)) return { error: "The input must be a JSON object: { … }." };
  const wrong = Object.entries(faults(value, schema));
  if (wrong.length) return { error: wrong.map(([name, what]) => `“${name}” ${what}`).join("; ") + "." };
  return { value };
}

/** The browser counts characters; people count lines. */
function place(message, written) {
  const at = /position (\d+)/.exec(message);
  if (!at || /line \d+/.test(message)) return message;
  const before = written.slice(0, Number(at[1])).split("\n");
  return `${message} (line ${before.length}, column ${before.at(-1).length + 1})`;
}
