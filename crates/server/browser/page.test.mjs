// Tests of the page in a real browser, with the real server.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Gate, ScriptedModel } from "./model.mjs";
import {
  Program, axeViolations, checkAndClose, config, open, runFinished, selectModel, sendMessage, startBrowser,
} from "./stage.mjs";

const ACCOUNT_QUESTION = "What is the account value of customer 42?";
const TICKET_REQUEST = 'Create a support ticket for customer 42 with high priority and the subject "printer is broken"';
/** Header of a tool card. A click on it toggles the card. */
const CARD_HEADER = ".tool > details > summary";
const SCRIPTED = "scripted/scripted";

const text = (page, selector) => page.locator(selector).innerText();
const waitForText = (locator, expected) => locator.filter({ hasText: expected }).first().waitFor();

describe("the page", { concurrency: false }, () => {
  let model;
  let program;
  let browser;

  before(async () => {
    model = await new ScriptedModel().start();
    program = await new Program(config(model)).start();
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

  test("the first view transfers less than 300 KB and is cached for a reload", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const devtools = await context.newCDPSession(page);
    const transferred = new Map();
    await devtools.send("Network.enable");
    devtools.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => transferred.set(requestId, encodedDataLength));
    await page.goto(`${program.url}/`, { waitUntil: "networkidle" });
    await page.locator(".welcome").waitFor();
    const total = [...transferred.values()].reduce((sum, length) => sum + length, 0);
    assert.ok(transferred.size > 20, `${transferred.size} files`);
    assert.ok(total > 50_000 && total < 300_000, `${total} bytes in ${transferred.size} files`);
    console.log(`first view: ${total} bytes in ${transferred.size} files`);
    transferred.clear();
    await page.reload({ waitUntil: "networkidle" });
    const reloadTotal = [...transferred.values()].reduce((sum, length) => sum + length, 0);
    assert.ok(reloadTotal < total / 3, `${reloadTotal} bytes at the reload`);
    await context.close();
  });

  test("the page works behind a proxy under a path prefix", async () => {
    const proxy = createServer((incoming, outgoing) => {
      if (!incoming.url.startsWith("/tools/")) {
        outgoing.writeHead(404).end();
        return;
      }
      const { method, headers, url } = incoming;
      const forwarded = request({ host: "127.0.0.1", port: program.port, method, headers, path: url.slice("/tools".length) }, (response) => {
        outgoing.writeHead(response.statusCode, response.headers);
        response.pipe(outgoing);
      });
      forwarded.on("error", () => outgoing.destroy());
      outgoing.on("close", () => forwarded.destroy());
      incoming.pipe(forwarded);
    });
    await new Promise((resolve) => { proxy.listen(0, "127.0.0.1", resolve); });
    try {
      model.answers.length = 0;
      const page = await open(browser, `http://127.0.0.1:${proxy.address().port}/tools`);
      await selectModel(page, SCRIPTED);
      model.enqueue(["```mermaid\nflowchart TD\n  A --> B\n```"]);
      await sendMessage(page, "Draw");
      await runFinished(page);
      // The drawing frame must load its library below the prefix too.
      await page.locator(".artifact .drawing img").waitFor();
      await checkAndClose(page);
    } finally {
      proxy.closeAllConnections();
      proxy.close();
    }
  });

  test("a tool card shows the input, result and duration of a call", async () => {
    const page = await visit();
    await waitForText(page.locator(".welcome"), "tools");
    await page.getByRole("button", { name: ACCOUNT_QUESTION }).click();
    await runFinished(page);
    const card = page.locator(".tool");
    assert.equal(await card.count(), 1);
    assert.equal(await card.getAttribute("data-status"), "done");
    assert.match(await page.locator(CARD_HEADER).innerText(), /calculate_account_value[\s\S]*customer-service[\s\S]*done · (under 1|\d+) ms/);
    await page.locator(CARD_HEADER).click();
    assert.match(await text(page, ".tool-body"), /"customer_id": 42[\s\S]*530\.19 EUR/);
    assert.match(await text(page, ".text"), /The account value is 530\.19 EUR\./);
    assert.match(await text(page, ".footer"), /offline\/planner · 2 steps/);
    await waitForText(page.locator(".sessions .current"), "account value");
    await page.waitForFunction(() => /account value.* – Switchboard/.test(document.title));
    // A second question goes into the same conversation.
    await sendMessage(page, TICKET_REQUEST.replace("Create", "Please create"));
    await page.locator(".approval").waitFor();
    await page.getByRole("button", { name: "Allow" }).click();
    await runFinished(page, 2);
    assert.equal(await page.locator(".sessions .current").count(), 1);
    await checkAndClose(page);
  });

  test("an edited input must match the tool's schema before the call can be allowed", async () => {
    const page = await visit();
    await sendMessage(page, TICKET_REQUEST);
    const form = page.locator(".approval");
    await form.waitFor();
    assert.match(await form.innerText(), /customer-service[\s\S]*create_support_ticket/);
    await form.getByRole("button", { name: "Edit" }).click();
    const field = form.getByLabel("Input (JSON)");
    await page.waitForFunction(() => document.activeElement?.classList.contains("json"));
    const original = JSON.parse(await field.inputValue());
    assert.equal(original.priority, "high");
    for (const [invalidInput, error] of [
      ['{"customer_id": 42', /Invalid JSON.*line 1/],
      ["[1]", /must be a JSON object/],
      [JSON.stringify({ ...original, priority: "now" }), /“priority” must be one of/],
      [JSON.stringify({ ...original, extra: 1 }), /“extra” is not a parameter/],
    ]) {
      await field.fill(invalidInput);
      assert.match(await form.locator(".error").first().innerText(), error);
      assert.ok(await form.getByRole("button", { name: /Allow/ }).isDisabled(), invalidInput);
    }
    await field.fill(JSON.stringify({ ...original, subject: "The printer hums", priority: "low" }));
    await form.getByRole("button", { name: "Allow with changes" }).click();
    await runFinished(page);
    await page.locator(CARD_HEADER).first().click();
    assert.match(await text(page, ".tool-body"), /input edited[\s\S]*low priority: The printer hums/);
    await checkAndClose(page);
  });

  test("the reason for denying a call is sent to the model", async () => {
    const page = await visit();
    await sendMessage(page, TICKET_REQUEST);
    await page.locator(".approval").waitFor();
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByLabel("Reason (sent to the model)").fill("There is a ticket already.");
    await page.keyboard.press("Enter");
    await runFinished(page);
    assert.equal(await page.locator(".tool").getAttribute("data-status"), "denied");
    await page.locator(CARD_HEADER).first().click();
    assert.match(await text(page, ".tool-body"), /There is a ticket already\./);
    const id = decodeURIComponent(new URL(page.url()).hash.slice(4));
    const { messages } = await (await fetch(`${program.url}/sessions/${id}`)).json();
    const results = messages.filter((it) => it.role === "tool");
    assert.match(JSON.stringify(results), /There is a ticket already\./);
    await checkAndClose(page);
  });

  test("an approval decision can be remembered for the session", async () => {
    const page = await visit();
    await sendMessage(page, TICKET_REQUEST);
    await page.locator(".approval").waitFor();
    await page.getByLabel("Applies to").selectOption("session");
    await page.getByRole("button", { name: "Allow" }).click();
    await runFinished(page);
    await sendMessage(page, 'Create a support ticket for customer 7 with low priority and the subject "screen is dark"');
    await runFinished(page, 2);
    await page.locator(CARD_HEADER).nth(1).click();
    assert.match(await page.locator(".tool-body").nth(1).innerText(), /Allowed for this conversation \(remembered\)/);
    await checkAndClose(page);
  });

  test("a reloaded page resumes the running answer", async () => {
    const gate = new Gate();
    const page = await visit();
    model.enqueue(["The first half, ", "and more. ", gate, "The second half."]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "Say something long");
    await gate.reached;
    await waitForText(page.locator(".text"), "and more.");
    await page.reload();
    await waitForText(page.locator(".text"), "The first half, and more.");
    assert.equal(await page.locator('.run[data-state="running"]').count(), 1);
    assert.equal(await page.locator(".user-message").count(), 1);
    gate.open();
    await runFinished(page);
    assert.equal((await text(page, ".text")).trim(), "The first half, and more. The second half.");
    await page.reload();
    await runFinished(page);
    assert.equal((await text(page, ".text")).trim(), "The first half, and more. The second half.");
    await checkAndClose(page);
  });

  test("two open pages of a conversation stay in sync", async () => {
    const page = await visit();
    await sendMessage(page, ACCOUNT_QUESTION);
    await runFinished(page);
    const secondPage = await open(browser, program.url);
    await secondPage.goto(page.url());
    await runFinished(secondPage);
    await sendMessage(page, "Which customers joined most recently?");
    await runFinished(page, 2);
    await runFinished(secondPage, 2);
    await waitForText(secondPage.locator(".user-message"), "joined most recently");
    await checkAndClose(secondPage);
    await checkAndClose(page);
  });

  test("Escape stops the run", async () => {
    const gate = new Gate();
    const page = await visit();
    model.enqueue(["It begins ", gate, "and never ends."]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "Go on for ever");
    await waitForText(page.locator(".text"), "It begins");
    await page.keyboard.press("Escape");
    await runFinished(page);
    await waitForText(page.locator(".run .note"), "Stopped.");
    assert.match(await text(page, ".text"), /It begins/);
    // The field is ready for the next question.
    assert.ok(await page.evaluate(() => document.activeElement?.id === "message"));
    gate.open();
    await checkAndClose(page);
  });

  test("Escape closes a focused input field without stopping the run", async () => {
    const page = await visit();
    await sendMessage(page, TICKET_REQUEST);
    const form = page.locator(".approval");
    await form.waitFor();
    const assertRunning = async () => {
      assert.equal(await page.locator(".approval").count(), 1);
      assert.equal(await page.locator(".run .note", { hasText: "Stopped." }).count(), 0);
    };
    await form.getByRole("button", { name: "Edit" }).click();
    const input = form.getByLabel("Input (JSON)");
    await page.waitForFunction(() => document.activeElement?.classList.contains("json"));
    await input.press("Escape");
    await input.waitFor({ state: "detached" });
    await assertRunning();
    await form.getByRole("button", { name: "Deny" }).click();
    const reason = form.getByLabel("Reason (sent to the model)");
    await reason.press("Escape");
    await reason.waitFor({ state: "detached" });
    await assertRunning();
    // These elements have nothing to close.
    for (const element of [form.getByRole("button", { name: "Deny" }), page.getByLabel("Search conversations"), page.locator("select#model")]) {
      await element.focus();
      await page.keyboard.press("Escape");
      await assertRunning();
    }
    await form.getByRole("button", { name: "Allow" }).click();
    await runFinished(page);
    assert.equal(await page.locator(".tool").getAttribute("data-status"), "done");
    await checkAndClose(page);
  });

  test("a model name being typed survives the arrival of the recipe list", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    let sendRecipes;
    const recipesReleased = new Promise((resolve) => { sendRecipes = resolve; });
    await page.route("**/recipes", async (route) => {
      await recipesReleased;
      await route.continue();
    });
    await page.goto(`${program.url}/`);
    await page.selectOption("#model", { label: "Other model…" });
    await page.fill("input#model", SCRIPTED);
    await page.evaluate(() => { window.optionCount = document.querySelector("#recipe").options.length; });
    sendRecipes();
    await page.waitForFunction(() => document.querySelector("#recipe").options.length > window.optionCount);
    assert.equal(await page.inputValue("input#model"), SCRIPTED);
    await page.press("input#model", "Enter");
    await page.locator("select#model").waitFor();
    assert.equal(await page.inputValue("select#model"), SCRIPTED);
    // Escape keeps the previous selection.
    await page.selectOption("#model", { label: "Other model…" });
    await page.fill("input#model", "no/such");
    await page.press("input#model", "Escape");
    await page.locator("select#model").waitFor();
    assert.equal(await page.inputValue("select#model"), SCRIPTED);
    await context.close();
  });

  test("the progress of a tool and the state of each server are shown", async () => {
    const page = await visit();
    const file = join(program.folder, "go-on");
    const gate = new Gate();
    model.enqueue([{ call: { id: "w", name: "things__wait", input: { file }, gate } }], ["Done."]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "Wait for the file");
    await waitForText(page.locator('.tool[data-status="writing"] .tool-brief'), '{"file":"');
    assert.match(await text(page, ".tool-state"), /preparing/);
    gate.open();
    await waitForText(page.locator(".tool .progress"), "one of four");
    assert.equal(await page.locator(".tool").getAttribute("data-status"), "running");
    await waitForText(page.locator(".working"), "Running wait…");
    writeFileSync(file, "");
    await runFinished(page);
    assert.equal(await page.locator(".tool").getAttribute("data-status"), "done");

    await page.getByRole("button", { name: /^Servers:/ }).click();
    const broken = page.locator('.server[data-server="broken"]');
    await waitForText(broken, "the disk is full");
    assert.notEqual(await broken.getAttribute("data-state"), "ready");
    await page.locator('.server[data-server="customer-service"][data-state="ready"]').waitFor();
    await waitForText(page.locator('.server[data-server="things"]'), "6 tools");
    await page.keyboard.press("Escape");
    await page.locator(".panel").waitFor({ state: "detached" });
    await checkAndClose(page);
  });

  test("the form of an elicitation is validated, and its answer is sent to the server", async () => {
    const page = await visit();
    model.enqueue([{ call: { id: "b", name: "things__book_seat", input: {} } }], ["Booked."]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "Book a seat");
    const form = page.locator(".question form");
    await form.waitFor();
    assert.match(await text(page, ".question"), /things needs information[\s\S]*Which seat do you want\? <b>Tell me\.<\/b>/);
    await form.getByRole("button", { name: "Answer" }).click();
    assert.deepEqual(await form.locator(".error").allInnerTexts(), ["This field is required.", "This field is required."]);
    assert.ok(await page.evaluate(() => document.activeElement?.dataset.field === "name"));
    await form.getByLabel("Name").fill("N");
    await form.getByLabel("Row").fill("99");
    await form.getByLabel("Side").selectOption({ label: "aisle" });
    await form.getByRole("button", { name: "Answer" }).click();
    assert.deepEqual(await form.locator(".error").allInnerTexts(), ["The value must have at least 2 characters.", "The value must be at most 40."]);
    await form.getByLabel("Name").fill("Noor");
    await form.getByLabel("Row").fill("7");
    await form.getByRole("button", { name: "Answer" }).click();
    await runFinished(page);
    await page.locator(CARD_HEADER).first().click();
    const answer = /The answer was (\{.*\})\./s.exec(await page.locator(".tool-body").innerText());
    assert.deepEqual(JSON.parse(answer[1]), { action: "accept", content: { name: "Noor", row: 7, side: "aisle", vegetarian: true } });
    await checkAndClose(page);
  });

  test("a URL elicitation shows the host of its link and a warning", async () => {
    const page = await visit();
    model.enqueue([{ call: { id: "l", name: "things__log_in", input: {} } }], ["Not logged in."]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "Log in");
    const question = page.locator(".question");
    await question.locator(".host").waitFor();
    assert.equal(await question.locator(".host").innerText(), "login.example.com");
    assert.match(await question.locator(".warning").innerText(), /only if you expected this/);
    const link = question.getByRole("link");
    assert.equal(await link.getAttribute("href"), "https://login.example.com/start?x=1");
    assert.match(await link.getAttribute("rel"), /noopener noreferrer/);
    assert.equal(await link.getAttribute("target"), "_blank");
    await question.getByRole("button", { name: "Decline" }).click();
    await runFinished(page);
    await page.locator(CARD_HEADER).first().click();
    assert.match(await page.locator(".tool-body").innerText(), /"action":"decline"/);
    await checkAndClose(page);
  });

  test("an MCP app is shown in a sandboxed frame and receives the tool result", async () => {
    const page = await visit();
    model.enqueue([{ call: { id: "c", name: "things__card", input: { words: "hello, page" } } }], ["There it is."]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "Show the card");
    await runFinished(page);
    const frame = page.locator(".tool iframe");
    await waitForText(page.frameLocator(".tool iframe").locator("#said"), "result: hello, page");
    assert.equal(await frame.getAttribute("sandbox"), "allow-scripts");
    assert.equal(await page.frameLocator(".tool iframe").locator("body").evaluate(() => document.title), "kept out");
    for (const [query, status] of [["", 400], ["?server=no&uri=ui://things/card", 404], ["?server=things&uri=file:///etc/passwd", 404]]) {
      const response = await fetch(`${program.url}/mcp/apps/page${query}`);
      assert.deepEqual([response.status, response.headers.get("content-type")], [status, "application/problem+json"], query);
    }
    assert.deepEqual(await axeViolations(page), []);
    await checkAndClose(page);
  });

  test("a graph in a tool result is drawn", async () => {
    const page = await visit();
    model.enqueue([{ call: { id: "n", name: "things__network", input: {} } }], ["There it is."]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "Show the network");
    await runFinished(page);
    await page.locator(".tool summary").first().click();
    await page.locator(".tool .graph-node").nth(1).waitFor();
    assert.deepEqual(await page.locator(".tool .graph-node text").allTextContents(), ["<b>A</b>", "b"]);
    assert.equal(await page.locator(".tool .graph-edge text").textContent(), "affects");
    await checkAndClose(page);
  });

  test("content from models and tools cannot run scripts, load resources or imitate the page", async () => {
    const page = await visit();
    // Recent versions of Chromium report the inline handlers in the sanitizer's inert document. The
    // assertions below show that they do not run.
    page.expectedProblems.push(/Executing inline event handler violates .* The action has been blocked\./);
    const hostileAnswer = [
      "<script>window.harmed = 'answer'</script>",
      "<img src=x onerror=\"window.harmed='answer'\">",
      "<svg onload=\"window.harmed='answer'\"></svg><iframe src=\"javascript:parent.harmed='answer'\"></iframe>",
      "[a](javascript:window.harmed='answer') <a href=\"data:text/html,x\">b</a> [c](https://example.com/c)",
      "![pixel](https://tracker.example/pixel.png)",
      "<form action=\"https://tracker.example\"><button class=\"primary\">Allow</button></form>",
      "<div id=\"message\" class=\"approval\" style=\"position:fixed\">not ours</div>",
      "```html\n<script>window.harmed = 'code'</script>\n```",
      "| a |\n|---|\n| <img src=x onerror=\"window.harmed='cell'\"> |",
    ].join("\n\n");
    model.enqueue([{ call: { id: "h", name: "things__harm", input: { "<b>": "<script>window.harmed='input'</script>" } } }], [hostileAnswer]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "<img src=x onerror=\"window.harmed='title'\">");
    await runFinished(page);
    await page.locator(CARD_HEADER).first().click();
    await page.locator(".tool .inner summary").click();
    const frame = page.frameLocator(".tool iframe");
    // The page embedded in the result receives the result in its frame.
    await waitForText(frame.locator("#said"), "result: <script>");
    await page.getByRole("button", { name: /^Servers:/ }).click();
    await page.locator('.server[data-server="things"] summary').first().click();
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => window.harmed), undefined);
    assert.doesNotMatch(await page.title(), /taken over/);
    const answer = page.locator(".run .text");
    assert.deepEqual(await answer.evaluate((it) => [...it.querySelectorAll("script, iframe, form, button:not(.code-head button), svg, [style], [onload], [onerror], .approval, #message")].map((node) => node.outerHTML)), []);
    const links = await answer.locator("a").evaluateAll((all) => all.map((it) => [it.textContent, it.getAttribute("href"), it.target, it.rel]));
    assert.deepEqual(links.map(([label, href]) => [label, href]), [
      ["a", null], ["b", null], ["c", "https://example.com/c"], ["pixel (external image not loaded: tracker.example)", "https://tracker.example/pixel.png"],
    ]);
    for (const [, href, target, rel] of links) if (href) assert.deepEqual([target, rel], ["_blank", "noopener noreferrer nofollow"]);
    // The tool's SVG is shown as an image, which does not run its script.
    assert.equal(await page.locator(".tool .picture").evaluate((it) => it.decode().then(() => it.naturalWidth)), 80);
    assert.deepEqual(await page.locator(".tool a").count(), 0);
    await checkAndClose(page);
  });

  test("the browser rejects markup that did not pass the sanitizer", async () => {
    const page = await visit();
    page.expectedProblems.push(/TrustedHTML|Trusted Type/i);
    const isRejected = await page.evaluate(() => {
      try {
        document.createElement("div").innerHTML = "<b>x</b>";
        return false;
      } catch {
        return true;
      }
    });
    assert.ok(isRejected);
    await checkAndClose(page);
  });

  test("an interrupted run can be continued after the server is killed and restarted", async () => {
    const ownProgram = await new Program(config(model)).start();
    try {
      const gate = new Gate();
      model.enqueue([{ call: { id: "a", name: "customer-service__calculate_account_value", input: { customer_id: 42 } } }], ["Half of ", gate, "lost"]);
      const page = await open(browser, ownProgram.url);
      page.expectedProblems.push(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|Failed to load resource/);
      await selectModel(page, SCRIPTED);
      await sendMessage(page, ACCOUNT_QUESTION);
      await waitForText(page.locator(".text"), "Half of");
      await ownProgram.kill();
      await waitForText(page.locator(".connection-state"), "Connection lost.");
      gate.open();
      await ownProgram.start();
      await page.getByRole("button", { name: "Reconnect now" }).click({ timeout: 5_000 }).catch(() => {});
      await page.locator(".connection-state").waitFor({ state: "detached" });
      await waitForText(page.locator(".run .note"), "This run was interrupted.");
      await page.reload();
      await waitForText(page.locator(".run .note"), "This run was interrupted.");
      model.enqueue(["The whole answer."]);
      await page.getByRole("button", { name: "Continue" }).click();
      await runFinished(page);
      assert.equal((await text(page, ".text")).trim(), "The whole answer.");
      assert.equal(await page.locator(".tool").count(), 1);
      await checkAndClose(page);
    } finally {
      await ownProgram.stop();
    }
  });

  test("the page asks for the server's token, and a link cannot replace the stored token", async () => {
    const token = "a-token-for-the-browser-tests";
    const ownProgram = await new Program(config(model, { mcp_servers: {}, serve: { tokens: [token] } })).start();
    try {
      const page = await open(browser, ownProgram.url);
      page.expectedProblems.push(/401/);
      await page.locator("#token").fill("a-token-that-is-wrong");
      await page.getByRole("button", { name: "Continue" }).click();
      await waitForText(page.locator("#token-error"), "token is not valid");
      await page.locator("#token").fill(token);
      await page.getByRole("button", { name: "Continue" }).click();
      await page.locator("#token").waitFor({ state: "detached" });
      await sendMessage(page, "Hello");
      await runFinished(page);
      // The page ignores tokens in links, so that a link cannot change the user's identity.
      const storedToken = () => page.evaluate(() => sessionStorage.getItem("switchboard.token"));
      const conversation = page.url();
      await page.goto(`${ownProgram.url}/#token=a-token-of-somebody-else`);
      await page.locator(".welcome").waitFor();
      assert.equal(await storedToken(), token);
      await page.goto(conversation);
      await runFinished(page);
      assert.equal(await storedToken(), token);
      await checkAndClose(page);
    } finally {
      await ownProgram.stop();
    }
  });

  test("a malformed URL fragment does not break the page", async () => {
    const page = await visit();
    page.expectedProblems.push(/404|422/);
    await page.goto(`${program.url}/#/s/%`);
    await waitForText(page.locator(".note"), "Conversation not found");
    await page.reload();
    await waitForText(page.locator(".note"), "Conversation not found");
    await page.goto(`${program.url}/#token=%`);
    await page.locator(".welcome").waitFor();
    await page.reload();
    await page.locator(".welcome").waitFor();
    await sendMessage(page, ACCOUNT_QUESTION);
    await runFinished(page);
    await checkAndClose(page);
  });

  /** A conversation of another client of `/api/chat`. Each request contains all of its messages. */
  const externalChat = (messages = []) => {
    const id = crypto.randomUUID();
    const addMessage = (role, content) => messages.push({ id: String(messages.length), role, parts: [{ type: "text", text: content }] });
    const post = async (answer, trigger) => {
      model.enqueue([answer]);
      const response = await fetch(`${program.url}/api/chat`, {
        method: "POST", headers: { "content-type": "application/json" },
        body: JSON.stringify({ id, messages, trigger, model: SCRIPTED }),
      });
      assert.equal(response.status, 200);
      await response.text();
    };
    return {
      id, addMessage,
      ask: (question, answer) => {
        addMessage("user", question);
        return post(answer, "submit-message");
      },
      regenerate: (answer) => post(answer, "regenerate-message"),
    };
  };
  /** Opens a conversation and waits for its last answer. */
  const showChat = async (page, { id }, lastAnswer) => {
    await page.goto(`${program.url}/#/s/${id}`);
    await waitForText(page.locator(".turn:last-child .text"), lastAnswer);
  };
  const turns = (page) => page.locator(".turn").evaluateAll((all) => all.map((turn) => [turn.querySelector(".user-message")?.textContent, ...[...turn.querySelectorAll(".text")].map((it) => it.textContent.trim())]));

  test("each answer is shown under its question when another client regenerates answers", async () => {
    const page = await visit();
    const client = externalChat();
    await client.ask("First?", "One.");
    await client.ask("Second?", "Two.");
    await client.regenerate("Two, again.");
    await client.ask("Third?", "Three.");
    await client.regenerate("Three, again.");
    await showChat(page, client, "Three, again.");
    assert.deepEqual(await turns(page), [["You: First?", "One."], ["You: Second?", "Two, again."], ["You: Third?", "Three, again."]]);
    await checkAndClose(page);
  });

  test("a superseded answer is not shown, neither after loading nor in an open page", async () => {
    const page = await visit();
    const client = externalChat();
    await client.ask("Only one?", "The first answer.");
    await client.regenerate("The second answer.");
    await showChat(page, client, "The second answer.");
    assert.deepEqual(await turns(page), [["You: Only one?", "The second answer."]]);
    // Regenerate while the page is open.
    await client.regenerate("The third answer.");
    await waitForText(page.locator(".turn:only-child .text"), "The third answer.");
    assert.deepEqual(await turns(page), [["You: Only one?", "The third answer."]]);
    await client.ask("One more?", "The fourth answer.");
    await waitForText(page.locator(".turn:last-child .text"), "The fourth answer.");
    await waitForText(page.locator(".turn:last-child"), "One more?");
    assert.deepEqual(await turns(page), [["You: Only one?", "The third answer."], ["You: One more?", "The fourth answer."]]);
    await checkAndClose(page);
  });

  test("an imported answer stays under its question when another answer is superseded", async () => {
    const page = await visit();
    const client = externalChat();
    client.addMessage("user", "First?");
    client.addMessage("assistant", "The program's own answer.");
    await client.ask("Second?", "Set aside.");
    await client.regenerate("Two, again.");
    client.addMessage("assistant", "Two, again.");
    // The number of runs equals the number of questions here.
    await showChat(page, client, "Two, again.");
    assert.deepEqual(await turns(page), [["You: First?", "The program's own answer."], ["You: Second?", "Two, again."]]);
    await client.ask("Third?", "Three.");
    await page.reload();
    await waitForText(page.locator(".turn:last-child .text"), "Three.");
    assert.deepEqual(await turns(page), [["You: First?", "The program's own answer."], ["You: Second?", "Two, again."], ["You: Third?", "Three."]]);
    // The second answer is rendered from its run, the imported one from its message.
    await page.locator(".turn:nth-child(2) .run[data-run]").waitFor();
    await page.locator(".turn:nth-child(1) .run:not([data-run])").waitFor();
    await checkAndClose(page);
  });

  test("an answer is copied as Markdown, with and without the clipboard API", async () => {
    const page = await visit();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
    model.enqueue(["It is **bold**.\n\n", "- one\n- two\n"]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "Say it");
    await runFinished(page);
    const copy = page.getByRole("button", { name: "Copy answer" });
    await copy.click();
    await waitForText(copy, "Copied");
    assert.equal(await clipboard(), "It is **bold**.\n\n- one\n- two");
    await page.evaluate(() => navigator.clipboard.writeText("something else"));
    // The clipboard API is not available to a page from an insecure origin.
    await page.evaluate(() => { navigator.clipboard.writeText = () => Promise.reject(new Error("not here")); });
    await copy.click();
    await waitForText(copy, "Copied");
    assert.equal(await clipboard(), "It is **bold**.\n\n- one\n- two");
    await checkAndClose(page);
  });

  test("a server warning is shown once, and a rejected message is not shown twice", async () => {
    const page = await visit();
    page.expectedProblems.push(/422/);
    await sendMessage(page, ACCOUNT_QUESTION);
    await runFinished(page);
    await waitForText(page.locator(".run .note"), "the disk is full");
    await sendMessage(page, "Which customers joined most recently?");
    await runFinished(page, 2);
    assert.equal(await page.locator(".run .note", { hasText: "the disk is full" }).count(), 1);
    await selectModel(page, "nobody/none");
    await sendMessage(page, "Who are you?");
    await waitForText(page.locator(".turn > .note"), "unknown provider");
    // The question returns to the input field and survives a reload.
    await page.waitForFunction(() => document.getElementById("message").value === "Who are you?");
    await page.press("#message", "Enter");
    await page.waitForFunction(() => document.querySelectorAll(".turn > .note").length === 1 && document.getElementById("message").value !== "");
    await page.reload();
    await runFinished(page, 2);
    assert.equal(await page.inputValue("#message"), "Who are you?");
    await page.selectOption("select#model", "");
    await page.press("#message", "Enter");
    await runFinished(page, 3);
    assert.equal(await page.locator(".user-message").count(), 3);
    assert.equal(await page.inputValue("#message"), "");
    await checkAndClose(page);
  });

  test("a failed model call is shown once, and a retry replaces the question", async () => {
    const page = await visit();
    model.enqueue(401, ["The second attempt."]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "Who are you?");
    await waitForText(page.locator(".run .note"), "the key was revoked");
    await runFinished(page);
    assert.equal(await page.getByText("the key was revoked").count(), 1);
    await page.getByRole("button", { name: "Retry" }).click();
    await waitForText(page.locator(".text"), "The second attempt.");
    await runFinished(page);
    assert.equal(await page.locator(".user-message").count(), 1);
    assert.equal(await page.getByRole("button", { name: "Retry" }).count(), 0);
    const { messages } = await (await fetch(`${program.url}/sessions/${new URL(page.url()).hash.slice(4)}`)).json();
    assert.deepEqual(messages.map((message) => message.role), ["user", "assistant"]);
    await page.reload();
    await waitForText(page.locator(".text"), "The second attempt.");
    assert.equal(await page.locator(".user-message").count(), 1);
    await checkAndClose(page);
  });

  test("each conversation has its own draft", async () => {
    const page = await visit();
    await sendMessage(page, ACCOUNT_QUESTION);
    await page.fill("#message", "for the first");
    await runFinished(page);
    await page.getByRole("link", { name: "New conversation" }).click();
    await page.waitForFunction(() => document.getElementById("message").value === "");
    await page.fill("#message", "for a new one");
    await page.reload();
    await page.waitForFunction(() => document.getElementById("message").value === "for a new one");
    await page.locator(".sessions a").first().click();
    await page.waitForFunction(() => document.getElementById("message").value === "for the first");
    await checkAndClose(page);
  });

  test("a typed model name is kept only after a run completed with it", async () => {
    const page = await visit();
    await selectModel(page, "nobody/none");
    await page.reload();
    await page.locator("select#model").waitFor();
    assert.equal(await page.inputValue("select#model"), "");
    model.enqueue(["It works."]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "Does it work?");
    await runFinished(page);
    await page.reload();
    await page.waitForFunction((name) => document.querySelector("select#model")?.value === name, SCRIPTED);
    await checkAndClose(page);
  });

  test("a conversation opened during a server restart appears without a click", async () => {
    const ownProgram = await new Program(config(model)).start();
    try {
      const page = await open(browser, ownProgram.url);
      page.expectedProblems.push(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|Failed to load resource/);
      await sendMessage(page, ACCOUNT_QUESTION);
      await runFinished(page);
      await page.getByRole("link", { name: "New conversation" }).click();
      await ownProgram.kill();
      await page.locator(".sessions a").first().click();
      await waitForText(page.locator(".note"), "Can't reach the server");
      await ownProgram.start();
      await runFinished(page);
      assert.equal(await page.locator(".note.bad").count(), 0);
      await checkAndClose(page);
    } finally {
      await ownProgram.stop();
    }
  });

  test("the list of conversations is updated in other tabs", async () => {
    const page = await visit();
    const other = await page.context().newPage();
    await other.goto(`${program.url}/`);
    await other.locator(".sessions").waitFor();
    await sendMessage(page, "Which customers joined, asked in one tab?");
    await waitForText(other.locator(".sessions li").first(), "asked in one tab?");
    await other.close();
    await checkAndClose(page);
  });

  test("a conversation that waits for approval is marked in the list", async () => {
    const page = await visit();
    await sendMessage(page, TICKET_REQUEST);
    await page.locator(".approval").waitFor();
    await page.getByRole("link", { name: "New conversation" }).click();
    const first = page.locator(".sessions li").first();
    await first.getByRole("img", { name: "Needs approval or an answer" }).waitFor();
    await first.getByRole("link").click();
    await page.getByRole("button", { name: "Allow" }).click();
    await runFinished(page);
    await first.locator(".dot").waitFor({ state: "detached" });
    await checkAndClose(page);
  });

  test("a long question is clipped until it is expanded", async () => {
    const page = await visit();
    model.enqueue(["Read."]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, Array.from({ length: 40 }, (_, index) => `line ${index}`).join("\n"));
    await runFinished(page);
    const height = async () => (await page.locator(".user-message").boundingBox()).height;
    const clipped = await height();
    await page.getByRole("button", { name: "Show more" }).click();
    assert.ok(await height() > clipped * 2, `${clipped} and ${await height()}`);
    await page.getByRole("button", { name: "Show less" }).click();
    assert.equal(await height(), clipped);
    await checkAndClose(page);
  });

  test("an empty conversation shows the welcome text", async () => {
    const page = await visit();
    const created = await fetch(`${program.url}/sessions`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
    await page.goto(`${program.url}/#/s/${(await created.json()).id}`);
    await waitForText(page.locator(".welcome"), "What can I help you with?");
    await checkAndClose(page);
  });

  test("the page title shows that an approval is pending", async () => {
    const page = await visit();
    await sendMessage(page, TICKET_REQUEST);
    await page.locator(".approval").waitFor();
    await page.waitForFunction(() => document.title.startsWith("Input needed – "));
    await page.getByRole("button", { name: "Allow" }).click();
    await runFinished(page);
    await page.waitForFunction(() => !document.title.includes("needed"));
    await checkAndClose(page);
  });

  test("the transcript follows the end of an answer until the user scrolls up", async () => {
    const page = await visit();
    model.enqueue([`${"A paragraph.\n\n".repeat(60)}The end.`]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "Write a lot");
    await runFinished(page);
    const waitForEnd = () => page.waitForFunction(() => {
      const box = document.querySelector(".scroll");
      return box.scrollHeight - box.scrollTop - box.clientHeight < 2;
    });
    await waitForEnd();
    // Content arrives after the page's own scroll to the end is painted and before the browser
    // fires the scroll event for it.
    await page.evaluate(() => new Promise((resolve) => {
      const box = document.querySelector(".scroll");
      const paragraph = document.createElement("p");
      paragraph.style.height = "1200px";
      box.scrollTop -= 60;
      box.addEventListener("scroll", () => {
        box.scrollTop = box.scrollHeight;
        box.addEventListener("scroll", () => requestAnimationFrame(resolve), { once: true });
        setTimeout(() => document.querySelector(".run .text").append(paragraph));
      }, { once: true });
    }));
    await waitForEnd();
    assert.equal(await page.locator(".to-end").count(), 0);
    await page.locator(".scroll").evaluate((box) => { box.scrollTop = 100; });
    await page.locator(".to-end").click();
    await waitForEnd();
    await page.locator(".to-end").waitFor({ state: "detached" });
    await checkAndClose(page);
  });

  test("opening a tool card does not move it", async () => {
    const page = await visit({ viewport: { width: 1200, height: 420 } });
    model.enqueue([{ call: { id: "a", name: "customer-service__calculate_account_value", input: { customer_id: 42 } } }], ["Done."]);
    await selectModel(page, SCRIPTED);
    await sendMessage(page, "What is it worth?");
    await runFinished(page);
    const card = page.locator(CARD_HEADER);
    await card.scrollIntoViewIfNeeded();
    const cardTop = () => card.evaluate((it) => it.getBoundingClientRect().top);
    const topBefore = await cardTop();
    await card.click();
    // The button shows that the page has handled the growth. The page itself must not scroll.
    await page.locator(".to-end").waitFor();
    assert.ok(Math.abs(await cardTop() - topBefore) < 2, `${topBefore} ${await cardTop()}`);
    await checkAndClose(page);
  });

  test("older conversations are loaded on demand", async () => {
    const ownProgram = await new Program(config(model, { mcp_servers: {} })).start();
    try {
      const create = (number) => fetch(`${ownProgram.url}/sessions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ title: `Number ${number}` }) });
      for (let number = 0; number < 201; number += 1) assert.equal((await create(number)).status, 201);
      const page = await open(browser, ownProgram.url);
      await page.waitForFunction(() => document.querySelectorAll(".sessions li").length === 200);
      await page.getByRole("button", { name: "Load older conversations" }).click();
      await page.waitForFunction(() => document.querySelectorAll(".sessions li").length === 201);
      assert.equal(await page.getByRole("button", { name: "Load older conversations" }).count(), 0);
      await checkAndClose(page);
    } finally {
      await ownProgram.stop();
    }
  });

  test("conversations can be searched, renamed and deleted", async () => {
    const page = await visit();
    await sendMessage(page, "What is the account value of customer 7?");
    await runFinished(page);
    const current = page.locator(".sessions .current");
    await current.waitFor();
    await current.getByRole("button", { name: /^Rename/ }).click();
    await page.locator("#rename-field").fill("About <b>seven</b>");
    await page.keyboard.press("Enter");
    await waitForText(page.locator(".sessions .current"), "About <b>seven</b>");
    await page.reload();
    await waitForText(page.locator(".header h1"), "About <b>seven</b>");
    const search = page.getByLabel("Search conversations");
    await search.fill("SEVEN about");
    await page.waitForFunction(() => document.querySelectorAll(".sessions li").length === 1);
    await search.fill("nothing has these words");
    await waitForText(page.locator(".sidebar"), "No matches");
    await search.fill("");
    await page.locator(".sessions .current").getByRole("button", { name: /^Delete/ }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.locator(".sessions .current").getByRole("button", { name: /^Delete/ }).click();
    await page.locator("dialog").getByRole("button", { name: "Delete" }).click();
    await page.locator(".welcome").waitFor();
    assert.equal(await page.locator(".sessions li", { hasText: "seven" }).count(), 0);
    page.expectedProblems.push(/404/);
    await page.goBack();
    await waitForText(page.locator(".note"), "Conversation not found");
    await checkAndClose(page);
  });
});
