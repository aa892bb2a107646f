// Results of checks (operators, torch's functions, overflows) and of recordings: counts, what fails, one row.
import type { App, View } from "../app";
import type { Column } from "../data";
import { h, name } from "../dom";
import { number } from "../format";
import { t } from "../i18n";
import { card, command, counted, isBad, plainTable, resultsOf } from "../parts";
import { parsed } from "./run";

// What a row is called.
const NAMES: Record<string, string[]> = { opcheck: ["op_id", "op_name"], api_check: ["API name"], api_overflow: ["API name"], api_details: ["Npu Name"], errcheck: ["operator"] };
const WORST: Record<string, [string, boolean]> = {
  opcheck: ["error_of_bound", true], api_details: ["Cosine Similarity", false], errcheck: ["reports", true],
};
const SHOWN = 50;

export const checks: View = {
  id: "summary",
  title: "Summary",
  show(app, element) {
    if (app.about.kind === "dump") return dump(app, element);
    const results = resultsOf(app);
    element.append(h("h2", {}, t("Summary")));
    const failing = rowsThatFail(app, results);
    element.append(h("div", { class: "cards" }, card(t("rows"), counted(app.table.rows)), results.length > 0 && card(t("failing"), counted(failing.length), failing.length > 0 ? "bad" : "good")));
    for (const each of results) element.append(h("section", {}, h("h3", {}, t(each)), distribution(app, each)));
    if (app.about.kind === "opcheck") element.append(h("section", {}, h("h3", {}, t("By type of operation")), byType(app, failing)));
    if (failing.length > 0) element.append(h("section", {}, h("h3", {}, t("What fails")), rowsOf(app, failing, results)));
    const worst = WORST[app.about.kind];
    if (worst && app.table.holds(worst[0])) element.append(h("section", {}, h("h3", {}, t("Worst by {0}", t(worst[0]))), rowsOf(app, worstBy(app, ...worst), [worst[0]])));
    return undefined;
  },
};

function rowsThatFail(app: App, results: string[]): number[] {
  const out: number[] = [];
  for (let i = 0; i < app.table.rows; ++i) if (results.some((each) => isBad(app.table.text(each, i)))) out.push(i);
  return out;
}

function distribution(app: App, column: string): HTMLElement {
  const counts = new Map<string, number>();
  for (let i = 0; i < app.table.rows; ++i) counts.set(app.table.text(column, i), (counts.get(app.table.text(column, i)) ?? 0) + 1);
  return h("ul", { class: "bars" }, [...counts].sort((a, b) => b[1] - a[1]).slice(0, 20).map(([text, times]) =>
    h("li", {}, h("span", { class: "what" }, name(text || t("nothing"), 60)), h("span", { class: isBad(text) ? "bar bad" : "bar", style: `width:${(times / app.table.rows) * 60}%` }), counted(times))));
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

function worstBy(app: App, column: string, largest: boolean): number[] {
  const values = app.table.column(column) as Column;
  const rows: number[] = [];
  for (let i = 0; i < app.table.rows; ++i) if (values.has(i) && !Number.isNaN(values.number(i))) rows.push(i);
  return rows.sort((a, b) => (largest ? -1 : 1) * (values.number(a) - values.number(b))).slice(0, 10);
}

function rowsOf(app: App, rows: number[], columns: string[]): HTMLElement {
  const names = NAMES[app.about.kind] ?? [];
  const reason = ["fail_reason", "Message"].filter((each) => app.table.holds(each));
  const shown = [...names, ...columns, ...reason];
  return plainTable(t("Rows"), shown.map((each) => t(each)), rows.slice(0, SHOWN).map((row) => shown.map((each, i) => {
    const values = app.table.column(each);
    const text = values?.isNumber ? number(values.number(row), 5) : (values?.text(row) ?? "");
    return i === 0 ? h("a", { href: `#/row/${row}` }, name(text, 80)) : name(text, 200);
  })));
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
    const title = (NAMES[app.about.kind] ?? []).map((each) => app.table.text(each, row)).join(" ");
    element.append(h("h2", {}, name(title || `${t("Row")} ${row}`, 200)),
      plainTable(t("Row"), [t("What"), t("Value")], app.table.names.filter((each) => app.table.text(each, row) !== "").map((each) => [t(each), name(app.table.text(each, row), 4000)])));
    const again = app.table.text("again", row);
    if (again) element.append(h("h3", {}, t("Look again")), command(again));
  },
};

function dump(app: App, element: HTMLElement): void {
  const manifest = parsed(app.about.manifests[0]?.text ?? "");
  element.append(h("h2", {}, t("Recorded run")));
  if (!manifest) {
    element.append(h("p", { class: "problem" }, t("its manifest cannot be read")));
    return;
  }
  const tensors = (manifest.tensors ?? {}) as Record<string, number>;
  const list = (value: unknown) => (Array.isArray(value) ? value.map(String) : []);
  const complete = manifest.complete;
  element.append(h("div", { class: "cards" },
    complete !== undefined && card(t("complete"), complete === true ? t("yes") : t("no"), complete === true ? "good" : "bad"),
    ["announced", "written", "failed", "lost", "skipped"].filter((each) => each in tensors).map((each) => card(t(`tensors ${each}`), counted(tensors[each]), ["failed", "lost"].includes(each) && tensors[each] > 0 ? "bad" : "")),
    "seconds" in manifest && card(t("seconds"), number(Number(manifest.seconds)))));
  if (Array.isArray(manifest.command)) element.append(h("p", {}, t("Command:")), command(manifest.command.map(String).join(" ")));
  for (const [title, items] of [["Why it is incomplete", list(manifest.incomplete_because)], ["Notes", list(manifest.notes)]] as const)
    if (items.length > 0) element.append(h("section", {}, h("h3", {}, t(title)), h("ul", {}, items.map((each) => h("li", {}, name(each, 1000))))));
  const processes = Array.isArray(manifest.processes) ? (manifest.processes as Record<string, unknown>[]) : [];
  if (processes.length > 0) {
    const keys = [...new Set(processes.flatMap((each) => Object.keys(each)))];
    element.append(h("section", {}, h("h3", {}, t("Processes")), plainTable(t("Processes"), keys.map((each) => name(each)), processes.slice(0, 1000).map((each) => keys.map((key) => name(typeof each[key] === "object" ? JSON.stringify(each[key]) : String(each[key] ?? ""), 120))))));
  }
}
