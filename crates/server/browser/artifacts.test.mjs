// What answers hold beyond text, how text grows, and whether everybody can use it.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Gate, Model } from "./model.mjs";
import { Program, choose, config, fine, finished, open, send, startBrowser, violations } from "./stage.mjs";

/** The head of a tool's card, which opens it. */
const CARD = ".tool > details > summary";
const SCRIPTED = "scripted/scripted";
const text = (content) => ({ type: "text", content });
const artifact = (artifactType, title, content, language) => ({ type: "artifact", artifactType, title, content, ...(language ? { language } : {}) });
const waitText = (locator, wanted) => locator.filter({ hasText: wanted }).first().waitFor();

const PAGE = `<h1>A page</h1><p id="said"></p><a href="https://tracker.example/">out</a><script>
  const say = (words) => { document.getElementById("said").textContent += words + ". "; };
  say("script ran");
  try { parent.document.title = "taken over"; } catch { say("no parent"); }
  try { localStorage.getItem("x"); } catch { say("no storage"); }
  fetch("https://tracker.example/x").then(() => say("network"), () => say("no network"));
  new Image().src = "https://tracker.example/pixel.png";
  try { top.location = "https://tracker.example/top"; } catch { say("no top"); }
</script>`;

const ITEMS = [
  text("Here is **what was found**."),
  artifact("application/vnd.mermaid", "How a ticket goes", "flowchart LR\n  A[Written] --> B{Urgent?}\n  B -- yes --> C[Call back]\n  B -- no --> D[Queue]"),
  artifact("chart", "Value by month", JSON.stringify({ type: "bar", data: { labels: ["Jan", "Feb"], datasets: [{ label: "2025", data: [12, 19] }] } })),
  artifact("table", "Customers", "name,value\n\"El-Amin, Noor\",530.19\nJuno,120.50"),
  artifact("table", "As Markdown", "| a | b |\n|---|--:|\n| 1 | 2 |"),
  artifact("code", "limit.rs", "pub fn limit() -> u32 {\n    3\n}", "rust"),
  artifact("text/markdown", "Notes", "## Notes\n\n- one\n- two"),
  artifact("html", "A page", PAGE),
  artifact("image/svg+xml", "A square", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"40\"><script>window.harmed = 1</script><rect width=\"40\" height=\"40\"/></svg>"),
  artifact("json", "Data", "{\"a\": [1, 2]}"),
  artifact("chart", "Not a chart", "{\"what\": \"ever\"}"),
];

describe("artifacts, text and access", { concurrency: false }, () => {
  let model;
  let program;
  let browser;

  before(async () => {
    model = await new Model().start();
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

  /** A page with an answer in all its kinds. */
  async function withArtifacts(page, items = ITEMS) {
    model.say(["I know enough."], [{ form: items }]);
    await page.selectOption("#recipe", "forms");
    await send(page, "Show me everything");
    await finished(page);
  }

  test("each kind of artifact is shown as what it is", async () => {
    const page = await visit();
    // What the page in the frame tries is refused by its policy, and the browser says so.
    page.expected.push(/tracker\.example/, /Content Security Policy/, /Unsafe attempt to initiate navigation/);
    await withArtifacts(page);
    const of = (title) => page.locator(".artifact", { has: page.locator("figcaption strong", { hasText: title }) });
    assert.equal(await page.locator(".artifact").count(), ITEMS.length - 1);
    assert.match(await page.locator(".run > .text").first().innerText(), /Here is what was found\./);
    for (const title of ["How a ticket goes", "Value by month"]) {
      const picture = of(title).locator(".drawing img");
      await picture.waitFor();
      await picture.evaluate((it) => it.decode());
      assert.ok(await picture.evaluate((it) => it.naturalWidth > 100 && it.naturalHeight > 30), title);
      assert.match(await picture.getAttribute("alt"), new RegExp(title));
    }
    assert.match(await of("Value by month").locator("img").getAttribute("alt"), /2025: Jan 12, Feb 19/);
    assert.deepEqual(await of("Customers").locator("td").allInnerTexts(), ["El-Amin, Noor", "530.19", "Juno", "120.50"]);
    assert.deepEqual(await of("As Markdown").locator("td").allInnerTexts(), ["1", "2"]);
    await of("limit.rs").locator(".hljs-keyword").first().waitFor();
    assert.equal(await of("Notes").locator("li").count(), 2);
    assert.ok(await of("A square").locator("img").evaluate(async (it) => { await it.decode(); return it.naturalWidth === 40; }));
    await waitText(of("Not a chart"), "form of this chart is not known");

    const frame = page.frameLocator('iframe[title="A page"]');
    await waitText(frame.locator("#said"), "no network");
    const said = await frame.locator("#said").innerText();
    for (const words of ["script ran", "no parent", "no storage", "no network"]) assert.match(said, new RegExp(words));
    const attributes = await page.locator('iframe[title="A page"]').evaluate((it) => [it.getAttribute("sandbox"), it.src]);
    assert.deepEqual(attributes, ["allow-scripts", `${program.url}/assets/frames/foreign.html`]);
    assert.equal(new URL(page.url()).host, new URL(program.url).host);
    assert.equal(await page.evaluate(() => window.harmed), undefined);

    await of("How a ticket goes").getByRole("button", { name: "Source" }).click();
    assert.match(await of("How a ticket goes").locator("pre").innerText(), /flowchart LR/);
    const [saved] = await Promise.all([page.waitForEvent("download"), of("limit.rs").getByRole("button", { name: "Save" }).click()]);
    assert.equal(saved.suggestedFilename(), "limit.rs");
    // Requests that the policy refused never left.
    page.strangers = page.strangers.filter((it) => !it.includes("tracker.example"));
    await page.reload();
    await page.locator(".artifact").nth(ITEMS.length - 2).waitFor();
    page.strangers = page.strangers.filter((it) => !it.includes("tracker.example"));
    await fine(page);
  });

  test("a diagram in an answer is drawn, and one that cannot be is shown as it is written", async () => {
    const page = await visit();
    model.say(["Look:\n\n```mermaid\nflowchart TD\n  A --> B\n```\n\nAnd:\n\n```mermaid\nno such thing [\n```\n"]);
    await send(page, "Draw");
    await finished(page);
    const picture = page.locator(".artifact .drawing img");
    await picture.waitFor();
    // The words on its lines can be read: the picture's ground is behind them.
    assert.match(decodeURIComponent(await picture.getAttribute("src")), /\.edgeLabel text\s*\{[^}]*paint-order:\s*stroke/);
    await waitText(page.locator(".artifact .warning"), "It cannot be drawn");
    assert.match(await page.locator(".artifact").nth(1).locator("pre").innerText(), /no such thing/);
    assert.equal(await page.locator(".run > .text").count(), 2);
    await fine(page);
  });

  test("text that grows comes to the same as the whole, and what stands is not drawn again", async () => {
    const page = await visit();
    const cases = [
      "# A\n\nText *with* `code`.\n\n- one\n- two\n  - three\n\n1. x\n2. y\n\n> quote\n\n---\n\nEnd",
      "a\n\n```rust\nfn main() {\n    let x = \"```\";\n}\n```\n\nb\n\n~~~\nplain\n~~~",
      "| a | b |\n|---|---|\n| 1 | 2 |\n\nSetext\n======\n\nx [l] y\n\n[l]: https://example.com\n",
      "````md\n```\ninner\n```\n````\n\n```unclosed\nline 1\n\nline 2",
      "- a\n\n  para\n\n- b\n\n      code\n\ntext with <b>markup</b> &amp; more\n\n<details><summary>s</summary>\n\nx\n\n</details>\n",
      "Ünïcödé 🎉 \n\n\n\n**a\n\nb**\n\n\\*not\\*\r\n\r\nwindows",
    ];
    const differences = await page.evaluate(async (all) => {
      const { Growing } = await import("/assets/js/text.js");
      const found = [];
      const plain = (element) => {
        for (const code of element.querySelectorAll("code.hljs")) code.replaceWith(Object.assign(document.createElement("code"), { textContent: code.textContent }));
        return element.innerHTML;
      };
      for (const source of all) {
        const whole = document.createElement("div");
        new Growing(whole).update(source, false);
        for (const step of [1, 3, 17]) {
          const grown = document.createElement("div");
          const growing = new Growing(grown);
          for (let end = 0; end <= source.length; end += step) growing.update(source.slice(0, end), true);
          growing.update(source, false);
          if (plain(grown) !== plain(whole)) found.push({ source, step, grown: plain(grown), whole: plain(whole) });
        }
      }
      return found;
    }, cases);
    assert.deepEqual(differences, []);
    await fine(page);
  });

  test("a text shows no less than it says, whatever it is made of, and stops the page for no time", async () => {
    const page = await visit();
    const many = (piece, count = 30_000) => piece.repeat(count);
    const cases = {
      "quotes in quotes": `${many(">")} the end`,
      "lists in lists": `${many("- ")} the end`,
      "both": `${many("> - ")} the end`,
      "emphasis": `${many("*a")} the end`,
      "mixed emphasis": `${many("*a_")} the end`,
      "links in links": `${many("[a](")} the end`,
      "code": `${many("`a``")} the end`,
      "tags": `${many("<b>")} the end`,
      "tags with lines": `${many("<div>\n")} the end`,
      "tags with blocks": `${many("<div>\n\n")} the end`,
      "tags that do not end": `${many("<b a=\"")} the end`,
    };
    const found = await page.evaluate(async (all) => {
      const { Growing } = await import("/assets/js/text.js");
      const bad = [];
      for (const [name, source] of Object.entries(all)) {
        const place = document.createElement("div");
        document.body.append(place);
        const growing = new Growing(place);
        const begun = performance.now();
        growing.update(source, false);
        const took = Math.round(performance.now() - begun);
        if (took > 3_000 || !place.textContent.trimEnd().endsWith("the end")) bad.push({ name, took, end: place.textContent.slice(-40) });
        // While it comes in pieces, no picture takes long either.
        const grown = new Growing(document.createElement("div"));
        for (let part = 1; part <= 10; part += 1) grown.update(source.slice(0, (source.length * part) / 10), true);
        grown.update(source, false);
        if (grown.element.textContent !== place.textContent) bad.push({ name, grown: grown.element.textContent.slice(-40) });
        place.remove();
      }
      return bad;
    }, cases);
    assert.deepEqual(found, []);

    const shown = await page.evaluate(async (sources) => {
      const { markdown } = await import("/assets/js/markdown.js");
      return sources.map((source) => {
        const place = document.createElement("div");
        place.append(markdown(source));
        return place.textContent.trim();
      });
    }, ["Put it into the <script> tag, then load again.", "A Vec<String> or a Map<K, V> of <T>.", "said <title>so</title> and <!-- not hidden --> and <textarea>more",
      "<kbd>a<b c</kbd> d", "<div title=\"\n\nafter", "<section>\n  <em>one</em>\n</section>\n\nafter", "a <b>bold</b> <i class=x>word</i> <br/> <unknown-tag/>", "1 < 2 && 3 > 2"]);
    assert.deepEqual(shown, ["Put it into the <script> tag, then load again.", "A Vec<String> or a Map<K, V> of <T>.", "said <title>so</title> and <!-- not hidden --> and <textarea>more",
      "a<b c d", "<div title=\"after", "htmlCopy<section>\n  <em>one</em>\n</section>after", "a bold word  <unknown-tag/>", "1 < 2 && 3 > 2"]);
    await fine(page);
  });

  test("a long answer stays smooth: no block is drawn twice, and no picture takes long", async () => {
    const block = (at) => `## Part ${at}\n\nA paragraph with **some** words, \`code\` and [a link](https://example.com/${at}).\n\n- one\n- two\n\n`;
    const parts = Array.from({ length: 400 }, (_, at) => block(at));
    const code = `\`\`\`text\n${"a line of a long block of code\n".repeat(1500)}\`\`\`\n\nThe end.`;
    const gate = new Gate();
    const page = await visit();
    model.say([parts[0], gate, parts.slice(1).join(""), code]);
    await send(page, "Write a book");
    await waitText(page.locator(".text"), "Part 0");
    await page.evaluate(() => {
      const place = document.querySelector(".text");
      place.firstElementChild.mark = true;
      window.counts = { removed: 0, long: [] };
      new MutationObserver((all) => { for (const { removedNodes } of all) window.counts.removed += removedNodes.length; }).observe(place, { childList: true });
      const took = (entries) => window.counts.long.push(...entries.map((it) => it.duration));
      const observer = new PerformanceObserver((list) => took(list.getEntries()));
      observer.observe({ type: "longtask" });
      // What it was not told yet.
      window.counts.rest = () => took(observer.takeRecords());
    });
    gate.open();
    await page.locator('.run[data-state="finished"]').waitFor({ timeout: 60_000 });
    const { removed, long, mark, headings, lines } = await page.evaluate(() => {
      const place = document.querySelector(".text");
      window.counts.rest();
      const { removed, long } = window.counts;
      return { removed, long, mark: place.firstElementChild.mark, headings: place.querySelectorAll("h3").length, lines: place.querySelector("pre").textContent.split("\n").length };
    });
    assert.equal(mark, true, "the first block is still the same one");
    assert.equal(headings, 400);
    assert.equal(lines, 1500);
    // Each picture takes back at most the blocks that were not complete.
    console.log(`long answer: ${removed} nodes taken back, longest task ${Math.round(Math.max(0, ...long))} ms`);
    assert.ok(removed < 4_000, `${removed} nodes were taken back`);
    assert.ok(Math.max(0, ...long) < 1_000, `tasks of ${long.map(Math.round)} ms`);
    await fine(page);
  });

  test("events are read however they are cut", async () => {
    const page = await visit();
    const wrong = await page.evaluate(async () => {
      const { Lines } = await import("/assets/js/events.js");
      const stream = ": hello\r\nid: 1\r\nevent: a\r\ndata: {\"x\":\r\ndata: 1}\r\n\r\nid:2\ndata:two\n\n: alive\n\nid: 3\ndata: drei – ünï\n\n";
      const expected = JSON.stringify(new Lines().take(stream));
      const bad = [];
      for (let step = 1; step < stream.length; step += 1) {
        const lines = new Lines();
        const events = [];
        for (let at = 0; at < stream.length; at += step) events.push(...lines.take(stream.slice(at, at + step)));
        if (JSON.stringify(events) !== expected) bad.push([step, events]);
      }
      return { bad, expected };
    });
    assert.deepEqual(wrong.bad, []);
    assert.deepEqual(JSON.parse(wrong.expected).map((it) => it.id), ["1", "2", "3"]);
    await fine(page);
  });

  test("a run is the same live, replayed, and from the messages of its session", async () => {
    const page = await visit();
    model.say([{ call: { id: "a", name: "customer-service__calculate_account_value", input: { customer_id: 42 } } }], ["It is **530.19 EUR**.\n\n", "```mermaid\nflowchart TD\n  A --> B\n```"]);
    await send(page, "What is it worth?");
    await finished(page);
    const seen = await page.evaluate(async (session) => {
      const { Run, runOfMessages } = await import("/assets/js/run.js");
      const { messages, runs: [{ id }] } = await (await fetch(`/sessions/${session}`)).json();
      const events = (await (await fetch(`/runs/${id}/events?after=0`)).text()).split("\n").filter((line) => line.startsWith("data:")).map((line) => JSON.parse(line.slice(5)));
      const plain = (run) => run.pieces.filter((it) => it.kind !== "note").map(({ kind, text, tool, status, input, result, artifact }) => ({ kind, text, tool, status, input, said: result?.content, artifact }));
      const replay = (all) => {
        const run = new Run(id);
        for (const event of all) run.take(event);
        return { state: run.state, pieces: plain(run) };
      };
      const twice = events.flatMap((event, at) => [...events.slice(Math.max(0, at - 5), at), event]);
      const stored = plain(runOfMessages(id, messages.slice(1)));
      return { count: events.length, once: replay(events), twice: replay(twice), stored };
    }, decodeURIComponent(new URL(page.url()).hash.slice(4)));
    assert.ok(seen.count > 10, `${seen.count} events`);
    assert.equal(seen.once.state, "finished");
    assert.deepEqual(seen.once.pieces.map((it) => it.kind), ["tool", "text", "artifact"]);
    assert.deepEqual(seen.twice, seen.once);
    const named = (pieces) => pieces.map(({ tool, ...rest }) => ({ ...rest, tool: tool?.replace(/^.*__/, "") }));
    assert.deepEqual(named(seen.stored), named(seen.once.pieces));
    await fine(page);
  });

  test("everything is done with the keyboard", async () => {
    const page = await visit();
    const inField = () => page.waitForFunction(() => document.activeElement?.id === "message");
    await inField();
    const back = async (there) => {
      for (let presses = 0; presses < 30; presses += 1) {
        await page.keyboard.press("Shift+Tab");
        if (await page.evaluate(there)) return;
      }
      assert.fail("it cannot be reached with the keyboard");
    };
    await back(() => document.activeElement?.className === "skip");
    assert.ok(await page.locator(".skip").evaluate((it) => it.getBoundingClientRect().top >= 0), "the link is seen when it has the focus");
    await page.keyboard.press("Enter");
    // The link leads to the field.
    await inField();
    await page.keyboard.type("one");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("two");
    assert.equal(await page.inputValue("#message"), "one\ntwo");
    assert.equal(await page.locator(".turn").count(), 0);
    model.say([{ call: { id: "t", name: "customer-service__create_support_ticket", input: { customer_id: 42, subject: "x", priority: "low" } } }], ["All done."]);
    await page.keyboard.press("Enter");
    await page.locator(".approval").waitFor();
    await waitText(page.locator("#urgent"), "may create_support_ticket run?");
    // Backwards from the field to the buttons of the question.
    await back(() => document.activeElement?.textContent === "Allow");
    await page.keyboard.press("Enter");
    await finished(page);
    // The focus is back in the field, once the server took the word.
    await inField();
    await waitText(page.locator("#said"), "The answer is complete. All done.");
    await fine(page);
  });

  test("the words of an answer are not read out one by one", async () => {
    const gate = new Gate();
    const page = await visit();
    model.say(["word ".repeat(200), gate, "end"]);
    await page.evaluate(() => {
      window.told = [];
      for (const place of document.querySelectorAll('[aria-live="polite"], [role="alert"], [role="status"]')) {
        new MutationObserver(() => { if (place.textContent) window.told.push(place.textContent); }).observe(place, { childList: true, characterData: true, subtree: true });
      }
    });
    await send(page, "Many words");
    await waitText(page.locator(".text"), "word word");
    gate.open();
    await finished(page);
    await waitText(page.locator("#said"), "The answer is complete.");
    const told = await page.evaluate(() => window.told);
    assert.ok(told.length <= 3, JSON.stringify(told));
    assert.equal(await page.locator('[role="log"]').getAttribute("aria-live"), "off");
    await fine(page);
  });

  for (const [name, options] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["on a phone, light", { colorScheme: "light", viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }],
    ["on a phone, dark", { colorScheme: "dark", viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }],
  ]) {
    test(`axe finds nothing: ${name}`, async () => {
      const page = await visit(options);
      page.expected.push(/tracker\.example/, /Content Security Policy/, /Unsafe attempt to initiate navigation/);
      const check = async (what) => {
        assert.deepEqual(await violations(page), [], what);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${what}: nothing sticks out`);
      };
      await page.locator(".welcome").waitFor();
      await check("welcome");
      await withArtifacts(page);
      await page.locator(".drawing img").nth(1).waitFor();
      await page.locator(".artifact .hljs-keyword").first().waitFor();
      await check("artifacts");
      await page.selectOption("#recipe", "");
      model.say([{ call: { id: "t", name: "customer-service__create_support_ticket", input: { customer_id: 42, subject: "x", priority: "low" } } }],
        ["# Title\n\nText with `code`, [a link](https://example.com) and\n\n- [x] a list\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote\n\n```python\ndef f(x):\n    return \"y\"  # note\n```\n"]);
      await send(page, "Make a ticket");
      await page.locator(".approval").waitFor();
      await check("approval");
      await page.locator(".approval").getByRole("button", { name: "Edit" }).click();
      await page.getByLabel("Input, as JSON").fill("{");
      await check("edit");
      await page.getByLabel("Input, as JSON").fill('{"customer_id": 42, "subject": "y"}');
      await page.getByRole("button", { name: "Allow edited" }).click();
      await finished(page, 2);
      await page.locator(CARD).first().click();
      await page.locator(".text .hljs-string").first().waitFor();
      await check("answer");
      model.say([{ call: { id: "b", name: "things__book_seat", input: {} } }], ["Booked."]);
      await send(page, "Book a seat");
      await page.locator(".question form").waitFor();
      await page.getByRole("button", { name: "Answer", exact: true }).click();
      await check("question");
      await page.getByRole("button", { name: "Dismiss" }).click();
      await finished(page, 3);
      await page.getByRole("button", { name: /^Servers:/ }).click();
      await waitText(page.locator('.server[data-server="broken"]'), "the disk is full");
      await check("servers");
      await page.keyboard.press("Escape");
      if (options.viewport) await page.getByRole("button", { name: "Conversations" }).click();
      await page.locator(".sessions .current").getByRole("button", { name: /^Delete/ }).click();
      await page.locator("dialog").waitFor();
      await check("dialog");
      page.strangers = page.strangers.filter((it) => !it.includes("tracker.example"));
      await fine(page);
    });
  }

  test("the switch of colours goes round and is remembered", async () => {
    const page = await visit({ colorScheme: "light" });
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    const button = page.getByRole("button", { name: /^Colours:/ });
    await button.click();
    assert.equal(await ground(), light);
    await button.click();
    await page.waitForFunction((before) => getComputedStyle(document.body).backgroundColor !== before, light);
    const dark = await ground();
    await page.reload();
    assert.equal(await ground(), dark);
    await page.getByRole("button", { name: /^Colours: dark/ }).click();
    await page.waitForFunction((before) => getComputedStyle(document.body).backgroundColor === before, light);
    await fine(page);
  });
});
