// Validation with error messages for the subset of JSON Schema that forms and tool inputs use.

/** Returns the choices of an enumerated schema as `[{value, label}]`, or null. */
export function enumOptions(schema) {
  if (Array.isArray(schema.enum)) return schema.enum.map((value, index) => ({ value, label: schema.enumNames?.[index] ?? String(value) }));
  const variants = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(variants) && variants.every((variant) => "const" in variant)) return variants.map((variant) => ({ value: variant.const, label: variant.title ?? String(variant.const) }));
  if ("const" in schema) return [{ value: schema.const, label: schema.title ?? String(schema.const) }];
  return null;
}

/**
 * Returns the first type except `null`. Without a type: `object` with properties, else `string`.
 */
export function primaryType(schema) {
  const { type } = schema;
  return Array.isArray(type) ? type.find((name) => name !== "null") ?? "string" : type ?? (schema.properties ? "object" : "string");
}

/** Pattern and description by format. */
const FORMATS = {
  email: [/^[^\s@]+@[^\s@]+$/, "an e-mail address"],
  date: [/^\d{4}-\d\d-\d\d$/, "a date (YYYY-MM-DD)"],
  "date-time": [/^\d{4}-\d\d-\d\dT\d\d:\d\d/, "a date and time"],
};

/** Returns the violation of one value, such as `must be a number`, or null. */
export function validateValue(value, schema) {
  if (!schema || typeof schema !== "object") return null;
  const options = enumOptions(schema);
  if (options && primaryType(schema) !== "array") {
    return options.some((option) => Object.is(option.value, value)) ? null : `must be one of ${options.map((option) => option.label).join(", ")}`;
  }
  if (value === null && (schema.type === "null" || schema.type?.includes?.("null"))) return null;
  switch (schema.type === undefined ? null : primaryType(schema)) {
    case "string": return checkString(value, schema);
    case "integer":
      if (!Number.isInteger(value)) return "must be a whole number";
      return checkRange(value, schema);
    case "number":
      if (typeof value !== "number") return "must be a number";
      return checkRange(value, schema);
    case "boolean": return typeof value === "boolean" ? null : "must be true or false";
    case "array": return checkArray(value, schema);
    case "object": return isObject(value) ? null : "must be an object";
    default: return null;
  }
}

function checkString(value, { minLength, maxLength, pattern, format }) {
  if (typeof value !== "string") return "must be text";
  const length = [...value].length;
  if (minLength !== undefined && length < minLength) return minLength === 1 ? "must not be empty" : `must have at least ${minLength} characters`;
  if (maxLength !== undefined && length > maxLength) return `must have at most ${maxLength} characters`;
  const [formatPattern, formatName] = FORMATS[format] ?? [];
  if (formatPattern && !formatPattern.test(value)) return `must be ${formatName}`;
  if (format === "uri" && !URL.canParse(value)) return "must be a URL such as https://…";
  if (pattern && value.length < 2_000 && !matches(value, pattern)) return `must match ${pattern}`;
  return null;
}

function matches(value, pattern) {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    // The pattern may use another regular expression dialect. The server validates it.
    return true;
  }
}

function checkRange(value, { minimum, maximum, exclusiveMinimum, exclusiveMaximum }) {
  if (!Number.isFinite(value)) return "must be a number";
  if (minimum !== undefined && value < minimum) return `must be at least ${minimum}`;
  if (maximum !== undefined && value > maximum) return `must be at most ${maximum}`;
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum) return `must be more than ${exclusiveMinimum}`;
  if (exclusiveMaximum !== undefined && value >= exclusiveMaximum) return `must be less than ${exclusiveMaximum}`;
  return null;
}

function checkArray(value, { minItems, maxItems, items }) {
  if (!Array.isArray(value)) return "must be a list";
  if (minItems !== undefined && value.length < minItems) return `must have at least ${minItems} items`;
  if (maxItems !== undefined && value.length > maxItems) return `must have at most ${maxItems} items`;
  for (const item of value) {
    const violation = validateValue(item, items);
    if (violation) return `contains an item that ${violation}`;
  }
  return null;
}

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the violations of an object by property name. The result is empty for a valid object. */
function validateObject(value, schema) {
  const violations = {};
  const properties = isObject(schema?.properties) ? schema.properties : {};
  for (const name of Array.isArray(schema?.required) ? schema.required : []) {
    if (!Object.hasOwn(value, name)) violations[name] = "is missing";
  }
  for (const [name, property] of Object.entries(value)) {
    if (Object.hasOwn(properties, name)) {
      const violation = validateValue(property, properties[name]);
      if (violation) violations[name] = violation;
    } else if (schema?.additionalProperties === false) violations[name] = "is not a parameter of the tool";
  }
  return violations;
}

/** Parses and validates a JSON object that the user typed. Returns `{value}` or `{error}`. */
export function parseObject(text, schema) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { error: `Invalid JSON: ${withLineNumber(error.message, text)}` };
  }
  if (!isObject(value)) return { error: "The input must be a JSON object: { … }." };
  const violations = Object.entries(validateObject(value, schema));
  if (violations.length) return { error: violations.map(([name, violation]) => `“${name}” ${violation}`).join("; ") + "." };
  return { value };
}

/** Adds line and column to the error message of a browser that only contains a character offset. */
function withLineNumber(message, text) {
  const offset = /position (\d+)/.exec(message);
  if (!offset || /line \d+/.test(message)) return message;
  const linesBefore = text.slice(0, Number(offset[1])).split("\n");
  return `${message} (line ${linesBefore.length}, column ${linesBefore.at(-1).length + 1})`;
}
