// The model: operations and how values flow between them, by layer; and both sides' operations with their pairing.
import dagre from "@dagrejs/dagre";
import type { App, View } from "../app";
import { go } from "../app";
import { announce, button, clear, h, name, shortened, visible } from "../dom";
import { number } from "../format";
import { t } from "../i18n";
import { SIGNS, VERDICTS } from "../model";
import { badge, rowSearch, select } from "../parts";

// More boxes than this are put together by the start of their names where there are no layers.
const MOST_LOOSE = 150;

interface Box {
  id: string;
  title: string;
  golden: string;
  verdict: number; // the worst, as Model.verdictOf
  row: number; // the worst row
  operations: number;
  isGroup: boolean;
  group: string;
}

export const graph: View = {
  id: "graph",
  title: "Model",
  async show(app, element, rest) {
    await app.table.need("golden_operation", "my_operation", "passed", "missing");
    const { model } = app;
    const start = rest[0] !== undefined && Number(rest[0]) < app.table.rows ? Number(rest[0]) : model.firstFinding;
    const drawing = new Drawing(app, start >= 0 ? model.tokenOf[start] : 0);
    const sides = h("section", {});
    const refresh = () => { drawing.layOut(); bothSides(app, sides, drawing.token); };
    const search = rowSearch(t("Search an operation"), (text) => drawing.find(text), () => drawing.openFound());
    element.append(h("h2", {}, t("Model")),
      h("p", { class: "facts" }, t("Boxes are operations of my side with their golden partner below, arrows are values. A layer opens and closes with a click; an operation shows its values.")),
      h("div", { class: "bar-of-choices" }, search,
        select(t("Token"), model.tokens.map((each, i) => [String(i), visible(each)]), String(drawing.token), (value) => { drawing.token = Number(value); refresh(); }),
        button(t("Open all layers"), () => drawing.openAll()), button(t("Close all layers"), () => drawing.closeAll()),
        button("+", () => drawing.zoom(0.8), { "aria-label": t("Larger") }), button("−", () => drawing.zoom(1.25), { "aria-label": t("Smaller") }), button(t("Fit"), () => drawing.fit())),
      h("div", { class: "verdicts" }, VERDICTS.map((each) => badge(each))),
      drawing.element, sides);
    if (start >= 0) drawing.show(start);
    refresh();
    if (start >= 0) drawing.centre(model.operation(start));
  },
};

class Drawing {
  readonly element: HTMLElement;
  private readonly svg = h("svg", { class: "graph", tabindex: "0", role: "application", "aria-label": t("Graph of operations; arrow keys move, plus and minus zoom, Tab goes from box to box") });
  private readonly says = h("p", { class: "says", role: "status" });
  private readonly open = new Set<string>();
  private boxes = new Map<string, Box>();
  private layout = new dagre.graphlib.Graph();
  private view = { x: 0, y: 0, w: 100, h: 100 };
  private found: string | undefined;

  constructor(private readonly app: App, public token: number) {
    this.element = h("div", { class: "graph-box" }, this.svg, this.says);
    this.svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== this.svg) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.15 : 0.87, event);
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => this.drag(event));
    this.svg.addEventListener("keydown", (event) => this.key(event));
  }

  private groupOf(row: number, loose: number): string {
    const layer = this.app.model.layer(row);
    if (!Number.isNaN(layer)) return `layer ${layer}`;
    if (loose <= MOST_LOOSE) return "";
    return this.app.model.operation(row).split(/[./]/).slice(0, 2).join(".");
  }

  // Opens what holds a row.
  show(row: number): void {
    const group = this.groupOf(row, Infinity);
    if (group) this.open.add(group);
  }
  openAll(): void {
    for (const box of this.boxes.values()) if (box.isGroup) this.open.add(box.id);
    this.layOut();
  }
  closeAll(): void {
    this.open.clear();
    this.layOut();
  }

  layOut(): void {
    const { model, table } = this.app;
    const rows = model.rowsOfToken(this.token);
    const loose = new Set(rows.filter((row) => Number.isNaN(model.layer(row))).map((row) => model.operation(row))).size;
    this.boxes = new Map();
    const boxOf = new Map<number, string>();
    const members = new Map<string, Set<string>>();
    for (const row of rows) {
      const operation = model.operation(row);
      const group = this.groupOf(row, loose);
      const closed = group !== "" && !this.open.has(group);
      const id = closed ? group : `op ${operation}`;
      boxOf.set(row, id);
      if (!members.has(id)) members.set(id, new Set());
      members.get(id)!.add(operation);
      const box = this.boxes.get(id);
      if (!box) {
        this.boxes.set(id, {
          id, title: closed ? groupTitle(group) : operation, golden: closed ? "" : table.text("golden_operation", row),
          verdict: model.verdictOf[row], row, operations: 1, isGroup: closed, group,
        });
      } else {
        box.operations = members.get(id)!.size;
        if (model.verdictOf[row] > box.verdict || (model.verdictOf[row] === box.verdict && model.excess(row) > model.excess(box.row))) {
          box.verdict = model.verdictOf[row];
          box.row = row;
        }
        if (!closed && !box.golden) box.golden = table.text("golden_operation", row);
      }
    }
    this.layout = new dagre.graphlib.Graph({ multigraph: false });
    this.layout.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 26, marginx: 10, marginy: 10 });
    this.layout.setDefaultEdgeLabel(() => ({}));
    for (const box of this.boxes.values()) {
      const longest = Math.max(boxTitle(box).length, shortened(box.golden, 42).length * 0.85 + 2);
      this.layout.setNode(box.id, { width: Math.max(90, longest * 7 + 34), height: box.golden ? 42 : 30 });
    }
    let edges = 0;
    for (const row of rows)
      for (const source of model.sources(row)) {
        const from = boxOf.get(source);
        const to = boxOf.get(row)!;
        if (from === undefined || from === to) continue;
        this.layout.setEdge(from, to);
        ++edges;
      }
    // Where nothing tells how values flow, the order of the computation is all there is.
    if (edges === 0) [...this.boxes.keys()].reduce((before, each) => { if (before) this.layout.setEdge(before, each); return each; }, "");
    dagre.layout(this.layout);
    this.paint();
    this.fit();
    this.says.textContent = t("{0} boxes, {1} arrows", this.boxes.size, this.layout.edgeCount());
  }

  private paint(): void {
    const edges = this.layout.edges().map((each) => {
      const points = (this.layout.edge(each) as unknown as { points: { x: number; y: number }[] }).points;
      return h("path", { class: "edge", d: "M" + points.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`).join("L"), "marker-end": "url(#arrow)" });
    });
    const nodes = [...this.boxes.values()].map((box) => this.node(box));
    clear(this.svg, h("defs", {}, h("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, h("path", { d: "M0,0L8,4L0,8z", class: "tip" }))),
      h("g", {}, edges), h("g", {}, nodes));
  }

  private node(box: Box): HTMLElement {
    const { x, y, width, height } = this.layout.node(box.id) as { x: number; y: number; width: number; height: number };
    const verdict = box.verdict === 0 ? "" : VERDICTS[box.verdict - 1];
    const { model } = this.app;
    const says = `${visible(boxTitle(box))}: ${t(verdict || "not judged")}${box.isGroup ? `, ${t("{0} operations", box.operations)}` : ""}`;
    return h("g", {
      class: `node ${verdict || "none"}${box.isGroup ? " group" : ""}${this.found === box.id ? " found" : ""}`, transform: `translate(${x - width / 2},${y - height / 2})`, tabindex: "0", role: "button", "data-name": visible(box.title),
      "data-box": box.id,
      onclick: () => this.activate(box), onkeydown: (event: KeyboardEvent) => { if (event.key === "Enter" || event.key === " ") { this.activate(box); event.preventDefault(); event.stopPropagation(); } },
    },
      h("title", {}, `${says}\n${visible(box.title)}\n${box.golden ? `${t("golden")}: ${visible(box.golden)}\n` : ""}${t("error")} ${number(model.error(box.row))}, ${t("expected")} ${number(model.expected(box.row))}`),
      h("rect", { width, height, rx: 6 }),
      h("text", { x: 10, y: 19 }, `${SIGNS[verdict]} ${boxTitle(box)}`),
      box.golden !== "" && h("text", { x: 10, y: 34, class: "golden" }, shortened(box.golden, 42)));
  }

  private activate(box: Box): void {
    if (box.isGroup) {
      this.open.add(box.id);
      this.layOut();
      this.focus([...this.boxes.values()].find((each) => each.group === box.id)?.id);
    } else go("op", box.row);
  }

  private focus(id: string | undefined): void {
    if (id) this.svg.querySelector<HTMLElement>(`[data-box="${CSS.escape(id)}"]`)?.focus({ preventScroll: true });
  }

  find(text: string): void {
    const { model } = this.app;
    this.found = undefined;
    if (text !== "") {
      const wanted = text.toLowerCase();
      // The shortest name that holds it: an operation rather than what is inside.
      const row = model.rowsOfToken(this.token)
        .filter((each) => model.operation(each).toLowerCase().includes(wanted) || this.app.table.text("golden_operation", each).toLowerCase().includes(wanted))
        .reduce<number | undefined>((best, each) => (best === undefined || model.operation(each).length < model.operation(best).length ? each : best), undefined);
      if (row === undefined) {
        this.says.textContent = t("no operation holds that");
        announce(this.says.textContent);
        return;
      }
      this.show(row);
      this.layOut();
      this.centre(model.operation(row));
      return;
    }
    this.layOut();
  }
  openFound(): void {
    const box = this.found === undefined ? undefined : this.boxes.get(this.found);
    if (box) go("op", box.row);
  }

  // Brings an operation into the middle.
  centre(operation: string): void {
    const id = `op ${operation}`;
    if (!this.boxes.has(id)) return;
    this.found = id;
    this.paint();
    const { x, y } = this.layout.node(id) as { x: number; y: number };
    const wide = Math.min(this.view.w, 900);
    const tall = (wide * this.view.h) / this.view.w;
    this.setView(x - wide / 2, y - tall / 2, wide, tall);
    this.says.textContent = visible(operation).slice(0, 300);
  }

  fit(): void {
    const size = this.layout.graph() as { width?: number; height?: number };
    const box = this.svg.getBoundingClientRect();
    const shape = box.width > 0 && box.height > 0 ? box.height / box.width : 0.6;
    let wide = Math.max(size.width ?? 100, 300);
    let tall = Math.max(size.height ?? 100, 100);
    if (tall / wide > shape) wide = tall / shape;
    else tall = wide * shape;
    this.setView(((size.width ?? 0) - wide) / 2, Math.min(0, ((size.height ?? 0) - tall) / 2), wide, tall);
  }

  private setView(x: number, y: number, w: number, tall: number): void {
    this.view = { x, y, w, h: tall };
    this.svg.setAttribute("viewBox", `${x} ${y} ${w} ${tall}`);
  }
  zoom(by: number, at?: MouseEvent): void {
    const { x, y, w, h: tall } = this.view;
    const box = this.svg.getBoundingClientRect();
    const px = at ? (at.clientX - box.left) / box.width : 0.5;
    const py = at ? (at.clientY - box.top) / box.height : 0.5;
    this.setView(x + w * px * (1 - by), y + tall * py * (1 - by), w * by, tall * by);
  }
  private drag(event: PointerEvent): void {
    if (event.button !== 0 || (event.target as Element).closest(".node")) return;
    const from = { ...this.view, cx: event.clientX, cy: event.clientY };
    const box = this.svg.getBoundingClientRect();
    const move = (e: PointerEvent) => this.setView(from.x - ((e.clientX - from.cx) / box.width) * from.w, from.y - ((e.clientY - from.cy) / box.height) * from.h, from.w, from.h);
    const end = () => { removeEventListener("pointermove", move); removeEventListener("pointerup", end); };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
  }
  private key(event: KeyboardEvent): void {
    const { x, y, w, h: tall } = this.view;
    const steps: Record<string, [number, number]> = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1], ArrowDown: [0, 0.1] };
    const step = steps[event.key];
    if (step) this.setView(x + step[0] * w, y + step[1] * tall, w, tall);
    else if (event.key === "+" || event.key === "=") this.zoom(0.8);
    else if (event.key === "-") this.zoom(1.25);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function groupTitle(group: string): string {
  const layer = group.match(/^layer (\d+)$/);
  return layer ? t("layer {0}", layer[1]) : group;
}

function boxTitle(box: Box): string {
  return box.isGroup ? `${shortened(box.title, 40)} (${box.operations})` : shortened(box.title, 42);
}

// Both sides' operations, in the order of the computation; those of a layer behind one line.
function bothSides(app: App, element: HTMLElement, token: number): void {
  const { model, table } = app;
  interface Line { golden: string; my: string; verdict: number; row: number }
  const groups = new Map<string, Map<string, Line>>();
  for (const row of model.rowsOfToken(token)) {
    const layer = model.layer(row);
    const group = Number.isNaN(layer) ? "" : String(layer);
    if (!groups.has(group)) groups.set(group, new Map());
    const key = model.operation(row);
    const line = groups.get(group)!.get(key);
    const isWorse = !line || model.verdictOf[row] > line.verdict;
    groups.get(group)!.set(key, {
      golden: table.text("golden_operation", row) || line?.golden || "", my: table.text("my_operation", row) || line?.my || "",
      verdict: isWorse ? model.verdictOf[row] : line.verdict, row: isWorse ? row : line.row,
    });
  }
  const word = (code: number) => (code === 0 ? "" : VERDICTS[code - 1]);
  const lines = (of: Map<string, Line>) => h("table", { class: "sides" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("golden")), h("th", { scope: "col" }, t("Verdict")), h("th", { scope: "col" }, t("my")))),
    h("tbody", {}, [...of.values()].slice(0, 2000).map((line) => h("tr", {},
      h("td", {}, line.golden ? name(line.golden, 90) : h("em", {}, t("no partner"))), h("td", {}, badge(word(line.verdict))),
      h("td", {}, h("a", { href: `#/op/${line.row}` }, line.my ? name(line.my, 90) : t("no partner")))))));
  clear(element, h("h3", {}, t("Both sides, paired")), [...groups].map(([group, of]) => {
    const worst = Math.max(...[...of.values()].map((each) => each.verdict));
    const inside = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": group ? t("layer {0}", group) : t("outside of layers") });
    return h("details", { ontoggle: () => { if (inside.childElementCount === 0) inside.append(lines(of)); } },
      h("summary", {}, badge(word(worst)), " ", group ? t("layer {0}", group) : t("outside of layers"), ` – ${t("{0} operations", of.size)}`), inside);
  }));
}
