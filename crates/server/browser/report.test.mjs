// Tests of the evaluation report page, with hostile text in the report.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { axeViolations, startBrowser } from "./stage.mjs";

/** The program that renders a report as a page. Set by `cargo xtask browser`. */
const { SWITCHBOARD_REPORT_PAGE: PAGE_RENDERER } = process.env;

const HOSTILE = "</details></div></script><script>window.harmed = 1</script><img src=\"https://tracker.example/x.png\" onerror=\"window.harmed = 2\">"
  + "\" onmouseover='window.harmed = 3' \u202egnihton\u202c <!-- <style>body{display:none}</style> &lt;b&gt; \u0000\u001b[31m";
/** Returns text as the page shows it: with visible control characters. */
const asShown = (text) => text.replace("\u202e", "[U+202E]").replace("\u202c", "[U+202C]").replace("\u0000", "␀").replace("\u001b", "␛");

const usage = { input_tokens: 1200, output_tokens: 80 };
const entries = (text) => [
  { at_ms: 0, type: "model_request", step: 1, model: "acme/one", tools: 3 },
  { at_ms: 40, type: "reasoning", text: "The customer is named by a number." },
  { at_ms: 300, type: "model_response", step: 1, reason: "tool_use", usage },
  { at_ms: 301, type: "call", id: "1", server: "shop", tool: "look_up", scored_call: 0, input: { text: "{\"id\":42}" },
    notes: [{ at_ms: 310, kind: "tool_retried", text: "attempt 2, since the connection broke" }],
    result: { at_ms: 420, is_error: false, cached: false, attempts: 2, duration_ms: 110, content: [{ type: "text", text },
      { type: "text", text: `long ${"and longer ".repeat(400)}` }, { text: "[image image/png, 70 bytes]" }] } },
  { at_ms: 430, type: "note", kind: "warning", text: "option dropped: no temperature" },
  { at_ms: 440, type: "text", text },
];
const turn = (text, faults) => ({
  message: text, answer: text, outcome: "completed", faults, missing: [], steps: 2, usage, cost_usd: 0.0123, duration_ms: 1240,
  calls: [{ server: "shop", tool: "look_up", input: { id: 42 }, outcome: "successful", verdict: faults.length ? "wrong_input" : "right", reason: faults[0], duration_ms: 110, result: text }],
  transcript: { entries: entries(text) },
});
const run = (model, kind, scenario, repetition, text, faults = []) => ({
  scenario, kind, model, repetition, passed: faults.length === 0, turns: [turn(text, faults), turn("And then?", [])],
});
const report = (title, runs) => ({ format: "switchboard-evaluation", version: 1, title, program: "switchboard 0.1.0", created_at: "2026-01-01T00:00:00Z", thresholds: { passed: 0.9, accuracy: 0.9 }, runs });

const RUNS = [
  run("acme/one", "entity exists", "The customer exists", 1, "What is the value of customer 42?"),
  run("acme/one", "entity exists", "The customer exists", 2, "What is the value of customer 42?", ["`id` is 43, expected 42"]),
  run("acme/one", "entity missing", HOSTILE, 1, HOSTILE, [HOSTILE]),
  run("acme/two-with-a-name-that-is-longer-than-a-telephone-is-wide-in-most-hands", "entity exists", "The customer exists", 1, "What is the value of customer 42?"),
  run("acme/two-with-a-name-that-is-longer-than-a-telephone-is-wide-in-most-hands", HOSTILE, "An unusual kind", 1, "x".repeat(4000)),
];

describe("the evaluation report page", { concurrency: false }, () => {
  let folder;
  let browser;
  let pageUrl;

  /** Renders a report, optionally compared with an earlier one, and returns the URL of the page. */
  function render(name, current, earlier) {
    const files = [current, earlier].filter(Boolean).map((it, index) => {
      const file = join(folder, `${name}-${index}.json`);
      writeFileSync(file, JSON.stringify(it));
      return file;
    });
    const { status, stdout, stderr } = spawnSync(PAGE_RENDERER, files, { maxBuffer: 1 << 28 });
    assert.equal(status, 0, String(stderr));
    const file = join(folder, `${name}.html`);
    writeFileSync(file, stdout);
    return pathToFileURL(file).href;
  }

  before(async () => {
    assert.ok(PAGE_RENDERER, "run these with `cargo xtask browser`");
    folder = mkdtempSync(join(tmpdir(), "switchboard-report-"));
    const earlier = report("Before", [...RUNS.slice(0, 1), run("acme/one", "entity exists", "The customer exists", 2, "x"), run("acme/old", "k", "s", 1, "x")]);
    pageUrl = render("page", report(`Customer service ${HOSTILE}`, RUNS), earlier);
    browser = await startBrowser();
  });
  after(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Opens a page. `page.problems` collects console messages, errors, dialogs and requests. */
  async function open(url, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1200, height: 820 }, reducedMotion: "reduce", ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    page.problems = [];
    page.on("console", (message) => page.problems.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => page.problems.push(`error: ${error.message}`));
    page.on("dialog", (dialog) => { page.problems.push("dialog"); dialog.dismiss(); });
    context.on("request", (request) => { if (request.url() !== url.split("#")[0]) page.problems.push(`request: ${request.url()}`); });
    await page.goto(url);
    return page;
  }

  async function checkAndClose(page) {
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }

  const visibleRuns = (page) => page.locator("#runs > li:visible");

  test("the page is self-contained, and hostile text is not markup", async () => {
    const page = await open(pageUrl);
    assert.equal(await page.locator("h1").innerText(), `${asShown(`Customer service ${HOSTILE}`.slice(0, 200))}…`);
    await page.locator("#run-3 > summary").click();
    const message = page.locator("#run-3 .person .text").first();
    assert.equal(await message.innerText(), asShown(HOSTILE));
    assert.equal(await page.evaluate(() => globalThis.harmed), undefined);
    const counts = await page.evaluate(() => ["script", "style", "img", "iframe", "object", "form", "[onmouseover]", "[onerror]", "[style]", "b"].map((it) => [it, document.querySelectorAll(it).length]));
    assert.deepEqual(Object.fromEntries(counts), { script: 1, style: 1, img: 0, iframe: 0, object: 0, form: 1, "[onmouseover]": 0, "[onerror]": 0, "[style]": 0, b: 0 });
    // Hostile end tags did not close any element of the page.
    assert.equal(await page.locator("#runs > li > details > div > section").count(), RUNS.length * 2);
    assert.equal(await page.evaluate(() => document.body.lastElementChild.localName), "script");
    await checkAndClose(page);
  });

  test("the content security policy blocks scripts, styles and requests of injected markup", async () => {
    const page = await open(pageUrl);
    await page.evaluate(() => {
      globalThis.blockedDirectives = new Set();
      document.addEventListener("securitypolicyviolation", (event) => globalThis.blockedDirectives.add(event.effectiveDirective));
      document.body.insertAdjacentHTML("beforeend", "<img src='https://tracker.example/x.png'><p id='p' onclick='window.harmed = 1'></p><i style='color: red'></i>");
      document.getElementById("p").click();
      document.body.append(Object.assign(document.createElement("script"), { textContent: "window.harmed = 2" }));
      fetch("https://tracker.example/").catch(() => {});
    });
    for (const directive of ["connect-src", "img-src", "script-src-attr", "script-src-elem", "style-src-attr"]) {
      await page.waitForFunction((it) => globalThis.blockedDirectives.has(it), directive);
    }
    assert.equal(await page.evaluate(() => globalThis.harmed), undefined);
    await page.context().close();
  });

  for (const colorScheme of ["light", "dark"]) {
    test(`the page is accessible (${colorScheme})`, async () => {
      for (const viewport of [{ width: 1200, height: 900 }, { width: 360, height: 740 }]) {
        const page = await open(pageUrl, { colorScheme, viewport });
        await page.locator('button[name="open"]').click();
        await page.locator(".terms > summary").click();
        assert.equal(await page.locator("#runs details.run[open]").count(), RUNS.length);
        // axe must also check the runs that are off the screen.
        await page.evaluate(() => { for (const run of document.querySelectorAll(".run")) run.scrollIntoView(); });
        const widths = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
        assert.ok(widths[0] <= widths[1], `the page is wider than the window: ${widths}`);
        assert.deepEqual(page.problems, []);
        assert.deepEqual(await axeViolations(page), []);
        await page.context().close();
      }
    });
  }

  test("charts have text alternatives, and tables have captions and headers", async () => {
    const page = await open(pageUrl);
    const charts = await page.locator("figure [role=img]").evaluateAll((all) => all.map((it) => it.getAttribute("aria-label")));
    assert.equal(charts.length, 3);
    assert.match(charts[0], /^Runs that passed, by kind\. .*entity exists: acme\/one, 1 of 2\./);
    assert.match(charts[1], /acme\/one, 6 successful\./);
    assert.match(charts[2], /acme\/one, 1\.24 s, p95 1\.24 s\./);
    // Bars and text stay within their figure.
    const overflowing = await page.locator("figure").evaluateAll((all) => all.flatMap((figure) => {
      const box = figure.getBoundingClientRect();
      return [...figure.querySelectorAll("rect, p")].filter((it) => it.getBoundingClientRect().right > box.right + 0.5).map((it) => it.outerHTML);
    }));
    assert.deepEqual(overflowing, []);
    const tables = await page.locator("table").evaluateAll((all) => all.map((it) => [it.caption?.textContent ?? "", it.querySelectorAll("thead th[scope=col]").length, it.querySelectorAll("tbody tr").length - it.querySelectorAll("tbody th[scope=row]").length]));
    assert.ok(tables.length >= 5);
    for (const [caption, headers, rowsWithoutHeader] of tables) assert.ok(caption !== "" && headers > 1 && rowsWithoutHeader === 0, caption);
    await checkAndClose(page);
  });

  test("a transcript opens with the keyboard and shows all entries", async () => {
    const page = await open(pageUrl);
    const run = page.locator("#run-2");
    assert.equal(await run.locator(".course").first().isVisible(), false);
    await run.locator("> summary").focus();
    await page.keyboard.press("Enter");
    const transcript = run.locator(".course").first();
    await transcript.waitFor();
    const shown = await transcript.innerText();
    for (const expected of ["What is the value of customer 42?", "request to acme/one with 3 tools", "The customer is named by a number.", "shop/look_up", "wrong arguments",
      "`id` is 43, expected 42", "\"id\": 42", "tool retried: attempt 2, since the connection broke", "[image image/png, 70 bytes]", "option dropped", "1,200 tokens in"]) {
      assert.ok(shown.includes(expected), `${expected}\n${shown}`);
    }
    assert.equal(await run.locator(".faults").first().innerText(), "`id` is 43, expected 42");
    // Long results are collapsed.
    const longResult = transcript.locator("details");
    assert.equal(await longResult.locator(".json").isVisible(), false);
    await longResult.locator("summary").click();
    assert.match(await longResult.locator(".json").innerText(), /^long and longer/);
    await checkAndClose(page);
  });

  test("runs can be filtered by model, kind and failure", async () => {
    const page = await open(pageUrl);
    const count = page.locator("#count");
    assert.equal(await count.innerText(), "5 of 5 runs are shown");
    await page.selectOption("select[name=model]", { label: "acme/one" });
    assert.equal(await visibleRuns(page).count(), 3);
    await page.check("input[name=failing]");
    assert.equal(await visibleRuns(page).count(), 2);
    await page.selectOption("select[name=kind]", { label: "entity exists" });
    assert.equal(await visibleRuns(page).count(), 1);
    assert.equal(await visibleRuns(page).locator("> details").getAttribute("id"), "run-2");
    assert.equal(await count.innerText(), "1 of 5 runs are shown");
    await page.selectOption("select[name=model]", "");
    await page.uncheck("input[name=failing]");
    await page.selectOption("select[name=kind]", "");
    assert.equal(await visibleRuns(page).count(), 5);
    await checkAndClose(page);
  });

  test("a regression links to the run that shows it", async () => {
    const page = await open(pageUrl);
    await page.selectOption("select[name=kind]", { label: "entity missing" });
    await page.locator("#changes + * ~ .scroll a").first().click();
    await page.locator("#run-2[open] .course").first().waitFor();
    assert.match(await page.locator("section", { has: page.locator("#changes") }).first().innerText(), /`The customer exists` passed 2 of 2 before, 1 of 2 now/);
    await checkAndClose(page);
    const linkedPage = await open(`${pageUrl}#run-4`);
    await linkedPage.locator("#run-4[open] .course").first().waitFor();
    await checkAndClose(linkedPage);
  });

  test("the page is complete without JavaScript and in print", async () => {
    const page = await open(pageUrl, { javaScriptEnabled: false });
    assert.equal(await page.locator("#filter").isVisible(), false);
    assert.equal(await visibleRuns(page).count(), 5);
    await page.locator("#run-1 > summary").click();
    await page.locator("#run-1 .course").first().waitFor();
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    assert.equal(await page.locator("#run-1 .course").first().isVisible(), true);
    assert.ok((await page.pdf()).length > 10_000);
    await page.context().close();
    const printPage = await open(pageUrl);
    await printPage.emulateMedia({ media: "print", colorScheme: "dark" });
    assert.equal(await printPage.locator("#filter").isVisible(), false);
    assert.deepEqual(await printPage.evaluate(() => { const { backgroundColor, color } = getComputedStyle(document.body); return [backgroundColor, color]; }), ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]);
    await checkAndClose(printPage);
  });

  test("a report with 2000 runs stays usable", async () => {
    const manyRuns = Array.from({ length: 2000 }, (_, index) => run(`acme/${index % 4}`, `kind ${index % 7}`, `scenario ${Math.floor(index / 4)}`, 1, `Question ${index}`, index % 3 ? [] : ["It is wrong"]));
    const page = await open(render("large", report("Large", manyRuns)));
    await page.check("input[name=failing]");
    assert.equal(await page.locator("#count").innerText(), "667 of 2000 runs are shown");
    await page.locator("#run-1999").evaluate((it) => { it.open = true; it.scrollIntoView(); });
    await page.uncheck("input[name=failing]");
    assert.match(await page.locator("#run-1999 .person").first().textContent(), /Question 1998/);
    await checkAndClose(page);
  });
});
