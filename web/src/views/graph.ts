// The model: its modules as a tree, and both sides' operations as graphs side by side. What is selected in one is shown in all.
import type { App, View } from "../app";
import { go } from "../app";
import { announce, button, clear, h, name, visible } from "../dom";
import { number } from "../format";
import { t } from "../i18n";
import { VERDICTS } from "../model";
import { badge, rowSearch, select } from "../parts";
import { said } from "../sentences";
import { SIDES, Structure, type Operation, type Side } from "../structure";
import { Drawing } from "./drawing";
import { Tree } from "./tree";

export const graph: View = {
  id: "graph",
  title: "Model",
  async show(app, element, rest) {
    await app.table.need("golden_operation", "my_operation", "missing", "pairing_reason", "cmp_fail_reason");
    const start = rest[0] !== undefined && Number(rest[0]) < app.table.rows ? Number(rest[0]) : app.model.firstFinding;
    new ModelView(app, element, start).start();
  },
};

class ModelView {
  private structure: Structure;
  private readonly open = new Set<string>();
  private readonly tree = new Tree((operation) => this.select(operation, true));
  private readonly drawings: Record<Side, Drawing>;
  private readonly says = h("div", { class: "selection", role: "status" });
  private selected: Operation | undefined;
  private treeSide: Side = "my";

  constructor(private readonly app: App, private readonly element: HTMLElement, private readonly row: number) {
    this.structure = new Structure(app, row >= 0 ? app.model.tokenOf[row] : 0);
    const drawing = (side: Side) => new Drawing(app, side, {
      select: (operation) => (operation === this.selected ? go("op", operation.row) : this.select(operation, false)),
      toggle: (group) => this.toggle(group, side),
    });
    this.drawings = { golden: drawing("golden"), my: drawing("my") };
  }

  start(): void {
    const { model } = this.app;
    const search = rowSearch(t("Search an operation"), (text) => this.find(text), () => { if (this.selected) go("op", this.selected.row); });
    const both = (action: (drawing: Drawing) => void) => () => SIDES.forEach((side) => action(this.drawings[side]));
    this.element.append(h("h2", {}, t("Model")),
      h("p", { class: "facts" }, t("Boxes are operations, arrows are values. A layer opens and closes with a click. A click on an operation shows its partner on the other side, a second one opens it.")),
      h("div", { class: "bar-of-choices" }, search,
        select(t("Token"), model.tokens.map((each, i) => [String(i), visible(each)]), String(this.structure.token), (value) => this.setToken(Number(value))),
        button(t("Open all layers"), () => this.openAll()), button(t("Close all layers"), () => this.closeAll()),
        button("+", both((each) => each.zoom(0.8)), { "aria-label": t("Larger") }), button("−", both((each) => each.zoom(1.25)), { "aria-label": t("Smaller") }), button(t("Fit"), both((each) => each.fit()))),
      h("div", { class: "verdicts" }, VERDICTS.map((each) => badge(each)), h("span", { class: "badge alone" }, "∅ ", t("no partner"))),
      h("div", { class: "model" },
        h("div", { class: "tree-box" }, h("div", { class: "tree-head" }, h("h3", {}, t("Modules")),
          select(t("Side"), SIDES.map((side) => [side, t(side)]), this.treeSide, (value) => { this.treeSide = value as Side; this.fillTree(); })), this.tree.element),
        h("div", { class: "graphs" }, this.drawings.golden.element, this.drawings.my.element), this.says));
    const names = this.row >= 0 ? this.structure.names(this.row) : undefined;
    const first = names && (this.structure.my.get(names.my) ?? this.structure.golden.get(names.golden));
    if (first) this.openAround(first);
    this.layOut();
    this.fillTree();
    if (first) this.select(first, true);
    else this.nothing();
  }

  private other(side: Side): Side {
    return side === "my" ? "golden" : "my";
  }

  private layOut(): void {
    for (const side of SIDES) this.drawings[side].layOut(this.structure[side], this.open);
  }

  private fillTree(): void {
    this.tree.fill(this.structure[this.treeSide]);
    if (this.selected) this.showInTree(this.selected);
  }

  private showInTree(operation: Operation): void {
    const names = operation.side === this.treeSide ? [operation.name] : [...operation.partners];
    if (names.length > 0) this.tree.show(names[0]);
  }

  private setToken(token: number): void {
    const before = this.selected;
    this.structure = new Structure(this.app, token);
    this.selected = undefined;
    this.layOut();
    this.fillTree();
    const again = before && this.structure[before.side].get(before.name);
    if (again) this.select(again, true);
    else this.nothing();
  }

  private partnersOf(operation: Operation): Operation[] {
    const others = this.structure[this.other(operation.side)];
    return [...operation.partners].map((each) => others.get(each)!);
  }

  // Opens the layers that hold an operation and its partners; whether one was closed.
  private openAround(operation: Operation): boolean {
    const before = this.open.size;
    for (const each of [operation, ...this.partnersOf(operation)]) if (each.group !== "") this.open.add(each.group);
    return this.open.size > before;
  }

  private toggle(group: string, side: Side): void {
    if (!this.open.delete(group)) this.open.add(group);
    this.layOut();
    if (this.selected) this.markBoth(this.selected, false);
    this.drawings[side].focusGroup(group);
    announce(this.open.has(group) ? t("opened") : t("closed"));
  }

  private openAll(): void {
    for (const side of SIDES) for (const each of this.drawings[side].groups) this.open.add(each);
    this.layOut();
  }

  private closeAll(): void {
    this.open.clear();
    this.layOut();
  }

  // `isCentred`: also on its own side, where nobody clicked on it.
  private select(operation: Operation, isCentred: boolean): void {
    this.selected = operation;
    if (this.openAround(operation)) {
      this.layOut();
      isCentred = true;
    }
    this.markBoth(operation, isCentred);
    this.showInTree(operation);
    this.describe(operation);
  }

  private markBoth(operation: Operation, isCentred: boolean): void {
    this.drawings[operation.side].mark([operation.name], "found", isCentred);
    this.drawings[this.other(operation.side)].mark(operation.partners, "partner", true);
  }

  private nothing(): void {
    clear(this.says, h("p", { class: "facts" }, t("{0} operations of golden, {1} of my, {2} without a partner", this.structure.golden.size, this.structure.my.size,
      SIDES.reduce((sum, side) => sum + [...this.structure[side].values()].filter((each) => each.partners.size === 0).length, 0))));
  }

  private describe(operation: Operation): void {
    const { model, table } = this.app;
    const partners = this.partnersOf(operation);
    const list = (of: Operation[]) => (of.length === 0 ? h("em", {}, t("no partner")) : of.slice(0, 20).map((each, i) => [i > 0 && ", ", name(each.name, 120)]));
    const sides = { [operation.side]: [operation], [this.other(operation.side)]: partners } as Record<Side, Operation[]>;
    const why = table.text("pairing_reason", operation.row) || table.text("cmp_fail_reason", operation.row);
    clear(this.says,
      h("p", {}, badge(operation.verdict === 0 ? "" : VERDICTS[operation.verdict - 1]), " ", h("strong", {}, t("golden"), ": "), list(sides.golden), " ↔ ", h("strong", {}, t("my"), ": "), list(sides.my)),
      h("p", { class: "facts" }, t("error"), " ", number(model.error(operation.row)), " · ", t("expected"), " ", number(model.expected(operation.row)), why !== "" && [" · ", partners.length > 0 && [t("Paired:"), " "], said(why, 300)]),
      h("p", { class: "actions" }, h("a", { class: "button", href: `#/op/${operation.row}` }, t("Open the operation"))));
  }

  private find(text: string): void {
    if (text === "") return;
    const wanted = text.toLowerCase();
    // The shortest name that holds it: an operation rather than what is inside.
    const hits = (["my", "golden"] as Side[]).map((side) => [...this.structure[side].values()].filter((each) => each.name.toLowerCase().includes(wanted))).find((each) => each.length > 0);
    if (!hits) {
      this.selected = undefined;
      for (const side of SIDES) this.drawings[side].mark([], "found", false);
      clear(this.says, h("p", { class: "facts" }, t("no operation holds that")));
      return;
    }
    this.select(hits.reduce((best, each) => (each.name.length < best.name.length ? each : best)), true);
  }
}
