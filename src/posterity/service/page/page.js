// The live page: logs in, follows what changes, and draws what the overview tells.

import * as chart from "./charts.js";

const { html, number, percent } = chart;
const KEY = "posterity token";
const COLOURS = 7; // arms with a colour of their own; the others share grey
const REFUSED = {
  401: "This token is not known here, or it has expired. Check that you copied all of it, or ask whoever runs this service for a new one.",
  403: "This token is not allowed to see the page. Ask whoever runs this service for one of role read.",
};
const find = id => document.getElementById(id);
let told = null; // the overview that is shown
let following = null; // ends what listens

// ---- pieces --------------------------------------------------------------------------------------

const tile = (name, value, note = "") =>
  html("div", { class: "tile" }, html("dt", {}, name), html("dd", {}, value), html("p", { class: "note" }, note));

const named = (colour, name) =>
  html("span", { class: "named", title: name }, html("span", { class: `swatch ${colour}` }), html("bdi", {}, name));

// A figure is drawn when it is in the page, as wide as its place there is.
function figure(title, note, draw) {
  const place = html("div", { class: "plot" });
  place.draw = () => place.replaceChildren(draw(Math.max(200, Math.floor(place.clientWidth))));
  return html("figure", {}, html("figcaption", {}, html("b", {}, title), html("span", { class: "note" }, note)), place);
}

const cells = (tag, texts) => html("tr", {}, texts.map(text => html(tag, {}, text)));

const table = (title, heads, rows) =>
  html("section", { class: "wide" }, html("h3", {}, title),
    html("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
      html("table", {}, html("thead", {}, cells("th", heads)), html("tbody", {}, rows))));

const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

const waits = (one, words, legend, hint) =>
  html("section", { class: "model card" }, head(one, words), legend, html("p", { class: "empty" }, hint));

const head = (one, words) =>
  html("header", {}, html("h2", {}, html("bdi", {}, one.name)), html("p", { class: "note" }, words.join(" · ")));

function warning(periods, until) {
  const last = periods.at(-1);
  if (!last) return null;
  const lasts = last.end >= until ? "since" : "from";
  const end = last.end >= until ? "" : ` to ${chart.clock(last.end)}`;
  return html("p", { class: "warning", role: "note" },
    `▲ Drift ${lasts} ${chart.clock(last.start)}${end}: errors ${number(last.ratio, 2)} times the usual.`);
}

// ---- experiments ---------------------------------------------------------------------------------

// The arms that are picked most have colours, in the order of the settings, so that they stay.
function colours(arms) {
  const most = [...arms.keys()].sort((a, b) => arms[b].pulls - arms[a].pulls).slice(0, COLOURS);
  const shown = arms.length <= COLOURS ? [...arms.keys()] : most.sort((a, b) => a - b);
  return arms.map((_, k) => (shown.includes(k) ? `s${shown.indexOf(k)}` : "other"));
}

function experiment(one) {
  const colour = colours(one.arms);
  const { settings, times } = one;
  const delays = one.delays ?? {}, waits = one.waits ?? {};
  const shownArms = one.arms.map((arm, k) => ({ ...arm, k })).filter(({ k }) => colour[k] !== "other");
  const rest = one.arms.length - shownArms.length;
  const words = ["experiment", settings.policy, settings.model, counted(one.arms.length, "arm"),
    counted(settings.features.length, "feature"), `settings ${one.version}`];
  const legend = html("div", { class: "legend" }, shownArms.map(({ arm, k }) => named(colour[k], arm)),
    rest ? named("other", counted(rest, "other")) : null);
  if (!one.decisions) return waits(one, words, legend, "No decision has been asked for yet.");
  return html("section", { class: "model card" },
    head(one, words),
    warning(one.drift, times.at(-1)),
    html("dl", { class: "tiles" },
      tile("Decisions a second", number(one.rate, 2), `the newest ${number(one.decisions, 4)} are shown`),
      tile("Mean reward", number(one.reward.mean), interval(one.reward)),
      tile("Rewarded", percent(one.decisions ? one.rewarded / one.decisions : null), `${number(one.rewarded, 4)} decisions`),
      tile("Median delay", chart.duration(delays["50%"]), `99% within ${chart.duration(delays["99%"])}`),
      tile("Median wait", chart.duration(waits["50%"]), `99% within ${chart.duration(waits["99%"])}, the slowest ${chart.duration(waits["100%"])}`),
      tile("Smallest propensity", percent(one.support), "of any allowed arm"),
      tile("Support", number(one.effective), "decisions' worth, to judge a uniform policy")),
    legend,
    html("div", { class: "plots" }, figures(one, colour),
      armsFigure(one, shownArms, colour)),
    lastDecisions(one, colour));
}

const interval = ({ low, high }) => (chart.known(low) ? `95%: ${number(low)} to ${number(high)}` : "no interval yet");

// Series of arms without a colour are added up.
function grouped(rows, colour) {
  const names = [...new Set(colour)].sort();
  const sums = rows.map(row => names.map(name => row.reduce((sum, value, k) => sum + (colour[k] === name ? value : 0), 0)));
  return [sums, names];
}

function figures(one, colour) {
  const { times } = one;
  const [chances, names] = grouped(one.propensities, colour);
  const shortest = Math.max(1e-3, (times.at(-1) - one.starts[0]) / 600);
  // A first stretch of one batch has no length of its own: it is taken to be as long as the next.
  const begun = one.starts[0] < times[0] ? one.starts[0] : 2 * times[0] - (times[1] ?? times[0]);
  const lasted = times.map((end, k) => Math.max(shortest, end - (k ? times[k - 1] : begun)));
  const rates = grouped(one.traffic, colour)[0].map((row, k) => row.map(count => count / lasted[k]));
  const busiest = Math.max(...rates.map(row => row.reduce((a, b) => a + b, 0)), 1e-9);
  const costs = one.regrets.filter(chart.known);
  return [
    figure("Propensities", "with what probability each arm is picked", width => chart.timeline({
      width, times, domain: [0, 1], format: percent, says: "Propensities of arms along time",
      layers: [chart.stack(chances, names)] })),
    figure("Reward", "mean of the newest 30 or more, with its 95% band; drift is shaded", width => chart.timeline({
      width, times, domain: chart.extent([...one.lows, ...one.highs, ...one.rewards]), says: "Mean reward along time",
      layers: [chart.drift(one.drift), chart.band(one.lows, one.highs, "s0"), chart.line(one.rewards, "s0")] })),
    figure("Reward by arm", "mean of its newest 30 rewards", width => chart.timeline({
      width, times, domain: chart.extent(one.arm_rewards.flatMap(row => row.filter((_, k) => colour[k] !== "other"))),
      says: "Mean reward of each arm along time",
      layers: colour.map((name, k) => (name === "other" ? () => [] : chart.line(one.arm_rewards.map(row => row[k]), name))) })),
    figure("Traffic", "decisions a second, by arm", width => chart.timeline({
      width, times, domain: [0, 1.06 * busiest], says: "Decisions a second along time, by arm",
      layers: [chart.stack(rates, names, true)] })),
    figure("Expected regret", "beside the arm that was believed to be best", width => chart.timeline({
      width, times, domain: [0, 1.06 * Math.max(...costs, 0) || 1], says: "Expected regret along time",
      layers: [chart.line(one.regrets, "s0")] })),
    figure("Delay of rewards", "from a decision to its first reward", width => delayBars(one, width)),
  ];
}

function delayBars(one, width) {
  const full = one.delay_counts.map((count, k) => (count ? k : -1)).filter(k => k >= 0);
  if (!full.length) return html("p", { class: "empty" }, "No reward yet.");
  const [first, end] = [Math.max(0, full[0] - 1), Math.min(one.delay_counts.length, full.at(-1) + 2)];
  return chart.bars({ width, counts: one.delay_counts.slice(first, end), says: "Rewards by delay",
    labels: one.delay_edges.slice(first, end + 1).map(chart.duration) });
}

function armsFigure(one, shown, colour) {
  const domain = chart.extent(shown.flatMap(arm => [arm.low, arm.high, arm.mean]));
  const rows = shown.map(({ arm, pulls, mean, low, high, k }) => {
    const share = one.decisions ? pulls / one.decisions : 0;
    return html("div", { class: "arm" }, named(colour[k], arm), html("span", { class: "figure" }, percent(share)),
      html("meter", { min: 0, max: 1, value: share, "aria-label": `share of ${arm}` }),
      html("span", { class: "figure" }, number(mean)),
      chart.forest({ entries: [{ mean, low, high, colour: colour[k], strong: true }], domain, width: 96, step: 16,
        says: `Mean reward of ${arm}: ${interval({ low, high })}` }));
  });
  return html("figure", {}, html("figcaption", {}, html("b", {}, "Arms"),
    html("span", { class: "note" }, "share of traffic; mean reward with its 95% interval")), rows);
}

function lastDecisions(one, colour) {
  const arms = one.arms.map(({ arm }) => arm);
  const reasons = one.last.map(made => arms.map((arm, k) => {
    const [mean, width] = [made.means[arm] ?? null, made.widths[arm] ?? null];
    const whole = chart.known(mean) && chart.known(width);
    return { arm, mean, low: whole ? mean - width : null, high: whole ? mean + width : null, colour: colour[k],
      strong: arm === made.arm };
  }).filter(entry => entry.strong || entry.colour !== "other"));
  const domain = chart.extent(reasons.flat().flatMap(entry => [entry.mean, entry.low, entry.high]));
  const width = innerWidth > 600 ? 300 : 84;
  const rows = one.last.map((made, k) => cells("td", [
    chart.clock(made.at),
    named(colour[arms.indexOf(made.arm)], made.arm),
    percent(made.propensity),
    chart.forest({ entries: reasons[k], domain, width,
      says: reasons[k].map(({ arm, mean, high }) => `${arm}: ${number(mean)} ± ${number(chart.known(high) ? high - mean : null)}`).join("; ") }),
    chart.known(made.reward) ? number(made.reward) : "waits",
  ]));
  return table("Last decisions", ["Time", "Arm", "Propensity", "Believed of each arm", "Reward"], rows);
}

// ---- predictors ----------------------------------------------------------------------------------

function predictor(one) {
  const { scores, settings, times, newest, recent_coverage: recent } = one;
  const level = settings.level;
  const ends = end => one.coverage.map(share => share[end]);
  const along = { times: one.ends, tell: teller(times, place => one.ends.findIndex(end => end >= place), scores.n - one.ends.at(-1)) };
  const drift = chart.drift(one.drift.map(period => ({ ...period, start: period.first, end: period.last })));
  const marks = chart.alarms(one.alarms.map(row => ({ ...row, at: row.row })));
  const changes = one.events.map(({ at, told }) => cells("td", [`${chart.clock(at, Infinity)} ${chart.clock(at)}`, told])).reverse();
  const surprises = one.alarms.map(row => cells("td", [chart.clock(row.at), html("bdi", {}, row.id), number(row.y), number(row.mean), number(row.log_score)])).reverse();
  const words = ["predictor", settings.formula ?? settings.model, counted(Object.keys(one.schema).length, "feature")];
  if (!times.length) return waits(one, words, null, "No row that could be predicted has been learned yet.");
  return html("section", { class: "model card" },
    head(one, words),
    warning(one.drift, times.at(-1)),
    one.unusual.map(told => html("p", { class: "warning", role: "note" }, `▲ ${told}.`)),
    html("dl", { class: "tiles" },
      tile("Rows scored", number(scores.n, 4), "predicted, then learned"),
      tile("Coverage", percent(recent.mean), `newest ${recent.n}; 95%: ${percent(recent.low)} to ${percent(recent.high)}; promised ${percent(level)}`),
      tile("Root mean squared error", number(scores.rmse), `mean absolute ${number(scores.mae)}`),
      tile("Log score", number(scores.log_score), "a row, the larger the better"),
      tile("Surprising rows", number(one.alarms.length), "of the newest")),
    html("div", { class: "plots" },
      rowsFigure(newest, level, scores.n),
      figure("Coverage", "shaded: where it lies with 95% probability; dashed: what is promised", width => chart.timeline({
        width, ...along, format: percent, says: "Coverage of intervals along time",
        domain: [Math.max(0, Math.min(...ends("low"), level) - 0.05), 1],
        layers: [chart.band(ends("low"), ends("high"), "s0"), chart.rule(level), chart.line(ends("mean"), "s0"), marks] })),
      figure("Error", "root mean squared; shaded: drift, marks: surprises", width => chart.timeline({
        width, ...along, domain: [0, chart.extent(one.errors)[1]], says: "Root mean squared error along time",
        layers: [drift, chart.line(one.errors, "s0"), marks] })),
      figure("Log score", "mean of a row", width => chart.timeline({
        width, ...along, domain: chart.extent(one.log_scores), says: "Log score along time",
        layers: [drift, chart.line(one.log_scores, "s0")] }))),
    changes.length ? table("What changed", ["When", "What"], changes) : null,
    surprises.length ? table("Surprising rows", ["Time", "Row", "Value", "Expected", "Log score"], surprises) : null);
}

// What an axis of rows says of a place: the time, or the row's number where many rows have one time.
function teller(times, find, first) {
  if (new Set(times).size < 0.5 * times.length) return place => `row ${number(first + Math.round(place), 4)}`;
  return (place, span) => chart.clock(times[find(place)], span && times.at(-1) - times[0]);
}

// Rows as they came, one after the other, each with what was expected before it was learned.
function rowsFigure(rows, level, total) {
  const all = name => rows.map(row => row[name]);
  return figure("Target and prediction", `points: the newest ${rows.length} rows; line: expected, with its ${percent(level)} interval`,
    width => chart.timeline({
      width, times: [...rows.keys()], domain: chart.extent(["y", "mean", "low", "high"].flatMap(all)),
      tell: teller(all("at"), Math.round, total - rows.length + 1),
      says: "Targets and predictions of the newest rows",
      layers: [chart.band(all("low"), all("high"), "s0"), chart.line(all("mean"), "s0"), chart.dots(all("y"), "s3")] }));
}

// ---- drawing -------------------------------------------------------------------------------------

function draw() {
  if (told === null) return;
  const scrolled = [...document.querySelectorAll(".scroll")].map(box => box.scrollLeft);
  const sections = [...told.experiments.map(experiment), ...told.predictors.map(predictor)];
  const empty = html("p", { class: "card empty" }, "Nothing is served yet: create an experiment or a predictor.");
  find("models").replaceChildren(...(sections.length ? sections : [empty]));
  drawPlots();
  document.querySelectorAll(".scroll").forEach((box, k) => { box.scrollLeft = scrolled[k] ?? 0; });
}

const drawPlots = () => document.querySelectorAll(".plot").forEach(place => place.draw());

function say(state, words) {
  find("status").dataset.state = state;
  find("said").textContent = words;
}

// ---- following -----------------------------------------------------------------------------------

const sleep = milliseconds => new Promise(done => { setTimeout(done, milliseconds); });

async function ask(path, signal) {
  const answer = await fetch(path, { headers: { authorization: `Bearer ${sessionStorage.getItem(KEY)}` }, signal, cache: "no-store" });
  if (answer.status === 401 || answer.status === 403) {
    leave(REFUSED[answer.status]);
  }
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer;
}

// Shows the overview whenever something changed, but leaves the server ten times as long as it took.
async function show(signal, news) {
  while (!signal.aborted) {
    const before = performance.now();
    if (!document.hidden && news.there) {
      news.there = false;
      try {
        told = await (await ask("/v1/overview", signal)).json();
        draw();
        say(told.ready ? "live" : "away", told.ready ? `live · ${chart.clock(told.at)}` : "the database is away");
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof TypeError) && !/^\d+$/.test(error.message)) throw error;
        news.there = true;
        say("away", "no answer, trying again");
      }
    }
    await sleep(Math.max(1000, 10 * (performance.now() - before)));
  }
}

async function listen(signal, news) {
  for (let wait = 500; !signal.aborted; wait = Math.min(10_000, 2 * wait)) {
    try {
      const reader = (await ask("/v1/events", signal)).body.getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        news.there = true; // a greeting too: something may have happened before
        wait = 500;
      }
    } catch {
      if (signal.aborted) return;
    }
    say("away", "no answer, trying again");
    await sleep(wait);
  }
}

function follow() {
  const ends = new AbortController();
  following = ends;
  find("login").hidden = true;
  find("leave").hidden = false;
  say("waits", "connecting");
  const news = { there: true };
  const rates = setInterval(() => { news.there = true; }, 15_000); // they fall while nothing happens
  ends.signal.addEventListener("abort", () => clearInterval(rates));
  show(ends.signal, news);
  listen(ends.signal, news);
}

function leave(why = "") {
  sessionStorage.removeItem(KEY);
  following?.abort();
  told = null;
  find("models").replaceChildren();
  find("refused").textContent = why;
  find("login").hidden = false;
  find("leave").hidden = true;
  say("waits", "not connected");
  find("token").focus();
}

find("login").addEventListener("submit", event => {
  event.preventDefault();
  sessionStorage.setItem(KEY, find("token").value.trim());
  find("token").value = "";
  find("refused").textContent = "";
  follow();
});
find("leave").addEventListener("click", () => leave());
let resized = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(resized);
  resized = requestAnimationFrame(drawPlots);
});

if (sessionStorage.getItem(KEY)) follow();
else leave();
