// The page of an evaluation's report: a file that stands alone, whatever models and tools said in it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { startBrowser, violations } from "./stage.mjs";

/** Set by `cargo xtask browser`: makes a page of a report. */
const { SWITCHBOARD_REPORT_PAGE: PAGE } = process.env;

const HOSTILE = "</details></div></script><script>window.harmed = 1</script><img src=\"https://tracker.example/x.png\" onerror=\"window.harmed = 2\">"
  + "\" onmouseover='window.harmed = 3' \u202egnihton\u202c <!-- <style>body{display:none}</style> &lt;b&gt; \u0000\u001b[31m";
/** As it is shown. */
const seen = (text) => text.replace("\u202e", "[U+202E]").replace("\u202c", "[U+202C]").replace("\u0000", "␀").replace("\u001b", "␛");

const usage = { input_tokens: 1200, output_tokens: 80 };
const entries = (said) => [
  { at_ms: 0, type: "model_request", step: 1, model: "acme/one", tools: 3 },
  { at_ms: 40, type: "reasoning", text: "The customer is named by a number." },
  { at_ms: 300, type: "model_response", step: 1, reason: "tool_use", usage },
  { at_ms: 301, type: "call", id: "1", server: "shop", tool: "look_up", scored_call: 0, input: { text: "{\"id\":42}" },
    notes: [{ at_ms: 310, kind: "tool_retried", text: "attempt 2, since the connection broke" }],
    result: { at_ms: 420, is_error: false, cached: false, attempts: 2, duration_ms: 110, content: [{ type: "text", text: said },
      { type: "text", text: `long ${"and longer ".repeat(400)}` }, { text: "[image image/png, 70 bytes]" }] } },
  { at_ms: 430, type: "note", kind: "warning", text: "option dropped: no temperature" },
  { at_ms: 440, type: "text", text: said },
];
const turn = (said, faults) => ({
  message: said, answer: said, outcome: "completed", faults, missing: [], steps: 2, usage, cost_usd: 0.0123, duration_ms: 1240,
  calls: [{ server: "shop", tool: "look_up", input: { id: 42 }, outcome: "successful", verdict: faults.length ? "wrong_input" : "right", reason: faults[0], duration_ms: 110, result: said }],
  transcript: { entries: entries(said) },
});
const run = (model, kind, scenario, repetition, said, faults = []) => ({
  scenario, kind, model, repetition, passed: faults.length === 0, turns: [turn(said, faults), turn("And then?", [])],
});
const report = (title, runs) => ({ format: "switchboard-evaluation", version: 1, title, program: "switchboard 0.1.0", created_at: "2026-01-01T00:00:00Z", thresholds: { passed: 0.9, accuracy: 0.9 }, runs });

const RUNS = [
  run("acme/one", "entity exists", "The customer exists", 1, "What is the value of customer 42?"),
  run("acme/one", "entity exists", "The customer exists", 2, "What is the value of customer 42?", ["`id` is 43, expected 42"]),
  run("acme/one", "entity missing", HOSTILE, 1, HOSTILE, [HOSTILE]),
  run("acme/two-with-a-name-that-is-longer-than-a-telephone-is-wide-in-most-hands", "entity exists", "The customer exists", 1, "What is the value of customer 42?"),
  run("acme/two-with-a-name-that-is-longer-than-a-telephone-is-wide-in-most-hands", HOSTILE, "An unusual kind", 1, "x".repeat(4000)),
];

describe("the page of a report", { concurrency: false }, () => {
  let folder;
  let browser;
  let address;

  /** Writes the page of a report, and gives its address. */
  function write(name, later, earlier) {
    const files = [later, earlier].filter(Boolean).map((it, at) => {
      const file = join(folder, `${name}-${at}.json`);
      writeFileSync(file, JSON.stringify(it));
      return file;
    });
    const { status, stdout, stderr } = spawnSync(PAGE, files, { maxBuffer: 1 << 28 });
    assert.equal(status, 0, String(stderr));
    const file = join(folder, `${name}.html`);
    writeFileSync(file, stdout);
    return pathToFileURL(file).href;
  }

  before(async () => {
    assert.ok(PAGE, "run these with `cargo xtask browser`");
    folder = mkdtempSync(join(tmpdir(), "switchboard-report-"));
    const earlier = report("Before", [...RUNS.slice(0, 1), run("acme/one", "entity exists", "The customer exists", 2, "x"), run("acme/old", "k", "s", 1, "x")]);
    address = write("page", report(`Customer service ${HOSTILE}`, RUNS), earlier);
    browser = await startBrowser();
  });
  after(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The page, and what it complained of or asked of others. */
  async function open(url, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1200, height: 820 }, reducedMotion: "reduce", ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    page.problems = [];
    page.on("console", (message) => page.problems.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => page.problems.push(`error: ${error.message}`));
    page.on("dialog", (dialog) => { page.problems.push("dialog"); dialog.dismiss(); });
    context.on("request", (request) => { if (request.url() !== url.split("#")[0]) page.problems.push(`asks ${request.url()}`); });
    await page.goto(url);
    return page;
  }

  async function fine(page) {
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }

  const runs = (page) => page.locator("#runs > li:visible");

  test("it stands alone, and what was said in it is text", async () => {
    const page = await open(address);
    assert.equal(await page.locator("h1").innerText(), `${seen(`Customer service ${HOSTILE}`.slice(0, 200))}…`);
    await page.locator("#run-3 > summary").click();
    const said = page.locator("#run-3 .person .text").first();
    assert.equal(await said.innerText(), seen(HOSTILE));
    assert.equal(await page.evaluate(() => globalThis.harmed), undefined);
    const strangers = await page.evaluate(() => ["script", "style", "img", "iframe", "object", "form", "[onmouseover]", "[onerror]", "[style]", "b"].map((it) => [it, document.querySelectorAll(it).length]));
    assert.deepEqual(Object.fromEntries(strangers), { script: 1, style: 1, img: 0, iframe: 0, object: 0, form: 1, "[onmouseover]": 0, "[onerror]": 0, "[style]": 0, b: 0 });
    // The tree is as the program wrote it: nothing was closed early.
    assert.equal(await page.locator("#runs > li > details > div > section").count(), RUNS.length * 2);
    assert.equal(await page.evaluate(() => document.body.lastElementChild.localName), "script");
    await fine(page);
  });

  test("nothing in it would run or be loaded if it were markup", async () => {
    const page = await open(address);
    await page.evaluate(() => {
      globalThis.refused = new Set();
      document.addEventListener("securitypolicyviolation", (event) => globalThis.refused.add(event.effectiveDirective));
      document.body.insertAdjacentHTML("beforeend", "<img src='https://tracker.example/x.png'><p id='p' onclick='window.harmed = 1'></p><i style='color: red'></i>");
      document.getElementById("p").click();
      document.body.append(Object.assign(document.createElement("script"), { textContent: "window.harmed = 2" }));
      fetch("https://tracker.example/").catch(() => {});
    });
    for (const directive of ["connect-src", "img-src", "script-src-attr", "script-src-elem", "style-src-attr"]) {
      await page.waitForFunction((it) => globalThis.refused.has(it), directive);
    }
    assert.equal(await page.evaluate(() => globalThis.harmed), undefined);
    await page.context().close();
  });

  for (const colorScheme of ["light", "dark"]) {
    test(`everybody can use it (${colorScheme})`, async () => {
      for (const viewport of [{ width: 1200, height: 900 }, { width: 360, height: 740 }]) {
        const page = await open(address, { colorScheme, viewport });
        await page.locator('button[name="open"]').click();
        await page.locator(".terms > summary").click();
        assert.equal(await page.locator("#runs details.run[open]").count(), RUNS.length);
        // What is off the screen is judged as well.
        await page.evaluate(() => { for (const run of document.querySelectorAll(".run")) run.scrollIntoView(); });
        const wide = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
        assert.ok(wide[0] <= wide[1], `it is wider than the window: ${wide}`);
        assert.deepEqual(page.problems, []);
        assert.deepEqual(await violations(page), []);
        await page.context().close();
      }
    });
  }

  test("charts say in words what they show, and tables have captions and headers", async () => {
    const page = await open(address);
    const charts = await page.locator("figure [role=img]").evaluateAll((all) => all.map((it) => it.getAttribute("aria-label")));
    assert.equal(charts.length, 3);
    assert.match(charts[0], /^Runs that passed, by kind\. .*entity exists: acme\/one, 1 of 2\./);
    assert.match(charts[1], /acme\/one, 6 successful\./);
    assert.match(charts[2], /acme\/one, 1\.24 s, 95 % within 1\.24 s\./);
    // No bar leaves its track, and words stay within the figure.
    const outside = await page.locator("figure").evaluateAll((all) => all.flatMap((figure) => {
      const box = figure.getBoundingClientRect();
      return [...figure.querySelectorAll("rect, p")].filter((it) => it.getBoundingClientRect().right > box.right + 0.5).map((it) => it.outerHTML);
    }));
    assert.deepEqual(outside, []);
    const tables = await page.locator("table").evaluateAll((all) => all.map((it) => [it.caption?.textContent ?? "", it.querySelectorAll("thead th[scope=col]").length, it.querySelectorAll("tbody tr").length - it.querySelectorAll("tbody th[scope=row]").length]));
    assert.ok(tables.length >= 5);
    for (const [caption, heads, rows] of tables) assert.ok(caption !== "" && heads > 1 && rows === 0, caption);
    await fine(page);
  });

  test("a transcript opens with the keyboard and tells the whole course", async () => {
    const page = await open(address);
    const run = page.locator("#run-2");
    assert.equal(await run.locator(".course").first().isVisible(), false);
    await run.locator("> summary").focus();
    await page.keyboard.press("Enter");
    const course = run.locator(".course").first();
    await course.waitFor();
    const told = await course.innerText();
    for (const words of ["What is the value of customer 42?", "request to acme/one with 3 tools", "The customer is named by a number.", "shop/look_up", "wrong arguments",
      "`id` is 43, expected 42", "\"id\": 42", "tool retried: attempt 2, since the connection broke", "[image image/png, 70 bytes]", "option dropped", "1,200 tokens in"]) {
      assert.ok(told.includes(words), `${words}\n${told}`);
    }
    assert.equal(await run.locator(".faults").first().innerText(), "`id` is 43, expected 42");
    // What is long opens on its own.
    const long = course.locator("details");
    assert.equal(await long.locator(".json").isVisible(), false);
    await long.locator("summary").click();
    assert.match(await long.locator(".json").innerText(), /^long and longer/);
    await fine(page);
  });

  test("runs are filtered by model, kind and failure", async () => {
    const page = await open(address);
    const count = page.locator("#count");
    assert.equal(await count.innerText(), "5 of 5 runs are shown");
    await page.selectOption("select[name=model]", { label: "acme/one" });
    assert.equal(await runs(page).count(), 3);
    await page.check("input[name=failing]");
    assert.equal(await runs(page).count(), 2);
    await page.selectOption("select[name=kind]", { label: "entity exists" });
    assert.equal(await runs(page).count(), 1);
    assert.equal(await runs(page).locator("> details").getAttribute("id"), "run-2");
    assert.equal(await count.innerText(), "1 of 5 runs are shown");
    await page.selectOption("select[name=model]", "");
    await page.uncheck("input[name=failing]");
    await page.selectOption("select[name=kind]", "");
    assert.equal(await runs(page).count(), 5);
    await fine(page);
  });

  test("what is worse leads to the run that shows it", async () => {
    const page = await open(address);
    await page.selectOption("select[name=kind]", { label: "entity missing" });
    await page.locator("#changes + * ~ .scroll a").first().click();
    await page.locator("#run-2[open] .course").first().waitFor();
    assert.match(await page.locator("section", { has: page.locator("#changes") }).first().innerText(), /`The customer exists` passed 2 of 2 before, 1 of 2 now/);
    await fine(page);
    const there = await open(`${address}#run-4`);
    await there.locator("#run-4[open] .course").first().waitFor();
    await fine(there);
  });

  test("it is complete without its script, and on paper", async () => {
    const page = await open(address, { javaScriptEnabled: false });
    assert.equal(await page.locator("#filter").isVisible(), false);
    assert.equal(await runs(page).count(), 5);
    await page.locator("#run-1 > summary").click();
    await page.locator("#run-1 .course").first().waitFor();
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    assert.equal(await page.locator("#run-1 .course").first().isVisible(), true);
    assert.ok((await page.pdf()).length > 10_000);
    await page.context().close();
    const printed = await open(address);
    await printed.emulateMedia({ media: "print", colorScheme: "dark" });
    assert.equal(await printed.locator("#filter").isVisible(), false);
    assert.deepEqual(await printed.evaluate(() => { const { backgroundColor, color } = getComputedStyle(document.body); return [backgroundColor, color]; }), ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]);
    await fine(printed);
  });

  test("two thousand runs are one page that can be used", async () => {
    const many = Array.from({ length: 2000 }, (_, at) => run(`acme/${at % 4}`, `kind ${at % 7}`, `scenario ${Math.floor(at / 4)}`, 1, `Question ${at}`, at % 3 ? [] : ["It is wrong"]));
    const large = write("large", report("Large", many));
    const page = await open(large);
    await page.check("input[name=failing]");
    assert.equal(await page.locator("#count").innerText(), "667 of 2000 runs are shown");
    await page.locator("#run-1999").evaluate((it) => { it.open = true; it.scrollIntoView(); });
    await page.uncheck("input[name=failing]");
    assert.match(await page.locator("#run-1999 .person").first().textContent(), /Question 1998/);
    await fine(page);
  });
});
