// The charts and the slider. Every number is in the page already; nothing is fetched, and nothing is computed but
// value × gain − cost × treated, which is what policy.target does where everybody costs the same. Where costs differ, the order
// of people and arms is that of gain per cost: it stays the same whatever one outcome is worth, and if all costs rise alike, so
// that the page multiplies, subtracts, and ends the slider where the next upgrade would no longer pay.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const PALETTE = {
    light: { ink: "#1c2126", soft: "#565e66", line: "#e3e0da", card: "#ffffff", series: ["#0072B2", "#C24E00", "#00805E", "#B0528A", "#8A6A00", "#3C86B4"] },
    dark: { ink: "#e9e6e1", soft: "#a8b0b7", line: "#30363c", card: "#1b1f23", series: ["#6db9e8", "#ff9a66", "#5cc9a2", "#e3a3c8", "#e0c65a", "#9fd0ee"] },
  };
  const DASHES = [[], [9, 5], [3, 4], [12, 4, 3, 4], [2, 2], [6, 2, 2, 2]];
  let printing = false;
  const palette = () => (dark.matches && !printing ? PALETTE.dark : PALETTE.light);
  const clear = (colour, part) => colour + Math.round(255 * part).toString(16).padStart(2, "0");

  // ---- numbers, as the rest of the page writes them
  const MINUS = "\u2212";
  function places(...values) {
    const size = Math.max(...values.map(Math.abs).filter(Number.isFinite), 0);
    return size === 0 ? 0 : Math.max(0, Math.min(8, 2 - Math.floor(Math.log10(size))));
  }
  function fixed(value, decimals) {
    const text = Math.abs(value).toLocaleString("en-GB", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
    return (value < 0 && /[1-9]/.test(text) ? MINUS : "") + text;
  }
  const num = (value) => (value === null || !Number.isFinite(value) ? "n/a" : fixed(value, places(value)));
  const whole = (value) => fixed(value, 0);
  const range = (low, high) => { const p = places(low, high); return `${fixed(low, p)} to ${fixed(high, p)}`; };
  function percent(share) {  // whole ones, or as many decimals as it takes not to say 0 or 100
    for (const decimals of [0, 1, 2]) {
      const text = fixed(100 * share, decimals);
      if (!["0", "100"].includes(String(Number(text)))) return `${text}%`;
    }
    return `${fixed(100 * share, 0)}%`;
  }

  // ---- what all charts share
  const charts = [];
  function chart(id, height, make) {
    const place = $(id);
    if (!place) return null;
    const held = { place, height, make, plot: null, draw() {
      if (held.plot) held.plot.destroy();
      const made = make(palette());
      const width = Math.max(240, printing ? Math.min(640, place.clientWidth || 640) : place.clientWidth);
      held.plot = new uPlot({ width, height, ...made.options }, made.columns, place);
    } };
    charts.push(held);
    held.draw();
    return held;
  }
  const font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
  function axes(p, x, y, xValues) {
    const common = { stroke: p.soft, font, labelFont: font, grid: { stroke: p.line, width: 1 }, ticks: { show: false } };
    return [
      { ...common, label: x, labelSize: 22, size: 28, grid: { show: false }, values: xValues },
      { ...common, label: y, labelSize: 20, size: (u, values) => Math.max(34, 10 + 7.5 * Math.max(0, ...(values || []).map((v) => String(v).length))), values: (u, ticks) => ticks.map((v) => fixed(v, places2(ticks))) },
    ];
  }
  function places2(ticks) {  // decimals that tell neighbouring ticks apart
    const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : 1;
    return Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
  }
  const narrow = () => window.innerWidth < 560;

  // Keys move the cursor from point to point, and a line below says what is there.
  function readable(held, say) {
    if (!held) return;
    let at = null;
    held.place.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9, PageDown: -10, PageUp: 10 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      const x = held.plot.data[0];
      at = Math.max(0, Math.min(x.length - 1, (at === null ? (steps[event.key] < 0 ? x.length : -1) : at) + steps[event.key]));
      held.plot.setCursor({ left: held.plot.valToPos(x[at], "x"), top: 10 });
      say(at);
    });
  }

  // ---- curves
  const ranked = data.arms.filter((arm) => !data.flat.includes(arm));  // of the others there is nothing to bin
  const state = { kind: "uplift", arm: ranked.length ? ranked[0] : data.arms[0], shown: new Set(data.models) };
  const tenths = document.querySelector(".wide");
  const showTenths = () => { if (tenths) tenths.hidden = data.flat.includes(state.arm); };
  if ($("arm")) $("arm").value = state.arm;
  showTenths();
  const models = data.models;
  const byModel = () => data.curves[state.kind][state.kind === "gain" ? "" : state.arm];
  const banded = () => (state.shown.has(data.main) ? data.main : models.find((name) => state.shown.has(name)));
  function sayCurve(at) {
    const text = models.filter((name) => state.shown.has(name)).map((name) => {
      const c = byModel()[name];
      return `${name} ${num(c.y[at])} (${range(c.low[at], c.high[at])})`;
    });
    const random = byModel()[banded() || data.main].random[at];
    $("read-curves").textContent = `${at}% treated: ${[...text, `at random ${num(random)}`].join(" · ")}`;
  }
  const curves = chart("chart-curves", 340, (p) => {
    const x = Array.from({ length: 101 }, (_, i) => i);
    const columns = [x], series = [{}], bands = [];
    const who = banded();
    if (who) {
      const colour = p.series[models.indexOf(who) % p.series.length];
      columns.push(byModel()[who].high, byModel()[who].low);
      series.push({ stroke: "transparent", width: 0, points: { show: false } }, { stroke: "transparent", width: 0, points: { show: false } });
      bands.push({ series: [1, 2], fill: clear(colour, 0.14) });
    }
    columns.push(byModel()[who || data.main].random);
    series.push({ stroke: p.soft, width: 1.5, dash: [2, 4], points: { show: false } });
    models.forEach((name, j) => {
      if (!state.shown.has(name)) return;
      columns.push(byModel()[name].y);
      series.push({ stroke: p.series[j % p.series.length], width: name === data.main ? 2.5 : 1.75, dash: DASHES[j % DASHES.length], points: { show: false } });
    });
    return { columns, options: {
      series, bands, legend: { show: false }, scales: { x: { time: false, range: [0, 100] } }, padding: [12, 18, 0, 0],
      axes: axes(p, `share of ${data.people} treated`, narrow() ? null : `gain per 1,000 ${data.people}`, (u, ticks) => ticks.map((v) => `${v}%`)),
      cursor: { drag: { x: false, y: false }, points: { size: 8 } },
      hooks: { setCursor: [(u) => { if (u.cursor.idx !== null && u.cursor.idx !== undefined) sayCurve(u.cursor.idx); }] },
    } };
  });
  readable(curves, sayCurve);
  function legend() {
    const place = $("legend");
    if (!place) return;  // no ranking, no curves
    place.replaceChildren();
    models.forEach((name, j) => {
      const label = document.createElement("label"), box = document.createElement("input");
      box.type = "checkbox"; box.checked = state.shown.has(name); box.value = name;
      box.addEventListener("change", () => { state.shown[box.checked ? "add" : "delete"](name); curves.draw(); });
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      svg.setAttribute("width", "28"); svg.setAttribute("height", "8"); svg.setAttribute("aria-hidden", "true");
      for (const [key, value] of Object.entries({ x1: 0, x2: 28, y1: 4, y2: 4, "stroke-width": 2.5, stroke: palette().series[j % 6], "stroke-dasharray": DASHES[j % DASHES.length].join(" ") })) line.setAttribute(key, value);
      svg.append(line); label.append(box, svg, document.createTextNode(name)); place.append(label);
    });
  }
  legend();
  document.querySelectorAll("input[name=kind]").forEach((radio) => radio.addEventListener("change", () => {
    state.kind = radio.value;
    if ($("pick-arm")) $("pick-arm").hidden = state.kind === "gain";
    $("read-curves").textContent = "";
    curves.draw();
  }));
  if ($("arm")) $("arm").addEventListener("change", () => { state.arm = $("arm").value; showTenths(); $("read-curves").textContent = ""; curves.draw(); bars.draw(); calibration.draw(); });

  // ---- tenths
  function whiskers(p, low, high, at) {  // lines from low to high, over what is drawn
    return (u) => {
      const c = u.ctx;
      c.save(); c.setLineDash([]); c.strokeStyle = p.ink; c.lineWidth = 1.25 * devicePixelRatio;
      low.forEach((bottom, i) => {
        if (bottom === null || high[i] === null) return;
        const x = Math.round(u.valToPos(at[i], "x", true)), a = u.valToPos(bottom, "y", true), b = u.valToPos(high[i], "y", true), w = 4 * devicePixelRatio;
        c.beginPath(); c.moveTo(x, a); c.lineTo(x, b); c.moveTo(x - w, a); c.lineTo(x + w, a); c.moveTo(x - w, b); c.lineTo(x + w, b); c.stroke();
      });
      c.restore();
    };
  }
  const spread = (...lists) => {
    const values = lists.flat().filter((v) => v !== null), low = Math.min(...values, 0), high = Math.max(...values, 0), room = 0.06 * (high - low || 1);
    return [low - (low < 0 ? room : 0), high + room];
  };
  function sayBin(at) {
    const b = data.bins[state.arm];
    $("read-bins").textContent = `tenth ${at + 1}: observed ${num(b.observed[at])} (${range(b.low[at], b.high[at])}), predicted ${num(b.predicted[at])}`;
  }
  const bars = chart("chart-bins", 260, (p) => {
    const b = data.bins[state.arm], x = b.observed.map((_, i) => i + 1), [blue, orange] = p.series;
    return { columns: [x, b.observed, b.predicted], options: {
      series: [{}, { stroke: blue, width: 1, fill: clear(blue, 0.22), paths: uPlot.paths.bars({ size: [0.7, 60] }), points: { show: false } },
        { stroke: orange, width: 0, paths: () => null, points: { show: true, size: 9, fill: orange, stroke: p.card, width: 1 } }],
      legend: { show: false }, padding: [12, 8, 0, 0],
      scales: { x: { time: false, range: [0.4, x.length + 0.6] }, y: { range: spread(b.observed, b.low, b.high, b.predicted) } },
      axes: axes(p, "tenth of the ranking, best first", narrow() ? null : "effect per 1,000", (u, ticks) => ticks.map((v) => (Number.isInteger(v) && v >= 1 && v <= x.length ? String(v) : ""))),
      cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
      hooks: { draw: [whiskers(p, b.low, b.high, x)], setCursor: [(u) => { if (u.cursor.idx !== null && u.cursor.idx !== undefined) sayBin(u.cursor.idx); }] },
    } };
  });
  readable(bars, sayBin);
  const calibration = chart("chart-calibration", 260, (p) => {
    const b = data.bins[state.arm];
    const order = b.predicted.map((_, i) => i).filter((i) => b.predicted[i] !== null).sort((i, j) => b.predicted[i] - b.predicted[j]);
    const take = (name) => order.map((i) => b[name][i]);
    const x = take("predicted"), gap = 0.08 * ((x[x.length - 1] - x[0]) || 1);
    return { columns: [x, take("observed"), x], options: {
      series: [{}, { stroke: p.series[0], width: 0, paths: () => null, points: { show: true, size: 9, fill: p.series[0], stroke: p.card, width: 1 } },
        { stroke: p.soft, width: 1.5, dash: [2, 4], points: { show: false } }],
      legend: { show: false }, padding: [12, 18, 0, 0],
      scales: { x: { time: false, range: [x[0] - gap, x[x.length - 1] + gap] }, y: { range: spread(take("low"), take("high"), x) } },
      axes: axes(p, "predicted effect per 1,000", narrow() ? null : "observed", (u, ticks) => ticks.map((v) => fixed(v, places2(ticks)))),
      cursor: { show: false }, hooks: { draw: [whiskers(p, take("low"), take("high"), x)] },
    } };
  });

  // ---- budgets
  const b = data.budget;
  let budget = null;
  if (b) {
    const read = (id, otherwise) => { const field = $(id), value = field ? parseFloat(field.value) : NaN; return Number.isFinite(value) && value >= 0 ? value : otherwise; };
    const list = () => Math.max(1, read("list", b.n));
    const byPerson = b.mode === "people";
    const cost = () => (byPerson ? read("cost", 0) : read("costs", 1)), value = () => (b.worth ? read("values", 1) : read("value", null));
    const worth = b.worth ? [b.worth, b.worth_low, b.worth_high] : [b.gain, b.low, b.high];
    let open = [];  // the stops that the slider can reach
    function reach() {
      const here = open[Number($("slider").value)], worthOne = value(), price = worthOne === null ? 0 : cost();
      const pays = (m) => m === null || (worthOne === null ? 1 : worthOne) * m > price;
      const asGiven = worthOne === (b.worth ? 1 : b.value) && (byPerson || cost() === 1);
      open = b.gain.map((_, i) => i).filter((i) => !b.marginal || pays(b.marginal[i]) || (asGiven && i === b.plan));
      $("slider").max = open.length - 1;
      if (here !== undefined) go(here);
    }
    const go = (stop) => { $("slider").value = Math.max(0, open.filter((i) => i <= stop).length - 1); };
    const at = () => open[Number($("slider").value)];
    function stop(i) {  // everything about one place of the slider, for the whole list
      const size = list(), scale = size / 1000, one = value();
      const found = {
        treated: b.treated[i] * size / b.n, share: b.share[i],
        gain: scale * b.gain[i], low: scale * b.low[i], high: scale * b.high[i], random: scale * b.random[i],
        cost: cost() * (byPerson ? b.share[i] * size : b.spent[i] * size / b.n), profit: null, profitLow: null, profitHigh: null,
      };
      if (one !== null) {
        const paid = byPerson ? found.cost : cost() * scale * b.paid[i];
        [found.profit, found.profitLow, found.profitHigh] = worth.map((of) => one * scale * of[i] - paid);
      }
      return found;
    }
    function put(id, text, value) { const place = $(id); if (place) { place.textContent = text; if (value !== undefined) place.dataset.value = value === null ? "" : String(value); } }
    function say() {
      const s = stop(at());
      const text = byPerson ? `${whole(s.treated)} of ${whole(list())} ${data.people}, ${percent(s.share)}` : `${num(s.cost)}, for ${whole(s.treated)} ${data.people}`;
      put("slider-text", text);
      $("slider").setAttribute("aria-valuetext", text);
      put("out-treated", whole(s.treated), s.treated);
      put("out-share", `${percent(s.share)} of the list`);
      put("out-gain", num(s.gain), s.gain);
      put("out-gain-range", range(s.low, s.high));
      put("out-random", num(s.random), s.random);
      put("out-cost", num(s.cost), s.cost);
      put("out-cost-note", byPerson && !read("cost", 0) ? "enter a cost above" : "for the whole list");
      put("out-profit", s.profit === null ? "–" : num(s.profit), s.profit);
      put("out-profit-range", s.profit === null ? "enter a value above" : range(s.profitLow, s.profitHigh));
      const place = $("out-profit-range");
      if (place) { place.dataset.low = s.profitLow === null ? "" : String(s.profitLow); place.dataset.high = s.profitHigh === null ? "" : String(s.profitHigh); }
      const gain = $("out-gain-range"); gain.dataset.low = String(s.low); gain.dataset.high = String(s.high);
    }
    $("list").value = b.n;
    if ($("cost")) $("cost").value = b.cost === null ? "" : b.cost;
    if ($("value")) $("value").value = b.value === null ? "" : b.value;
    for (const id of ["costs", "values"]) if ($(id)) $(id).value = 1;
    reach();
    go(b.plan);
    budget = chart("chart-budget", 260, (p) => {
      const stops = open.map(stop), money = stops[0].profit !== null;
      const x = byPerson ? stops.map((s) => Math.round(1e10 * s.share) / 1e8) : stops.map((s) => s.cost);
      const pick = (a, c) => stops.map((s) => (money ? s[a] : s[c]));
      const colour = p.series[0];
      return { columns: [x, pick("profitHigh", "high"), pick("profitLow", "low"), pick("profit", "gain")], options: {
        series: [{}, { stroke: "transparent", width: 0, points: { show: false } }, { stroke: "transparent", width: 0, points: { show: false } }, { stroke: colour, width: 2.5, points: { show: false } }],
        bands: [{ series: [1, 2], fill: clear(colour, 0.14) }], legend: { show: false }, padding: [12, 18, 0, 0],
        scales: { x: { time: false, range: [x[0], x[x.length - 1]] } },
        axes: axes(p, byPerson ? `share of ${data.people} treated` : "money spent", narrow() ? null : (money ? "net profit" : `gain in ${data.outcome}`), byPerson ? (u, ticks) => ticks.map((v) => `${v}%`) : (u, ticks) => ticks.map((v) => fixed(v, places2(ticks)))),
        cursor: { show: false },
        hooks: { draw: [(u) => {  // where the slider stands
          const c = u.ctx, place = Number($("slider").value), here = stops[place], px = u.valToPos(x[place], "x", true), py = u.valToPos(money ? here.profit : here.gain, "y", true);
          c.save(); c.strokeStyle = p.soft; c.lineWidth = devicePixelRatio; c.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
          c.beginPath(); c.moveTo(px, u.bbox.top); c.lineTo(px, u.bbox.top + u.bbox.height); c.stroke(); c.setLineDash([]);
          const zero = u.valToPos(0, "y", true);
          c.beginPath(); c.moveTo(u.bbox.left, zero); c.lineTo(u.bbox.left + u.bbox.width, zero); c.stroke();
          c.fillStyle = colour; c.strokeStyle = p.card; c.lineWidth = 2 * devicePixelRatio;
          c.beginPath(); c.arc(px, py, 6 * devicePixelRatio, 0, 2 * Math.PI); c.fill(); c.stroke(); c.restore();
        }] },
      } };
    });
    function update() {
      const most = read("spend", null);
      reach();
      if (most !== null) go(Math.max(...open.filter((i) => stop(i).cost <= most * (1 + 1e-9))));  // as far as the money goes
      say();
      budget.draw();
    }
    $("slider").addEventListener("input", () => { if ($("spend")) $("spend").value = ""; say(); budget.plot.redraw(); });
    for (const id of ["list", "cost", "value", "costs", "values", "spend"]) if ($(id)) $(id).addEventListener("input", update);
    $("to-plan").addEventListener("click", () => {
      if ($("spend")) $("spend").value = "";
      if (!byPerson) {  // the plan is one for these costs and this value
        for (const id of ["costs", "values"]) if ($(id)) $(id).value = 1;
        if ($("value")) $("value").value = b.value === null ? "" : b.value;
      }
      reach(); go(b.plan); update();
    });
    update();
  }

  // ---- size, colours, paper
  const redraw = () => { legend(); charts.forEach((held) => held.draw()); };
  let width = window.innerWidth, waiting = 0;
  window.addEventListener("resize", () => { if (window.innerWidth === width) return; width = window.innerWidth; clearTimeout(waiting); waiting = setTimeout(redraw, 120); });
  dark.addEventListener("change", redraw);
  let closed = [];
  window.addEventListener("beforeprint", () => { printing = true; closed = [...document.querySelectorAll("details:not([open])")]; closed.forEach((d) => { d.open = true; }); redraw(); });
  window.addEventListener("afterprint", () => { printing = false; closed.forEach((d) => { d.open = false; }); redraw(); });
})();
