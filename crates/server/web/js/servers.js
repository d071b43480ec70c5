// How the MCP servers are, and what they last said of themselves.
import { Icon, html, useEffect, useModel, useRef } from "./view.js";
import { catalogue } from "./catalogue.js";
import { Code } from "./text.js";

const TONES = { ready: "good", failed: "bad", stopped: "bad", gone: "bad", closed: "bad" };

export function tone(server) {
  return TONES[server.state] ?? "wait";
}

export function ServersButton({ onOpen }) {
  useModel(catalogue);
  const bad = catalogue.servers.filter((it) => it.state !== "ready").length;
  const words = catalogue.servers.length === 0 ? "no server" : bad ? `${bad} of ${catalogue.servers.length} not ready` : "all ready";
  return html`<button type="button" class="quiet icon-button servers-button" onClick=${onOpen} aria-label=${`Servers: ${words}`} title=${`Servers: ${words}`}>
    <${Icon} name="servers" /><span class="dot ${catalogue.servers.length === 0 ? "" : bad ? "bad" : "good"}" /></button>`;
}

export function Servers({ onClose }) {
  useModel(catalogue);
  const dialog = useRef(null);
  useEffect(() => {
    dialog.current.showModal();
    catalogue.loadServers();
    const again = setInterval(() => catalogue.loadServers(), 4_000);
    return () => clearInterval(again);
  }, []);
  const outside = (event) => {
    if (event.target === dialog.current) dialog.current.close();
  };
  return html`<dialog class="panel" ref=${dialog} aria-labelledby="servers-title" onClose=${onClose} onClick=${outside}>
    <div class="panel-head"><h2 id="servers-title">Servers and tools</h2>
      <button type="button" class="quiet icon-button" onClick=${() => dialog.current.close()} aria-label="Close"><${Icon} name="close" /></button></div>
    ${catalogue.error && html`<p class="error" role="alert">${catalogue.error.message}</p>`}
    ${catalogue.servers.length === 0 && html`<p class="muted">No MCP server is configured.</p>`}
    <ul class="servers">${catalogue.servers.map((server) => html`<${Server} key=${server.name} server=${server} />`)}</ul>
  </dialog>`;
}

function Server({ server }) {
  const { name, state, reason, transport, protocol_version, server_info, stderr_tail, stderr, warnings = [], required } = server;
  const said = (stderr_tail ?? stderr ?? []).join("\n");
  const tools = catalogue.tools.filter((it) => it.server === name);
  const about = [server_info ? `${server_info.name} ${server_info.version}` : null, protocol_version ? `MCP ${protocol_version}` : null, required ? "required" : null].filter(Boolean);
  return html`<li class="server" data-server=${name} data-state=${state}>
    <div class="server-head"><span class="dot ${tone(server)}" /><strong>${name}</strong><span class="badge ${tone(server)}">${state}</span></div>
    ${reason && html`<p class=${state === "ready" ? "muted" : "error"}>${reason}</p>`}
    ${about.length > 0 && html`<p class="muted small">${about.join(" · ")}</p>`}
    ${transport && html`<p class="muted small break">${transport}</p>`}
    ${warnings.map((warning) => html`<p class="warning small"><${Icon} name="warn" /> ${typeof warning === "string" ? warning : warning.message ?? JSON.stringify(warning)}</p>`)}
    ${catalogue.problems.filter((it) => it.server === name && !(reason && it.message.startsWith(reason))).map((it) => html`<p class="warning small"><${Icon} name="warn" /> ${it.message}</p>`)}
    ${tools.length > 0 && html`<details><summary>${tools.length} ${tools.length === 1 ? "tool" : "tools"}</summary>
      <dl class="tools">${tools.map((it) => html`<dt><code>${it.tool ?? it.name}</code>${it.annotations?.read_only === true && html` <span class="badge">reads</span>`}${it.annotations?.destructive === true && html` <span class="badge bad">may destroy</span>`}</dt><dd class="muted">${it.description}</dd>`)}</dl></details>`}
    ${said && html`<details open=${state !== "ready" || undefined}><summary>Last words on its standard error</summary><${Code} text=${said} label=${`Standard error of ${name}`} /></details>`}
  </li>`;
}
