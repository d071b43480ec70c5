// The states, tools and recent log output of the MCP servers.
import { Icon, html, useEffect, useModel, useRef } from "./view.js";
import { catalogue } from "./catalogue.js";
import { Code } from "./text.js";

/** CSS class by server state. */
const TONES = { ready: "good", failed: "bad", stopped: "bad", gone: "bad", closed: "bad" };

function tone(server) {
  return TONES[server.state] ?? "wait";
}

export function ServersButton({ onOpen }) {
  useModel(catalogue);
  const notReady = catalogue.servers.filter((server) => server.state !== "ready").length;
  const label = catalogue.servers.length === 0 ? "none configured" : notReady ? `${notReady} of ${catalogue.servers.length} not ready` : "all ready";
  return html`<button type="button" class="quiet icon-button servers-button" onClick=${onOpen} aria-label=${`Servers: ${label}`} title=${`Servers: ${label}`}>
    <${Icon} name="servers" /><span class="dot ${catalogue.servers.length === 0 ? "" : notReady ? "bad" : "good"}" /></button>`;
}

export function Servers({ onClose }) {
  useModel(catalogue);
  const dialog = useRef(null);
  useEffect(() => {
    dialog.current.showModal();
    catalogue.loadServers();
    const timer = setInterval(() => catalogue.loadServers(), 4_000);
    return () => clearInterval(timer);
  }, []);
  const closeOnBackdropClick = (event) => {
    if (event.target === dialog.current) dialog.current.close();
  };
  return html`<dialog class="panel" ref=${dialog} aria-labelledby="servers-title" onClose=${onClose} onClick=${closeOnBackdropClick}>
    <div class="panel-head"><h2 id="servers-title">Servers and tools</h2>
      <button type="button" class="quiet icon-button" onClick=${() => dialog.current.close()} aria-label="Close"><${Icon} name="close" /></button></div>
    ${catalogue.error && html`<p class="error" role="alert">${catalogue.error.message}</p>`}
    ${catalogue.servers.length === 0 && html`<p class="muted">No MCP servers configured.</p>`}
    <ul class="servers">${catalogue.servers.map((server) => html`<${Server} key=${server.name} server=${server} />`)}</ul>
  </dialog>`;
}

function Server({ server }) {
  const { name, state, reason, transport, protocol_version, server_info, stderr_tail, stderr, warnings = [], required } = server;
  const stderrText = (stderr_tail ?? stderr ?? []).join("\n");
  const tools = catalogue.tools.filter((tool) => tool.server === name);
  const details = [server_info ? `${server_info.name} ${server_info.version}` : null, protocol_version ? `MCP ${protocol_version}` : null, required ? "required" : null].filter(Boolean);
  return html`<li class="server" data-server=${name} data-state=${state}>
    <div class="server-head"><span class="dot ${tone(server)}" /><strong>${name}</strong><span class="badge ${tone(server)}">${state}</span></div>
    ${reason && html`<p class=${state === "ready" ? "muted" : "error"}>${reason}</p>`}
    ${details.length > 0 && html`<p class="muted small">${details.join(" · ")}</p>`}
    ${transport && html`<p class="muted small break">${transport}</p>`}
    ${warnings.map((warning) => html`<p class="warning small"><${Icon} name="warn" /> ${typeof warning === "string" ? warning : warning.message ?? JSON.stringify(warning)}</p>`)}
    ${catalogue.problems.filter((problem) => problem.server === name && !(reason && problem.message.startsWith(reason))).map((problem) => html`<p class="warning small"><${Icon} name="warn" /> ${problem.message}</p>`)}
    ${tools.length > 0 && html`<details><summary>${tools.length} ${tools.length === 1 ? "tool" : "tools"}</summary>
      <dl class="tools">${tools.map((tool) => html`<dt><code>${tool.tool ?? tool.name}</code>${tool.annotations?.read_only === true && html` <span class="badge">read-only</span>`}${tool.annotations?.destructive === true && html` <span class="badge bad">destructive</span>`}</dt><dd class="muted">${tool.description}</dd>`)}</dl></details>`}
    ${stderrText && html`<details open=${state !== "ready" || undefined}><summary>stderr (last lines)</summary><${Code} text=${stderrText} label=${`Standard error of ${name}`} /></details>`}
  </li>`;
}
