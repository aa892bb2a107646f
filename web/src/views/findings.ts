// The answer first: what was found, in words and with the numbers that prove it.
import type { App, View } from "../app";
import type { Finding, FindingFacts } from "../data";
import { real } from "../data";
import { h, name } from "../dom";
import { heat, heatOfExcess, number } from "../format";
import { isDark } from "../app";
import { t } from "../i18n";
import { badge, card, counted, worstTable } from "../parts";
import { causeName, said } from "../sentences";

export const findings: View = {
  id: "findings",
  title: "Findings",
  show(app, element) {
    const { about, model } = app;
    const found = about.findings ?? [];
    element.append(h("h2", {}, headline(app)));
    element.append(counts(app));
    if (found.length === 0) element.append(h("p", { class: "lead" }, calm(app)));
    found.forEach((finding, i) => element.append(article(app, finding, about.finding_facts![i], i)));
    if (about.rows > app.table.rows)
      element.append(h("p", { class: "note" }, t("This page holds the first {0} of {1} rows; the csv has all of them.", counted(app.table.rows), counted(about.rows))));
    if (model.hasLayers()) element.append(layers(app));
    if (model.worst(1).length > 0) element.append(h("section", {}, h("h3", {}, t("Worst rows")), worstTable(app, 10)));
  },
};

function headline(app: App): string {
  const found = app.about.findings ?? [];
  const faults = found.filter((each) => each.verdict !== "suspicious").length;
  if (faults === 1) return t("One operation computes a wrong value");
  if (faults > 1) return t("{0} operations compute wrong values", faults);
  if (found.length > 0) return t("No fault; something is suspicious");
  return app.about.in_order ? t("No fault found") : t("What the rows show");
}

function calm(app: App): string {
  if (!app.about.in_order) return t("The report does not say in which order these rows were computed, so each one is judged by itself: look at the worst of them below.");
  return (app.about.counts?.summary.differing ?? 0) === 0 ? t("Nothing differs.") : t("Rounding explains every difference.");
}

function counts(app: App): HTMLElement {
  const of = app.about.counts?.summary ?? {};
  const times = [0, 0, 0, 0, 0, 0]; // as Model.verdictOf: none, identical, noise, suspicious, fault, broken
  for (const verdict of app.model.verdictOf) ++times[verdict];
  const bad = times[4] + times[5];
  return h("div", { class: "cards" },
    card(t("rows"), counted(app.about.rows)),
    card(t("identical"), counted(of.identical)),
    card(t("differ"), counted(of.differing)),
    card(t("faulty rows"), counted(bad), bad > 0 ? "bad" : ""),
    card(t("suspicious rows"), counted(times[3])),
    card(t("not compared"), counted(of.failed)),
    card(t("without a partner"), counted((of.only_golden ?? 0) + (of.only_my ?? 0))));
}

function article(app: App, finding: Finding, facts: FindingFacts, i: number): HTMLElement {
  const error = real(finding.error);
  const noise = real(finding.noise);
  const at = facts.row < app.table.rows;
  const isMeasured = Number.isFinite(error) && noise > 0;
  // The first sentence of the reason is what the lead says, unless a row or a column decided.
  const rest = finding.measured_on === "whole" ? finding.reason.replace(/^it is .*?\)\. ?/, "") : finding.reason;
  return h("article", { class: `finding ${finding.verdict}`, "aria-labelledby": `finding-${i}` },
    h("h3", { id: `finding-${i}` }, badge(finding.verdict), " ", name(finding.operation, 200)),
    h("p", { class: "facts" },
      t("Token {0}", finding.token_id), finding.layer !== null ? " · " + t("layer {0}", finding.layer) : "", finding.rank ? " · " + t("rank {0}", finding.rank) : "",
      " · ", t("first seen in"), " ", at ? h("a", { href: `#/op/${facts.row}` }, name(finding.data_id, 200)) : name(finding.data_id, 200)),
    isMeasured && h("p", { class: "lead" },
      t("It is {0} off, {1} times the {2} that a healthy value would be.", number(error), number(error / noise, 2), number(noise, 2)), " ",
      facts.peers > 0 && !finding.threshold.includes("noise run") && t("What went in is {0} off; the same operation in {1} other layers multiplies that by {2}.", number(real(facts.input_error), 2), facts.peers, number(real(facts.gain), 2))),
    isMeasured && scale(error, noise, real(facts.factor)),
    isMeasured ? rest !== "" && h("p", {}, said(rest, 4000)) : h("p", { class: "lead" }, said(finding.reason, 4000)),
    finding.causes.length > 0 && [h("h4", {}, t("Likely causes")), h("ol", { class: "causes" }, finding.causes.map((cause) =>
      h("li", {}, h("strong", {}, name(causeName(cause.name))), ": ", said(cause.text, 1000))))],
    finding.not_paired.length > 0 && h("p", {}, t("Or in one of its inputs that has no partner:"), " ", finding.not_paired.map((each) => [name(each), " "])),
    h("p", { class: "facts" }, t("{0} later rows differ because of it.", counted(finding.rows_that_follow)), " ", t("Threshold:"), " ", said(finding.threshold), `, × ${number(real(facts.factor))}`),
    at && h("p", { class: "actions" }, h("a", { class: "button", href: `#/op/${facts.row}` }, t("Open the operation")), " ",
      h("a", { class: "button", href: `#/flow/${facts.row}` }, t("Show in the error flow")), " ",
      h("a", { class: "button", href: `#/graph/${facts.row}` }, t("Show in the graph"))));
}

// Expected, limit and error on one logarithmic scale.
function scale(error: number, noise: number, factor: number): HTMLElement {
  const low = Math.log10(noise) - 0.5;
  const high = Math.max(Math.log10(error), Math.log10(noise * factor)) + 0.2;
  const x = (value: number) => ((Math.log10(value) - low) / (high - low)) * 100;
  return h("div", { class: "scale", role: "img", "aria-label": t("error {0}, expected {1}, limit {2}", number(error), number(noise), number(noise * factor)) },
    h("div", { class: "band", style: `width:${x(noise)}%` }),
    h("div", { class: "bar", style: `width:${x(error)}%` }),
    h("div", { class: "mark", style: `left:${x(noise * factor)}%` }),
    h("span", { class: "legend" }, h("i", { class: "k band" }), t("expected"), h("i", { class: "k mark" }), t("limit"), h("i", { class: "k bar" }), t("error")));
}

// The worst of each layer, as a strip.
function layers(app: App): HTMLElement {
  const worst = new Map<number, number>();
  const row = new Map<number, number>();
  for (let i = 0; i < app.table.rows; ++i) {
    const layer = app.model.layer(i);
    const excess = app.model.excess(i);
    if (Number.isNaN(layer) || Number.isNaN(excess)) continue;
    if (!worst.has(layer) || excess > worst.get(layer)!) {
      worst.set(layer, excess);
      row.set(layer, i);
    }
  }
  const numbers = [...worst.keys()].sort((a, b) => a - b);
  if (numbers.length === 0) return h("span");
  return h("section", {}, h("h3", {}, t("Along the layers: how many times the expected error")),
    h("ol", { class: "layers" }, numbers.map((layer) => h("li", {},
      h("a", { href: `#/op/${row.get(layer)}` }, h("span", { class: "off-screen" }, t("layer {0}: {1} times", layer, number(worst.get(layer)!, 2))),
        h("span", { "aria-hidden": "true", class: "tower", style: `height:${8 + 56 * Math.max(0, heatOfExcess(worst.get(layer)!))}px;background:${heat(heatOfExcess(worst.get(layer)!), isDark())}` }),
        h("span", { "aria-hidden": "true", class: "times" }, number(worst.get(layer)!, 2)), h("span", { "aria-hidden": "true", class: "layer" }, String(layer)))))));
}
