// Error flow: operations in the order of the computation against tokens, and each metric along the model.
import uPlot from "uplot";
import type { App, View } from "../app";
import { go, isDark } from "../app";
import { announce, button, clear, h, visible } from "../dom";
import { heat, heatOfExcess, number } from "../format";
import { t } from "../i18n";
import { badge, select } from "../parts";

const METRICS: [string, string][] = [
  ["verdict_error", "Error, with what is expected"],
  ["relative_euclidean_distance", "Relative euclidean distance"],
  ["cosine_similarity", "1 − cosine similarity"],
  ["max_relative_error", "Largest relative error"],
  ["mean_relative_error", "Mean relative error"],
  ["max_absolute_error", "Largest absolute error"],
  ["mean_absolute_error", "Mean absolute error"],
  ["kl_divergence", "KL divergence"],
];

let metric = "";

export const flow: View = {
  id: "flow",
  title: "Error flow",
  async show(app, element, rest) {
    const { model, table } = app;
    if (!metric) metric = table.holds("verdict_error") ? "verdict_error" : "relative_euclidean_distance";
    await table.need(metric);
    const start = rest[0] !== undefined && Number(rest[0]) < table.rows ? Number(rest[0]) : Math.max(0, model.firstFinding);
    let token = model.tokenOf[start] ?? 0;
    const chart = h("div", { class: "chart" });
    const drawChart = () => plot(app, chart, token, start);
    const strip = new Strip(app, model.placeOf[start] ?? 0, token, (chosen) => {
      if (chosen === token) return;
      token = chosen;
      drawChart();
      (element.querySelector("#flow-token select") as HTMLSelectElement).value = String(chosen);
    });
    element.append(h("h2", {}, t("Error flow")),
      h("p", { class: "facts" }, t("Each column is a value, in the order of the computation; each line is a token. Colour: how many times the expected error.")),
      strip.element, legend(),
      h("div", { class: "bar-of-choices" },
        select(t("Metric"), METRICS.filter(([key]) => table.holds(key)).map(([key, text]) => [key, t(text)]), metric, (value) => {
          metric = value;
          void table.need(metric).then(() => { strip.draw(); drawChart(); });
        }),
        h("span", { id: "flow-token" }, select(t("Token"), model.tokens.map((each, i) => [String(i), visible(each)]), String(token), (value) => {
          token = Number(value);
          strip.setToken(token);
          drawChart();
        }))),
      chart);
    strip.draw();
    drawChart();
  },
};

function valueOf(app: App, row: number): number {
  if (metric === "verdict_error") return app.model.error(row);
  const value = app.table.number(metric, row);
  return metric === "cosine_similarity" ? Math.max(0, 1 - value) : value;
}

// What a metric would be of an error as large as expected and spread in the same way: two of them grow with its square.
function expectedOf(app: App, row: number): number {
  const expected = app.model.expected(row);
  if (metric === "verdict_error") return expected;
  return valueOf(app, row) * (expected / app.model.error(row)) ** (["cosine_similarity", "kl_divergence"].includes(metric) ? 2 : 1);
}

function legend(): HTMLElement {
  return h("div", { class: "heat-legend", "aria-hidden": "true" }, ["< 0.1", "1", "2", "4", "10", "≥ 30"].map((text, i) =>
    h("span", {}, h("i", { style: `background:${heat([0, 0.25, 0.4, 0.55, 0.75, 1][i], isDark())}` }), text)),
    h("span", {}, h("i", { class: "nothing" }), t("nothing to compare")));
}

// A canvas that is read with a mouse or with the arrow keys.
class Strip {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", {
    tabindex: "0", role: "img", class: "strip",
    "aria-label": t("Errors of all values of all tokens; arrow keys move, Enter opens the value"),
  }) as HTMLCanvasElement;
  private readonly says = h("p", { class: "says", role: "status" });
  private readonly width: number;
  private readonly height: number;
  private readonly scaleLow: number;
  private readonly scaleHigh: number;

  constructor(private readonly app: App, private place: number, private token: number, private readonly onToken: (token: number) => void) {
    this.width = Math.max(1, app.model.places.length);
    this.height = Math.max(1, app.model.tokens.length);
    this.element = h("div", { class: "strip-box" }, this.canvas, this.says);
    this.canvas.addEventListener("mousemove", (event) => this.point(event));
    this.canvas.addEventListener("click", (event) => { this.point(event); this.open(); });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    const values: number[] = [];
    for (let i = 0; i < app.table.rows; ++i) {
      const value = app.table.number("relative_euclidean_distance", i);
      if (value > 0 && Number.isFinite(value)) values.push(Math.log10(value));
    }
    this.scaleLow = values.reduce((a, b) => Math.min(a, b), 0);
    this.scaleHigh = values.reduce((a, b) => Math.max(a, b), this.scaleLow + 1e-9);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  setToken(token: number): void {
    this.token = token;
    this.draw();
  }

  private heatOf(row: number): number {
    const { model } = this.app;
    if (model.verdictOf[row] === 0 && Number.isNaN(this.app.table.number("relative_euclidean_distance", row))) return -1;
    if (model.expected(row) > 0 || model.verdict(row) === "broken") return heatOfExcess(model.excess(row));
    const value = valueOf(this.app, row);
    return value > 0 ? (Math.log10(value) - this.scaleLow) / (this.scaleHigh - this.scaleLow) : 0;
  }

  draw(): void {
    const { model } = this.app;
    const ratio = devicePixelRatio || 1;
    const wide = Math.max(200, this.element.clientWidth);
    const cellHeight = Math.max(3, Math.min(22, 300 / this.height));
    const tall = Math.min(360, Math.ceil(cellHeight * this.height));
    this.canvas.width = Math.round(wide * ratio);
    this.canvas.height = Math.round(tall * ratio);
    this.canvas.style.width = `${wide}px`;
    this.canvas.style.height = `${tall}px`;
    const context = this.canvas.getContext("2d")!;
    // Where several values share a pixel, the worst of them is shown.
    const columns = Math.min(this.canvas.width, this.width);
    const lines = Math.min(this.canvas.height, this.height);
    const worst = new Float32Array(columns * lines).fill(-1);
    for (let row = 0; row < this.app.table.rows; ++row) {
      const x = Math.floor((model.placeOf[row] * columns) / this.width);
      const y = Math.floor((model.tokenOf[row] * lines) / this.height);
      const value = this.heatOf(row);
      if (value > worst[y * columns + x]) worst[y * columns + x] = value;
    }
    const dark = isDark();
    const colours = Array.from({ length: 65 }, (_, i) => heat(i / 64, dark));
    const stepX = this.canvas.width / columns;
    const stepY = this.canvas.height / lines;
    const gap = stepX > 5 * ratio ? ratio : 0;
    for (let y = 0; y < lines; ++y)
      for (let x = 0; x < columns; ++x) {
        const value = worst[y * columns + x];
        if (value < 0) continue;
        context.fillStyle = colours[Math.round(Math.min(1, value) * 64)];
        context.fillRect(x * stepX, y * stepY, Math.max(1, stepX - gap), Math.max(1, stepY - (stepY > 5 ? ratio : 0)));
      }
    context.strokeStyle = dark ? "#fff" : "#111";
    context.lineWidth = 2 * ratio;
    const cursorX = Math.floor((this.place * columns) / this.width) * stepX;
    const cursorY = Math.floor((this.token * lines) / this.height) * stepY;
    context.strokeRect(cursorX, cursorY, Math.max(stepX, 4 * ratio), Math.max(stepY, 4 * ratio));
    this.say();
  }

  private say(): void {
    const row = this.app.model.rowAt(this.token, this.place);
    if (row < 0) {
      clear(this.says, t("Token {0}", visible(this.app.model.tokens[this.token] ?? "")), ": ", t("nothing to compare"));
      return;
    }
    const { model, table } = this.app;
    clear(this.says, badge(model.verdict(row)), " ", t("Token {0}", table.text("token_id", row)), " · ", h("bdi", {}, visible(table.text("data_id", row).slice(0, 300))), " · ",
      t("error"), " ", number(model.error(row)), " · ", t("expected"), " ", number(model.expected(row)), " · × ", number(model.excess(row), 2));
  }

  private point(event: MouseEvent): void {
    const box = this.canvas.getBoundingClientRect();
    this.place = clamp(Math.floor(((event.clientX - box.left) / box.width) * this.width), this.width);
    const token = clamp(Math.floor(((event.clientY - box.top) / box.height) * this.height), this.height);
    this.move(token);
  }

  private move(token: number): void {
    const changed = token !== this.token;
    this.token = token;
    this.draw();
    if (changed) this.onToken(token);
  }

  private open(): void {
    const row = this.app.model.rowAt(this.token, this.place);
    if (row >= 0) go("op", row);
  }

  private key(event: KeyboardEvent): void {
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], PageUp: [-10, 0], PageDown: [10, 0] };
    const step = steps[event.key];
    if (step) {
      this.place = clamp(this.place + step[0], this.width);
      this.move(clamp(this.token + step[1], this.height));
      announce(this.says.textContent ?? "");
      event.preventDefault();
    } else if (event.key === "Enter") this.open();
  }
}

function clamp(value: number, count: number): number {
  return Math.min(Math.max(value, 0), count - 1);
}

let plotted: uPlot | undefined;

function plot(app: App, element: HTMLElement, token: number, marked: number): void {
  plotted?.destroy();
  const { model } = app;
  const rows = model.rowsOfToken(token).filter((row) => valueOf(app, row) >= 0);
  const positive = (value: number) => (value > 0 && Number.isFinite(value) ? value : null);
  const values = rows.map((row) => positive(valueOf(app, row)));
  const expected = rows.map((row) => positive(expectedOf(app, row)));
  const withNoise = expected.some((each) => each !== null);
  const known = [...values, ...expected].filter((value): value is number => value !== null);
  const floor = Math.min(...(known.length > 0 ? known : [1])) / 3;
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const label = t(METRICS.find(([key]) => key === metric)?.[1] ?? metric);
  const faulty = rows.map((row, i) => (["fault", "broken"].includes(model.verdict(row)) ? values[i] : null));
  clear(element, h("h3", {}, label, ` – ${t("Token {0}", visible(model.tokens[token] ?? ""))}`));
  if (known.length === 0) {
    element.append(h("p", {}, t("Nothing to draw: no value of this token differs.")));
    return;
  }
  const box = h("div", { role: "img", "aria-label": t("{0} along {1} values; the largest is {2} at {3}", label, rows.length, number(Math.max(...known)), peak(app, rows, values)) });
  const open = button(t("Open the worst value of this token"), () => go("op", rows[values.indexOf(values.reduce((a, b) => ((b ?? 0) > (a ?? 0) ? b : a), 0))]));
  const key = (kind: string, text: string) => h("span", {}, h("i", { class: `k ${kind}` }), text);
  element.append(box, h("p", { class: "says" }, key("my", metric === "verdict_error" ? t("error") : label), withNoise && key("golden", app.about.noise ? t("expected, as the noise run has it") : t("expected")), key("", t("fault"))), open);
  plotted = new uPlot({
    width: Math.max(280, element.clientWidth - 4), height: 300,
    scales: { x: { time: false }, y: { distr: 3, log: 10 } },
    legend: { show: false },
    cursor: { points: { size: 7 }, drag: { x: true, y: false } },
    axes: [
      { stroke: colour("--ink"), grid: { stroke: colour("--line"), width: 1 }, label: t("values in the order of the computation"), labelSize: 22, size: 36 },
      { stroke: colour("--ink"), grid: { stroke: colour("--line"), width: 1 }, size: 62, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : number(tick, 1))) },
    ],
    series: [
      {},
      { stroke: colour("--noise"), width: 1, show: withNoise, spanGaps: true, points: { show: false } },
      { show: withNoise, stroke: "transparent", spanGaps: true, points: { show: false } },
      { stroke: colour("--accent"), width: 1.5, points: { show: rows.length < 300, size: 5 } },
      { stroke: colour("--fault"), width: 0, points: { show: true, size: 7, fill: colour("--fault") } },
    ],
    bands: withNoise ? [{ series: [1, 2], fill: colour("--band") }] : [],
    hooks: {
      ready: [(u) => u.over.addEventListener("click", () => { if (u.cursor.idx !== null && u.cursor.idx !== undefined) go("op", rows[u.cursor.idx]); })],
      setCursor: [(u) => {
        const i = u.cursor.idx;
        u.over.title = i === null || i === undefined ? "" : `${visible(app.table.text("data_id", rows[i]))}\n${number(values[i] ?? NaN)}`;
      }],
      draw: [(u) => {
        const at = rows.indexOf(marked);
        if (at < 0) return;
        const x = u.valToPos(at, "x", true);
        u.ctx.save();
        u.ctx.strokeStyle = colour("--fault");
        u.ctx.setLineDash([4, 4]);
        u.ctx.beginPath();
        u.ctx.moveTo(x, u.bbox.top);
        u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
        u.ctx.stroke();
        u.ctx.restore();
      }],
    },
  }, [rows.map((_, i) => i), expected, expected.map((value) => (value === null ? null : floor)), values, faulty], box);
}

function peak(app: App, rows: number[], values: (number | null)[]): string {
  let best = 0;
  values.forEach((value, i) => { if ((value ?? 0) > (values[best] ?? 0)) best = i; });
  return visible(app.table.text("data_id", rows[best]));
}
