// One side's operations as a graph: layers are boxes that open into frames and close again; it is moved, zoomed and walked with keys.
import dagre from "@dagrejs/dagre";
import type { App } from "../app";
import { clear, h, shortened, visible } from "../dom";
import { number } from "../format";
import { t } from "../i18n";
import { SIGNS, VERDICTS } from "../model";
import { pathOf, type Operation, type Operations, type Side } from "../structure";

interface Box {
  id: string;
  title: string;
  label: string; // the title without what a frame around it says already
  verdict: number; // the worst inside
  operations: Operation[]; // several in a closed layer
  isGroup: boolean;
}
interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface DrawingEvents {
  select(operation: Operation): void; // or opens it where it is selected already
  toggle(group: string): void;
}

// To keep others out of the frame of a layer costs much time; with more boxes than this a frame is just drawn around.
const MOST_FRAMED = 600;
const TITLE = 18; // height of what stands on a frame

export class Drawing {
  readonly element: HTMLElement;
  private readonly svg: HTMLElement;
  private boxes = new Map<string, Box>();
  private boxOf = new Map<string, string>(); // of each operation
  private layout = new dagre.graphlib.Graph();
  private frames = new Map<string, Place>(); // of open groups
  private view = { x: 0, y: 0, w: 100, h: 100 };

  constructor(private readonly app: App, readonly side: Side, private readonly events: DrawingEvents) {
    const label = t("Graph of {0}; arrow keys move, plus and minus zoom, Tab goes from box to box", t(side));
    this.svg = h("svg", { class: "graph", tabindex: "0", role: "application", "aria-label": label });
    this.element = h("div", { class: `graph-box ${side}` }, h("h3", {}, t(side)), this.svg);
    this.svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== this.svg) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.15 : 0.87, event);
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => this.drag(event));
    this.svg.addEventListener("keydown", (event) => this.key(event));
  }

  get groups(): string[] {
    return [...this.boxes.values()].filter((each) => each.isGroup).map((each) => each.id.slice(2));
  }

  // `open`: the groups whose operations are drawn one by one.
  layOut(operations: Operations, open: Set<string>): void {
    this.boxes = new Map();
    this.boxOf = new Map();
    const prefixes = prefixesOf(operations);
    for (const operation of operations.values()) {
      const isGroup = operation.group !== "" && !open.has(operation.group);
      const id = isGroup ? `g ${operation.group}` : `o ${operation.name}`;
      this.boxOf.set(operation.name, id);
      const box = this.boxes.get(id);
      if (!box) {
        const title = isGroup ? groupTitle(operation.group) : operation.name;
        this.boxes.set(id, { id, title, label: isGroup ? title : operation.name.slice(prefixes.get(operation.group) ?? 0) || pathOf(title).pop()!, verdict: operation.verdict, operations: [operation], isGroup });
      } else {
        box.operations.push(operation);
        box.verdict = Math.max(box.verdict, operation.verdict);
      }
    }
    const isFramed = this.boxes.size <= MOST_FRAMED;
    this.layout = new dagre.graphlib.Graph({ multigraph: false, compound: isFramed });
    this.layout.setGraph({ rankdir: "TB", nodesep: 16, ranksep: 24, marginx: 10, marginy: 10 });
    this.layout.setDefaultEdgeLabel(() => ({}));
    const members = new Map<string, string[]>();
    for (const box of this.boxes.values()) {
      this.layout.setNode(box.id, { width: Math.max(80, boxTitle(box).length * 7 + 34), height: 30 });
      const group = box.isGroup ? "" : box.operations[0].group;
      if (group === "") continue;
      if (!members.has(group)) {
        members.set(group, []);
        if (isFramed) this.layout.setNode(`f ${group}`, {});
      }
      members.get(group)!.push(box.id);
      if (isFramed) this.layout.setParent(box.id, `f ${group}`);
    }
    let before = "";
    for (const operation of operations.values()) {
      const to = this.boxOf.get(operation.name)!;
      for (const source of operation.sources) {
        const from = this.boxOf.get(source);
        if (from !== undefined && from !== to) this.layout.setEdge(from, to, { isFlow: true });
      }
      // Where nothing tells what goes into an operation, it stands below the one before it.
      if (operation.sources.size === 0 && before !== "" && before !== to && !this.layout.hasEdge(before, to) && !this.layout.hasEdge(to, before)) this.layout.setEdge(before, to, { isFlow: false });
      before = to;
    }
    dagre.layout(this.layout);
    this.frames = new Map([...members].map(([group, ids]) => [group, isFramed ? this.place(`f ${group}`) : around(ids.map((id) => this.place(id)))]));
    this.paint();
    this.fit();
  }

  private place(id: string): Place {
    return this.layout.node(id) as Place;
  }

  private paint(): void {
    const edges = this.layout.edges().filter((each) => (this.layout.edge(each) as unknown as { isFlow: boolean }).isFlow).map((each) => {
      const { points } = this.layout.edge(each) as unknown as { points: { x: number; y: number }[] };
      return h("path", { class: "edge", d: "M" + points.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`).join("L"), "marker-end": `url(#arrow-${this.side})` });
    });
    clear(this.svg, h("defs", {}, h("marker", { id: `arrow-${this.side}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto" }, h("path", { d: "M0,0L8,4L0,8z", class: "tip" }))),
      h("g", {}, [...this.frames.values()].map(frame)), h("g", {}, edges), h("g", {}, [...this.boxes.values()].map((box) => this.node(box))),
      h("g", {}, [...this.frames.keys()].map((each) => this.frameTitle(each))));
  }

  private frameTitle(group: string): HTMLElement {
    const { x, y, width, height } = this.frames.get(group)!;
    const title = shortened(groupTitle(group), 40);
    return h("g", { transform: `translate(${x - width / 2},${y - height / 2})` },
      h("g", { ...this.control(() => this.events.toggle(group)), "data-group": visible(group), "aria-expanded": "true", "aria-label": t("Close {0}", title), class: "frame-title" },
        h("rect", { x: 4, y: -TITLE, width: title.length * 8 + 30, height: TITLE, rx: 4 }), h("text", { x: 11, y: -5 }, `▾ ${title}`)));
  }

  private control(action: () => void): Record<string, string | ((event: never) => void)> {
    return {
      tabindex: "0", role: "button", onclick: action,
      onkeydown: (event: KeyboardEvent) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        action();
        event.preventDefault();
        event.stopPropagation();
      },
    };
  }

  private node(box: Box): HTMLElement {
    const { x, y, width, height } = this.place(box.id);
    const verdict = box.verdict === 0 ? "" : VERDICTS[box.verdict - 1];
    const isAlone = box.operations.every((each) => each.partners.size === 0);
    const first = box.operations[0];
    const { model } = this.app;
    const says = `${visible(boxTitle(box))}: ${isAlone ? t("no partner") : t(verdict || "not judged")}`;
    const more = box.isGroup ? t("{0} operations", box.operations.length) : `${visible(first.name)}\n${t("error")} ${number(model.error(first.row))}, ${t("expected")} ${number(model.expected(first.row))}`;
    return h("g", {
      class: `node ${isAlone ? "alone" : verdict || "none"}${box.isGroup ? " group" : ""}`, transform: `translate(${x - width / 2},${y - height / 2})`,
      "data-name": visible(box.title), "data-box": box.id, "aria-label": says, "aria-expanded": box.isGroup ? "false" : null,
      ...this.control(() => (box.isGroup ? this.events.toggle(first.group) : this.events.select(first))),
    },
      h("title", {}, `${says}\n${more}`), h("rect", { width, height, rx: 6 }),
      h("text", { x: 10, y: 20 }, `${box.isGroup ? "▸" : isAlone ? "∅" : SIGNS[verdict]} ${boxTitle(box)}`));
  }

  private nodeElement(id: string): HTMLElement | null {
    return this.svg.querySelector<HTMLElement>(`[data-box="${CSS.escape(id)}"]`);
  }

  focusGroup(group: string): void {
    (this.svg.querySelector<HTMLElement>(`[data-group="${CSS.escape(visible(group))}"]`) ?? this.nodeElement(`g ${group}`))?.focus({ preventScroll: true });
  }

  // Marks operations, or the closed layers that hold them, and brings the first into the middle.
  mark(names: Iterable<string>, kind: "found" | "partner", isCentred: boolean): void {
    for (const each of this.svg.querySelectorAll(".found, .partner")) each.classList.remove("found", "partner");
    const ids = [...new Set([...names].map((each) => this.boxOf.get(each)).filter((each): each is string => each !== undefined))];
    for (const id of ids) this.nodeElement(id)?.classList.add(kind);
    if (ids.length === 0 || !isCentred) return;
    const { x, y } = this.place(ids[0]);
    const wide = Math.min(this.view.w, 640);
    const tall = (wide * this.view.h) / this.view.w;
    this.setView(x - wide / 2, y - tall / 2, wide, tall);
  }

  fit(): void {
    const size = this.layout.graph() as { width?: number; height?: number };
    const box = this.svg.getBoundingClientRect();
    const shape = box.width > 0 && box.height > 0 ? box.height / box.width : 0.6;
    let wide = Math.max(size.width ?? 100, 260);
    let tall = Math.max(size.height ?? 100, 100);
    if (tall / wide > shape) wide = tall / shape;
    else tall = wide * shape;
    this.setView(((size.width ?? 0) - wide) / 2, Math.min(0, ((size.height ?? 0) - tall) / 2), wide, tall);
  }

  private setView(x: number, y: number, w: number, tall: number): void {
    this.view = { x, y, w, h: tall };
    this.svg.setAttribute("viewBox", `${x} ${y} ${w} ${tall}`);
    // The title of a frame stays in sight as long as something of the frame is.
    const places = [...this.frames.values()];
    this.svg.querySelectorAll(".frame-title").forEach((title, i) => {
      const place = places[i];
      const inside = (from: number, start: number, size: number, own: number) => Math.min(Math.max(0, from - start), Math.max(0, size - own));
      title.setAttribute("transform", `translate(${inside(x, place.x - place.width / 2, place.width, 120)},${inside(y, place.y - place.height / 2 - TITLE, place.height + TITLE, 30)})`);
    });
  }

  zoom(by: number, at?: MouseEvent): void {
    const { x, y, w, h: tall } = this.view;
    const box = this.svg.getBoundingClientRect();
    const px = at ? (at.clientX - box.left) / box.width : 0.5;
    const py = at ? (at.clientY - box.top) / box.height : 0.5;
    this.setView(x + w * px * (1 - by), y + tall * py * (1 - by), w * by, tall * by);
  }

  private drag(event: PointerEvent): void {
    if (event.button !== 0 || (event.target as Element).closest(".node, .frame-title")) return;
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

function frame({ x, y, width, height }: Place): HTMLElement {
  return h("g", { class: "frame", transform: `translate(${x - width / 2},${y - height / 2})` }, h("rect", { width, height, rx: 8 }));
}

function around(places: Place[]): Place {
  const low = (of: "x" | "y", size: "width" | "height") => places.reduce((least, each) => Math.min(least, each[of] - each[size] / 2), Infinity) - 8;
  const high = (of: "x" | "y", size: "width" | "height") => places.reduce((most, each) => Math.max(most, each[of] + each[size] / 2), -Infinity) + 8;
  const [left, right, top, bottom] = [low("x", "width"), high("x", "width"), low("y", "height"), high("y", "height")];
  return { x: (left + right) / 2, y: (top + bottom) / 2, width: right - left, height: bottom - top };
}

function groupTitle(group: string): string {
  const layer = group.match(/^layer (\d+)$/);
  return layer ? t("layer {0}", layer[1]) : group;
}

function boxTitle(box: Box): string {
  return box.isGroup ? `${shortened(box.label, 40)} (${box.operations.length})` : shortened(box.label, 42);
}

// How many characters all names of a group begin with, whole modules only; the module that holds all others is no exception.
function prefixesOf(operations: Operations): Map<string, number> {
  const around = new Set([...operations.values()].map(({ name }) => name.slice(0, -(pathOf(name).pop()!.length + 1))));
  const common = new Map<string, string[]>();
  for (const { group, name } of operations.values()) {
    if (group === "") continue;
    const path = around.has(name) ? pathOf(name) : pathOf(name).slice(0, -1);
    const before = common.get(group) ?? path;
    const differs = before.findIndex((part, i) => path[i] !== part);
    common.set(group, differs < 0 ? before : before.slice(0, differs));
  }
  return new Map([...common].map(([group, path]) => [group, path.reduce((sum, part) => sum + part.length + 1, 0)]));
}
