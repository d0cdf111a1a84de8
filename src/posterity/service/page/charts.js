// Charts in plain SVG. Text goes in as text only: no name can become markup.

const SVG = "http://www.w3.org/2000/svg";
const EDGE = { top: 8, right: 10, bottom: 22, left: 46 };

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return node;
}

export const html = (tag, attributes = {}, ...children) =>
  build(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  build(document.createElementNS(SVG, tag), attributes, children);

// ---- numbers and times ---------------------------------------------------------------------------

export const known = value => value !== null && Number.isFinite(value);

export function number(value, digits = 3) {
  if (!known(value)) return "–";
  const size = Math.abs(value);
  if (size >= 10_000) {
    return new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: digits }).format(value);
  }
  if (size > 0 && size < 0.001) return value.toExponential(1);
  return new Intl.NumberFormat("en", { maximumSignificantDigits: digits }).format(value);
}

export const percent = value => (known(value) ? `${number(100 * value, value > 0.995 ? 4 : 3)}%` : "–");

export function duration(seconds) {
  if (!known(seconds)) return "–";
  const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1], ["ms", 0.001]];
  const [unit, size] = units.find(([, size]) => seconds >= size) ?? units.at(-1);
  return `${number(seconds / size, 2)} ${unit}`;
}

export function clock(seconds, span = 0) {
  const parts = span > 172_800 ? { month: "short", day: "numeric" }
    : span > 600 ? { hour: "2-digit", minute: "2-digit" }
      : { hour: "2-digit", minute: "2-digit", second: "2-digit" };
  return new Intl.DateTimeFormat("en-GB", parts).format(new Date(1000 * seconds));
}

const linear = ([from, to], [start, end]) => value =>
  start + (to > from ? (value - from) / (to - from) : 0.5) * (end - start);

export function extent(values, fallback = [0, 1]) {
  const finite = values.filter(known);
  if (!finite.length) return fallback;
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const room = high > low ? 0.06 * (high - low) : Math.abs(high) || 1;
  return [low - room, high + room];
}

function ticks([low, high], count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find(factor => factor * power >= rough) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, k) => Number(((first + k) * step).toPrecision(12)));
}

// ---- layers along time: each takes the scales, and gives nodes -----------------------------------

const path = points => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// Stretches of what is known: a line has gaps where it is not.
function runs(values) {
  const found = [[]];
  values.forEach((value, k) => (known(value) ? found.at(-1).push(k) : found.push([])));
  return found.filter(run => run.length);
}

export const line = (values, colour) => ({ x, y, times }) =>
  runs(values).map(run => run.length > 1
    ? svg("path", { class: `line ${colour}`, d: path(run.map(k => [x(times[k]), y(values[k])])) })
    : svg("circle", { class: `dot ${colour}`, r: 2.5, cx: x(times[run[0]]), cy: y(values[run[0]]) }));

export const band = (lows, highs, colour) => ({ x, y, times }) =>
  runs(lows.map((low, k) => (known(highs[k]) ? low : null))).map(run => {
    const upper = run.map(k => [x(times[k]), y(highs[k])]);
    const lower = run.map(k => [x(times[k]), y(lows[k])]).reverse();
    return svg("path", { class: `band ${colour}`, d: `${path([...upper, ...lower])}Z` });
  });

export const dots = (values, colour) => ({ x, y, times }) => values.flatMap((value, k) =>
  known(value) ? [svg("circle", { class: `dot ${colour}`, r: 2, cx: x(times[k]), cy: y(value) })] : []);

// `rows` has for each time one value of each series; as steps, a value holds from the time before.
export const stack = (rows, colours, steps = false) => ({ x, y, times }) => {
  const base = rows.map(() => 0);
  const edge = () => base.flatMap((value, k) => {
    const here = [x(times[k]), y(value)];
    return steps && k ? [[x(times[k - 1]), y(value)], here] : [here];
  });
  return colours.map((colour, series) => {
    const lower = edge().reverse();
    rows.forEach((row, k) => { base[k] += row[series]; });
    const upper = edge();
    return svg("path", { class: `area ${colour}`, d: `${path([...upper, ...lower])}Z` });
  });
};

export const rule = value => ({ y, right }) =>
  [svg("line", { class: "rule", x1: EDGE.left, x2: right, y1: y(value), y2: y(value) })];

export const drift = periods => ({ x, bottom }) => periods.map(one => {
  const [from, to] = [Math.max(EDGE.left, x(one.start)), x(one.end)];
  if (to < EDGE.left) return null;
  return svg("rect", { class: "drift", x: from, width: Math.max(2, to - from), y: EDGE.top, height: bottom - EDGE.top },
    svg("title", {}, `Drift: errors ${number(one.ratio, 2)} times the usual`));
});

export const alarms = list => ({ x, bottom, times }) => list.filter(one => one.at >= times[0]).map(one =>
  svg("path", { class: "alarm", d: `M${x(one.at) - 4} ${bottom}l4 -7l4 7Z` },
    svg("title", {}, `Surprising row ${one.id}: ${number(one.y)} where ${number(one.mean)} was expected`)));

export function timeline({ width, times, domain, layers, format = number, tell = clock, says, height = 190 }) {
  const [right, bottom] = [width - EDGE.right, height - EDGE.bottom];
  if (times.length < 2) return html("p", { class: "empty" }, "Not enough yet to draw.");
  const span = times.at(-1) - times[0];
  const x = linear([times[0], times.at(-1)], [EDGE.left, right]);
  const y = linear(domain, [bottom, EDGE.top]);
  const grid = ticks(domain, 4).map(value => [
    svg("line", { class: "grid", x1: EDGE.left, x2: right, y1: y(value), y2: y(value) }),
    svg("text", { class: "tick end", x: EDGE.left - 6, y: y(value) + 4 }, format(value)),
  ]);
  const marks = width > 420 ? [0, 1 / 3, 2 / 3, 1] : [0, 0.5, 1];
  const labels = marks.map(share => svg("text", {
    class: `tick ${share === 0 ? "" : share === 1 ? "end" : "middle"}`,
    x: EDGE.left + share * (right - EDGE.left),
    y: height - 5,
  }, tell(times[0] + share * span, span)));
  const drawn = layers.flatMap(layer => layer({ x, y, times, right, bottom }));
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": says },
    grid, drawn, labels);
}

// ---- others --------------------------------------------------------------------------------------

export function bars({ width, counts, labels, says, height = 190 }) {
  const [right, bottom] = [width - EDGE.right, height - EDGE.bottom];
  const slot = (right - EDGE.left) / counts.length;
  const y = linear([0, Math.max(...counts, 1) * 1.06], [bottom, EDGE.top]);
  const grid = ticks([0, Math.max(...counts, 1)], 4).filter(Number.isInteger).map(value => [
    svg("line", { class: "grid", x1: EDGE.left, x2: right, y1: y(value), y2: y(value) }),
    svg("text", { class: "tick end", x: EDGE.left - 6, y: y(value) + 4 }, number(value)),
  ]);
  const every = Math.ceil(counts.length * 62 / (right - EDGE.left));
  const drawn = counts.map((count, k) => [
    svg("rect", {
      class: "area s0", x: EDGE.left + k * slot + 1, width: Math.max(1, slot - 2), y: y(count), height: bottom - y(count),
    }, svg("title", {}, `${labels[k]} to ${labels[k + 1]}: ${count}`)),
    k % every ? null : svg("text", { class: "tick", x: EDGE.left + k * slot, y: height - 5 }, labels[k]),
  ]);
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": says }, grid, drawn.flat());
}

// Means and how far each may be off, one below the other, on a scale that all rows of a table share.
export function forest({ entries, domain, width = 150, step = 9, says }) {
  const x = linear(domain, [4, width - 4]);
  const clip = value => Math.min(width, Math.max(0, x(value)));
  const height = step * entries.length + 2;
  const zero = domain[0] < 0 && domain[1] > 0 ? svg("line", { class: "grid", x1: x(0), x2: x(0), y1: 0, y2: height }) : null;
  const drawn = entries.flatMap(({ mean, low, high, colour, strong }, k) => {
    const at = step * (k + 0.5) + 1;
    return known(mean) ? [
      known(low) && known(high)
        ? svg("line", { class: `whisker ${colour} ${strong ? "strong" : ""}`, x1: clip(low), x2: clip(high), y1: at, y2: at }) : null,
      svg("circle", { class: `dot ${colour}`, cx: clip(mean), cy: at, r: strong ? 4 : 2.5 }),
    ] : [];
  });
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": says }, zero, drawn);
}
