// What the tests need: the real program with its server, a browser, and pages that tell when something went wrong in them.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, writeFileSync, rmSync, openSync } from "node:fs";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Set by `cargo xtask browser`. */
const { SWITCHBOARD_PROGRAM: PROGRAM, SWITCHBOARD_BROWSER_PACKAGES: PACKAGES, SWITCHBOARD_CHROMIUM: CHROMIUM } = process.env;
if (!PROGRAM || !PACKAGES || !CHROMIUM) throw new Error("run these with `cargo xtask browser`");

const load = createRequire(join(PACKAGES, "package.json"));
const { chromium } = load("playwright-core");
const AXE = readFileSync(load.resolve("axe-core/axe.min.js"), "utf8");

/** Without these, Chromium looks for its maker's hosts at every start. */
const FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--disable-default-apps", "--disable-extensions", "--no-default-browser-check"];

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const { port } = server.address();
  await new Promise((resolve) => { server.close(resolve); });
  return port;
}

/** `switchboard serve` in a folder of its own. */
export class Program {
  constructor(config) {
    this.folder = mkdtempSync(join(tmpdir(), "switchboard-browser-"));
    for (const name of ["data", "config", "state", "cache", "home"]) mkdirSync(join(this.folder, name));
    writeFileSync(join(this.folder, "switchboard.json"), JSON.stringify(config));
  }

  async start() {
    this.port ??= await freePort();
    const log = openSync(join(this.folder, "log.txt"), "a");
    const { PATH, SystemRoot } = process.env;
    const at = (name) => join(this.folder, name);
    this.child = spawn(PROGRAM, ["serve", "--bind", `127.0.0.1:${this.port}`], {
      cwd: this.folder, stdio: ["ignore", log, log],
      env: { PATH, ...(SystemRoot ? { SystemRoot } : {}), HOME: at("home"), XDG_DATA_HOME: at("data"), XDG_CONFIG_HOME: at("config"), XDG_STATE_HOME: at("state"), XDG_CACHE_HOME: at("cache") },
    });
    this.ended = new Promise((resolve) => { this.child.once("exit", resolve); });
    let over = false;
    this.ended.then(() => { over = true; });
    const until = Date.now() + 60_000;
    for (;;) {
      if (over || Date.now() > until) throw new Error(`the server did not start:\n${this.log()}`);
      try {
        const response = await fetch(`${this.url}/healthz`);
        if (response.ok) return this;
      } catch {
        // Not yet; a refused connection comes back at once, so that a moment is left to the program.
        await new Promise((resolve) => { setTimeout(resolve, 50); });
      }
    }
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  log() {
    return readFileSync(join(this.folder, "log.txt"), "utf8");
  }

  /** As a crash does it. */
  async kill() {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  async stop() {
    this.child.kill("SIGTERM");
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The bundled server, the one of the tests, and a model that says what it is told to. */
export function config(model, change = {}) {
  const things = fileURLToPath(new URL("things.mjs", import.meta.url));
  return {
    model: "offline/planner",
    approve: "ask",
    audit: false,
    providers: { scripted: { base_url: model.baseUrl, model: "scripted" } },
    mcp_servers: {
      "customer-service": { command: PROGRAM, args: ["mcp-server", "customer-service"] },
      things: { command: process.execPath, args: [things] },
      broken: { command: process.execPath, args: ["-e", "console.error('the disk is full'); process.exit(3)"] },
    },
    ...change,
  };
}

export async function startBrowser(more = []) {
  const flags = [...FLAGS, ...more];
  const root = process.getuid?.() === 0;
  return chromium.launch({ executablePath: CHROMIUM, args: root ? [...flags, "--no-sandbox"] : flags });
}

/** A browser with a profile on the disk. Only there does Chromium connect to hosts in advance. It has one context. */
export function startProfile() {
  const folder = mkdtempSync(join(tmpdir(), "switchboard-profile-"));
  const root = process.getuid?.() === 0;
  const args = root ? [...FLAGS, "--no-sandbox"] : FLAGS;
  return {
    newContext: (options) => chromium.launchPersistentContext(folder, { executablePath: CHROMIUM, args, ...options }),
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/**
 * A page in a browser of its own, so to speak. `page.problems` is what it complained of; `fine` checks that there is nothing, and that
 * it asked nobody but its own server.
 */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 820 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.problems = [];
  page.expected = [];
  page.strangers = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") page.problems.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => page.problems.push(`error: ${error.stack ?? error.message}`));
  page.on("dialog", (dialog) => {
    page.problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  context.on("request", (request) => {
    const target = request.url();
    if (!target.startsWith(`${url}/`) && !/^(?:data|blob|about):/.test(target)) page.strangers.push(target);
  });
  await page.goto(`${url}/`);
  await page.locator("#message").waitFor();
  return page;
}

/** Nothing went wrong in the page, but for what the test said it expects. */
export async function fine(page) {
  const problems = page.problems.filter((problem) => !page.expected.some((it) => it.test(problem)));
  assert.deepEqual(problems, [], "what the page complained of");
  assert.deepEqual(page.strangers, [], "hosts that the page asked");
  await page.context().close();
}

export async function send(page, text) {
  await page.fill("#message", text);
  await page.press("#message", "Enter");
}

/** Waits for the end of the last run. */
export async function finished(page, runs = 1) {
  await page.locator('.run[data-state="finished"]').nth(runs - 1).waitFor();
}

/** Chooses a model that the server does not list. */
export async function choose(page, model) {
  await page.selectOption("#model", { label: "Another one…" });
  await page.fill("input#model", model);
  await page.press("input#model", "Enter");
  await page.locator("select#model").waitFor();
}

/** What axe finds against WCAG 2.2 AA and its own good practice. */
export async function violations(page) {
  // The page's policy lets no script in from outside, so that axe comes by the way of the test's own tools.
  await page.evaluate(AXE);
  const { violations: found } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"], iframes: false }));
  return found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.target.join(" ")} (${node.failureSummary?.replace(/\s+/g, " ")})`).join(" | ")}`);
}
