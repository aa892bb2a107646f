// The modules of one side as a tree that opens and closes, each coloured by the worst that is inside.
import { clear, h, name, shortened } from "../dom";
import { t } from "../i18n";
import { SIGNS, VERDICTS } from "../model";
import { pathOf, type Operation, type Operations } from "../structure";

interface Branch {
  id: string; // its path
  label: string;
  level: number;
  verdict: number; // the worst inside
  count: number; // operations inside
  operation: Operation | undefined; // where it is one itself
  parent: Branch | undefined;
  children: Branch[];
}

// A longer list of children is of no use to anybody.
const MOST_CHILDREN = 2000;

export class Tree {
  readonly element = h("ul", { class: "tree", role: "tree", "aria-label": t("Modules") });
  private roots: Branch[] = [];
  private readonly items = new Map<string, HTMLElement>(); // lines that are in the document
  private readonly open = new Set<string>();
  private current: Branch | undefined; // what the keys are at
  private byOperation = new Map<string, Branch>();

  constructor(private readonly onSelect: (operation: Operation) => void) {
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  fill(operations: Operations): void {
    this.byOperation = new Map();
    this.roots = grown(operations, this.byOperation);
    if (this.open.size === 0 && this.roots.length === 1) this.open.add(this.roots[0].id);
    this.current = this.roots[0];
    this.items.clear();
    clear(this.element, this.roots.map((each) => this.item(each)));
    this.mark();
  }

  // Opens what is around an operation and marks it.
  show(operation: string): void {
    const branch = this.byOperation.get(operation);
    if (!branch) return;
    for (let each = branch.parent; each; each = each.parent) this.setOpen(each, true);
    this.current = branch;
    this.mark();
    this.items.get(branch.id)?.scrollIntoView({ block: "nearest" });
  }

  private item(branch: Branch): HTMLElement {
    const verdict = branch.verdict === 0 ? "" : VERDICTS[branch.verdict - 1];
    const isAlone = branch.operation !== undefined && branch.operation.partners.size === 0;
    const hasInside = branch.children.length > 0;
    const row = h("div", {
      class: `row ${verdict || "none"}`, style: `padding-left:${(branch.level - 1) * 16 + 4}px`, role: "treeitem", "aria-level": branch.level,
      "aria-expanded": hasInside ? String(this.open.has(branch.id)) : null, tabindex: "-1", "data-path": shortened(branch.id, 400), onclick: () => this.choose(branch),
    },
      h("span", { class: "twisty", "aria-hidden": "true", onclick: (event: Event) => { event.stopPropagation(); this.toggle(branch); } }, hasInside ? (this.open.has(branch.id) ? "▾" : "▸") : ""),
      h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[verdict]), name(branch.label, 60), h("span", { class: "off-screen" }, t(verdict || "not judged")),
      hasInside && h("span", { class: "count" }, String(branch.count)), isAlone && h("em", {}, t("no partner")));
    this.items.set(branch.id, row);
    return h("li", { role: "none" }, row, hasInside && this.open.has(branch.id) && this.inside(branch));
  }

  private inside(branch: Branch): HTMLElement {
    return h("ul", { role: "group" }, branch.children.slice(0, MOST_CHILDREN).map((each) => this.item(each)),
      branch.children.length > MOST_CHILDREN && h("li", { role: "none" }, t("… and {0} more, see the table", branch.children.length - MOST_CHILDREN)));
  }

  private setOpen(branch: Branch, isOpen: boolean): void {
    if (this.open.has(branch.id) === isOpen || branch.children.length === 0) return;
    if (isOpen) this.open.add(branch.id);
    else this.open.delete(branch.id);
    this.items.get(branch.id)?.parentElement?.replaceWith(this.item(branch));
  }

  private toggle(branch: Branch): void {
    this.setOpen(branch, !this.open.has(branch.id));
    this.current = branch;
    this.mark();
  }

  private choose(branch: Branch): void {
    this.current = branch;
    if (branch.operation) this.onSelect(branch.operation);
    else this.toggle(branch);
    this.mark();
    this.items.get(branch.id)?.focus({ preventScroll: true });
  }

  private mark(): void {
    for (const each of this.element.querySelectorAll("[aria-selected]")) {
      each.removeAttribute("aria-selected");
      each.setAttribute("tabindex", "-1");
    }
    const item = this.current && this.items.get(this.current.id);
    item?.setAttribute("aria-selected", "true");
    item?.setAttribute("tabindex", "0");
  }

  // Those in sight, from the top.
  private shown(): Branch[] {
    const out: Branch[] = [];
    const add = (each: Branch) => {
      out.push(each);
      if (this.open.has(each.id)) each.children.slice(0, MOST_CHILDREN).forEach(add);
    };
    this.roots.forEach(add);
    return out;
  }

  private key(event: KeyboardEvent): void {
    const at = this.current;
    if (!at || event.ctrlKey || event.altKey || event.metaKey) return;
    const move = (to: Branch | undefined) => { if (to) this.current = to; };
    const shown = this.shown();
    const place = shown.indexOf(at);
    const isOpen = this.open.has(at.id);
    if (event.key === "ArrowDown") move(shown[place + 1]);
    else if (event.key === "ArrowUp") move(shown[place - 1]);
    else if (event.key === "Home") move(shown[0]);
    else if (event.key === "End") move(shown[shown.length - 1]);
    else if (event.key === "ArrowRight") {
      if (isOpen) move(at.children[0]);
      else this.setOpen(at, true);
    } else if (event.key === "ArrowLeft") {
      if (isOpen) this.setOpen(at, false);
      else move(at.parent);
    } else if (event.key === "Enter" || event.key === " ") this.choose(at);
    else return;
    this.mark();
    const item = this.current && this.items.get(this.current.id);
    item?.focus({ preventScroll: true });
    item?.scrollIntoView({ block: "nearest" });
    event.preventDefault();
    event.stopPropagation();
  }
}

// Paths that never branch are one line: "root.model".
function grown(operations: Operations, byOperation: Map<string, Branch>): Branch[] {
  const root: Branch = { id: "", label: "", level: 0, verdict: 0, count: 0, operation: undefined, parent: undefined, children: [] };
  const known = new Map<string, Branch>([["", root]]);
  for (const operation of operations.values()) {
    const separator = operation.name.includes("/") ? "/" : ".";
    let at = root;
    let id = "";
    for (const part of pathOf(operation.name)) {
      id = id === "" ? part : id + separator + part;
      let child = known.get(id);
      if (!child || child === root) {
        child = { id, label: part, level: 0, verdict: 0, count: 0, operation: undefined, parent: at, children: [] };
        known.set(id, child);
        at.children.push(child);
      }
      at = child;
    }
    at.operation = operation;
    byOperation.set(operation.name, at);
    for (let each: Branch | undefined = at; each; each = each.parent) {
      each.verdict = Math.max(each.verdict, operation.verdict);
      ++each.count;
    }
  }
  const settle = (branch: Branch, level: number): Branch => {
    while (branch.children.length === 1 && !branch.operation) {
      const only = branch.children[0];
      only.label = branch.label + only.id.slice(branch.id.length);
      only.parent = branch.parent;
      branch = only;
    }
    branch.level = level;
    branch.children = branch.children.map((each) => {
      each.parent = branch;
      return settle(each, level + 1);
    });
    return branch;
  };
  return root.children.map((each) => {
    each.parent = undefined;
    return settle(each, 1);
  });
}
