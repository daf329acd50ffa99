#include "rendezvous/http_page_text.h"

namespace muster {

const char* const kPagePolicy =
    "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const char* const kPageText = R"html(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>muster</title>
<style>
body { font: 14px/1.5 sans-serif; margin: 2em; max-width: 80em; }
h2 { margin-bottom: 0; }
table { border-collapse: collapse; margin: 0.5em 0 1.5em; }
th, td { text-align: left; padding: 0.1em 1.5em 0.1em 0; vertical-align: top; }
th { font-weight: normal; color: #666; }
#problem { color: #b00; }
</style>
</head>
<body>
<h1>muster</h1>
<p id="problem"></p>
<div id="jobs"></div>
<script>
"use strict";
const NODE = ["node", "state", "group_rank", "first_rank", "slots", "step", "progress_ago_ms",
              "heard_ago_ms", "address"];
const INCIDENT = ["incident", "time", "generation", "kind", "outcome", "charged", "failed_node",
                  "failed_rank", "failed_status", "detect_ms", "stop_ms",
                  "rendezvous_ms", "start_ms", "ready_ms", "total_ms", "text"];

function seconds(ms) {
  return Math.ceil(ms / 1000) + " s";
}

function counted(number, noun) {
  return number + " " + noun + (number === 1 ? "" : "s");
}

function add(parent, tag, text) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = String(text);
  parent.appendChild(element);
  return element;
}

function table(parent, names, rows) {
  if (rows.length === 0) return;
  const element = add(parent, "table");
  const head = add(element, "tr");
  for (const name of names) add(head, "th", name.replace(/_/g, " "));
  if (names === NODE) add(head, "th", "why");
  for (const row of rows) {
    const line = add(element, "tr");
    for (const name of names) add(line, "td", row[name]);
    if (names === NODE) add(line, "td", row.why === null ? "" : row.why.text);
  }
}

function show(status) {
  const jobs = document.createElement("div");
  const trouble = status.store_trouble;
  if (trouble !== null) {
    add(jobs, "p", "The state cannot be written for " + seconds(trouble.age_ms) + " now: " +
        trouble.why + ". Jobs wait.");
  }
  if (status.jobs.length === 0) add(jobs, "p", "no jobs");
  for (const job of status.jobs) {
    add(jobs, "h2", job.job);
    const left = job.why.time_left_ms;
    const phase = job.phase + ": ";
    add(jobs, "p", (job.why.text.startsWith(phase) ? "" : phase) + job.why.text +
        (left === null ? "" : "; at most " + seconds(left) + " more") +
        ". Generation " + job.generation + ", " + counted(job.members, "node") + ", " +
        counted(job.world_size, "worker") + ", " + job.restarts_used + " of " +
        job.restarts_max + " restarts used." +
        (job.step === null ? "" : " Step " + job.step + ", " + seconds(job.progress_ago_ms) +
        " ago."));
    table(jobs, NODE, job.nodes);
    table(jobs, INCIDENT, job.incidents);
  }
  document.getElementById("jobs").replaceChildren(jobs);
}

async function refresh() {
  let problem = "";
  try {
    const answer = await fetch("/api/v1/status");
    if (answer.ok) show(await answer.json());
    else problem = await answer.text();
  } catch (error) {
    problem = "The master does not answer: " + error.message;
  }
  document.getElementById("problem").textContent = problem;
  setTimeout(refresh, 1000);
}
refresh();
</script>
</body>
</html>
)html";

}  // namespace muster
