// Pieces that several views are made of.
import type { App } from "./app";
import { go } from "./app";
import { button, copy, h, name, type Child } from "./dom";
import { count, number } from "./format";
import { t } from "./i18n";
import { SIGNS } from "./model";

export function badge(verdict: string): HTMLElement {
  return h("span", { class: `badge ${verdict || "none"}` }, h("span", { "aria-hidden": "true" }, SIGNS[verdict] ?? "·"), " ", t(verdict || "not judged"));
}

export function card(label: string, value: Child, kind = ""): HTMLElement {
  return h("div", { class: `card ${kind}` }, h("div", { class: "value" }, value), h("div", { class: "label" }, label));
}

export function counted(value: number | undefined): string {
  return count(value ?? 0);
}

// A table of few lines; cells of numbers are aligned by the caller's class.
export function plainTable(label: string, head: Child[], lines: Child[][], numeric: number[] = []): HTMLElement {
  const kind = (i: number) => (numeric.includes(i) ? "num" : null);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", {},
      h("thead", {}, h("tr", {}, head.map((each, i) => h("th", { scope: "col", class: kind(i) }, each)))),
      h("tbody", {}, lines.map((line) => h("tr", {}, line.map((each, i) => h("td", { class: kind(i) }, each)))))));
}

export function rowLink(app: App, row: number, text?: string): HTMLElement {
  return h("a", { href: `#/op/${row}` }, name(text ?? app.table.text("data_id", row), 90));
}

export function worstTable(app: App, most: number): HTMLElement {
  const { model, table } = app;
  return plainTable(t("Worst rows"),
    [t("Verdict"), t("Token"), t("Value"), t("Error"), t("Expected"), t("Times"), t("Cosine")],
    model.worst(most).map((row) => [
      badge(model.verdict(row)), table.text("token_id", row), rowLink(app, row), number(model.error(row)), number(model.expected(row)),
      number(model.excess(row), 2), number(table.number("cosine_similarity", row), 6),
    ]), [3, 4, 5, 6]);
}

export function command(text: string): HTMLElement {
  const done = h("span", { class: "done", role: "status" });
  return h("div", { class: "command" }, h("code", {}, name(text, 4000)),
    button(t("Copy"), () => void copy(text).then((ok) => { done.textContent = ok ? t("copied") : t("copying is not allowed here"); })), done);
}

export function rowSearch(label: string, onInput: (text: string) => void, onEnter: () => void): HTMLInputElement {
  return h("input", {
    type: "search", placeholder: label, "aria-label": label,
    oninput: (event: Event) => onInput((event.target as HTMLInputElement).value),
    onkeydown: (event: KeyboardEvent) => { if (event.key === "Enter") onEnter(); },
  }) as HTMLInputElement;
}

export function select(label: string, options: [string, string][], value: string, onChange: (value: string) => void): HTMLElement {
  const box = h("select", { onchange: (event: Event) => onChange((event.target as HTMLSelectElement).value) },
    options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
  return h("label", { class: "choice" }, label, " ", box);
}

export function openRow(row: number): void {
  go("op", row);
}

// Columns that say how a check ended.
const RESULTS: Record<string, string[]> = {
  opcheck: ["precision_result", "bound_result"],
  api_check: ["Forward Test Success", "Backward Test Success", "Forward Within Rounding", "Backward Within Rounding"],
  api_details: ["Pass", "Within Rounding"],
  api_overflow: ["Verdict"],
};
// Columns that say what a row is called, and those that are long and of less interest.
export const NAMES: Record<string, string[]> = { opcheck: ["op_id", "op_name"], api_check: ["API name"], api_overflow: ["API name"], api_details: ["Npu Name"], errcheck: ["operator"] };
const LONG = ["op_param", "tensor_path", "again", "form", "source", "error_data"];

// All columns of a check: names, results, the rest, what is long.
export function columnsOf(app: App): string[] {
  const first = [...(NAMES[app.about.kind] ?? []), ...resultsOf(app)].filter((each) => app.table.holds(each));
  const rest = app.table.names.filter((each) => !first.includes(each));
  return [...first, ...rest.filter((each) => !LONG.includes(each)), ...rest.filter((each) => LONG.includes(each))];
}

export function resultsOf(app: App): string[] {
  return (RESULTS[app.about.kind] ?? []).filter((each) => app.table.holds(each));
}

export function isBad(result: string): boolean {
  return /^(fail|false|warning|abnormal)/i.test(result);
}
