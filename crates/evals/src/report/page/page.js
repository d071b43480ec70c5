"use strict";
const form = document.getElementById("filter");
const runs = Array.from(document.getElementById("runs").children);
const count = document.getElementById("count");
const field = (name) => form.elements.namedItem(name);
const visibleRuns = () => runs.filter((run) => !run.hidden);
function applyFilter() {
  const model = field("model").value;
  const kind = field("kind").value;
  const failing = field("failing").checked;
  for (const run of runs) {
    run.hidden = (model !== "" && run.dataset.model !== model) || (kind !== "" && run.dataset.kind !== kind) || (failing && run.dataset.passed === "yes");
  }
  count.textContent = `${visibleRuns().length} of ${runs.length} runs are shown`;
}
function openLinkedRun() {
  const run = document.getElementById(location.hash.slice(1));
  if (!(run instanceof HTMLDetailsElement)) return;
  run.parentElement.hidden = false;
  run.open = true;
  run.scrollIntoView();
}
form.addEventListener("input", applyFilter);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => queueMicrotask(applyFilter));
field("open").addEventListener("click", () => {
  const details = visibleRuns().map((run) => run.firstElementChild);
  const open = !details.every((element) => element.open);
  for (const element of details) element.open = open;
});
addEventListener("hashchange", openLinkedRun);
form.hidden = false;
applyFilter();
openLinkedRun();
