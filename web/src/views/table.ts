// All rows: sorted, filtered, searched and copied; only those in sight are in the document.
import type { App, View } from "../app";
import { go } from "../app";
import { Texts } from "../data";
import { announce, button, clear, copy, h, shortened } from "../dom";
import { count, csvCell, number } from "../format";
import { t } from "../i18n";
import { badge, columnsOf, isBad, resultsOf, rowSearch, select } from "../parts";

const LINE = 28;
const BEYOND = 3;

const FIRST = ["verdict", "token_id", "data_id", "verdict_error", "verdict_expected", "cosine_similarity", "relative_euclidean_distance", "max_absolute_error", "max_relative_error", "mean_relative_error", "mean_absolute_error", "kl_divergence", "my_dtype", "my_shape", "cmp_fail_reason"];
const WIDE: Record<string, number> = { data_id: 420, verdict: 130, token_id: 90, relative_euclidean_distance: 220, max_absolute_error: 170, mean_absolute_error: 170, cmp_fail_reason: 360, my_shape: 140, op_param: 300, tensor_path: 300, again: 300, "API name": 260, "Npu Name": 330, op_name: 230, "Forward Test Success": 170, "Backward Test Success": 180, "Forward Within Rounding": 190, "Backward Within Rounding": 200, "rel_precision_rate(%)": 170, Message: 360, operator: 420, fail_reason: 360 };

// What the reader chose stays while the page is open.
const state = { text: "", verdict: "", sort: "", down: true, scroll: 0 };

export const table: View = {
  id: "table",
  title: "Table",
  async show(app, element) {
    const shown = app.about.kind === "comparison" ? FIRST.filter((each) => app.table.holds(each)) : columnsOf(app);
    await app.table.need(...shown);
    new Grid(app, element, shown).start();
  },
};

class Grid {
  private rows: number[] = [];
  private selected = 0;
  private readonly body = h("div", { class: "lines", role: "rowgroup" });
  private readonly scroller = h("div", { class: "grid", role: "grid", tabindex: "0", "aria-label": t("All rows") });
  private readonly head = h("div", { class: "line head", role: "row" });
  private readonly says = h("span", { class: "says", role: "status" });
  private readonly results: Set<string>;
  private readonly starts: number[] = []; // where each column begins
  private readonly texts = new Map<string, string[]>(); // as they are shown, by their number
  private waiting = 0;

  constructor(private readonly app: App, private readonly element: HTMLElement, private readonly columns: string[]) {
    this.results = new Set(resultsOf(app));
  }

  start(): void {
    const search = rowSearch(t("Search in names and reasons"), (text) => { state.text = text; this.later(); }, () => { this.choose(); this.scroller.focus(); });
    search.value = state.text;
    const kinds: [string, string][] = this.app.about.kind === "comparison"
      ? [["", t("all")], ...["fault", "broken", "suspicious", "noise", "identical"].map((each): [string, string] => [each, t(each)]), ["none", t("not compared")]]
      : [["", t("all")], ["failing", t("failing")]];
    this.element.append(h("h2", {}, t("All rows")),
      h("div", { class: "bar-of-choices" }, search, select(t("Show"), kinds, state.verdict, (value) => { state.verdict = value; this.choose(); }),
        button(t("Copy as csv"), () => void this.copy(), { id: "copy" }), this.says));
    const width = this.columns.reduce((sum, each) => { this.starts.push(sum); return sum + this.width(each); }, 0);
    this.head.style.width = this.body.style.width = `${width}px`;
    this.scroller.append(h("div", { role: "rowgroup", class: "heads" }, this.head), this.body);
    this.element.append(this.scroller);
    this.scroller.addEventListener("scroll", () => { state.scroll = this.scroller.scrollTop; this.draw(); }, { passive: true });
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => {
      const line = (event.target as HTMLElement).closest<HTMLElement>("[data-at]");
      if (line) this.open(Number(line.dataset.at));
    });
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    const keep = state.scroll;
    this.choose();
    this.scroller.scrollTop = keep;
    this.draw();
  }

  private later(): void {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.choose(), 120);
  }

  private width(column: string): number {
    return WIDE[column] ?? 150;
  }

  // Which rows are there, in which order.
  private choose(): void {
    const { table: rows, model, about } = this.app;
    const words = state.text.toLowerCase();
    const searched = this.columns.map((each) => rows.column(each)).filter((each): each is Texts => each instanceof Texts);
    // Texts are few against rows: each is searched once.
    const hits = searched.map((column) => column.values.map((text) => words !== "" && text.toLowerCase().includes(words)));
    const wanted = (row: number): boolean => {
      if (state.verdict === "none" && model.verdict(row) !== "") return false;
      if (state.verdict === "failing" && !this.fails(row)) return false;
      if (!["", "none", "failing"].includes(state.verdict) && model.verdict(row) !== state.verdict) return false;
      return words === "" || searched.some((column, k) => hits[k][column.indices[row]]);
    };
    const out: number[] = [];
    for (let i = 0; i < rows.rows; ++i) if (wanted(i)) out.push(i);
    this.sort(out);
    this.rows = out;
    this.selected = 0;
    this.says.textContent = out.length === rows.rows ? t("{0} rows", count(out.length)) : t("{0} of {1} rows", count(out.length), count(about.rows));
    this.body.style.height = `${out.length * LINE}px`;
    this.scroller.setAttribute("aria-rowcount", String(out.length + 1));
    this.scroller.setAttribute("aria-colcount", String(this.columns.length));
    this.scroller.scrollTop = 0;
    this.drawHead();
    this.draw();
  }

  private fails(row: number): boolean {
    return resultsOf(this.app).some((each) => isBad(this.app.table.text(each, row)));
  }

  private sort(rows: number[]): void {
    if (!state.sort) return;
    const column = this.app.table.column(state.sort);
    if (!column) return;
    const sign = state.down ? -1 : 1;
    if (column.isNumber) {
      // What has no number is last in either order.
      rows.sort((a, b) => {
        const x = column.has(a) ? column.number(a) : NaN;
        const y = column.has(b) ? column.number(b) : NaN;
        if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || a - b;
        return sign * (x - y) || a - b;
      });
    } else if (column instanceof Texts) {
      const order = column.values.map((_, i) => i).sort((a, b) => collator.compare(column.values[a], column.values[b]));
      const rank = new Uint32Array(order.length);
      order.forEach((index, place) => { rank[index] = place; });
      rows.sort((a, b) => sign * (rank[column.indices[a]] - rank[column.indices[b]]) || a - b);
    }
  }

  private drawHead(): void {
    this.head.setAttribute("aria-rowindex", "1");
    clear(this.head, this.columns.map((each, i) => h("div", {
      role: "columnheader", class: this.app.table.column(each)!.isNumber ? "cell num" : "cell", style: `width:${this.width(each)}px`, "aria-colindex": i + 1, "aria-sort": state.sort === each ? (state.down ? "descending" : "ascending") : "none",
    }, button(`${t(each)}${state.sort === each ? (state.down ? " ↓" : " ↑") : ""}`, () => {
      state.down = state.sort === each ? !state.down : true;
      state.sort = each;
      this.choose();
      announce(t("sorted by {0}", t(each)));
    }, { title: each }))));
  }

  private draw(): void {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / LINE) - BEYOND);
    const last = Math.min(this.rows.length, first + Math.ceil(this.scroller.clientHeight / LINE) + 2 * BEYOND);
    // Lines are filled anew rather than made anew: that is what scrolling costs.
    while (this.body.childElementCount > last - first) this.body.lastElementChild!.remove();
    while (this.body.childElementCount < last - first) this.body.append(this.emptyLine());
    const { scrollLeft, clientWidth } = this.scroller;
    const isSeen = this.columns.map((each, i) => this.starts[i] < scrollLeft + clientWidth && this.starts[i] + this.width(each) > scrollLeft);
    for (let at = first; at < last; ++at) this.fill(this.body.children[at - first] as HTMLElement, at, isSeen);
    this.scroller.setAttribute("aria-activedescendant", this.selected >= first && this.selected < last ? `line-${this.selected}` : "");
  }

  private emptyLine(): HTMLElement {
    return h("div", { role: "row" }, this.columns.map((each, i) => h("div", {
      class: this.app.table.column(each)!.isNumber ? "cell num" : "cell", role: "gridcell", "aria-colindex": i + 1, style: `width:${this.width(each)}px`,
    }, each === "verdict" ? badge("") : h("bdi", {}, " "))));
  }

  // Columns that are out of sight stay empty.
  private fill(line: HTMLElement, at: number, isSeen: boolean[]): void {
    const row = this.rows[at];
    line.className = at === this.selected ? "line selected" : "line";
    line.id = `line-${at}`;
    line.dataset.at = String(at);
    line.style.top = `${at * LINE}px`;
    line.setAttribute("aria-rowindex", String(at + 2));
    line.setAttribute("aria-selected", at === this.selected ? "true" : "false");
    this.columns.forEach((column, i) => {
      const place = line.children[i].firstElementChild!;
      if (column === "verdict") {
        const verdict = this.app.table.text(column, row);
        if (place.className !== `badge ${verdict || "none"}`) place.replaceWith(badge(verdict));
        return;
      }
      const text = isSeen[i] ? this.text(column, row) : "";
      const node = place.firstChild as Text;
      if (node.data !== text) node.data = text;
      if (this.results.has(column)) place.className = isBad(text) ? "bad" : "";
    });
  }

  private text(column: string, row: number): string {
    const values = this.app.table.column(column)!;
    if (values instanceof Texts) {
      let known = this.texts.get(column);
      if (!known) this.texts.set(column, (known = []));
      return (known[values.indices[row]] ??= shortened(values.text(row), 120));
    }
    if (!values.has(row)) return "";
    return Number.isNaN(values.number(row)) ? "nan" : number(values.number(row), column.startsWith("cosine") ? 8 : 4);
  }

  private open(at: number): void {
    this.selected = at;
    go(this.app.about.kind === "comparison" ? "op" : "row", this.rows[at]);
  }

  private key(event: KeyboardEvent): void {
    if (event.target !== this.scroller) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / LINE) - 2);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" && this.rows.length > 0) this.open(this.selected);
    if (!(event.key in steps)) return;
    this.selected = Math.min(Math.max(this.selected + steps[event.key], 0), this.rows.length - 1);
    const top = this.selected * LINE;
    const headHeight = this.head.offsetHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + LINE + headHeight > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = top + LINE + headHeight - this.scroller.clientHeight;
    this.draw();
    event.preventDefault();
  }

  private async copy(): Promise<void> {
    const columns = this.columns.map((each) => this.app.table.column(each)!);
    const lines = [this.columns.map(csvCell).join(",")];
    for (const row of this.rows) lines.push(columns.map((column) => csvCell(column.text(row))).join(","));
    const done = await copy(lines.join("\n") + "\n");
    this.says.textContent = done ? t("{0} rows are copied", count(this.rows.length)) : t("copying is not allowed here");
  }
}

const collator = new Intl.Collator("en", { numeric: true });
