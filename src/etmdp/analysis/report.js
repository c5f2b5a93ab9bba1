"use strict";
// The explorer: learning curves with intervals, and performance profiles, drawn by uPlot from the data in the page.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const charts = [];
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const make = (tag, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };
  const number = (value) => (value == null ? "–" : String(Number(value.toPrecision(4))));
  const chosen = (box) => new Set([...box.querySelectorAll("input:checked")].map((input) => input.value));
  const experiment = () => data.experiments.find((each) => each.name === element("experiment").value);
  const unique = (values) => [...new Set(values)];

  const metricName = (metric, part = 0) => {
    const plain = metric.startsWith(data.randomStart) ? metric.slice(data.randomStart.length) : metric;
    const words = data.metrics[plain]?.[part] ?? plain;
    return part === 0 && plain !== metric ? `${words}, random starts` : words;
  };

  function swatch(setting) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "swatch");
    svg.setAttribute("aria-hidden", "true");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const attributes = { x1: 0, x2: 38, y1: 6, y2: 6, stroke: setting.colour, "stroke-width": 3 };
    attributes["stroke-dasharray"] = setting.dashes.map((length) => 1.5 * length).join(" ");
    for (const [name, value] of Object.entries(attributes)) line.setAttribute(name, value);
    svg.append(line);
    return svg;
  }

  function checkbox(value, text, mark) {
    const input = make("input", { type: "checkbox", value, checked: true });
    return make("label", {}, input, ...(mark ? [mark] : []), text);
  }

  function chooseExperiment() {
    const current = experiment();
    element("metric").replaceChildren(
      ...current.metrics.map((value) => make("option", { value, textContent: metricName(value) })),
    );
    element("metric").value = current.main;
    const names = Object.fromEntries(current.settings.map((setting) => [setting.env, setting.envName]));
    element("environments").replaceChildren(...Object.entries(names).map(([env, name]) => checkbox(env, name)));
    const methods = unique(current.settings.map((setting) => setting.label));
    element("methods").replaceChildren(
      ...methods.map((label) => checkbox(label, label, swatch(current.settings.find((s) => s.label === label)))),
    );
    draw();
  }

  // Columns x, middle, lower, upper of one line; of evaluations at the same x the last one counts.
  function columns(setting, view) {
    const [x, ...rest] =
      view.profile ? setting.profile : [setting.x[view.axis], ...setting.y[view.metric]];
    if (!x) return null;
    const keep = x.map((value, i) => i).filter((i) => i === x.length - 1 || x[i + 1] > x[i]);
    return [x, ...rest].map((column) => (column ? keep.map((i) => column[i]) : keep.map(() => null)));
  }

  function draw() {
    charts.splice(0).forEach((chart) => chart.destroy());
    const current = experiment();
    const view = {
      profile: element("view").value === "profile",
      metric: element("view").value === "profile" ? current.main : element("metric").value,
      axis: element("axis").value,
    };
    element("metric").disabled = element("axis").disabled = view.profile;
    const envs = chosen(element("environments"));
    const labels = chosen(element("methods"));
    const settings = current.settings.filter((each) => envs.has(each.env) && labels.has(each.label));
    const seeds = settings.map((setting) => setting.seeds);
    const count = seeds.length ? unique([Math.min(...seeds), Math.max(...seeds)]).join(" to ") : "no";
    const short = settings.filter((each) => each.seeds < each.planned);
    element("explained").textContent = [
      view.profile
        ? `Share of runs whose final ${metricName(view.metric).toLowerCase()} is above a threshold.`
        : `${metricName(view.metric)} (${metricName(view.metric, 1)}): interquartile mean over seeds.`,
      `${count} seeds per line; bands are 95 % bootstrap intervals (one seed has none).`,
      ...short.map((each) => `${each.envName}, ${each.label}: only ${each.seeds} of ${each.planned} seeds.`),
      view.axis === "step" || view.profile ? "" : "The horizontal position is the mean over seeds.",
    ].join(" ");
    const figures = unique(settings.map((setting) => setting.env)).map((env) => {
      const here = settings.filter((setting) => setting.env === env && columns(setting, view));
      const figure = make("figure", { className: "chart" }, make("figcaption", { textContent: settings.find((s) => s.env === env).envName }));
      if (here.length === 0) figure.append(make("p", { textContent: "No wall times are known for these runs." }));
      return { figure, here };
    });
    element("charts").replaceChildren(...figures.map(({ figure }) => figure));
    for (const { figure, here } of figures) if (here.length) charts.push(chart(figure, here, view));
  }

  function chart(figure, settings, view) {
    const look = getComputedStyle(document.documentElement);
    const ink = look.getPropertyValue("--soft").trim();
    const grid = { stroke: look.getPropertyValue("--line").trim(), width: 1 };
    const table = uPlot.join(settings.map((setting) => columns(setting, view)));
    const bands = [];
    const axisName = view.profile ? `threshold: ${metricName(view.metric).toLowerCase()}` : element("axis").selectedOptions[0].text;
    const series = [{ label: axisName, value: (u, value) => number(value) }];
    for (const setting of settings) {
      const first = series.length;
      const bound = { class: "bound", stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
      const value = (u, middle, s, i) =>
        i == null || middle == null ? "–" : `${number(middle)} [${number(table[first + 1][i])}, ${number(table[first + 2][i])}]`;
      series.push(
        { label: setting.label, stroke: setting.colour, width: 2, dash: setting.dashes, spanGaps: true, points: { show: false }, value },
        { ...bound, label: "lower" },
        { ...bound, label: "upper" },
      );
      bands.push({ series: [first + 2, first + 1], fill: `${setting.colour}33` });
    }
    const budget = (u) => {
      if (view.profile || !["cost", `${data.randomStart}cost`].includes(view.metric)) return;
      const y = u.valToPos(settings[0].budget, "y", true);
      if (y < u.bbox.top || y > u.bbox.top + u.bbox.height) return;
      u.ctx.save();
      u.ctx.strokeStyle = ink;
      u.ctx.setLineDash([2, 6]);
      u.ctx.beginPath();
      u.ctx.moveTo(u.bbox.left, y);
      u.ctx.lineTo(u.bbox.left + u.bbox.width, y);
      u.ctx.stroke();
      u.ctx.restore();
    };
    const u = new uPlot(
      {
        width: figure.clientWidth - 16,
        height: 260,
        padding: [8, 28, 0, 0],
        scales: { x: { time: false } },
        axes: [
          { stroke: ink, grid, ticks: grid, label: axisName, labelSize: 22, labelGap: 0, labelFont: "13px system-ui, sans-serif" },
          { stroke: ink, grid, ticks: grid, size: 62, values: (_, ticks) => ticks.map(number) },
        ],
        series,
        bands,
        cursor: { dataIdx: nearest, drag: { x: true, y: false } },
        hooks: { draw: [budget] },
      },
      table,
      figure,
    );
    keyboard(figure, u, settings);
    return u;
  }

  // The lines may have values at different x: take each line's own value nearest to the pointer.
  function nearest(u, s, hovered) {
    const column = u.data[s];
    if (column[hovered] != null) return hovered;
    for (let distance = 1; distance < column.length; distance++) {
      if (column[hovered - distance] != null) return hovered - distance;
      if (column[hovered + distance] != null) return hovered + distance;
    }
    return hovered;
  }

  function keyboard(figure, u, settings) {
    figure.tabIndex = 0;
    figure.setAttribute("role", "group");
    figure.setAttribute(
      "aria-label",
      `Chart of ${settings[0].envName}: ${settings.map((s) => s.label).join(", ")}. Arrow keys read the values.`,
    );
    figure.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!move) return;
      event.preventDefault();
      const x = u.data[0];
      const index = Math.min(x.length - 1, Math.max(0, (u.cursor.idx ?? (move > 0 ? -1 : x.length)) + move));
      u.setCursor({ left: u.valToPos(x[index], "x"), top: u.over.clientHeight / 2 });
    });
  }

  function filterRuns() {
    const wanted = element("filter").value.trim().toLowerCase();
    for (const run of document.querySelectorAll("#run-list .run")) {
      run.hidden = !run.querySelector("summary").textContent.toLowerCase().includes(wanted);
    }
  }

  element("filter").addEventListener("input", filterRuns);
  if (data.experiments.length === 0) {
    element("controls").hidden = true;
    element("explained").textContent = "No experiment has results yet.";
    return;
  }
  element("experiment").append(
    ...data.experiments.map(({ name, title }) => make("option", { value: name, textContent: title })),
  );
  element("experiment").addEventListener("change", chooseExperiment);
  element("controls").addEventListener("change", (event) => {
    if (event.target !== element("experiment")) draw();
  });
  dark.addEventListener("change", draw);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) draw();
    width = innerWidth;
  });
  chooseExperiment();
})();
