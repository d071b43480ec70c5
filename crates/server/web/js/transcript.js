// The conversation: what was asked, and each run's pieces in their order.
import { Component, Icon, html, useEffect, useModel, useRef, useState } from "./view.js";
import { at } from "./api.js";
import { Artifact } from "./artifact.js";
import { copyText } from "./markdown.js";
import { Question } from "./question.js";
import { Text } from "./text.js";
import { Tool } from "./tool.js";
import { catalogue } from "./catalogue.js";
import { count, dollars, duration } from "./words.js";

/** How near the end somebody must be for the page to go along with what comes. */
const NEAR = 120;

export function Transcript({ session }) {
  useModel(session);
  const place = useRef(null);
  const [away, setAway] = useState(false);
  useEffect(() => {
    const box = place.current;
    let follows = true;
    let before = box.scrollTop;
    const isNear = () => box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    const seen = () => {
      // Only who goes up leaves the end: what came since the page went there is no reason to stay behind.
      if (isNear()) follows = true;
      else if (box.scrollTop < before) follows = false;
      before = box.scrollTop;
      setAway(!follows);
    };
    const grown = new ResizeObserver(() => {
      if (follows) {
        box.scrollTop = box.scrollHeight;
        return;
      }
      follows = isNear();
      setAway(!follows);
    });
    // Who opens something wants to read it where it is.
    const opened = (event) => {
      if (event.target.closest("summary")) follows = false;
    };
    box.addEventListener("scroll", seen, { passive: true });
    box.addEventListener("click", opened);
    grown.observe(box.firstElementChild);
    grown.observe(box);
    box.goToEnd = () => {
      follows = true;
      box.scrollTop = box.scrollHeight;
    };
    return () => {
      box.removeEventListener("scroll", seen);
      box.removeEventListener("click", opened);
      grown.disconnect();
    };
  }, [session]);
  useEffect(() => place.current.goToEnd?.(), [session, session.turns.length]);

  return html`<div class="scroll" ref=${place} tabindex="0" role="region" aria-label="Conversation">
      <div class="column" role="log" aria-live="off" aria-busy=${session.busy ? "true" : "false"}>
        ${session.state === "failed" && html`<${Failed} session=${session} />`}
        ${session.state === "loading" && html`<p class="muted centre">Loading the conversation…</p>`}
        ${session.state === "new" && session.turns.length === 0 && html`<${Welcome} session=${session} />`}
        ${session.turns.map((turn, at) => html`<${Turn} key=${turn.key} turn=${turn} before=${session.turns[at - 1]?.run} session=${session} />`)}
      </div>
    </div>
    ${away && html`<button type="button" class="to-end" onClick=${() => place.current.goToEnd()} aria-label="Go to the end"><${Icon} name="down" /></button>`}`;
}

function Failed({ session }) {
  const { error } = session;
  const gone = error?.status === 404;
  return html`<div class="note bad centre" role="alert"><p>${gone ? "There is no such conversation, or it belongs to somebody else." : error?.message}</p>
    <p>${gone ? html`<a href="#/">Begin a new one</a>` : html`<button type="button" onClick=${() => session.onChange("again")}>Try again</button>`}</p></div>`;
}

const EXAMPLES = ["What is the account value of customer 42?", "Which customers joined most recently?", "Create a support ticket for customer 42 about a broken printer, high priority"];

function Welcome({ session }) {
  useModel(catalogue);
  const shop = catalogue.tools.some((it) => it.tool === "calculate_account_value");
  const tools = catalogue.tools.length;
  return html`<div class="welcome">
    <img src=${at("/assets/icon.svg")} alt="" width="48" height="48" />
    <h2>What shall be done?</h2>
    <p class="muted">${tools ? `${tools} tools of ${new Set(catalogue.tools.map((it) => it.server)).size} ${plural(new Set(catalogue.tools.map((it) => it.server)).size, "server")} are ready.` : "Ask anything. Tools come from the MCP servers that are configured."}</p>
    ${shop && html`<ul class="examples">${EXAMPLES.map((text) => html`<li><button type="button" onClick=${() => session.onChange("send", text)}>${text}</button></li>`)}</ul>`}
  </div>`;
}

function plural(number, word) {
  return number === 1 ? word : `${word}s`;
}

function Turn({ turn, before, session }) {
  return html`<article class="turn" aria-label="Question and answer">
    ${turn.user && html`<${Asked} message=${turn.user} />`}
    ${turn.failed && html`<div class="note bad" role="alert"><${Icon} name="warn" /><div>${turn.failed.message}</div>
      <button type="button" class="small" onClick=${() => session.onChange("edit", turn)}>Edit and try again</button></div>`}
    ${turn.run ? html`<${RunView} run=${turn.run} before=${before} session=${session} />` : !turn.failed && turn.user && html`<${Working} words="Sending" />`}
  </article>`;
}

function Asked({ message }) {
  const text = (message.parts ?? []).map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n");
  return html`<div class="asked-by-person"><span class="unseen">You: </span>${text}</div>`;
}

function RunView({ run, before, session }) {
  useModel(run);
  // What is the matter with a server is said once, and not with each answer.
  const known = new Set(before?.pieces.filter((it) => it.lasting).map((it) => it.text));
  const pieces = run.pieces.filter((it) => !it.lasting || !known.has(it.text));
  return html`<div class="run" data-run=${run.id} data-state=${run.state}>
    <h2 class="unseen">Answer</h2>
    ${pieces.map((item) => html`<${Piece} key=${item.key} item=${item} rev=${item.rev} run=${run} session=${session} problem=${run.problem} />`)}
    <${State} run=${run} session=${session} />
  </div>`;
}

class Piece extends Component {
  shouldComponentUpdate({ rev, item, problem }) {
    return rev !== this.props.rev || item !== this.props.item || problem !== this.props.problem;
  }

  render({ item, rev, run, session, problem }) {
    switch (item.kind) {
      case "text": return html`<${Text} item=${item} rev=${rev} />`;
      case "reasoning": return html`<${Reasoning} item=${item} rev=${rev} />`;
      case "tool": return html`<${Tool} item=${item} rev=${rev} run=${run} session=${session} problem=${problem} />`;
      case "question": return html`<${Question} item=${item} run=${run} session=${session} />`;
      case "artifact": return html`<${Artifact} artifact=${item.artifact} />`;
      case "provider": return html`<details class="aside"><summary>${item.name}</summary><p class="plain-text">${item.text ?? ""}</p></details>`;
      case "note": return html`<div class="note ${item.tone}"><${Icon} name=${item.tone === "info" ? "info" : "warn"} /><div>${item.text}</div></div>`;
      default: return null;
    }
  }
}

function Reasoning({ item }) {
  return html`<details class="aside"><summary><${Icon} name="think" /> ${item.open ? "Thinking…" : "Thoughts"}</summary><p class="plain-text">${item.text}</p></details>`;
}

function Working({ words }) {
  return html`<p class="working"><span class="dots" aria-hidden="true"><i /><i /><i /></span> ${words}</p>`;
}

const ENDS = { limited: ["warn", "Ended at a limit"], failed: ["bad", "Failed"], cancelled: ["info", "Stopped"] };

function State({ run, session }) {
  useModel(catalogue);
  const { report, state, problem } = run;
  const asks = run.waiting.length || run.openQuestions.length;
  if (state === "interrupted" || (state === "waiting" && !asks)) {
    return html`<div class="note warn"><${Icon} name="warn" /><div>${state === "interrupted" ? "This run was interrupted. What it has done is kept." : "This run waits to be continued."}${problem && ` ${problem}`}</div>
      <button type="button" class="small" onClick=${() => session.resume(run)}>Continue</button></div>`;
  }
  const [tone, words] = ENDS[report?.outcome] ?? [];
  return html`${run.live && !asks && !problem && html`<${Working} words=${doing(run)} />`}
    ${problem && html`<div class="note bad" role="alert"><${Icon} name="warn" /><div>${problem}</div></div>`}
    ${tone && html`<div class="note ${tone}"><${Icon} name=${tone === "info" ? "stop" : "warn"} /><div><strong>${words}.</strong> ${report.error?.message ?? ""}</div></div>`}
    ${state === "finished" && html`<${Footer} run=${run} />`}`;
}

function doing(run) {
  if (run.stopping) return "Stopping";
  const last = run.pieces.at(-1);
  if (last?.kind === "tool" && last.status === "running") return `Waiting for ${last.tool}`;
  if (last?.kind === "text" && last.open) return "Writing";
  if (run.phase === "formatting") return "Writing the answer";
  return run.thinking ? "Thinking" : "Working";
}

function Footer({ run }) {
  const { usage, model, report } = run;
  const parts = [model];
  if (report?.steps > 1) parts.push(`${report.steps} steps`);
  parts.push(...tokens(usage));
  const cost = catalogue.cost(model, usage);
  if (cost) parts.push(`about ${dollars(cost)}`);
  const took = run.started && run.ended ? Date.parse(run.ended) - Date.parse(run.started) : null;
  if (took !== null) parts.push(duration(took));
  const answer = run.answer.trim();
  return html`<div class="footer muted"><p>${parts.filter(Boolean).join(" · ")}</p>
    ${answer && html`<button type="button" class="quiet small" aria-label="Copy the answer" onClick=${(event) => copyText(answer, event.currentTarget)}>Copy</button>`}</div>`;
}

export function tokens(usage) {
  const parts = [];
  if (usage.input_tokens != null) parts.push(`${count(usage.input_tokens)} tokens in${usage.cache_read_tokens ? ` (${count(usage.cache_read_tokens)} cached)` : ""}`);
  if (usage.output_tokens != null) parts.push(`${count(usage.output_tokens)} out${usage.reasoning_tokens ? ` (${count(usage.reasoning_tokens)} thinking)` : ""}`);
  return parts;
}
