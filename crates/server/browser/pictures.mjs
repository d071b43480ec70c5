// Makes docs/pictures/web.png from the real page: a conversation with a tool's card and artifacts. The model is scripted, since a picture
// must come out the same for everybody; the server, the tools and the page are the real ones.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Model } from "./model.mjs";
import { Program, choose, config, finished, open, send, startBrowser } from "./stage.mjs";

const folder = process.argv[2];
const EARLIER = ["Which customers joined most recently?", "What is the account value of customer 7?", "What is the account value of customer 19?"];
/** The answer, made of what the tools really gave. */
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

const model = await new Model().start();
const { mcp_servers, ...rest } = config(model);
const program = new Program({ ...rest, providers: { local: { base_url: model.baseUrl, model: "assistant" } }, mcp_servers: { "customer-service": mcp_servers["customer-service"] } });
mkdirSync(join(program.folder, "recipes"));
writeFileSync(join(program.folder, "recipes", "analysis.yaml"), "name: analysis\ntitle: Analysis\ndescription: Answers in texts and artifacts.\nstrategy: gather-format\n");
await program.start();
const browser = await startBrowser();
try {
  const page = await open(browser, program.url, { viewport: { width: 1240, height: 880 }, deviceScaleFactor: 1.5, colorScheme: "light" });
  for (const question of EARLIER) {
    await page.goto(`${program.url}/#/`);
    await page.locator(".welcome").waitFor();
    await send(page, question);
    await finished(page);
  }
  await page.goto(`${program.url}/#/`);
  await page.locator(".welcome").waitFor();
  await choose(page, "local/assistant");
  await page.selectOption("#recipe", "analysis");
  const call = (id, customer) => ({ call: { id, name: "customer-service__calculate_account_value", input: { customer_id: customer } } });
  model.say([call("a", 42), call("b", 7), call("c", 19)], [answer]);
  await send(page, "How does the account of customer 42 compare with those of 7 and 19?");
  await finished(page);
  const picture = page.locator(".drawing img");
  await picture.waitFor();
  await picture.evaluate((it) => it.decode());
  await page.evaluate(() => { document.activeElement.blur(); document.querySelector(".scroll").scrollTop = 0; });
  await page.screenshot({ path: join(folder, "web.png"), animations: "disabled" });
  console.log(`${join(folder, "web.png")}: made`);
} finally {
  await browser.close();
  await program.stop();
  model.close();
}
