// Tests that framed pages from models cannot reach the network.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { createServer } from "node:net";
import { after, before, describe, test } from "node:test";
import { ScriptedModel } from "./model.mjs";
import { Program, checkAndClose, config, open, runFinished, sendMessage, startBrowser, startPersistentBrowser } from "./stage.mjs";

/** Counts the UDP packets that it receives. `first` resolves with the first one. */
class UdpListener {
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

/** Returns a script that sends a STUN request to a port. */
const stunScript = (port) => `const connection = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:${port}" }] });
  connection.createDataChannel("x"); connection.createOffer().then((offer) => connection.setLocalDescription(offer));`;

/** Returns pages by title. Each one uses WebRTC in a different way. */
function webRtcPages(port) {
  const code = stunScript(port);
  const markup = `<script>${code}</script>`;
  const attribute = markup.replace(/&/g, "&amp;").replace(/"/g, "&quot;");
  const markupLiteral = JSON.stringify(markup).replace(/</g, "\\u003c");
  const urlLiteral = JSON.stringify(`javascript:${code}`);
  // The marker comes before the script, which fails where the names of WebRTC are removed.
  const marker = '<p class="tried">tried</p>';
  return {
    "standard name": `${marker}${markup}`,
    "prefixed name": `${marker}<script>const RTCPeerConnection = webkitRTCPeerConnection; ${code}</script>`,
    "srcdoc frame": `${marker}<iframe srcdoc="${attribute}"></iframe>`,
    "javascript URL frame": `${marker}<iframe src='${`javascript:${code}`.replace(/'/g, "&#39;")}'></iframe>`,
    "created srcdoc frame": `${marker}<script>const frame = document.createElement("iframe"); frame.srcdoc = ${markupLiteral}; document.body.append(frame);</script>`,
    "created javascript URL frame": `${marker}<script>const frame = document.createElement("iframe"); frame.src = ${urlLiteral}; document.body.append(frame);</script>`,
    "frame in a closed shadow root": `${marker}<div id="host"></div><script>const frame = document.createElement("iframe"); frame.srcdoc = ${markupLiteral};
      document.getElementById("host").attachShadow({ mode: "closed" }).append(frame);</script>`,
    "frame from innerHTML": `${marker}<div id="host"></div><script>document.getElementById("host").innerHTML = "<p><iframe></iframe></p>";
      try { new (document.querySelector("iframe").contentWindow.RTCPeerConnection)({}); } catch { document.querySelector("iframe")?.setAttribute("srcdoc", ${markupLiteral}); }</script>`,
  };
}

/** Returns pages by title. Each one makes the browser preconnect in a different way. */
function preconnectPages(port) {
  const link = `<link rel="preconnect" href="http://127.0.0.1:${port}"><link rel="dns-prefetch" href="//127.0.0.1:${port}">`;
  const linkLiteral = JSON.stringify(link).replace(/</g, "\\u003c");
  const marker = '<p class="tried">tried</p><div id="host"></div>';
  const createLink = `const link = document.createElement("link"); link.rel = "preconnect"; link.href = "http://127.0.0.1:${port}";`;
  const run = (code) => `${marker}<script>const host = document.getElementById("host"); ${code}</script>`;
  return {
    "link in the head": `<!doctype html><html><head>${link}</head><body>${marker}</body></html>`,
    "link in the body": `${marker}${link}`,
    "template": `${marker}<template>${link}</template><script>document.body.append(document.querySelector("template").content.cloneNode(true));</script>`,
    "declarative shadow root": `${marker}<div><template shadowrootmode="open">${link}</template></div>`,
    "createElement": run(`${createLink} document.head.append(link);`),
    "createElementNS": run(`const link = document.createElementNS("http://www.w3.org/1999/xhtml", "link"); link.setAttribute("rel", "preconnect"); link.setAttribute("href", "http://127.0.0.1:${port}"); document.head.append(link);`),
    "innerHTML": run(`host.innerHTML = ${linkLiteral};`),
    "innerHTML in a closed shadow root": run(`host.attachShadow({ mode: "closed" }).innerHTML = ${linkLiteral};`),
    "outerHTML": run(`host.outerHTML = ${linkLiteral};`),
    "insertAdjacentHTML": run(`host.insertAdjacentHTML("beforeend", ${linkLiteral});`),
    "DOMParser": run(`host.append(...new DOMParser().parseFromString(${linkLiteral}, "text/html").head.children);`),
    "createContextualFragment": run(`host.append(document.createRange().createContextualFragment(${linkLiteral}));`),
    "document.write": run(`document.write(${linkLiteral});`),
  };
}

describe("pages in frames", { concurrency: false }, () => {
  let model;
  let program;
  let browser;

  before(async () => {
    model = await new ScriptedModel().start();
    program = new Program(config(model, { model: "scripted/scripted", mcp_servers: {} }));
    await program.start();
    // Without this flag, WebRTC does not work on a machine without a network.
    browser = await startBrowser(["--allow-loopback-in-peer-connection"]);
  });
  after(async () => {
    await browser?.close();
    await program?.stop();
    model?.close();
  });

  // Some browsers do not support the header Connection-Allowlist. Its removal simulates them.
  for (const withAllowlist of [true, false]) {
    test(`framed pages cannot use WebRTC ${withAllowlist ? "with" : "without"} Connection-Allowlist`, async () => {
      const target = await new UdpListener().start();
      const control = await new UdpListener().start();
      try {
        const page = await open(browser, program.url);
        const { headers } = await fetch(`${program.url}/assets/frames/foreign.html`);
        assert.equal(headers.get("connection-allowlist"), "()");
        if (!withAllowlist) {
          await page.route("**/assets/frames/*.html", async (route) => {
            const response = await route.fetch();
            const { "connection-allowlist": removed, ...headers } = response.headers();
            await route.fulfill({ response, headers });
          });
        }
        page.expectedProblems.push(/RTCPeerConnection is not defined/);
        const attempts = webRtcPages(target.port);
        model.answers.length = 0;
        model.enqueue(["I know enough."], [{ form: Object.entries(attempts).map(([title, content]) => ({ type: "artifact", artifactType: "html", title, content })) }]);
        await page.selectOption("#strategy", "gather-format");
        await sendMessage(page, "Show them");
        await runFinished(page);
        for (const title of Object.keys(attempts)) {
          const frame = page.frameLocator(`iframe[title="${title}"]`);
          await frame.locator(".tried").waitFor();
          assert.deepEqual(await frame.locator("body").evaluate(() => Object.getOwnPropertyNames(window).filter((name) => name.includes("RTC"))), [], title);
          assert.equal(await frame.locator("iframe").count(), 0, title);
        }
        assert.equal(page.frames().length, 1 + Object.keys(attempts).length);
        // Control: an unrestricted page sends a packet, and does so after the framed pages.
        const unrestricted = await page.context().newPage();
        await unrestricted.evaluate(stunScript(control.port));
        await control.first;
        assert.equal(target.packets, 0);
        await checkAndClose(page);
      } finally {
        target.close();
        control.close();
      }
    });
  }

  for (const withAllowlist of [true, false]) {
    test(`framed pages cannot preconnect to a host ${withAllowlist ? "with" : "without"} Connection-Allowlist`, async () => {
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
      const [target, control] = [await listen(), await listen()];
      const persistentBrowser = startPersistentBrowser();
      try {
        const page = await open(persistentBrowser, program.url);
        for (const path of ["/", "/assets/frames/foreign.html", "/assets/frames/drawing.html"]) {
          const { headers } = await fetch(`${program.url}${path}`);
          assert.equal(headers.get("x-dns-prefetch-control"), "off", path);
        }
        if (!withAllowlist) {
          await page.route("**/assets/frames/*.html", async (route) => {
            const response = await route.fetch();
            const { "connection-allowlist": removed, ...headers } = response.headers();
            await route.fulfill({ response, headers });
          });
        }
        const attempts = preconnectPages(target.address().port);
        model.answers.length = 0;
        model.enqueue(["I know enough."], [{ form: Object.entries(attempts).map(([title, content]) => ({ type: "artifact", artifactType: "html", title, content })) }]);
        await page.selectOption("#strategy", "gather-format");
        await sendMessage(page, "Show them");
        await runFinished(page);
        for (const title of Object.keys(attempts)) {
          const frame = page.frameLocator(`iframe[title="${title}"]`);
          await frame.locator(".tried").waitFor();
          assert.equal(await frame.locator("link").count(), 0, title);
        }
        // Control: an unrestricted page preconnects, and does so after the framed pages.
        const unrestricted = await page.context().newPage();
        await unrestricted.setContent(`<link rel="preconnect" href="http://127.0.0.1:${control.address().port}">`);
        await control.first;
        assert.equal(target.connections, 0);
        await checkAndClose(page);
      } finally {
        target.close();
        control.close();
        persistentBrowser.close();
      }
    });
  }

  test("diagrams are drawn in a frame without WebRTC", async () => {
    const page = await open(browser, program.url);
    model.answers.length = 0;
    model.enqueue(["```mermaid\nflowchart TD\n  A --> B\n```"]);
    await page.selectOption("#strategy", "");
    await sendMessage(page, "Draw");
    await runFinished(page);
    await page.locator(".artifact .drawing img").waitFor();
    const names = await page.frameLocator(".render-frame").locator("html").evaluate(() => Object.getOwnPropertyNames(window).filter((name) => name.includes("RTC")));
    assert.deepEqual(names, []);
    await checkAndClose(page);
  });
});
