// Test helpers: the real program, the browser, and pages that record their errors.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, writeFileSync, rmSync, openSync } from "node:fs";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Set by `cargo xtask browser`. */
export const { SWITCHBOARD_PROGRAM: PROGRAM, SWITCHBOARD_BROWSER_PACKAGES: PACKAGES, SWITCHBOARD_CHROMIUM: CHROMIUM } = process.env;
if (!PROGRAM || !PACKAGES || !CHROMIUM) throw new Error("run these with `cargo xtask browser`");

const load = createRequire(join(PACKAGES, "package.json"));
const { chromium } = load("playwright-core");
const AXE = readFileSync(load.resolve("axe-core/axe.min.js"), "utf8");

/** Most of these flags keep Chromium from contacting its vendor's hosts at startup. */
const FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--disable-default-apps", "--disable-extensions", "--no-default-browser-check"];

export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const { port } = server.address();
  await new Promise((resolve) => { server.close(resolve); });
  return port;
}

/** A `switchboard serve` process with its own temporary folder. */
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
    const path = (name) => join(this.folder, name);
    this.child = spawn(PROGRAM, ["serve", "--bind", `127.0.0.1:${this.port}`], {
      cwd: this.folder, stdio: ["ignore", log, log],
      env: { PATH, ...(SystemRoot ? { SystemRoot } : {}), HOME: path("home"), XDG_DATA_HOME: path("data"), XDG_CONFIG_HOME: path("config"), XDG_STATE_HOME: path("state"), XDG_CACHE_HOME: path("cache") },
    });
    this.exited = new Promise((resolve) => { this.child.once("exit", resolve); });
    let hasExited = false;
    this.exited.then(() => { hasExited = true; });
    const deadline = Date.now() + 60_000;
    for (;;) {
      if (hasExited || Date.now() > deadline) throw new Error(`the server did not start:\n${this.log()}`);
      try {
        const response = await fetch(`${this.url}/healthz`);
        if (response.ok) return this;
      } catch {
        // The server does not listen yet. A refused connection fails immediately, so pause before
        // the next attempt.
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

  /** Simulates a crash. */
  async kill() {
    this.child.kill("SIGKILL");
    await this.exited;
  }

  async stop() {
    this.child.kill("SIGTERM");
    await this.exited;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Returns a configuration with the scripted model and a bundled, a test and a broken server. */
export function config(model, overrides = {}) {
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
    ...overrides,
  };
}

export async function startBrowser(extraFlags = []) {
  const flags = [...FLAGS, ...extraFlags];
  const root = process.getuid?.() === 0;
  return chromium.launch({ executablePath: CHROMIUM, args: root ? [...flags, "--no-sandbox"] : flags });
}

/**
 * Starts a browser with a profile on disk. It supports one context. Chromium preconnects to hosts
 * only with such a profile.
 */
export function startPersistentBrowser() {
  const folder = mkdtempSync(join(tmpdir(), "switchboard-profile-"));
  const root = process.getuid?.() === 0;
  const args = root ? [...FLAGS, "--no-sandbox"] : FLAGS;
  return {
    newContext: (options) => chromium.launchPersistentContext(folder, { executablePath: CHROMIUM, args, ...options }),
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/**
 * Opens the page in a new browser context. `page.problems` collects errors, warnings and dialogs.
 * `page.foreignRequests` collects the URLs of requests to other hosts. `checkAndClose` asserts that
 * both are empty, except for problems that match `page.expectedProblems`.
 */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 820 }, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.problems = [];
  page.expectedProblems = [];
  page.foreignRequests = [];
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
    if (!target.startsWith(`${url}/`) && !/^(?:data|blob|about):/.test(target)) page.foreignRequests.push(target);
  });
  await page.goto(`${url}/`);
  await page.locator("#message").waitFor();
  return page;
}

/** Asserts that the page had no unexpected problems or foreign requests, and closes it. */
export async function checkAndClose(page) {
  const problems = page.problems.filter((problem) => !page.expectedProblems.some((it) => it.test(problem)));
  assert.deepEqual(problems, [], "problems of the page");
  assert.deepEqual(page.foreignRequests, [], "requests to other hosts");
  await page.context().close();
}

export async function sendMessage(page, text) {
  await page.fill("#message", text);
  await page.press("#message", "Enter");
}

/** Waits until the page shows `runs` finished runs. */
export async function runFinished(page, runs = 1) {
  await page.locator('.run[data-state="finished"]').nth(runs - 1).waitFor();
}

/** Selects a model that the server does not list. */
export async function selectModel(page, model) {
  await page.selectOption("#model", { label: "Other model…" });
  await page.fill("input#model", model);
  await page.press("input#model", "Enter");
  await page.locator("select#model").waitFor();
}

/** Returns axe's violations of WCAG 2.2 AA and of its best practices. */
export async function axeViolations(page) {
  // The page's policy blocks injected script elements. `evaluate` is not subject to it.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"], iframes: false }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.target.join(" ")} (${node.failureSummary?.replace(/\s+/g, " ")})`).join(" | ")}`);
}
