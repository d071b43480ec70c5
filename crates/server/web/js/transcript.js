// The conversation view: the user messages, and the items of each run in order.
import { Component, Icon, html, useEffect, useModel, useRef, useState } from "./view.js";
import { urlOf } from "./api.js";
import { Artifact } from "./artifact.js";
import { copyText } from "./markdown.js";
import { Question } from "./question.js";
import { Text } from "./text.js";
import { Tool } from "./tool.js";
import { catalogue } from "./catalogue.js";
import { formatCount, formatDollars, formatDuration, messageText, plural } from "./format.js";

/** Maximum distance from the end, in pixels, at which the view follows new content. */
const FOLLOW_DISTANCE = 120;

export function Transcript({ session }) {
  useModel(session);
  const container = useRef(null);
  const [showJump, setShowJump] = useState(false);
  useEffect(() => {
    const box = container.current;
    let following = true;
    let lastScrollTop = box.scrollTop;
    const isNearEnd = () => box.scrollHeight - box.scrollTop - box.clientHeight < FOLLOW_DISTANCE;
    const handleScroll = () => {
      // Only scrolling up ends following. Content that arrived during a scroll to the end also
      // increases the distance, and must not end it.
      if (isNearEnd()) following = true;
      else if (box.scrollTop < lastScrollTop) following = false;
      lastScrollTop = box.scrollTop;
      setShowJump(!following);
    };
    const resizeObserver = new ResizeObserver(() => {
      if (following) {
        box.scrollTop = box.scrollHeight;
        return;
      }
      following = isNearEnd();
      setShowJump(!following);
    });
    // An expanded section must stay in view, so opening one ends following.
    const handleClick = (event) => {
      if (event.target.closest("summary")) following = false;
    };
    box.addEventListener("scroll", handleScroll, { passive: true });
    box.addEventListener("click", handleClick);
    resizeObserver.observe(box.firstElementChild);
    resizeObserver.observe(box);
    box.scrollToEnd = () => {
      following = true;
      box.scrollTop = box.scrollHeight;
    };
    return () => {
      box.removeEventListener("scroll", handleScroll);
      box.removeEventListener("click", handleClick);
      resizeObserver.disconnect();
    };
  }, [session]);
  useEffect(() => container.current.scrollToEnd?.(), [session, session.turns.length]);

  return html`<div class="scroll" ref=${container} tabindex="0" role="region" aria-label="Conversation">
      <div class="column" role="log" aria-live="off" aria-busy=${session.busy ? "true" : "false"}>
        ${session.state === "failed" && html`<${LoadError} session=${session} />`}
        ${session.state === "loading" && html`<p class="muted centre">Loading conversation…</p>`}
        ${["new", "ready"].includes(session.state) && session.turns.length === 0 && html`<${Welcome} session=${session} />`}
        ${session.turns.map((turn, index) => html`<${Turn} key=${turn.key} turn=${turn} previousRun=${session.turns[index - 1]?.run} session=${session} />`)}
      </div>
    </div>
    ${showJump && html`<button type="button" class="to-end" onClick=${() => container.current.scrollToEnd()} aria-label="Scroll to the end" title="Scroll to the end"><${Icon} name="down" /></button>`}`;
}

function LoadError({ session }) {
  const { error } = session;
  const notFound = error?.status === 404;
  return html`<div class="note bad centre" role="alert"><p>${notFound ? "Conversation not found." : error?.message}</p>
    <p>${notFound ? html`<a href="#/">Start a new conversation</a>` : html`<button type="button" onClick=${() => session.onChange("reload")}>Try again</button>`}</p></div>`;
}

const EXAMPLES = ["What is the account value of customer 42?", "Which customers joined most recently?", "Create a support ticket for customer 42 about a broken printer, high priority"];

function Welcome({ session }) {
  useModel(catalogue);
  const showExamples = catalogue.tools.some((it) => it.tool === "calculate_account_value");
  const toolCount = catalogue.tools.length;
  const serverCount = new Set(catalogue.tools.map((it) => it.server)).size;
  return html`<div class="welcome">
    <img src=${urlOf("/assets/icon.svg")} alt="" width="48" height="48" />
    <h2>What can I help you with?</h2>
    <p class="muted">${toolCount ? `${plural(toolCount, "tool")} from ${plural(serverCount, "server")} ready` : "Ask anything. Tools come from the configured MCP servers."}</p>
    ${showExamples && html`<ul class="examples">${EXAMPLES.map((text) => html`<li><button type="button" onClick=${() => session.onChange("send", text)}>${text}</button></li>`)}</ul>`}
  </div>`;
}

function Turn({ turn, previousRun, session }) {
  return html`<article class="turn" aria-label="Question and answer">
    ${turn.user && html`<${UserMessage} message=${turn.user} />`}
    ${turn.failed && html`<div class="note bad" role="alert"><${Icon} name="warn" /><div>${turn.failed.message}</div>
      <button type="button" class="small" onClick=${() => session.onChange("editFailed", turn)}>Edit and try again</button></div>`}
    ${turn.run ? html`<${RunView} run=${turn.run} previousRun=${previousRun} session=${session} />` : !turn.failed && turn.user && html`<${Activity} label="Sending…" />`}
  </article>`;
}

/** Number of lines of a user message that are shown before the user expands it. */
const MAX_MESSAGE_LINES = 12;

function UserMessage({ message }) {
  const [expanded, setExpanded] = useState(false);
  const text = messageText(message);
  const isLong = text.split("\n").length > MAX_MESSAGE_LINES;
  return html`<div class="user-message ${isLong && !expanded ? "clipped" : ""}"><div><span class="visually-hidden">You: </span>${text}</div>
    ${isLong && html`<button type="button" class="quiet small" aria-expanded=${expanded ? "true" : "false"} onClick=${() => setExpanded(!expanded)}>${expanded ? "Show less" : "Show more"}</button>`}</div>`;
}

function RunView({ run, previousRun, session }) {
  useModel(run);
  // Hides the server warnings that the previous run already showed.
  const shownNotes = new Set(previousRun?.items.filter((it) => it.persistent).map((it) => it.text));
  const items = run.items.filter((it) => !it.persistent || !shownNotes.has(it.text));
  return html`<div class="run" data-run=${run.id} data-state=${run.state}>
    <h2 class="visually-hidden">Answer</h2>
    ${items.map((item) => html`<${RunItem} key=${item.key} item=${item} rev=${item.rev} run=${run} session=${session} problem=${run.problem} />`)}
    <${RunStatus} run=${run} session=${session} />
  </div>`;
}

/** One item of a run. Renders only when its `rev` or the problem of the run changes. */
class RunItem extends Component {
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
  return html`<details class="aside"><summary><${Icon} name="think" /> ${item.open ? "Thinking…" : "Reasoning"}</summary><p class="plain-text">${item.text}</p></details>`;
}

function Activity({ label }) {
  return html`<p class="working"><span class="dots" aria-hidden="true"><i /><i /><i /></span> ${label}</p>`;
}

/** Tone and label of each outcome that needs an explanation. */
const OUTCOMES = { limited: ["warn", "Stopped: limit reached"], failed: ["bad", "Failed"], cancelled: ["info", "Stopped"] };

function RunStatus({ run, session }) {
  useModel(catalogue);
  const { report, state, problem } = run;
  const needsInput = run.pendingApprovals.length || run.openQuestions.length;
  if (state === "interrupted" || (state === "waiting" && !needsInput)) {
    return html`<div class="note warn"><${Icon} name="warn" /><div>${state === "interrupted" ? "This run was interrupted. Its completed steps are saved." : "This run is paused."}${problem && ` ${problem}`}</div>
      <button type="button" class="small" onClick=${() => session.resume(run)}>Continue</button></div>`;
  }
  const [tone, label] = OUTCOMES[report?.outcome] ?? [];
  return html`${run.isActive && !needsInput && !problem && html`<${Activity} label=${activityLabel(run)} />`}
    ${problem && html`<div class="note bad" role="alert"><${Icon} name="warn" /><div>${problem}</div></div>`}
    ${tone && html`<div class="note ${tone}"><${Icon} name=${tone === "info" ? "stop" : "warn"} /><div><strong>${label}.</strong> ${report.error?.message ?? ""}</div>
      ${canRetry(run, session) && html`<button type="button" class="small" onClick=${() => session.onChange("retry")}>Retry</button>`}</div>`}
    ${state === "finished" && html`<${RunFooter} run=${run} />`}`;
}

/** Returns whether the run answers the last message, which consists of text only. */
function canRetry(run, session) {
  return run === session.current && Boolean(session.turns.at(-1).user?.parts.every((part) => part.type === "text"));
}

function activityLabel(run) {
  if (run.stopping) return "Stopping…";
  const last = run.items.at(-1);
  if (last?.kind === "tool" && last.status === "running") return `Running ${last.tool}…`;
  if (last?.kind === "text" && last.open) return "Writing…";
  if (run.phase === "formatting") return "Writing the answer…";
  return run.thinking ? "Thinking…" : "Working…";
}

function RunFooter({ run }) {
  const { usage, model, report } = run;
  const parts = [model];
  if (report?.steps > 1) parts.push(`${report.steps} steps`);
  parts.push(...formatTokenUsage(usage));
  const cost = catalogue.cost(model, usage);
  if (cost) parts.push(`about ${formatDollars(cost)}`);
  const elapsed = run.started && run.ended ? Date.parse(run.ended) - Date.parse(run.started) : null;
  if (elapsed !== null) parts.push(formatDuration(elapsed));
  const answer = run.answer.trim();
  return html`<div class="footer muted"><p>${parts.filter(Boolean).join(" · ")}</p>
    ${answer && html`<button type="button" class="quiet small" aria-label="Copy answer" onClick=${(event) => copyText(answer, event.currentTarget)}>Copy</button>`}</div>`;
}

/** Formats token usage as a list of phrases, such as "1.2K input tokens". */
export function formatTokenUsage(usage) {
  const parts = [];
  if (usage.input_tokens != null) parts.push(`${formatCount(usage.input_tokens)} input tokens${usage.cache_read_tokens ? ` (${formatCount(usage.cache_read_tokens)} cached)` : ""}`);
  if (usage.output_tokens != null) parts.push(`${formatCount(usage.output_tokens)} output tokens${usage.reasoning_tokens ? ` (${formatCount(usage.reasoning_tokens)} reasoning)` : ""}`);
  return parts;
}
