// Tests of the graph's MCP App in a host of another vendor (MCP Inspector) and in the web page.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ScriptedModel } from "./model.mjs";
import { PROGRAM, Program, checkAndClose, config, freePort, open, runFinished, selectModel, sendMessage, startBrowser } from "./stage.mjs";

/** Set by `cargo xtask browser`: the folder with the packages of `../clients/javascript`. */
const INSPECTOR = join(process.env.SWITCHBOARD_CLIENT_PACKAGES, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
const TOKEN = "the-token-of-the-inspector";

/** Nodes of the stored graph. The path from the first to the last one has six nodes. */
const NODES = ["Gene", "Gene", "Disease", "Drug", "Drug", "Pathway"].map((type, index) => ({ id: `n:${index}`, label: `Node ${index}`, type }));
const EDGES = NODES.slice(1).map(({ id }, index) => ({ source: `n:${index}`, target: id, label: "affects" }));

/** Starts a process and returns it once `url` answers. */
async function start(command, args, options, url) {
  const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"], ...options });
  let failure = null;
  child.once("error", (error) => { failure = error.message; });
  child.once("exit", (code) => { failure ??= `exit code ${code}`; });
  const deadline = Date.now() + 60_000;
  for (;;) {
    if (failure || Date.now() > deadline) throw new Error(`${command} did not start: ${failure ?? "timed out"}`);
    try {
      await fetch(url);
      return child;
    } catch {
      // A refused connection fails immediately, so pause before the next attempt.
      await new Promise((resolve) => { setTimeout(resolve, 50); });
    }
  }
}

async function stop(child) {
  if (!child || child.exitCode !== null) return;
  const exited = new Promise((resolve) => { child.once("exit", resolve); });
  child.kill();
  await exited;
}

async function callTool(url, name, input) {
  const response = await fetch(url, {
    method: "POST", headers: { "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input } }),
  });
  const { result } = await response.json();
  assert.ok(result && !result.isError, JSON.stringify(result));
}

describe("the graph's MCP App", { concurrency: false }, () => {
  const folder = mkdtempSync(join(tmpdir(), "switchboard-inspector-"));
  let browser;
  let server;
  let inspector;
  let serverUrl;
  let inspectorUrl;

  before(async () => {
    browser = await startBrowser();
    const [serverPort, inspectorPort] = [await freePort(), await freePort()];
    serverUrl = `http://127.0.0.1:${serverPort}/mcp`;
    server = await start(PROGRAM, ["mcp-server", "graph", "--http", `127.0.0.1:${serverPort}`], {}, serverUrl);
    await callTool(serverUrl, "add_nodes", { nodes: NODES });
    await callTool(serverUrl, "add_edges", { edges: EDGES });
    inspectorUrl = `http://127.0.0.1:${inspectorPort}`;
    inspector = await start(process.execPath, [INSPECTOR, "--web"], {
      cwd: folder,
      env: {
        PATH: process.env.PATH, HOME: folder, HOST: "127.0.0.1", CLIENT_PORT: String(inspectorPort), MCP_SANDBOX_PORT: "0", MCP_APP_ORIGIN_PORT: "0", MCP_AUTO_OPEN_ENABLED: "false",
        MCP_INSPECTOR_API_TOKEN: TOKEN, MCP_INSPECTOR_SECRET_STORE: "memory", MCP_CATALOG_PATH: join(folder, "catalog.json"),
      },
    }, inspectorUrl);
  });
  after(async () => {
    await browser?.close();
    await stop(inspector);
    await stop(server);
    rmSync(folder, { recursive: true, force: true });
  });

  for (const colorScheme of ["light", "dark"]) {
    test(`MCP Inspector shows, expands and searches a part of the graph (${colorScheme})`, async () => {
      const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, colorScheme });
      const page = await context.newPage();
      page.setDefaultTimeout(30_000);
      // Inspector calls the tool with `appArgs` and opens its app.
      const input = Buffer.from(JSON.stringify({ limit: 3 })).toString("base64url");
      const query = new URLSearchParams({ serverUrl, transport: "http", autoConnect: TOKEN, openApp: "get_graph_state", appArgs: input, autoOpen: TOKEN });
      await page.goto(`${inspectorUrl}/?${query}`);
      const graph = page.frameLocator("iframe").frameLocator("iframe").locator(".graph");
      const status = graph.locator(".graph-status");
      await status.filter({ hasText: "3 of 6 nodes are shown. Select a node to show its neighbours." }).waitFor();
      assert.equal(await graph.locator(".graph-node").count(), 3);
      assert.deepEqual(await graph.locator(".graph-edge text").allTextContents(), ["affects", "affects"]);
      const fills = await graph.locator(".graph-node circle").evaluateAll((circles) => circles.map((it) => getComputedStyle(it).fill));
      const [gene, disease] = colorScheme === "light" ? ["rgb(15, 118, 110)", "rgb(180, 83, 9)"] : ["rgb(92, 196, 180)", "rgb(240, 169, 91)"];
      assert.deepEqual(fills.sort(), [gene, gene, disease].sort());
      // Each selection loads the neighbours from the server.
      for (const index of [2, 3, 4]) {
        await graph.getByRole("button", { name: new RegExp(`^Node ${index},`) }).click();
        await graph.locator(`[data-node="n:${index + 1}"]`).waitFor();
      }
      await graph.getByRole("button", { name: "Find path from Node 4" }).click();
      await graph.getByRole("button", { name: /^Node 1,/ }).press("Enter");
      await status.filter({ hasText: "Path: Node 4 → Node 3 → Node 2 → Node 1" }).waitFor();
      assert.deepEqual([await graph.locator(".graph-node.on-path").count(), await graph.locator(".graph-edge.on-path").count()], [4, 3]);
      await context.close();
    });
  }

  test("the web page shows the app of a call once", async () => {
    const model = await new ScriptedModel().start();
    const program = new Program(config(model, { approve: "all", mcp_servers: { graph: { command: PROGRAM, args: ["mcp-server", "graph"] } } }));
    try {
      await program.start();
      const page = await open(browser, program.url);
      model.enqueue([{ call: { id: "a", name: "graph__add_nodes", input: { nodes: NODES } } }], [{ call: { id: "b", name: "graph__get_graph_state", input: {} } }], ["Look."]);
      await selectModel(page, "scripted/scripted");
      await sendMessage(page, "Show the graph");
      await runFinished(page);
      const graph = page.frameLocator(".tool-app iframe").locator(".graph");
      await graph.locator(".graph-node").nth(5).waitFor();
      await graph.getByRole("button", { name: "Node 0, Gene, 0 connections" }).click();
      assert.equal(await graph.locator(".graph-status").innerText(), "Node 0 · Gene · 0 connections");
      assert.equal(await page.locator(".tool .graph").count(), 0);
      await checkAndClose(page);
    } finally {
      await program.stop();
      model.close();
    }
  });
});
