// Pages by models and servers in their frames: they reach nobody, however they try.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { createServer } from "node:net";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Model } from "./model.mjs";
import { Program, config, fine, finished, open, send, startBrowser, startProfile } from "./stage.mjs";

/** Counts the packets that come to it. */
class Listener {
  packets = 0;

  async start() {
    this.socket = createSocket("udp4");
    this.first = new Promise((resolve) => { this.arrive = resolve; });
    this.socket.on("message", () => {
      this.packets += 1;
      this.arrive();
    });
    await new Promise((resolve) => { this.socket.bind(0, "127.0.0.1", resolve); });
    return this;
  }

  get port() {
    return this.socket.address().port;
  }

  close() {
    this.socket.close();
  }
}

/** Asks a host where we are, which tells it that we are. */
const call = (port) => `const line = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:${port}" }] });
  line.createDataChannel("x"); line.createOffer().then((offer) => line.setLocalDescription(offer));`;

/** Pages that try it, each in another way. */
function pages(port) {
  const code = call(port);
  const markup = `<script>${code}</script>`;
  const attribute = markup.replace(/&/g, "&amp;").replace(/"/g, "&quot;");
  const written = JSON.stringify(markup).replace(/</g, "\\u003c");
  const address = JSON.stringify(`javascript:${code}`);
  // Scripts stop where there is no such name, so that each page says first that it tried.
  const told = '<p class="tried">tried</p>';
  return {
    "by name": `${told}${markup}`,
    "by its old name": `${told}<script>const RTCPeerConnection = webkitRTCPeerConnection; ${code}</script>`,
    "in a frame of its own": `${told}<iframe srcdoc="${attribute}"></iframe>`,
    "in a frame with a script as its address": `${told}<iframe src='${`javascript:${code}`.replace(/'/g, "&#39;")}'></iframe>`,
    "in a frame that is made": `${told}<script>const frame = document.createElement("iframe"); frame.srcdoc = ${written}; document.body.append(frame);</script>`,
    "in a frame that is made with a script as its address": `${told}<script>const frame = document.createElement("iframe"); frame.src = ${address}; document.body.append(frame);</script>`,
    "in a frame out of sight": `${told}<div id="host"></div><script>const frame = document.createElement("iframe"); frame.srcdoc = ${written};
      document.getElementById("host").attachShadow({ mode: "closed" }).append(frame);</script>`,
    "in a frame that is there at once": `${told}<div id="host"></div><script>document.getElementById("host").innerHTML = "<p><iframe></iframe></p>";
      try { new (document.querySelector("iframe").contentWindow.RTCPeerConnection)({}); } catch { document.querySelector("iframe")?.setAttribute("srcdoc", ${written}); }</script>`,
  };
}

/** Pages that have the browser connect to a host in advance, each in another way. */
function hints(port) {
  const link = `<link rel="preconnect" href="http://127.0.0.1:${port}"><link rel="dns-prefetch" href="//127.0.0.1:${port}">`;
  const written = JSON.stringify(link).replace(/</g, "\\u003c");
  const told = '<p class="tried">tried</p><div id="host"></div>';
  const made = `const link = document.createElement("link"); link.rel = "preconnect"; link.href = "http://127.0.0.1:${port}";`;
  const run = (code) => `${told}<script>const host = document.getElementById("host"); ${code}</script>`;
  return {
    "in its head": `<!doctype html><html><head>${link}</head><body>${told}</body></html>`,
    "in its body": `${told}${link}`,
    "in a template": `${told}<template>${link}</template><script>document.body.append(document.querySelector("template").content.cloneNode(true));</script>`,
    "in a shadow": `${told}<div><template shadowrootmode="open">${link}</template></div>`,
    "made": run(`${made} document.head.append(link);`),
    "made by namespace": run(`const link = document.createElementNS("http://www.w3.org/1999/xhtml", "link"); link.setAttribute("rel", "preconnect"); link.setAttribute("href", "http://127.0.0.1:${port}"); document.head.append(link);`),
    "set": run(`host.innerHTML = ${written};`),
    "set in a shadow": run(`host.attachShadow({ mode: "closed" }).innerHTML = ${written};`),
    "replaced": run(`host.outerHTML = ${written};`),
    "inserted": run(`host.insertAdjacentHTML("beforeend", ${written});`),
    "parsed": run(`host.append(...new DOMParser().parseFromString(${written}, "text/html").head.children);`),
    "a fragment": run(`host.append(document.createRange().createContextualFragment(${written}));`),
    "written": run(`document.write(${written});`),
  };
}

describe("pages in frames", { concurrency: false }, () => {
  let model;
  let program;
  let browser;

  before(async () => {
    model = await new Model().start();
    program = new Program(config(model, { model: "scripted/scripted", mcp_servers: {} }));
    mkdirSync(join(program.folder, "recipes"));
    writeFileSync(join(program.folder, "recipes", "forms.yaml"), "name: forms\ndescription: Answers in texts and artifacts.\nstrategy: gather-format\n");
    await program.start();
    // Otherwise there is no WebRTC on a machine that is on no network.
    browser = await startBrowser(["--allow-loopback-in-peer-connection"]);
  });
  after(async () => {
    await browser?.close();
    await program?.stop();
    model?.close();
  });

  /** Once without what only some browsers know. */
  for (const known of [true, false]) {
    test(`no page reaches anybody by WebRTC, in a browser that ${known ? "knows" : "does not know"} which connections are allowed`, async () => {
      const strangers = await new Listener().start();
      const control = await new Listener().start();
      try {
        const page = await open(browser, program.url);
        const allowed = await fetch(`${program.url}/assets/frames/foreign.html`);
        assert.equal(allowed.headers.get("connection-allowlist"), "()");
        if (!known) {
          await page.route("**/assets/frames/*.html", async (route) => {
            const response = await route.fetch();
            const { "connection-allowlist": taken, ...headers } = response.headers();
            await route.fulfill({ response, headers });
          });
        }
        page.expected.push(/RTCPeerConnection is not defined/);
        const tries = pages(strangers.port);
        model.answers.length = 0;
        model.say(["I know enough."], [{ form: Object.entries(tries).map(([title, content]) => ({ type: "artifact", artifactType: "html", title, content })) }]);
        await page.selectOption("#recipe", "forms");
        await send(page, "Show them");
        await finished(page);
        for (const title of Object.keys(tries)) {
          const frame = page.frameLocator(`iframe[title="${title}"]`);
          await frame.locator(".tried").waitFor();
          assert.deepEqual(await frame.locator("body").evaluate(() => Object.getOwnPropertyNames(window).filter((name) => name.includes("RTC"))), [], title);
          assert.equal(await frame.locator("iframe").count(), 0, title);
        }
        assert.equal(page.frames().length, 1 + Object.keys(tries).length);
        // A page of nobody's does reach somebody, later than those would have.
        const other = await page.context().newPage();
        await other.evaluate(call(control.port));
        await control.first;
        assert.equal(strangers.packets, 0);
        await fine(page);
      } finally {
        strangers.close();
        control.close();
      }
    });
  }

  for (const known of [true, false]) {
    test(`no page connects to a host in advance, in a browser that ${known ? "knows" : "does not know"} which connections are allowed`, async () => {
      const listen = async () => {
        const server = createServer((socket) => socket.destroy());
        server.connections = 0;
        server.first = new Promise((resolve) => {
          server.on("connection", () => {
            server.connections += 1;
            resolve();
          });
        });
        await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
        return server;
      };
      const [strangers, control] = [await listen(), await listen()];
      const profile = startProfile();
      try {
        const page = await open(profile, program.url);
        for (const path of ["/", "/assets/frames/foreign.html", "/assets/frames/drawing.html"]) {
          const { headers } = await fetch(`${program.url}${path}`);
          assert.equal(headers.get("x-dns-prefetch-control"), "off", path);
        }
        if (!known) {
          await page.route("**/assets/frames/*.html", async (route) => {
            const response = await route.fetch();
            const { "connection-allowlist": taken, ...headers } = response.headers();
            await route.fulfill({ response, headers });
          });
        }
        const tries = hints(strangers.address().port);
        model.answers.length = 0;
        model.say(["I know enough."], [{ form: Object.entries(tries).map(([title, content]) => ({ type: "artifact", artifactType: "html", title, content })) }]);
        await page.selectOption("#recipe", "forms");
        await send(page, "Show them");
        await finished(page);
        for (const title of Object.keys(tries)) {
          const frame = page.frameLocator(`iframe[title="${title}"]`);
          await frame.locator(".tried").waitFor();
          assert.equal(await frame.locator("link").count(), 0, title);
        }
        // A page of nobody's does connect, later than those would have.
        const other = await page.context().newPage();
        await other.setContent(`<link rel="preconnect" href="http://127.0.0.1:${control.address().port}">`);
        await control.first;
        assert.equal(strangers.connections, 0);
        await fine(page);
      } finally {
        strangers.close();
        control.close();
        profile.close();
      }
    });
  }

  test("diagrams and charts are drawn where no name of WebRTC is left", async () => {
    const page = await open(browser, program.url);
    model.answers.length = 0;
    model.say(["```mermaid\nflowchart TD\n  A --> B\n```"]);
    await page.selectOption("#recipe", "");
    await send(page, "Draw");
    await finished(page);
    await page.locator(".artifact .drawing img").waitFor();
    const names = await page.frameLocator(".studio").locator("html").evaluate(() => Object.getOwnPropertyNames(window).filter((name) => name.includes("RTC")));
    assert.deepEqual(names, []);
    await fine(page);
  });
});
