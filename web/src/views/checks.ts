// Results of checks (operators, torch's functions, overflows): the answer, what fails, counts, and one row.
import type { App, View } from "../app";
import type { Column } from "../data";
import { h, name, type Child } from "../dom";
import { number } from "../format";
import { t } from "../i18n";
import { card, columnsOf, command, counted, isBad, NAMES, plainTable, resultsOf } from "../parts";
import { dump } from "./dump";

// What else is worth a column where rows are listed, and by which of them they are sorted.
const NUMBERS: Record<string, string[]> = {
  opcheck: ["error_of_bound", "max_rel_error", "rel_precision_rate(%)"],
  api_details: ["Roundings", "Roundings Allowed", "Cosine Similarity", "Max Abs Error"],
  errcheck: ["reports"],
};
const REASONS = ["fail_reason", "Message"];
const SHOWN = 50;
const WORST = 10;

// What the verdicts of `ait api overflow` mean.
const MEANINGS: Record<string, string> = {
  normal: "both overflow: the values are too large",
  abnormal: "only one does: the device's kernel is at fault, or hides it",
  "not reproduced": "neither does",
  SKIP: "it could not be run",
};

export const checks: View = {
  id: "summary",
  title: "Summary",
  show(app, element) {
    if (app.about.kind === "dump") return dump(app, element);
    const results = resultsOf(app);
    const failing: number[] = [];
    for (let i = 0; i < app.table.rows; ++i) if (results.some((each) => isBad(app.table.text(each, i)))) failing.push(i);
    element.append(h("h2", {}, headline(app, failing.length)),
      h("div", { class: "cards" }, card(t(app.about.kind === "errcheck" ? "operators" : "rows"), counted(app.table.rows)), results.length > 0 && card(t("failing"), counted(failing.length), failing.length > 0 ? "bad" : "good")));
    if (failing.length > 0) element.append(section("What fails", rowsOf(app, failing, results)));
    if (app.about.kind === "errcheck") overflows(app, element);
    if (app.about.kind === "api_overflow") element.append(section("Calls that overflow", rowsOf(app, rowsUpTo(app, SHOWN), results)));
    if (results.length > 0) element.append(h("div", { class: "results" }, results.map((each) => section(each, distribution(app, each)))));
    if (app.about.kind === "opcheck") element.append(section("By type of operation", byType(app, failing)));
    const by = NUMBERS[app.about.kind]?.[0];
    if (by && app.about.kind !== "errcheck" && app.table.holds(by)) element.append(h("section", {}, h("h3", {}, t("Worst by {0}", t(by))), rowsOf(app, worstBy(app, by), results)));
    return undefined;
  },
};

function section(title: string, ...content: Child[]): HTMLElement {
  return h("section", {}, h("h3", {}, t(title)), content);
}

function headline(app: App, failing: number): string {
  const rows = app.table.rows;
  if (app.about.kind === "errcheck") return rows === 1 ? t("One operator overflows") : t("{0} operators overflow", counted(rows));
  if (app.about.kind === "api_overflow") return failing > 0 ? t("{0} of {1} overflows are of the device's making", failing, rows) : t("No overflow is of the device's making");
  if (failing === 0) return t("Nothing fails");
  return app.about.kind === "opcheck" ? t("{0} of {1} outputs of operators fail", counted(failing), counted(rows)) : t("{0} of {1} rows fail", counted(failing), counted(rows));
}

function rowsUpTo(app: App, most: number): number[] {
  return Array.from({ length: Math.min(most, app.table.rows) }, (_, i) => i);
}

// In the order in which they were reported: the first is the one to look at.
function overflows(app: App, element: HTMLElement): void {
  const first = app.table.text("operator", 0);
  const ids = first.match(/_(\d+(?:_\d+)*)(?::|$)/)?.[1];
  element.append(h("div", {}, h("p", { class: "lead" }, t("The first is the one to look at:"), " ", h("strong", {}, name(first, 200))),
    ids !== undefined && [h("p", {}, t("Record what it computes:")), command(`ait llm dump --exec "…" -ids ${ids} -time 2`)],
    section("In the order of the reports", rowsOf(app, rowsUpTo(app, SHOWN), []))));
}

function distribution(app: App, column: string): HTMLElement {
  const counts = new Map<string, number>();
  for (let i = 0; i < app.table.rows; ++i) counts.set(app.table.text(column, i), (counts.get(app.table.text(column, i)) ?? 0) + 1);
  const kind = (text: string) => (isBad(text) ? "bar bad" : /^(pass|true|normal)/i.test(text) ? "bar good" : "bar");
  return h("ul", { class: "bars" }, [...counts].sort((a, b) => b[1] - a[1]).slice(0, 20).map(([text, times]) =>
    h("li", {}, h("span", { class: "what" }, name(text || t("nothing"), 60)), h("span", { class: kind(text), style: `width:${(times / app.table.rows) * 55}%` }), counted(times),
      app.about.kind === "api_overflow" && MEANINGS[text] !== undefined && h("span", { class: "facts" }, t(MEANINGS[text])))));
}

function byType(app: App, failing: number[]): HTMLElement {
  const bad = new Set(failing);
  const types = new Map<string, [number, number]>();
  for (let i = 0; i < app.table.rows; ++i) {
    const [all, wrong] = types.get(app.table.text("op_name", i)) ?? [0, 0];
    types.set(app.table.text("op_name", i), [all + 1, wrong + (bad.has(i) ? 1 : 0)]);
  }
  return plainTable(t("By type of operation"), [t("type of operation"), t("rows"), t("failing")], [...types].sort((a, b) => b[1][1] - a[1][1] || b[1][0] - a[1][0]).map(([type, [all, wrong]]) => [name(type), counted(all), counted(wrong)]), [1, 2]);
}

function worstBy(app: App, column: string): number[] {
  const values = app.table.column(column) as Column;
  const rows: number[] = [];
  for (let i = 0; i < app.table.rows; ++i) if (values.has(i) && !Number.isNaN(values.number(i))) rows.push(i);
  return rows.sort((a, b) => values.number(b) - values.number(a)).slice(0, WORST);
}

function rowsOf(app: App, rows: number[], results: string[]): HTMLElement {
  const shown = [...(NAMES[app.about.kind] ?? []), ...results, ...(NUMBERS[app.about.kind] ?? []), ...REASONS].filter((each) => app.table.holds(each));
  const isNumber = (each: string) => app.table.column(each)?.isNumber ?? false;
  const cell = (each: string, row: number): Child => {
    const text = app.table.text(each, row);
    if (results.includes(each)) return h("span", { class: isBad(text) ? "result bad" : "result" }, name(text));
    return isNumber(each) ? (text === "" ? "" : number(app.table.number(each, row), 5)) : REASONS.includes(each) && text !== "" ? h("span", { class: "reason" }, name(text, 400)) : name(text, 240);
  };
  return h("div", {}, plainTable(t("Rows"), shown.map((each) => t(each)), rows.slice(0, SHOWN).map((row) => shown.map((each, i) => (i === 0 ? h("a", { href: `#/row/${row}` }, cell(each, row)) : cell(each, row)))),
    shown.map((each, i) => (isNumber(each) ? i : -1))), rows.length > SHOWN && h("p", { class: "facts" }, t("… and {0} more, see the table", counted(rows.length - SHOWN))));
}

export const checkRow: View = {
  id: "row",
  title: "Row",
  show(app, element, rest) {
    const row = Number(rest[0]);
    if (!(row >= 0 && row < app.table.rows)) {
      element.append(h("p", { class: "problem" }, t("There is no such row.")));
      return;
    }
    const step = (to: number, label: string) => (to >= 0 && to < app.table.rows ? h("a", { class: "button", href: `#/row/${to}` }, label) : h("span", { class: "button off" }, label));
    const title = (NAMES[app.about.kind] ?? []).map((each) => app.table.text(each, row)).join(" ");
    const results = resultsOf(app);
    element.append(h("p", { class: "actions" }, step(row - 1, t("← before")), " ", step(row + 1, t("after →"))), h("h2", {}, name(title || `${t("Row")} ${row}`, 200)),
      h("p", {}, results.map((each) => [h("span", { class: isBad(app.table.text(each, row)) ? "badge fault" : "badge" }, t(each), ": ", name(app.table.text(each, row) || t("nothing"))), " "])));
    const again = app.table.text("again", row);
    if (again) element.append(section("Look again", command(again)));
    element.append(h("div", { class: "both" }, plainTable(t("Row"), [t("What"), t("Value")], columnsOf(app).filter((each) => app.table.text(each, row) !== "").map((each) => [t(each), name(app.table.text(each, row), 4000)]))));
  },
};
