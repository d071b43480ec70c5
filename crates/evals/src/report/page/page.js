"use strict";
const form = document.getElementById("filter");
const runs = Array.from(document.getElementById("runs").children);
const count = document.getElementById("count");
const field = (name) => form.elements.namedItem(name);
const shown = () => runs.filter((run) => !run.hidden);
function filter() {
  const model = field("model").value;
  const kind = field("kind").value;
  const failing = field("failing").checked;
  for (const run of runs) {
    run.hidden = (model !== "" && run.dataset.model !== model) || (kind !== "" && run.dataset.kind !== kind) || (failing && run.dataset.passed === "yes");
  }
  count.textContent = `${shown().length} of ${runs.length} runs are shown`;
}
function goTo() {
  const run = document.getElementById(location.hash.slice(1));
  if (!(run instanceof HTMLDetailsElement)) return;
  run.parentElement.hidden = false;
  run.open = true;
  run.scrollIntoView();
}
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => queueMicrotask(filter));
field("open").addEventListener("click", () => {
  const details = shown().map((run) => run.firstElementChild);
  const open = !details.every((it) => it.open);
  for (const it of details) it.open = open;
});
addEventListener("hashchange", goTo);
form.hidden = false;
filter();
goTo();
