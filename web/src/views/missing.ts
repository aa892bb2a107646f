// What was not recorded or has no partner, and why.
import type { App, View } from "../app";
import { noteOf } from "../data";
import { h, name } from "../dom";
import { t } from "../i18n";
import { counted, plainTable, rowLink } from "../parts";
import { said, say } from "../sentences";

const SHOWN = 200;

export const missing: View = {
  id: "missing",
  title: "Not compared",
  async show(app, element) {
    await app.table.need("cmp_fail_reason", "missing", "passed");
    element.append(h("h2", {}, t("What was not recorded, not paired or not compared")));
    recordings(app, element);
    coverage(app, element);
    byReason(app, element);
    passed(app, element);
  },
};

function recordings(app: App, element: HTMLElement): void {
  const lines: [string, string][] = [];
  for (const [side, state] of Object.entries(noteOf(app.about).recordings ?? {}))
    for (const doubt of state.doubts) lines.push([side, doubt]);
  for (const manifest of app.about.manifests) {
    try {
      const document = JSON.parse(manifest.text) as { incomplete_because?: string[]; errors?: unknown[] };
      for (const why of document.incomplete_because ?? []) lines.push([manifest.side, String(why)]);
      for (const why of document.errors ?? []) lines.push([manifest.side, typeof why === "string" ? why : JSON.stringify(why)]);
    } catch {
      lines.push([manifest.side, t("its manifest cannot be read")]);
    }
  }
  element.append(h("section", {}, h("h3", {}, t("Recordings")),
    lines.length === 0
      ? h("p", {}, app.about.manifests.length > 0 ? t("By their manifests both recordings hold all that was to be recorded.") : t("No manifest was found, so that nothing is known of what was to be recorded."))
      : plainTable(t("Recordings"), [t("Side"), t("What may be lacking")], lines.map(([side, why]) => [t(side), said(why, 400)]))));
}

function coverage(app: App, element: HTMLElement): void {
  const pairing = noteOf(app.about).pairing;
  if (!pairing) return;
  const line = (side: "golden" | "my") => {
    const of = pairing[side];
    return [t(side), counted(of.operations), counted(of.paired), counted(of.same_as_paired), counted(of.operations - of.paired - of.same_as_paired)];
  };
  const reasons = (["golden", "my"] as const).flatMap((side) => Object.entries(pairing[side].unpaired).map(([why, times]) => [t(side), counted(times), said(why, 400)]));
  element.append(h("section", {}, h("h3", {}, t("Operations")),
    plainTable(t("Operations"), [t("Side"), t("operations"), t("paired"), t("same data as a paired one"), t("without a partner")], [line("golden"), line("my")], [1, 2, 3, 4]),
    h("p", {}, t("Of the pairs {0} are certain and {1} likely.", counted(pairing.certain), counted(pairing.likely)), " ",
      t("They were paired {0}.", say(pairing.method)), " ",
      (pairing.golden_layers ?? 0) + (pairing.my_layers ?? 0) > 0 && t("Layers: {0} in golden, {1} in my.", pairing.golden_layers ?? 0, pairing.my_layers ?? 0)),
    (pairing.notes ?? []).map((each) => h("p", { class: "note" }, said(each, 400))),
    reasons.length > 0 && plainTable(t("Why operations have no partner"), [t("Side"), t("operations"), t("Why")], reasons, [1])));
}

function byReason(app: App, element: HTMLElement): void {
  const { table } = app;
  const groups = new Map<string, { why: string; lacks: string; rows: number[] }>();
  for (let i = 0; i < table.rows; ++i) {
    const lacks = table.text("missing", i);
    const compared = !Number.isNaN(table.number("relative_euclidean_distance", i));
    if (!lacks && compared) continue;
    const why = table.text("cmp_fail_reason", i) || t("no reason was given");
    const key = lacks + "\n" + why;
    if (!groups.has(key)) groups.set(key, { why, lacks, rows: [] });
    groups.get(key)!.rows.push(i);
  }
  const sorted = [...groups.values()].sort((a, b) => b.rows.length - a.rows.length);
  element.append(h("section", {}, h("h3", {}, t("Rows")),
    sorted.length === 0 ? h("p", {}, t("Every row was compared.")) : sorted.slice(0, SHOWN).map((group) => {
      const list = h("ul", { class: "rows" });
      const box = h("details", {
        ontoggle: () => {
          if (list.childElementCount > 0) return;
          list.append(...group.rows.slice(0, SHOWN).map((row) => h("li", {}, t("Token {0}", table.text("token_id", row)), " · ", rowLink(app, row))));
          if (group.rows.length > SHOWN) list.append(h("li", {}, t("… and {0} more, see the table", counted(group.rows.length - SHOWN))));
        },
      }, h("summary", {}, h("strong", {}, counted(group.rows.length)), " × ", group.lacks ? t("only in {0}:", t(group.lacks === "golden" ? "my" : "golden")) + " " : "", said(group.why, 400)), list);
      return box;
    })));
}

function passed(app: App, element: HTMLElement): void {
  const seen = new Set<string>();
  for (let i = 0; i < app.table.rows; ++i) for (const each of app.table.text("passed", i).split("\n")) if (each) seen.add(each);
  if (seen.size === 0) return;
  element.append(h("section", {}, h("h3", {}, t("Operations that were passed over")),
    h("p", {}, t("Nothing of golden is like their results; what comes after them is judged with what went into them.")),
    h("ul", { class: "rows" }, [...seen].slice(0, SHOWN).map((each) => h("li", {}, name(each))),
      seen.size > SHOWN && h("li", {}, t("… and {0} more, see the table", counted(seen.size - SHOWN))))));
}
