// Tests of artifacts, incremental text rendering and accessibility.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Gate, ScriptedModel } from "./model.mjs";
import { Program, axeViolations, checkAndClose, config, open, runFinished, sendMessage, startBrowser } from "./stage.mjs";

/** Header of a tool card. A click on it toggles the card. */
const CARD_HEADER = ".tool > details > summary";
const SCRIPTED = "scripted/scripted";
const text = (content) => ({ type: "text", content });
const artifact = (artifactType, title, content, language) => ({ type: "artifact", artifactType, title, content, ...(language ? { language } : {}) });
const waitForText = (locator, expected) => locator.filter({ hasText: expected }).first().waitFor();

const HOSTILE_PAGE = `<h1>A page</h1><p id="said"></p><a href="https://tracker.example/">out</a><script>
  const log = (text) => { document.getElementById("said").textContent += text + ". "; };
  log("script ran");
  try { parent.document.title = "taken over"; } catch { log("no parent"); }
  try { localStorage.getItem("x"); } catch { log("no storage"); }
  fetch("https://tracker.example/x").then(() => log("network"), () => log("no network"));
  new Image().src = "https://tracker.example/pixel.png";
  try { top.location = "https://tracker.example/top"; } catch { log("no top"); }
</script>`;

const ITEMS = [
  text("Here is **what was found**."),
  artifact("application/vnd.mermaid", "How a ticket goes", "flowchart LR\n  A[Written] --> B{Urgent?}\n  B -- yes --> C[Call back]\n  B -- no --> D[Queue]"),
  artifact("chart", "Value by month", JSON.stringify({ type: "bar", data: { labels: ["Jan", "Feb"], datasets: [{ label: "2025", data: [12, 19] }] } })),
  artifact("table", "Customers", "name,value\n\"El-Amin, Noor\",530.19\nJuno,120.50"),
  artifact("table", "As Markdown", "| a | b |\n|---|--:|\n| 1 | 2 |"),
  artifact("code", "limit.rs", "pub fn limit() -> u32 {\n    3\n}", "rust"),
  artifact("text/markdown", "Notes", "## Notes\n\n- one\n- two"),
  artifact("html", "A page", HOSTILE_PAGE),
  artifact("image/svg+xml", "A square", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"40\"><script>window.harmed = 1</script><rect width=\"40\" height=\"40\"/></svg>"),
  artifact("json", "Data", "{\"a\": [1, 2]}"),
  artifact("chart", "Not a chart", "{\"what\": \"ever\"}"),
];

describe("artifacts, text and accessibility", { concurrency: false }, () => {
  let model;
  let program;
  let browser;

  before(async () => {
    model = await new ScriptedModel().start();
    program = new Program(config(model, { model: SCRIPTED }));
    mkdirSync(join(program.folder, "recipes"));
    writeFileSync(join(program.folder, "recipes", "forms.yaml"), "name: forms\ndescription: Answers in texts and artifacts.\nstrategy: gather-format\n");
    await program.start();
    browser = await startBrowser();
  });
  after(async () => {
    await browser?.close();
    await program?.stop();
    model?.close();
  });

  const visit = (options) => {
    model.answers.length = 0;
    return open(browser, program.url, options);
  };

  /** Sends a question that is answered with the given items. */
  async function showArtifacts(page, items = ITEMS) {
    model.enqueue(["I know enough."], [{ form: items }]);
    await page.selectOption("#recipe", "forms");
    await sendMessage(page, "Show me everything");
    await runFinished(page);
  }

  test("each artifact type is rendered", async () => {
    const page = await visit();
    // The browser reports that the frame's policy blocks the attempts of the hostile page.
    page.expectedProblems.push(/tracker\.example/, /Content Security Policy/, /Unsafe attempt to initiate navigation/);
    await showArtifacts(page);
    const artifactOf = (title) => page.locator(".artifact", { has: page.locator("figcaption strong", { hasText: title }) });
    assert.equal(await page.locator(".artifact").count(), ITEMS.length - 1);
    assert.match(await page.locator(".run > .text").first().innerText(), /Here is what was found\./);
    for (const title of ["How a ticket goes", "Value by month"]) {
      const picture = artifactOf(title).locator(".drawing img");
      await picture.waitFor();
      await picture.evaluate((it) => it.decode());
      assert.ok(await picture.evaluate((it) => it.naturalWidth > 100 && it.naturalHeight > 30), title);
      assert.match(await picture.getAttribute("alt"), new RegExp(title));
    }
    assert.match(await artifactOf("Value by month").locator("img").getAttribute("alt"), /2025: Jan 12, Feb 19/);
    assert.deepEqual(await artifactOf("Customers").locator("td").allInnerTexts(), ["El-Amin, Noor", "530.19", "Juno", "120.50"]);
    assert.deepEqual(await artifactOf("As Markdown").locator("td").allInnerTexts(), ["1", "2"]);
    await artifactOf("limit.rs").locator(".hljs-keyword").first().waitFor();
    assert.equal(await artifactOf("Notes").locator("li").count(), 2);
    assert.ok(await artifactOf("A square").locator("img").evaluate(async (it) => { await it.decode(); return it.naturalWidth === 40; }));
    await waitForText(artifactOf("Not a chart"), "Unsupported chart format");

    const frame = page.frameLocator('iframe[title="A page"]');
    await waitForText(frame.locator("#said"), "no network");
    const log = await frame.locator("#said").innerText();
    for (const entry of ["script ran", "no parent", "no storage", "no network"]) assert.match(log, new RegExp(entry));
    const attributes = await page.locator('iframe[title="A page"]').evaluate((it) => [it.getAttribute("sandbox"), it.src]);
    assert.deepEqual(attributes, ["allow-scripts", `${program.url}/assets/frames/foreign.html`]);
    assert.equal(new URL(page.url()).host, new URL(program.url).host);
    assert.equal(await page.evaluate(() => window.harmed), undefined);

    await artifactOf("How a ticket goes").getByRole("button", { name: "Source" }).click();
    assert.match(await artifactOf("How a ticket goes").locator("pre").innerText(), /flowchart LR/);
    const [image] = await Promise.all([page.waitForEvent("download"), artifactOf("Value by month").getByRole("button", { name: "Download" }).click()]);
    assert.equal(image.suggestedFilename(), "Value by month.png");
    const [download] = await Promise.all([page.waitForEvent("download"), artifactOf("limit.rs").getByRole("button", { name: "Download" }).click()]);
    assert.equal(download.suggestedFilename(), "limit.rs");
    // Playwright reports these requests although the policy blocked them.
    page.foreignRequests = page.foreignRequests.filter((it) => !it.includes("tracker.example"));
    await page.reload();
    await page.locator(".artifact").nth(ITEMS.length - 2).waitFor();
    page.foreignRequests = page.foreignRequests.filter((it) => !it.includes("tracker.example"));
    await checkAndClose(page);
  });

  test("formulas are rendered, and prices, code and invalid formulas stay text", async () => {
    const page = await visit();
    model.enqueue([[
      "The mean $E[d]=\\frac{1}{n}$ and \\(b\\,2^n\\), then $$x^2$$.", "$$\n\\sum_{i=1}^n x_i\n= y\n$$", "\\[ \\begin{pmatrix}a & b\\\\ c & d\\end{pmatrix} \\]",
      "It costs $5 or $10, `$x$` and $\\unknown{x}$.", "$\\href{javascript:alert(1)}{x}$ <math><mi>raw</mi></math>",
    ].join("\n\n")]);
    await sendMessage(page, "Show formulas");
    await runFinished(page);
    await page.locator(".text math").nth(4).waitFor();
    const shown = await page.evaluate(() => ({
      display: [...document.querySelectorAll(".text math")].map((math) => math.getAttribute("display")),
      fraction: document.querySelector(".text mfrac").textContent,
      rows: document.querySelectorAll(".text mtr").length,
      code: [...document.querySelectorAll(".text code")].map((code) => code.textContent),
      links: document.querySelectorAll(".text a").length,
    }));
    assert.deepEqual(shown, {
      display: [null, null, "block", "block", "block"], fraction: "1n", rows: 2,
      code: ["$x$", "\\unknown{x}", "\\href{javascript:alert(1)}{x}"], links: 0,
    });
    assert.match(await page.locator(".text").innerText(), /It costs \$5 or \$10,/);
    assert.deepEqual(await axeViolations(page), []);
    await checkAndClose(page);
  });

  for (const colorScheme of ["light", "dark"]) {
    test(`a knowledge graph is drawn, expanded and searched for a path (${colorScheme})`, async () => {
      const page = await visit({ colorScheme });
      // A hub with 60 genes, of which 40 are drawn at first, and a chain of drugs.
      const genes = Array.from({ length: 60 }, (_, index) => ({ id: `gene:${index}`, label: `Gene ${index}`, type: "Gene" }));
      const nodes = [{ id: "hub", label: "MPO", type: "Protein" }, ...genes, { id: "drug", label: "Aspirin", type: "Drug" }, { id: "alone", label: "Alone" }];
      const edges = [...genes.map(({ id }) => ({ source: id, target: "hub", label: "interacts_with" })), { source: "gene:59", target: "drug", label: "affected_by" }];
      await showArtifacts(page, [artifact("application/vnd.knowledge-graph", "Genes of MPO", JSON.stringify({ nodes, edges }))]);
      const graph = page.locator(".graph");
      await graph.locator(".graph-node").nth(39).waitFor();
      assert.equal(await graph.locator(".graph-node").count(), 40);
      const status = graph.locator(".graph-status");
      assert.equal(await status.innerText(), "40 of 63 nodes are shown. Select a node to show its neighbours.");
      await graph.getByRole("button", { name: "MPO, Protein, 60 connections" }).focus();
      await page.keyboard.press("Enter");
      assert.equal(await status.innerText(), "MPO · Protein · 60 connections");
      await graph.getByRole("button", { name: /^Show \d+ more neighbours$/ }).click();
      await graph.locator(".graph-node").nth(60).waitFor();
      await graph.getByRole("button", { name: "Gene 59, Gene, 2 connections" }).press("Enter");
      await graph.getByRole("button", { name: "Show 1 more neighbour" }).click();
      await graph.getByRole("button", { name: "Aspirin, Drug, 1 connection" }).click();
      await graph.getByRole("button", { name: "Find path from Aspirin" }).click();
      assert.equal(await status.innerText(), "Select the end of the path from Aspirin.");
      await graph.getByRole("button", { name: "Gene 3, Gene, 1 connection" }).press("Enter");
      assert.equal(await status.innerText(), "Path: Aspirin → Gene 59 → MPO → Gene 3");
      assert.deepEqual([await graph.locator(".graph-node.on-path").count(), await graph.locator(".graph-edge.on-path").count()], [4, 3]);
      await graph.getByRole("button", { name: "Clear path" }).click();
      assert.equal(await graph.locator(".on-path").count(), 0);
      assert.deepEqual(await axeViolations(page), []);
      await checkAndClose(page);
    });
  }

  test("a large knowledge graph is drawn in part", async () => {
    const page = await visit();
    const chain = Array.from({ length: 300 }, (_, index) => ({ id: `c${index}` }));
    const leaves = ["c0", "c299"].flatMap((end) => Array.from({ length: 5 }, (_, index) => ({ id: `${end}-${index}`, end })));
    const edges = [
      ...chain.slice(1).map(({ id }, index) => ({ source: `c${index}`, target: id, label: "next" })),
      ...leaves.map(({ id, end }) => ({ source: id, target: end, label: "leaf" })),
    ];
    const parallel = Array.from({ length: 5_000 }, () => ({ source: "a", target: "b", label: "affects" }));
    await showArtifacts(page, [
      artifact("application/vnd.knowledge-graph", "A chain", JSON.stringify({ nodes: [...chain, ...leaves], edges })),
      artifact("application/vnd.knowledge-graph", "Parallel edges", JSON.stringify({ nodes: [{ id: "a" }, { id: "b" }], edges: parallel })),
    ]);
    const graph = page.locator(".graph").first();
    await graph.getByRole("button", { name: "c0, Other, 6 connections" }).press("Enter");
    await graph.getByRole("button", { name: "Find path from c0" }).click();
    await graph.getByRole("button", { name: "c299, Other, 6 connections" }).press("Enter");
    assert.equal(await graph.locator(".graph-status").innerText(), "Path of 300 nodes");
    assert.equal(await graph.locator(".graph-node").count(), 200);
    const other = page.locator(".graph").nth(1);
    assert.equal(await other.locator(".graph-status").innerText(), "600 of 5000 edges are shown.");
    assert.equal(await other.locator(".graph-edge").count(), 600);
    await checkAndClose(page);
  });

  test("a Mermaid diagram in an answer is drawn, and an invalid one is shown as source", async () => {
    const page = await visit();
    model.enqueue(["Look:\n\n```mermaid\nflowchart TD\n  A --> B\n```\n\nAnd:\n\n```mermaid\nno such thing [\n```\n"]);
    await sendMessage(page, "Draw");
    await runFinished(page);
    const picture = page.locator(".artifact .drawing img");
    await picture.waitFor();
    // Labels on edges have an outline, so that they are readable on top of the lines.
    assert.match(decodeURIComponent(await picture.getAttribute("src")), /\.edgeLabel text\s*\{[^}]*paint-order:\s*stroke/);
    await waitForText(page.locator(".artifact .warning"), "Couldn't render");
    assert.match(await page.locator(".artifact").nth(1).locator("pre").innerText(), /no such thing/);
    assert.equal(await page.locator(".run > .text").count(), 2);
    await checkAndClose(page);
  });

  test("incremental rendering gives the same result as rendering the complete text", async () => {
    const page = await visit();
    const cases = [
      "# A\n\nText *with* `code`.\n\n- one\n- two\n  - three\n\n1. x\n2. y\n\n> quote\n\n---\n\nEnd",
      "a\n\n```rust\nfn main() {\n    let x = \"```\";\n}\n```\n\nb\n\n~~~\nplain\n~~~",
      "| a | b |\n|---|---|\n| 1 | 2 |\n\nSetext\n======\n\nx [l] y\n\n[l]: https://example.com\n",
      "````md\n```\ninner\n```\n````\n\n```unclosed\nline 1\n\nline 2",
      "- a\n\n  para\n\n- b\n\n      code\n\ntext with <b>markup</b> &amp; more\n\n<details><summary>s</summary>\n\nx\n\n</details>\n",
      "Ünïcödé 🎉 \n\n\n\n**a\n\nb**\n\n\\*not\\*\r\n\r\nwindows",
    ];
    const differences = await page.evaluate(async (sources) => {
      const { IncrementalRenderer } = await import("/assets/js/text.js");
      const found = [];
      const withoutHighlighting = (element) => {
        for (const code of element.querySelectorAll("code.hljs")) code.replaceWith(Object.assign(document.createElement("code"), { textContent: code.textContent }));
        return element.innerHTML;
      };
      for (const source of sources) {
        const complete = document.createElement("div");
        new IncrementalRenderer(complete).update(source, false);
        for (const step of [1, 3, 17]) {
          const incremental = document.createElement("div");
          const renderer = new IncrementalRenderer(incremental);
          for (let end = 0; end <= source.length; end += step) renderer.update(source.slice(0, end), true);
          renderer.update(source, false);
          const [actual, expected] = [withoutHighlighting(incremental), withoutHighlighting(complete)];
          if (actual !== expected) found.push({ source, step, actual, expected });
        }
      }
      return found;
    }, cases);
    assert.deepEqual(differences, []);
    await checkAndClose(page);
  });

  test("deeply nested Markdown is shown in full and does not block the page", async () => {
    const page = await visit();
    const repeat = (piece, count = 30_000) => piece.repeat(count);
    const cases = {
      "quotes in quotes": `${repeat(">")} the end`,
      "lists in lists": `${repeat("- ")} the end`,
      "both": `${repeat("> - ")} the end`,
      "emphasis": `${repeat("*a")} the end`,
      "mixed emphasis": `${repeat("*a_")} the end`,
      "links in links": `${repeat("[a](")} the end`,
      "code": `${repeat("`a``")} the end`,
      "tags": `${repeat("<b>")} the end`,
      "tags with lines": `${repeat("<div>\n")} the end`,
      "tags with blocks": `${repeat("<div>\n\n")} the end`,
      "tags that do not end": `${repeat("<b a=\"")} the end`,
    };
    const failures = await page.evaluate(async (sources) => {
      const { IncrementalRenderer } = await import("/assets/js/text.js");
      const failures = [];
      for (const [name, source] of Object.entries(sources)) {
        const container = document.createElement("div");
        document.body.append(container);
        const renderer = new IncrementalRenderer(container);
        const start = performance.now();
        renderer.update(source, false);
        const duration = Math.round(performance.now() - start);
        if (duration > 3_000 || !container.textContent.trimEnd().endsWith("the end")) failures.push({ name, duration, end: container.textContent.slice(-40) });
        // Incremental rendering must give the same text.
        const incremental = new IncrementalRenderer(document.createElement("div"));
        for (let part = 1; part <= 10; part += 1) incremental.update(source.slice(0, (source.length * part) / 10), true);
        incremental.update(source, false);
        if (incremental.element.textContent !== container.textContent) failures.push({ name, incremental: incremental.element.textContent.slice(-40) });
        container.remove();
      }
      return failures;
    }, cases);
    assert.deepEqual(failures, []);

    const shown = await page.evaluate(async (sources) => {
      const { renderMarkdown } = await import("/assets/js/markdown.js");
      return sources.map((source) => {
        const container = document.createElement("div");
        container.append(renderMarkdown(source));
        return container.textContent.trim();
      });
    }, ["Put it into the <script> tag, then load again.", "A Vec<String> or a Map<K, V> of <T>.", "said <title>so</title> and <!-- not hidden --> and <textarea>more",
      "<kbd>a<b c</kbd> d", "<div title=\"\n\nafter", "<section>\n  <em>one</em>\n</section>\n\nafter", "a <b>bold</b> <i class=x>word</i> <br/> <unknown-tag/>", "1 < 2 && 3 > 2"]);
    assert.deepEqual(shown, ["Put it into the <script> tag, then load again.", "A Vec<String> or a Map<K, V> of <T>.", "said <title>so</title> and <!-- not hidden --> and <textarea>more",
      "a<b c d", "<div title=\"after", "htmlCopy<section>\n  <em>one</em>\n</section>after", "a bold word  <unknown-tag/>", "1 < 2 && 3 > 2"]);
    await checkAndClose(page);
  });

  test("a long answer renders without redrawing complete blocks and without long tasks", async () => {
    const block = (at) => `## Part ${at}\n\nA paragraph with **some** words, \`code\` and [a link](https://example.com/${at}).\n\n- one\n- two\n\n`;
    const parts = Array.from({ length: 400 }, (_, at) => block(at));
    const code = `\`\`\`text\n${"a line of a long block of code\n".repeat(1500)}\`\`\`\n\nThe end.`;
    const gate = new Gate();
    const page = await visit();
    model.enqueue([parts[0], gate, parts.slice(1).join(""), code]);
    await sendMessage(page, "Write a book");
    await waitForText(page.locator(".text"), "Part 0");
    await page.evaluate(() => {
      const answer = document.querySelector(".text");
      answer.firstElementChild.marker = true;
      window.counts = { removed: 0, longTasks: [] };
      new MutationObserver((mutations) => { for (const { removedNodes } of mutations) window.counts.removed += removedNodes.length; }).observe(answer, { childList: true });
      const record = (entries) => window.counts.longTasks.push(...entries.map((it) => it.duration));
      const observer = new PerformanceObserver((list) => record(list.getEntries()));
      observer.observe({ type: "longtask" });
      window.counts.recordPending = () => record(observer.takeRecords());
    });
    gate.open();
    await page.locator('.run[data-state="finished"]').waitFor({ timeout: 60_000 });
    const { removed, longTasks, marker, headings, lines } = await page.evaluate(() => {
      const answer = document.querySelector(".text");
      window.counts.recordPending();
      const { removed, longTasks } = window.counts;
      return { removed, longTasks, marker: answer.firstElementChild.marker, headings: answer.querySelectorAll("h3").length, lines: answer.querySelector("pre").textContent.split("\n").length };
    });
    assert.equal(marker, true, "the element of the first block was not replaced");
    assert.equal(headings, 400);
    assert.equal(lines, 1500);
    // Each update may replace only incomplete blocks.
    console.log(`long answer: ${removed} nodes removed, longest task ${Math.round(Math.max(0, ...longTasks))} ms`);
    assert.ok(removed < 4_000, `${removed} nodes were removed`);
    assert.ok(Math.max(0, ...longTasks) < 1_000, `tasks of ${longTasks.map(Math.round)} ms`);
    await checkAndClose(page);
  });

  test("the event parser accepts chunks of any size", async () => {
    const page = await visit();
    const result = await page.evaluate(async () => {
      const { EventStreamParser } = await import("/assets/js/events.js");
      const stream = ": hello\r\nid: 1\r\nevent: a\r\ndata: {\"x\":\r\ndata: 1}\r\n\r\nid:2\ndata:two\n\n: alive\n\nid: 3\ndata: drei – ünï\n\n";
      const expected = JSON.stringify(new EventStreamParser().push(stream));
      const failures = [];
      for (let step = 1; step < stream.length; step += 1) {
        const parser = new EventStreamParser();
        const events = [];
        for (let at = 0; at < stream.length; at += step) events.push(...parser.push(stream.slice(at, at + step)));
        if (JSON.stringify(events) !== expected) failures.push([step, events]);
      }
      return { failures, expected };
    });
    assert.deepEqual(result.failures, []);
    assert.deepEqual(JSON.parse(result.expected).map((it) => it.id), ["1", "2", "3"]);
    await checkAndClose(page);
  });

  test("a run looks the same from its events, from repeated events and from stored messages", async () => {
    const page = await visit();
    model.enqueue([{ call: { id: "a", name: "customer-service__calculate_account_value", input: { customer_id: 42 } } }], ["It is **530.19 EUR**.\n\n", "```mermaid\nflowchart TD\n  A --> B\n```"]);
    await sendMessage(page, "What is it worth?");
    await runFinished(page);
    const results = await page.evaluate(async (session) => {
      const { Run, runFromMessages } = await import("/assets/js/run.js");
      const { messages, runs: [{ id }] } = await (await fetch(`/sessions/${session}`)).json();
      const events = (await (await fetch(`/runs/${id}/events?after=0`)).text()).split("\n").filter((line) => line.startsWith("data:")).map((line) => JSON.parse(line.slice(5)));
      const comparable = (run) => run.items.filter((it) => it.kind !== "note").map(({ kind, text, tool, status, input, result, artifact }) => ({ kind, text, tool, status, input, content: result?.content, artifact }));
      const replay = (events) => {
        const run = new Run(id);
        for (const event of events) run.applyEvent(event);
        return { state: run.state, items: comparable(run) };
      };
      const repeated = events.flatMap((event, index) => [...events.slice(Math.max(0, index - 5), index), event]);
      const stored = comparable(runFromMessages(id, messages.slice(1)));
      return { count: events.length, once: replay(events), repeated: replay(repeated), stored };
    }, decodeURIComponent(new URL(page.url()).hash.slice(4)));
    assert.ok(results.count > 10, `${results.count} events`);
    assert.equal(results.once.state, "finished");
    assert.deepEqual(results.once.items.map((it) => it.kind), ["tool", "text", "artifact"]);
    assert.deepEqual(results.repeated, results.once);
    const withShortToolNames = (items) => items.map(({ tool, ...rest }) => ({ ...rest, tool: tool?.replace(/^.*__/, "") }));
    assert.deepEqual(withShortToolNames(results.stored), withShortToolNames(results.once.items));
    await checkAndClose(page);
  });

  test("a message can be sent and a call allowed with the keyboard alone", async () => {
    const page = await visit();
    const waitForFieldFocus = () => page.waitForFunction(() => document.activeElement?.id === "message");
    await waitForFieldFocus();
    const tabBackTo = async (isReached) => {
      for (let presses = 0; presses < 30; presses += 1) {
        await page.keyboard.press("Shift+Tab");
        if (await page.evaluate(isReached)) return;
      }
      assert.fail("the element cannot be reached with the keyboard");
    };
    await tabBackTo(() => document.activeElement?.className === "skip");
    assert.ok(await page.locator(".skip").evaluate((it) => it.getBoundingClientRect().top >= 0), "the skip link is visible while focused");
    await page.keyboard.press("Enter");
    await waitForFieldFocus();
    await page.keyboard.type("one");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("two");
    assert.equal(await page.inputValue("#message"), "one\ntwo");
    assert.equal(await page.locator(".turn").count(), 0);
    model.enqueue([{ call: { id: "t", name: "customer-service__create_support_ticket", input: { customer_id: 42, subject: "x", priority: "low" } } }], ["All done."]);
    await page.keyboard.press("Enter");
    await page.locator(".approval").waitFor();
    await waitForText(page.locator("#urgent"), "Approval needed for create_support_ticket.");
    // The buttons of the approval come before the field.
    await tabBackTo(() => document.activeElement?.textContent === "Allow");
    await page.keyboard.press("Enter");
    await runFinished(page);
    // The focus returns to the field once the server has accepted the decision.
    await waitForFieldFocus();
    await waitForText(page.locator("#said"), "The answer is complete. All done.");
    await checkAndClose(page);
  });

  test("live regions do not announce each streamed piece of an answer", async () => {
    const gate = new Gate();
    const page = await visit();
    model.enqueue(["word ".repeat(200), gate, "end"]);
    await page.evaluate(() => {
      window.announcements = [];
      for (const region of document.querySelectorAll('[aria-live="polite"], [role="alert"], [role="status"]')) {
        new MutationObserver(() => { if (region.textContent) window.announcements.push(region.textContent); }).observe(region, { childList: true, characterData: true, subtree: true });
      }
    });
    await sendMessage(page, "Many words");
    await waitForText(page.locator(".text"), "word word");
    gate.open();
    await runFinished(page);
    await waitForText(page.locator("#said"), "The answer is complete.");
    const announcements = await page.evaluate(() => window.announcements);
    assert.ok(announcements.length <= 3, JSON.stringify(announcements));
    assert.equal(await page.locator('[role="log"]').getAttribute("aria-live"), "off");
    await checkAndClose(page);
  });

  for (const [name, options] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["on a phone, light", { colorScheme: "light", viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }],
    ["on a phone, dark", { colorScheme: "dark", viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }],
  ]) {
    test(`axe reports no violations: ${name}`, async () => {
      const page = await visit(options);
      page.expectedProblems.push(/tracker\.example/, /Content Security Policy/, /Unsafe attempt to initiate navigation/);
      const check = async (view) => {
        assert.deepEqual(await axeViolations(page), [], view);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${view}: no horizontal overflow`);
      };
      await page.locator(".welcome").waitFor();
      await check("welcome");
      await showArtifacts(page);
      await page.locator(".drawing img").nth(1).waitFor();
      await page.locator(".artifact .hljs-keyword").first().waitFor();
      await check("artifacts");
      await page.selectOption("#recipe", "");
      model.enqueue([{ call: { id: "t", name: "customer-service__create_support_ticket", input: { customer_id: 42, subject: "x", priority: "low" } } }],
        ["# Title\n\nText with `code`, [a link](https://example.com) and\n\n- [x] a list\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote\n\n```python\ndef f(x):\n    return \"y\"  # note\n```\n"]);
      await sendMessage(page, "Make a ticket");
      await page.locator(".approval").waitFor();
      await check("approval");
      await page.locator(".approval").getByRole("button", { name: "Edit" }).click();
      await page.getByLabel("Input (JSON)").fill("{");
      await check("edit");
      await page.getByLabel("Input (JSON)").fill('{"customer_id": 42, "subject": "y"}');
      await page.getByRole("button", { name: "Allow with changes" }).click();
      await runFinished(page, 2);
      await page.locator(CARD_HEADER).first().click();
      await page.locator(".text .hljs-string").first().waitFor();
      await check("answer");
      model.enqueue([{ call: { id: "b", name: "things__book_seat", input: {} } }], ["Booked."]);
      await sendMessage(page, "Book a seat");
      await page.locator(".question form").waitFor();
      await page.getByRole("button", { name: "Answer", exact: true }).click();
      await check("question");
      await page.getByRole("button", { name: "Not now" }).click();
      await runFinished(page, 3);
      await page.getByRole("button", { name: /^Servers:/ }).click();
      await waitForText(page.locator('.server[data-server="broken"]'), "the disk is full");
      await check("servers");
      await page.keyboard.press("Escape");
      if (options.viewport) await page.getByRole("button", { name: "Conversations" }).click();
      await page.locator(".sessions .current").getByRole("button", { name: /^Delete/ }).click();
      await page.locator("dialog").waitFor();
      await check("dialog");
      page.foreignRequests = page.foreignRequests.filter((it) => !it.includes("tracker.example"));
      await checkAndClose(page);
    });
  }

  test("the theme button cycles through the themes, and the choice is remembered", async () => {
    const page = await visit({ colorScheme: "light" });
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    const button = page.getByRole("button", { name: /^Theme:/ });
    await button.click();
    assert.equal(await background(), light);
    await button.click();
    await page.waitForFunction((before) => getComputedStyle(document.body).backgroundColor !== before, light);
    const dark = await background();
    await page.reload();
    assert.equal(await background(), dark);
    await page.getByRole("button", { name: /^Theme: dark/ }).click();
    await page.waitForFunction((before) => getComputedStyle(document.body).backgroundColor === before, light);
    await checkAndClose(page);
  });
});
