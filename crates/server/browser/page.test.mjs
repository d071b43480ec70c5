// The page over the real server, in a real browser.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Gate, Model } from "./model.mjs";
import { Program, choose, config, fine, finished, open, send, startBrowser, violations } from "./stage.mjs";

const ACCOUNT = "What is the account value of customer 42?";
const TICKET = 'Create a support ticket for customer 42 with high priority and the subject "printer is broken"';
/** The head of a tool's card, which opens it. */
const CARD = ".tool > details > summary";
const SCRIPTED = "scripted/scripted";

const text = (page, selector) => page.locator(selector).innerText();
const waitText = (locator, wanted) => locator.filter({ hasText: wanted }).first().waitFor();

describe("the page", { concurrency: false }, () => {
  let model;
  let program;
  let browser;

  before(async () => {
    model = await new Model().start();
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

  test("the first view is under 300 KB as it is sent, and is not sent twice", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const wire = await context.newCDPSession(page);
    const sent = new Map();
    await wire.send("Network.enable");
    wire.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => sent.set(requestId, encodedDataLength));
    await page.goto(`${program.url}/`, { waitUntil: "networkidle" });
    await page.locator(".welcome").waitFor();
    const total = [...sent.values()].reduce((sum, length) => sum + length, 0);
    assert.ok(sent.size > 20, `${sent.size} files`);
    assert.ok(total > 50_000 && total < 300_000, `${total} bytes in ${sent.size} files`);
    console.log(`first view: ${total} bytes in ${sent.size} files`);
    sent.clear();
    await page.reload({ waitUntil: "networkidle" });
    const again = [...sent.values()].reduce((sum, length) => sum + length, 0);
    assert.ok(again < total / 3, `${again} bytes the second time`);
    await context.close();
  });

  test("the page works below a path of another server", async () => {
    const other = createServer((asked, answer) => {
      if (!asked.url.startsWith("/tools/")) {
        answer.writeHead(404).end();
        return;
      }
      const { method, headers, url } = asked;
      const passed = request({ host: "127.0.0.1", port: program.port, method, headers, path: url.slice("/tools".length) }, (got) => {
        answer.writeHead(got.statusCode, got.headers);
        got.pipe(answer);
      });
      passed.on("error", () => answer.destroy());
      answer.on("close", () => passed.destroy());
      asked.pipe(passed);
    });
    await new Promise((resolve) => { other.listen(0, "127.0.0.1", resolve); });
    try {
      model.answers.length = 0;
      const page = await open(browser, `http://127.0.0.1:${other.address().port}/tools`);
      await choose(page, SCRIPTED);
      model.say(["```mermaid\nflowchart TD\n  A --> B\n```"]);
      await send(page, "Draw");
      await finished(page);
      // The frame that draws has loaded its library.
      await page.locator(".artifact .drawing img").waitFor();
      await fine(page);
    } finally {
      other.closeAllConnections();
      other.close();
    }
  });

  test("a question is answered with a tool, whose card shows input, result and time", async () => {
    const page = await visit();
    await waitText(page.locator(".welcome"), "tools");
    await page.getByRole("button", { name: ACCOUNT }).click();
    await finished(page);
    const card = page.locator(".tool");
    assert.equal(await card.count(), 1);
    assert.equal(await card.getAttribute("data-status"), "done");
    assert.match(await page.locator(CARD).innerText(), /calculate_account_value[\s\S]*customer-service[\s\S]*done · (under 1|\d+) ms/);
    await page.locator(CARD).click();
    assert.match(await text(page, ".tool-body"), /"customer_id": 42[\s\S]*530\.19 EUR/);
    assert.match(await text(page, ".text"), /The account value is 530\.19 EUR\./);
    assert.match(await text(page, ".footer"), /offline\/planner · 2 steps/);
    await waitText(page.locator(".sessions .current"), "account value");
    await page.waitForFunction(() => /account value.* – Switchboard/.test(document.title));
    // A second question goes into the same conversation.
    await send(page, TICKET.replace("Create", "Please create"));
    await page.locator(".approval").waitFor();
    await page.getByRole("button", { name: "Allow" }).click();
    await finished(page, 2);
    assert.equal(await page.locator(".sessions .current").count(), 1);
    await fine(page);
  });

  test("a call is approved with an edit, which must fit the tool", async () => {
    const page = await visit();
    await send(page, TICKET);
    const form = page.locator(".approval");
    await form.waitFor();
    assert.match(await form.innerText(), /create_support_ticket[\s\S]*customer-service/);
    await form.getByRole("button", { name: "Edit" }).click();
    const field = form.getByLabel("Input, as JSON");
    await page.waitForFunction(() => document.activeElement?.classList.contains("json"));
    const before = JSON.parse(await field.inputValue());
    assert.equal(before.priority, "high");
    for (const [wrong, said] of [
      ['{"customer_id": 42', /not JSON.*line 1/],
      ["[1]", /must be a JSON object/],
      [JSON.stringify({ ...before, priority: "now" }), /“priority” must be one of/],
      [JSON.stringify({ ...before, extra: 1 }), /“extra” is not known/],
    ]) {
      await field.fill(wrong);
      assert.match(await form.locator(".error").first().innerText(), said);
      assert.ok(await form.getByRole("button", { name: /Allow/ }).isDisabled(), wrong);
    }
    await field.fill(JSON.stringify({ ...before, subject: "The printer hums", priority: "low" }));
    await form.getByRole("button", { name: "Allow edited" }).click();
    await finished(page);
    await page.locator(CARD).first().click();
    assert.match(await text(page, ".tool-body"), /with an edited input[\s\S]*low priority: The printer hums/);
    await fine(page);
  });

  test("a call is denied with a reason, which the model reads", async () => {
    const page = await visit();
    await send(page, TICKET);
    await page.locator(".approval").waitFor();
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByLabel("Why not? The model reads this.").fill("There is a ticket already.");
    await page.keyboard.press("Enter");
    await finished(page);
    assert.equal(await page.locator(".tool").getAttribute("data-status"), "denied");
    await page.locator(CARD).first().click();
    assert.match(await text(page, ".tool-body"), /There is a ticket already\./);
    const id = decodeURIComponent(new URL(page.url()).hash.slice(4));
    const { messages } = await (await fetch(`${program.url}/sessions/${id}`)).json();
    const results = messages.filter((it) => it.role === "tool");
    assert.match(JSON.stringify(results), /There is a ticket already\./);
    await fine(page);
  });

  test("an answer holds for the session", async () => {
    const page = await visit();
    await send(page, TICKET);
    await page.locator(".approval").waitFor();
    await page.getByLabel("For how long the answer holds").selectOption("session");
    await page.getByRole("button", { name: "Allow" }).click();
    await finished(page);
    await send(page, 'Create a support ticket for customer 7 with low priority and the subject "screen is dark"');
    await finished(page, 2);
    await page.locator(CARD).nth(1).click();
    assert.match(await page.locator(".tool-body").nth(1).innerText(), /Allowed by an earlier answer/);
    await fine(page);
  });

  test("a page that is loaded again in mid-run goes on with it", async () => {
    const gate = new Gate();
    const page = await visit();
    model.say(["The first half, ", "and more. ", gate, "The second half."]);
    await choose(page, SCRIPTED);
    await send(page, "Say something long");
    await gate.reached;
    await waitText(page.locator(".text"), "and more.");
    await page.reload();
    await waitText(page.locator(".text"), "The first half, and more.");
    assert.equal(await page.locator('.run[data-state="running"]').count(), 1);
    assert.equal(await page.locator(".asked-by-person").count(), 1);
    gate.open();
    await finished(page);
    assert.equal((await text(page, ".text")).trim(), "The first half, and more. The second half.");
    await page.reload();
    await finished(page);
    assert.equal((await text(page, ".text")).trim(), "The first half, and more. The second half.");
    await fine(page);
  });

  test("two pages show the same conversation, whoever asks", async () => {
    const page = await visit();
    await send(page, ACCOUNT);
    await finished(page);
    const other = await open(browser, program.url);
    await other.goto(page.url());
    await finished(other);
    await send(page, "Which customers joined most recently?");
    await finished(page, 2);
    await finished(other, 2);
    await waitText(other.locator(".asked-by-person"), "joined most recently");
    await fine(other);
    await fine(page);
  });

  test("Escape stops the run", async () => {
    const gate = new Gate();
    const page = await visit();
    model.say(["It begins ", gate, "and never ends."]);
    await choose(page, SCRIPTED);
    await send(page, "Go on for ever");
    await waitText(page.locator(".text"), "It begins");
    await page.keyboard.press("Escape");
    await finished(page);
    await waitText(page.locator(".run .note"), "Stopped.");
    assert.match(await text(page, ".text"), /It begins/);
    // The field is ready for the next question.
    assert.ok(await page.evaluate(() => document.activeElement?.id === "message"));
    gate.open();
    await fine(page);
  });

  test("Escape closes the field that has the focus, and does not stop the run", async () => {
    const page = await visit();
    await send(page, TICKET);
    const form = page.locator(".approval");
    await form.waitFor();
    const running = async () => {
      assert.equal(await page.locator(".approval").count(), 1);
      assert.equal(await page.locator(".run .note", { hasText: "Stopped." }).count(), 0);
    };
    await form.getByRole("button", { name: "Edit" }).click();
    const input = form.getByLabel("Input, as JSON");
    await page.waitForFunction(() => document.activeElement?.classList.contains("json"));
    await input.press("Escape");
    await input.waitFor({ state: "detached" });
    await running();
    await form.getByRole("button", { name: "Deny" }).click();
    const reason = form.getByLabel("Why not? The model reads this.");
    await reason.press("Escape");
    await reason.waitFor({ state: "detached" });
    await running();
    // A button, a search and a choice have the focus, and nothing to close.
    for (const place of [form.getByRole("button", { name: "Deny" }), page.getByLabel("Search conversations"), page.locator("select#model")]) {
      await place.focus();
      await page.keyboard.press("Escape");
      await running();
    }
    await form.getByRole("button", { name: "Allow" }).click();
    await finished(page);
    assert.equal(await page.locator(".tool").getAttribute("data-status"), "done");
    await fine(page);
  });

  test("what is typed stays when the lists of the server come meanwhile", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    let come;
    const here = new Promise((resolve) => { come = resolve; });
    await page.route("**/recipes", async (route) => {
      await here;
      await route.continue();
    });
    await page.goto(`${program.url}/`);
    await page.selectOption("#model", { label: "Another one…" });
    await page.fill("input#model", SCRIPTED);
    await page.evaluate(() => { window.drawn = document.querySelector("#recipe").options.length; });
    come();
    await page.waitForFunction(() => document.querySelector("#recipe").options.length > window.drawn);
    assert.equal(await page.inputValue("input#model"), SCRIPTED);
    await page.press("input#model", "Enter");
    await page.locator("select#model").waitFor();
    assert.equal(await page.inputValue("select#model"), SCRIPTED);
    // Escape leaves the choice as it was.
    await page.selectOption("#model", { label: "Another one…" });
    await page.fill("input#model", "no/such");
    await page.press("input#model", "Escape");
    await page.locator("select#model").waitFor();
    assert.equal(await page.inputValue("select#model"), SCRIPTED);
    await context.close();
  });

  test("a tool shows how far it is, and the server how it is", async () => {
    const page = await visit();
    const file = join(program.folder, "go-on");
    const gate = new Gate();
    model.say([{ call: { id: "w", name: "things__wait", input: { file }, gate } }], ["Done."]);
    await choose(page, SCRIPTED);
    await send(page, "Wait for the file");
    await waitText(page.locator('.tool[data-status="writing"] .tool-brief'), '{"file":"');
    assert.match(await text(page, ".tool-state"), /is being written/);
    gate.open();
    await waitText(page.locator(".tool .progress"), "one of four");
    assert.equal(await page.locator(".tool").getAttribute("data-status"), "running");
    await waitText(page.locator(".working"), "Waiting for wait");
    writeFileSync(file, "");
    await finished(page);
    assert.equal(await page.locator(".tool").getAttribute("data-status"), "done");

    await page.getByRole("button", { name: /^Servers:/ }).click();
    const broken = page.locator('.server[data-server="broken"]');
    await waitText(broken, "the disk is full");
    assert.notEqual(await broken.getAttribute("data-state"), "ready");
    await page.locator('.server[data-server="customer-service"][data-state="ready"]').waitFor();
    await waitText(page.locator('.server[data-server="things"]'), "5 tools");
    await page.keyboard.press("Escape");
    await page.locator(".panel").waitFor({ state: "detached" });
    await fine(page);
  });

  test("what a server asks is a form, whose answer reaches it", async () => {
    const page = await visit();
    model.say([{ call: { id: "b", name: "things__book_seat", input: {} } }], ["Booked."]);
    await choose(page, SCRIPTED);
    await send(page, "Book a seat");
    const form = page.locator(".question form");
    await form.waitFor();
    assert.match(await text(page, ".question"), /The server things asks[\s\S]*Which seat do you want\? <b>Tell me\.<\/b>/);
    await form.getByRole("button", { name: "Answer" }).click();
    assert.deepEqual(await form.locator(".error").allInnerTexts(), ["This is needed.", "This is needed."]);
    assert.ok(await page.evaluate(() => document.activeElement?.dataset.field === "name"));
    await form.getByLabel("Name").fill("N");
    await form.getByLabel("Row").fill("99");
    await form.getByLabel("Side").selectOption({ label: "aisle" });
    await form.getByRole("button", { name: "Answer" }).click();
    assert.deepEqual(await form.locator(".error").allInnerTexts(), ["It must have at least 2 characters.", "It must be at most 40."]);
    await form.getByLabel("Name").fill("Noor");
    await form.getByLabel("Row").fill("7");
    await form.getByRole("button", { name: "Answer" }).click();
    await finished(page);
    await page.locator(CARD).first().click();
    const told = /The answer was (\{.*\})\./s.exec(await page.locator(".tool-body").innerText());
    assert.deepEqual(JSON.parse(told[1]), { action: "accept", content: { name: "Noor", row: 7, side: "aisle", vegetarian: true } });
    await fine(page);
  });

  test("an address that a server wants opened is shown by its host, with a warning", async () => {
    const page = await visit();
    model.say([{ call: { id: "l", name: "things__log_in", input: {} } }], ["Not logged in."]);
    await choose(page, SCRIPTED);
    await send(page, "Log in");
    const question = page.locator(".question");
    await question.locator(".host").waitFor();
    assert.equal(await question.locator(".host").innerText(), "login.example.com");
    assert.match(await question.locator(".warning").innerText(), /only if you expected this/);
    const link = question.getByRole("link");
    assert.equal(await link.getAttribute("href"), "https://login.example.com/start?x=1");
    assert.match(await link.getAttribute("rel"), /noopener noreferrer/);
    assert.equal(await link.getAttribute("target"), "_blank");
    await question.getByRole("button", { name: "Decline" }).click();
    await finished(page);
    await page.locator(CARD).first().click();
    assert.match(await page.locator(".tool-body").innerText(), /"action":"decline"/);
    await fine(page);
  });

  test("the page of a tool is shown in a frame of its own, and is told the result", async () => {
    const page = await visit();
    model.say([{ call: { id: "c", name: "things__card", input: { words: "hello, page" } } }], ["There it is."]);
    await choose(page, SCRIPTED);
    await send(page, "Show the card");
    await finished(page);
    const frame = page.locator(".tool iframe");
    await waitText(page.frameLocator(".tool iframe").locator("#said"), "result: hello, page");
    assert.equal(await frame.getAttribute("sandbox"), "allow-scripts");
    assert.equal(await page.frameLocator(".tool iframe").locator("body").evaluate(() => document.title), "kept out");
    for (const [query, status] of [["", 400], ["?server=no&uri=ui://things/card", 404], ["?server=things&uri=file:///etc/passwd", 404]]) {
      const response = await fetch(`${program.url}/mcp/apps/page${query}`);
      assert.deepEqual([response.status, response.headers.get("content-type")], [status, "application/problem+json"], query);
    }
    assert.deepEqual(await violations(page), []);
    await fine(page);
  });

  test("nothing that a model or a tool writes runs, loads or looks like the page", async () => {
    const page = await visit();
    // Newer Chromiums say so of handlers in the inert document in which the sanitizer reads; nothing of them runs, see below.
    page.expected.push(/Executing inline event handler violates .* The action has been blocked\./);
    const harm = [
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
    model.say([{ call: { id: "h", name: "things__harm", input: { "<b>": "<script>window.harmed='input'</script>" } } }], [harm]);
    await choose(page, SCRIPTED);
    await send(page, "<img src=x onerror=\"window.harmed='title'\">");
    await finished(page);
    await page.locator(CARD).first().click();
    await page.locator(".tool .inner summary").click();
    const frame = page.frameLocator(".tool iframe");
    // The page that came with the result is told of it, in its frame.
    await waitText(frame.locator("#said"), "result: <script>");
    await page.getByRole("button", { name: /^Servers:/ }).click();
    await page.locator('.server[data-server="things"] summary').first().click();
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => window.harmed), undefined);
    assert.doesNotMatch(await page.title(), /taken over/);
    const answer = page.locator(".run .text");
    assert.deepEqual(await answer.evaluate((it) => [...it.querySelectorAll("script, iframe, form, button:not(.code-head button), svg, [style], [onload], [onerror], .approval, #message")].map((node) => node.outerHTML)), []);
    const links = await answer.locator("a").evaluateAll((all) => all.map((it) => [it.textContent, it.getAttribute("href"), it.target, it.rel]));
    assert.deepEqual(links.map(([words, target]) => [words, target]), [
      ["a", null], ["b", null], ["c", "https://example.com/c"], ["pixel (image, not loaded: tracker.example)", "https://tracker.example/pixel.png"],
    ]);
    for (const [, target, where, rel] of links) if (target) assert.deepEqual([where, rel], ["_blank", "noopener noreferrer nofollow"]);
    // The image of the tool is an image: its script is not run, and it is shown.
    assert.equal(await page.locator(".tool .picture").evaluate((it) => it.decode().then(() => it.naturalWidth)), 80);
    assert.deepEqual(await page.locator(".tool a").count(), 0);
    await fine(page);
  });

  test("what is not markup by the sanitizer is refused by the browser itself", async () => {
    const page = await visit();
    page.expected.push(/TrustedHTML|Trusted Type/i);
    const refused = await page.evaluate(() => {
      try {
        document.createElement("div").innerHTML = "<b>x</b>";
        return false;
      } catch {
        return true;
      }
    });
    assert.ok(refused);
    await fine(page);
  });

  test("a run whose server was killed is found again and goes on", async () => {
    const own = await new Program(config(model)).start();
    try {
      const gate = new Gate();
      model.say([{ call: { id: "a", name: "customer-service__calculate_account_value", input: { customer_id: 42 } } }], ["Half of ", gate, "lost"]);
      const page = await open(browser, own.url);
      page.expected.push(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|Failed to load resource/);
      await choose(page, SCRIPTED);
      await send(page, ACCOUNT);
      await waitText(page.locator(".text"), "Half of");
      await own.kill();
      await waitText(page.locator(".line-state"), "The connection is lost.");
      gate.open();
      await own.start();
      await page.getByRole("button", { name: "Try now" }).click({ timeout: 5_000 }).catch(() => {});
      await page.locator(".line-state").waitFor({ state: "detached" });
      await waitText(page.locator(".run .note"), "This run was interrupted.");
      await page.reload();
      await waitText(page.locator(".run .note"), "This run was interrupted.");
      model.say(["The whole answer."]);
      await page.getByRole("button", { name: "Continue" }).click();
      await finished(page);
      assert.equal((await text(page, ".text")).trim(), "The whole answer.");
      assert.equal(await page.locator(".tool").count(), 1);
      await fine(page);
    } finally {
      await own.stop();
    }
  });

  test("a server with a token is asked with one", async () => {
    const token = "a-token-for-the-browser-tests";
    const own = await new Program(config(model, { mcp_servers: {}, serve: { tokens: [token] } })).start();
    try {
      const page = await open(browser, own.url);
      page.expected.push(/401/);
      await page.locator("#token").fill("a-token-that-is-wrong");
      await page.getByRole("button", { name: "Use it" }).click();
      await waitText(page.locator("#token-error"), "did not take that token");
      await page.locator("#token").fill(token);
      await page.getByRole("button", { name: "Use it" }).click();
      await page.locator("#token").waitFor({ state: "detached" });
      await send(page, "Hello");
      await finished(page);
      // An address brings no token along: whoever follows a link stays who they are.
      const kept = () => page.evaluate(() => sessionStorage.getItem("switchboard.token"));
      const address = page.url();
      await page.goto(`${own.url}/#token=a-token-of-somebody-else`);
      await page.locator(".welcome").waitFor();
      assert.equal(await kept(), token);
      await page.goto(address);
      await finished(page);
      assert.equal(await kept(), token);
      await fine(page);
    } finally {
      await own.stop();
    }
  });

  test("an address that was written badly says so, and harms nothing", async () => {
    const page = await visit();
    page.expected.push(/404|422/);
    await page.goto(`${program.url}/#/s/%`);
    await waitText(page.locator(".note"), "There is no such conversation");
    await page.reload();
    await waitText(page.locator(".note"), "There is no such conversation");
    await page.goto(`${program.url}/#token=%`);
    await page.locator(".welcome").waitFor();
    await page.reload();
    await page.locator(".welcome").waitFor();
    await send(page, ACCOUNT);
    await finished(page);
    await fine(page);
  });

  /** A conversation that another program has through `/api/chat`, with all of its messages each time. */
  const chat = (messages = []) => {
    const id = crypto.randomUUID();
    const say = (role, words) => messages.push({ id: String(messages.length), role, parts: [{ type: "text", text: words }] });
    const ask = async (answer, trigger) => {
      model.say([answer]);
      const response = await fetch(`${program.url}/api/chat`, {
        method: "POST", headers: { "content-type": "application/json" },
        body: JSON.stringify({ id, messages, trigger, model: SCRIPTED }),
      });
      assert.equal(response.status, 200);
      await response.text();
    };
    return {
      id, say,
      ask: (words, answer) => {
        say("user", words);
        return ask(answer, "submit-message");
      },
      again: (answer) => ask(answer, "regenerate-message"),
    };
  };
  /** Opens a conversation, and waits for the words of its last answer. */
  const show = async (page, { id }, last) => {
    await page.goto(`${program.url}/#/s/${id}`);
    await waitText(page.locator(".turn:last-child .text"), last);
  };
  const turns = (page) => page.locator(".turn").evaluateAll((all) => all.map((turn) => [turn.querySelector(".asked-by-person")?.textContent, ...[...turn.querySelectorAll(".text")].map((it) => it.textContent.trim())]));

  test("each answer stands under its question, also where another program had one answered again", async () => {
    const page = await visit();
    const other = chat();
    await other.ask("First?", "One.");
    await other.ask("Second?", "Two.");
    await other.again("Two, again.");
    await other.ask("Third?", "Three.");
    await other.again("Three, again.");
    await show(page, other, "Three, again.");
    assert.deepEqual(await turns(page), [["You: First?", "One."], ["You: Second?", "Two, again."], ["You: Third?", "Three, again."]]);
    await fine(page);
  });

  test("an answer that was set aside is not shown, neither later nor at once", async () => {
    const page = await visit();
    const other = chat();
    await other.ask("Only one?", "The first answer.");
    await other.again("The second answer.");
    await show(page, other, "The second answer.");
    assert.deepEqual(await turns(page), [["You: Only one?", "The second answer."]]);
    // While the page is open.
    await other.again("The third answer.");
    await waitText(page.locator(".turn:only-child .text"), "The third answer.");
    assert.deepEqual(await turns(page), [["You: Only one?", "The third answer."]]);
    await other.ask("One more?", "The fourth answer.");
    await waitText(page.locator(".turn:last-child .text"), "The fourth answer.");
    await waitText(page.locator(".turn:last-child"), "One more?");
    assert.deepEqual(await turns(page), [["You: Only one?", "The third answer."], ["You: One more?", "The fourth answer."]]);
    await fine(page);
  });

  test("what a program brought with it stays under its question where another answer was set aside", async () => {
    const page = await visit();
    const other = chat();
    other.say("user", "First?");
    other.say("assistant", "The program's own answer.");
    await other.ask("Second?", "Set aside.");
    await other.again("Two, again.");
    other.say("assistant", "Two, again.");
    // As many runs as questions.
    await show(page, other, "Two, again.");
    assert.deepEqual(await turns(page), [["You: First?", "The program's own answer."], ["You: Second?", "Two, again."]]);
    await other.ask("Third?", "Three.");
    await page.reload();
    await waitText(page.locator(".turn:last-child .text"), "Three.");
    assert.deepEqual(await turns(page), [["You: First?", "The program's own answer."], ["You: Second?", "Two, again."], ["You: Third?", "Three."]]);
    // What turned out to be the answer is shown as it was, and the other from its messages.
    await page.locator(".turn:nth-child(2) .run[data-run]").waitFor();
    await page.locator(".turn:nth-child(1) .run:not([data-run])").waitFor();
    await fine(page);
  });

  test("an answer is copied as the model wrote it, over a plain connection as well", async () => {
    const page = await visit();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
    model.say(["It is **bold**.\n\n", "- one\n- two\n"]);
    await choose(page, SCRIPTED);
    await send(page, "Say it");
    await finished(page);
    const copy = page.getByRole("button", { name: "Copy the answer" });
    await copy.click();
    await waitText(copy, "Copied");
    assert.equal(await clipboard(), "It is **bold**.\n\n- one\n- two");
    // What a page has that did not come over a connection that is private.
    await page.evaluate(() => navigator.clipboard.writeText("something else"));
    await page.evaluate(() => { navigator.clipboard.writeText = () => Promise.reject(new Error("not here")); });
    await copy.click();
    await waitText(copy, "Copied");
    assert.equal(await clipboard(), "It is **bold**.\n\n- one\n- two");
    await fine(page);
  });

  test("what the matter is with a server is said once, and what the server did not take is not shown twice", async () => {
    const page = await visit();
    page.expected.push(/422/);
    await send(page, ACCOUNT);
    await finished(page);
    await waitText(page.locator(".run .note"), "the disk is full");
    await send(page, "Which customers joined most recently?");
    await finished(page, 2);
    assert.equal(await page.locator(".run .note", { hasText: "the disk is full" }).count(), 1);
    await choose(page, "nobody/none");
    await send(page, "Who are you?");
    await waitText(page.locator(".turn > .note"), "there is no provider");
    // The question is in the field again, and there after the page was loaded again.
    await page.waitForFunction(() => document.getElementById("message").value === "Who are you?");
    await page.press("#message", "Enter");
    await page.waitForFunction(() => document.querySelectorAll(".turn > .note").length === 1 && document.getElementById("message").value !== "");
    await page.reload();
    await finished(page, 2);
    assert.equal(await page.inputValue("#message"), "Who are you?");
    await page.selectOption("select#model", "");
    await page.press("#message", "Enter");
    await finished(page, 3);
    assert.equal(await page.locator(".asked-by-person").count(), 3);
    assert.equal(await page.inputValue("#message"), "");
    await fine(page);
  });

  test("the title of the page says when somebody's word is needed", async () => {
    const page = await visit();
    await send(page, TICKET);
    await page.locator(".approval").waitFor();
    await page.waitForFunction(() => document.title.startsWith("Your word is needed – "));
    await page.getByRole("button", { name: "Allow" }).click();
    await finished(page);
    await page.waitForFunction(() => !document.title.includes("needed"));
    await fine(page);
  });

  test("the end of an answer stays in view, unless one goes up", async () => {
    const page = await visit();
    model.say([`${"A paragraph.\n\n".repeat(60)}The end.`]);
    await choose(page, SCRIPTED);
    await send(page, "Write a lot");
    await finished(page);
    const atEnd = () => page.waitForFunction(() => {
      const box = document.querySelector(".scroll");
      return box.scrollHeight - box.scrollTop - box.clientHeight < 2;
    });
    await atEnd();
    // More comes after the page's own step to the end was painted, and before the browser's word of it.
    await page.evaluate(() => new Promise((resolve) => {
      const box = document.querySelector(".scroll");
      const more = document.createElement("p");
      more.style.height = "1200px";
      box.scrollTop -= 60;
      box.addEventListener("scroll", () => {
        box.scrollTop = box.scrollHeight;
        box.addEventListener("scroll", () => requestAnimationFrame(resolve), { once: true });
        setTimeout(() => document.querySelector(".run .text").append(more));
      }, { once: true });
    }));
    await atEnd();
    assert.equal(await page.locator(".to-end").count(), 0);
    await page.locator(".scroll").evaluate((box) => { box.scrollTop = 100; });
    await page.locator(".to-end").click();
    await atEnd();
    await page.locator(".to-end").waitFor({ state: "detached" });
    await fine(page);
  });

  test("what one opens stays where it is", async () => {
    const page = await visit({ viewport: { width: 1200, height: 420 } });
    model.say([{ call: { id: "a", name: "customer-service__calculate_account_value", input: { customer_id: 42 } } }], ["Done."]);
    await choose(page, SCRIPTED);
    await send(page, "What is it worth?");
    await finished(page);
    const card = page.locator(CARD);
    await card.scrollIntoViewIfNeeded();
    const top = () => card.evaluate((it) => it.getBoundingClientRect().top);
    const before = await top();
    await card.click();
    // The page knows of what grew: it offers the way to the end, and has not gone there.
    await page.locator(".to-end").waitFor();
    assert.ok(Math.abs(await top() - before) < 2, `${before} ${await top()}`);
    await fine(page);
  });

  test("older conversations are listed when they are wanted", async () => {
    const own = await new Program(config(model, { mcp_servers: {} })).start();
    try {
      const make = (at) => fetch(`${own.url}/sessions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ title: `Number ${at}` }) });
      for (let at = 0; at < 201; at += 1) assert.equal((await make(at)).status, 201);
      const page = await open(browser, own.url);
      await page.waitForFunction(() => document.querySelectorAll(".sessions li").length === 200);
      await page.getByRole("button", { name: "Older ones as well" }).click();
      await page.waitForFunction(() => document.querySelectorAll(".sessions li").length === 201);
      assert.equal(await page.getByRole("button", { name: "Older ones as well" }).count(), 0);
      await fine(page);
    } finally {
      await own.stop();
    }
  });

  test("conversations are searched, renamed and deleted", async () => {
    const page = await visit();
    await send(page, "What is the account value of customer 7?");
    await finished(page);
    const current = page.locator(".sessions .current");
    await current.waitFor();
    await current.getByRole("button", { name: /^Rename/ }).click();
    await page.locator("#rename-field").fill("About <b>seven</b>");
    await page.keyboard.press("Enter");
    await waitText(page.locator(".sessions .current"), "About <b>seven</b>");
    await page.reload();
    await waitText(page.locator(".header h1"), "About <b>seven</b>");
    const search = page.getByLabel("Search conversations");
    await search.fill("SEVEN about");
    await page.waitForFunction(() => document.querySelectorAll(".sessions li").length === 1);
    await search.fill("nothing has these words");
    await waitText(page.locator(".sidebar"), "None with these words.");
    await search.fill("");
    await page.locator(".sessions .current").getByRole("button", { name: /^Delete/ }).click();
    await page.getByRole("button", { name: "Keep it" }).click();
    await page.locator(".sessions .current").getByRole("button", { name: /^Delete/ }).click();
    await page.locator("dialog").getByRole("button", { name: "Delete" }).click();
    await page.locator(".welcome").waitFor();
    assert.equal(await page.locator(".sessions li", { hasText: "seven" }).count(), 0);
    page.expected.push(/404/);
    await page.goBack();
    await waitText(page.locator(".note"), "There is no such conversation");
    await fine(page);
  });
});
