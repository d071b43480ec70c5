// Creates docs/pictures/web.png from the real page: a conversation with tool cards and artifacts.
// Only the model is scripted, to make the picture reproducible.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ScriptedModel } from "./model.mjs";
import { Program, config, open, runFinished, selectModel, sendMessage, startBrowser } from "./stage.mjs";

const folder = process.argv[2];
const EARLIER_QUESTIONS = ["Which customers joined most recently?", "What is the account value of customer 7?", "What is the account value of customer 19?"];
/** Builds the answer from the tool results in the request. */
function answer({ messages }) {
  const results = messages.filter(({ role }) => role === "tool").map(({ content }) => JSON.stringify(content));
  const accounts = results.map((result) => /account value of customer (\d+) \(([^)]+)\) is ([\d.]+) EUR/.exec(result)).map(([, id, name, value]) => ({ id, name, value: Number(value) }));
  const [best] = [...accounts].sort((a, b) => b.value - a.value);
  const chart = { type: "bar", data: { labels: accounts.map(({ name, id }) => `${name} (${id})`), datasets: [{ label: "Account value", data: accounts.map(({ value }) => value) }] } };
  return {
    form: [
      { type: "text", content: `Of the three, **${best.name}** (customer ${best.id}) has the most valuable account, with **${best.value.toFixed(2)} EUR**. Side by side:` },
      { type: "artifact", artifactType: "chart", title: "Account value in EUR", content: JSON.stringify(chart) },
    ],
  };
}

const model = await new ScriptedModel().start();
const { mcp_servers, ...rest } = config(model);
const program = new Program({ ...rest, providers: { local: { base_url: model.baseUrl, model: "assistant" } }, mcp_servers: { "customer-service": mcp_servers["customer-service"] } });
mkdirSync(join(program.folder, "recipes"));
writeFileSync(join(program.folder, "recipes", "analysis.yaml"), "name: analysis\ntitle: Analysis\ndescription: Answers in texts and artifacts.\nstrategy: gather-format\n");
await program.start();
const browser = await startBrowser();
try {
  const page = await open(browser, program.url, { viewport: { width: 1240, height: 880 }, deviceScaleFactor: 1.5, colorScheme: "light" });
  for (const question of EARLIER_QUESTIONS) {
    await page.goto(`${program.url}/#/`);
    await page.locator(".welcome").waitFor();
    await sendMessage(page, question);
    await runFinished(page);
  }
  await page.goto(`${program.url}/#/`);
  await page.locator(".welcome").waitFor();
  await selectModel(page, "local/assistant");
  await page.selectOption("#recipe", "analysis");
  const call = (id, customer) => ({ call: { id, name: "customer-service__calculate_account_value", input: { customer_id: customer } } });
  model.enqueue([call("a", 42), call("b", 7), call("c", 19)], [answer]);
  await sendMessage(page, "How does the account of customer 42 compare with those of 7 and 19?");
  await runFinished(page);
  const picture = page.locator(".drawing img");
  await picture.waitFor();
  await picture.evaluate((it) => it.decode());
  await page.evaluate(() => { document.activeElement.blur(); document.querySelector(".scroll").scrollTop = 0; });
  await page.screenshot({ path: join(folder, "web.png"), animations: "disabled" });
  console.log(`${join(folder, "web.png")}: created`);
} finally {
  await browser.close();
  await program.stop();
  model.close();
}
