// One operation: what went in and came out, how both sides' values are spread, where the error sits, and how to look again.
import type { App, View } from "../app";
import { isDark } from "../app";
import type { Detail } from "../data";
import { real } from "../data";
import { h, name } from "../dom";
import { count, heat, number, shellWord } from "../format";
import { t } from "../i18n";
import { badge, command, plainTable, rowLink } from "../parts";
import { causeName, said } from "../sentences";

const METRICS: [string, string][] = [
  ["cosine_similarity", "Cosine similarity"], ["relative_euclidean_distance", "Relative euclidean distance"], ["max_relative_error", "Largest relative error"], ["mean_relative_error", "Mean relative error"],
  ["max_absolute_error", "Largest absolute error"], ["mean_absolute_error", "Mean absolute error"], ["kl_divergence", "KL divergence"],
];
const STATISTICS: [string, string][] = [["max_value", "maximum"], ["min_value", "minimum"], ["mean_value", "mean"], ["l2norm", "L2 norm"], ["nan", "NaN"], ["inf", "infinite"]];

export const operation: View = {
  id: "op",
  title: "Operation",
  async show(app, element, rest) {
    const row = Number(rest[0]);
    if (!(row >= 0 && row < app.table.rows)) {
      element.append(h("p", { class: "problem" }, t("There is no such row.")));
      return;
    }
    await app.table.need(...app.table.names);
    const { model, table } = app;
    const siblings = model.rowsOfToken(model.tokenOf[row]).filter((each) => model.operation(each) === model.operation(row));
    element.append(
      h("p", { class: "actions" }, step(app, row, -1), " ", step(app, row, 1), " ", h("a", { class: "button", href: `#/flow/${row}` }, t("Error flow")), " ", h("a", { class: "button", href: `#/graph/${row}` }, t("Graph"))),
      h("h2", {}, badge(model.verdict(row)), " ", name(model.operation(row), 300)),
      h("p", { class: "facts" }, t("Token {0}", table.text("token_id", row)), Number.isNaN(model.layer(row)) ? "" : " · " + t("layer {0}", model.layer(row)), " · ", name(table.text("data_id", row), 300)),
      h("p", { class: "lead" }, said(table.text("verdict_reason", row) || table.text("cmp_fail_reason", row), 4000)));
    if (siblings.length > 1) element.append(h("section", {}, h("h3", {}, t("Its values")), rowsTable(app, siblings, row)));
    hypotheses(app, element, row);
    sides(app, element, row);
    metrics(app, element, row);
    const detail = model.details.get(row);
    if (detail) closer(element, detail);
    else element.append(h("p", { class: "note" }, t("The tensors of this row were not looked at closely: a page does that for findings, what went into them, and the worst rows.")));
    const sources = model.sources(row);
    if (sources.length > 0) element.append(h("section", {}, h("h3", {}, t("What went into it")), rowsTable(app, sources, -1)));
    again(app, element, row);
  },
};

function step(app: App, row: number, by: number): HTMLElement {
  const to = row + by;
  const label = by < 0 ? t("← before") : t("after →");
  return to >= 0 && to < app.table.rows ? h("a", { class: "button", href: `#/op/${to}` }, label) : h("span", { class: "button off" }, label);
}

function rowsTable(app: App, rows: number[], current: number): HTMLElement {
  const { model, table } = app;
  return plainTable(t("Its values"), [t("Verdict"), t("Value"), t("Error"), t("Expected"), t("Times"), t("Shape")], rows.slice(0, 100).map((row) => [
    badge(model.verdict(row)), row === current ? h("strong", {}, name(table.text("data_id", row), 120)) : rowLink(app, row), number(model.error(row)), number(model.expected(row)), number(model.excess(row), 2), name(table.text("my_shape", row), 60),
  ]), [2, 3, 4]);
}

function hypotheses(app: App, element: HTMLElement, row: number): void {
  const i = (app.about.finding_facts ?? []).findIndex((facts) => facts.row === row);
  if (i < 0) return;
  const finding = app.about.findings![i];
  element.append(h("section", { class: "hypotheses" }, h("h3", {}, t("Hypotheses that explain it")),
    finding.causes.length === 0 ? h("p", {}, t("None of the mistakes that ait knows gives this value.")) :
      plainTable(t("Hypotheses that explain it"), [t("Cause"), t("In words"), t("Error that is left")], finding.causes.map((cause) => [h("strong", {}, name(causeName(cause.name))), said(cause.text, 600), number(real(cause.residual_error))]), [2])));
}

function sides(app: App, element: HTMLElement, row: number): void {
  const { table } = app;
  const both = (what: string) => [name(table.text(`golden_${what}`, row), 200), name(table.text(`my_${what}`, row), 200)];
  const lines = [
    [t("operation"), ...both("operation")], [t("type of operation"), ...both("op_type")], [t("type"), ...both("dtype")], [t("shape"), ...both("shape")], [t("rank"), ...both("rank")],
    ...STATISTICS.filter(([key]) => table.holds(`my_${key}`)).map(([key, label]) => [t(label), number(table.number(`golden_${key}`, row), 6), number(table.number(`my_${key}`, row), 6)]),
    [t("transform"), ...both("transform")], [t("file"), ...both("data_path")],
  ].filter(([, golden, my]) => hasText(golden) || hasText(my));
  element.append(h("section", { class: "both" }, h("h3", {}, t("Both sides")), plainTable(t("Both sides"), [t("What"), t("golden"), t("my")], lines, [])));
  const why = table.text("pairing_reason", row);
  if (why) element.append(h("p", { class: "facts" }, t("Paired:"), " ", t(table.text("pairing", row)), " – ", said(why, 600)));
}

function hasText(cell: string | HTMLElement): boolean {
  return (typeof cell === "string" ? cell : cell.textContent) !== "";
}

function metrics(app: App, element: HTMLElement, row: number): void {
  const { table, model } = app;
  const known = METRICS.filter(([each]) => !Number.isNaN(table.number(each, row)));
  if (known.length === 0 && Number.isNaN(model.error(row))) return;
  element.append(h("section", {}, h("h3", {}, t("What was measured")),
    h("div", { class: "cards small" }, ([["error", "error", model.error(row)], ["expected", "expected", model.expected(row)], ...known.map(([each, label]) => [each, label, table.number(each, row)])] as [string, string, number][]).map(([key, label, value]) =>
      h("div", { class: "card", title: key }, h("div", { class: "value", title: String(value) }, number(value, key === "cosine_similarity" ? 8 : 4)), h("div", { class: "label" }, t(label))))),
    profile(app, row)));
}

// Whether a row or a column stands out, and what became of single elements.
function profile(app: App, row: number): HTMLElement {
  const of = (column: string) => app.table.number(column, row);
  const line = (what: string, which: string, worst: string, usual: string) => [t(what), number(of(which)), number(of(worst)), number(of(usual)), number(of(worst) / of(usual), 2)];
  const lines = ([["worst row", "error_worst_row", "worst_row_error", "usual_row_error"], ["worst column", "error_worst_column", "worst_column_error", "usual_column_error"]] as const)
    .filter(([, , worst]) => !Number.isNaN(of(worst))).map(([what, which, worst, usual]) => line(what, which, worst, usual));
  const counts = ([["differing_elements", "{0} of {1} elements differ."], ["zero_golden_mismatch", "{0} of {1} elements are 0 in golden and not in my."], ["my_saturated", "{0} of {1} elements of my are at the limit of their type, or infinite."],
    ["my_flushed_to_zero", "{0} of {1} elements of my are 0 where golden is not."]] as const).filter(([key, text]) => of(key) > 0 || (text.includes("differ") && !Number.isNaN(of(key))));
  return h("div", { class: "profile" },
    lines.length > 0 && plainTable(t("Where the error sits"), ["", t("number"), t("its error"), t("usual error"), t("Times")], lines, [1, 2, 3, 4]),
    counts.length > 0 && h("ul", { class: "sentences" }, counts.map(([key, text]) => h("li", { title: key }, t(text, count(of(key)), count(of("elements")))))));
}

function closer(element: HTMLElement, detail: Detail): void {
  element.append(h("section", {}, h("h3", {}, t("How the values are spread")), histogram(detail)),
    h("section", {}, h("h3", {}, t("Where the error sits")), errorMap(detail)),
    h("section", {}, h("h3", {}, t("The elements that are farthest off")), detail.worst.length === 0 ? h("p", {}, t("No element differs.")) :
      plainTable(t("The elements that are farthest off"), [t("element"), t("row"), t("column"), t("golden"), t("my"), t("difference")], detail.worst.map((each) => [
        count(each.index), count(each.row), count(each.column), number(real(each.golden), 7), number(real(each.my), 7), number(real(each.my) - real(each.golden))]), [0, 1, 2, 3, 4, 5])));
}

function histogram(detail: Detail): HTMLElement {
  const { low, high, golden, my } = detail.histogram;
  const most = Math.log10(1 + Math.max(...golden, ...my, 1));
  const width = 640, height = 150, step = width / golden.length;
  const points = (counts: number[]) => counts.map((each, i) => {
    const y = height - (Math.log10(1 + each) / most) * (height - 8);
    return `${i * step},${y} ${(i + 1) * step},${y}`;
  }).join(" ");
  return h("figure", {}, h("svg", { viewBox: `0 0 ${width} ${height}`, class: "histogram", role: "img", preserveAspectRatio: "none", "aria-label": t("Histogram of golden and my from {0} to {1}, logarithmic counts", number(real(low)), number(real(high))) },
    h("polygon", { class: "golden", points: `0,${height} ${points(golden)} ${width},${height}` }),
    h("polyline", { class: "my", points: points(my) })),
    h("figcaption", {}, h("span", {}, number(real(low))), h("span", {}, h("i", { class: "k golden" }), t("golden"), h("i", { class: "k my" }), t("my"), " · ", t("counts are logarithmic")), h("span", {}, number(real(high)))));
}

function errorMap(detail: Detail): HTMLElement {
  const { rows, columns, map_rows, map_columns, errors } = detail.map;
  const values = errors.map(real);
  const most = Math.max(...values.filter(Number.isFinite), 0);
  const cell = Math.max(3, Math.min(18, Math.floor(720 / map_columns)));
  const tall = Math.max(3, Math.min(18, Math.floor(320 / map_rows)));
  const canvas = h("canvas", { class: "map", width: map_columns * cell, height: map_rows * tall, role: "img",
    "aria-label": t("Error of {0} rows and {1} columns; the largest part is {2} of the usual value", rows, columns, number(most)) }) as HTMLCanvasElement;
  const context = canvas.getContext("2d")!;
  values.forEach((value, i) => {
    const t = Number.isFinite(value) ? (most > 0 ? value / most : 0) : 1;
    context.fillStyle = Number.isFinite(value) ? heat(Math.sqrt(t), isDark()) : "#a3f";
    context.fillRect((i % map_columns) * cell, Math.floor(i / map_columns) * tall, cell, tall);
  });
  const says = h("p", { class: "says" }, t("Rows run down, columns to the right; a part covers {0} × {1} elements. Dark red: {2} of the usual size of golden's values.", Math.ceil(rows / map_rows), Math.ceil(columns / map_columns), number(most)));
  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect();
    const x = Math.min(map_columns - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * map_columns)));
    const y = Math.min(map_rows - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * map_rows)));
    const range = (i: number, parts: number, all: number) => `${Math.ceil((i * all) / parts)}–${Math.ceil(((i + 1) * all) / parts) - 1}`;
    canvas.title = `${t("row")} ${range(y, map_rows, rows)}, ${t("column")} ${range(x, map_columns, columns)}: ${number(values[y * map_columns + x])}`;
  });
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("Where the error sits") }, canvas, says);
}

function again(app: App, element: HTMLElement, row: number): void {
  const { table } = app;
  const golden = table.text("golden_data_path", row);
  const my = table.text("my_data_path", row);
  const lines: string[] = [];
  const isOne = (path: string) => path !== "" && !path.includes(";");
  if (isOne(golden) && isOne(my) && !table.text("my_transform", row) && !table.text("golden_transform", row)) lines.push(`ait llm compare -gp ${shellWord(golden)} -mp ${shellWord(my)} --extended`);
  if (isOne(my)) lines.push(`ait show ${shellWord(my)}`);
  if (isOne(golden)) lines.push(`ait show ${shellWord(golden)}`);
  const folder = my.match(/^(.*\/ait_dump(?:\/tensors\/[^/]+\/[^/]+)?)\//)?.[1];
  const ids = table.text("my_operation", row).split("/").map((part) => part.match(/^(\d+)_/)?.[1]);
  if (folder && my.endsWith(".bin") && ids.length > 0 && ids.every((each) => each !== undefined)) lines.push(`ait llm opcheck -i ${shellWord(folder)} -ids ${ids.join("_")}`);
  if (lines.length === 0) return;
  element.append(h("section", {}, h("h3", {}, t("Look again")), lines.map(command)));
}

