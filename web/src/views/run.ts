// How the report came about: command, versions, manifests.
import type { View } from "../app";
import { noteOf } from "../data";
import { h, name } from "../dom";
import { t } from "../i18n";
import { command, plainTable } from "../parts";

type Fields = Record<string, unknown>;

export const run: View = {
  id: "run",
  title: "How it was made",
  show(app, element) {
    const { about } = app;
    element.append(h("h2", {}, t("How it was made")));
    element.append(h("div", { class: "both" }, plainTable(t("This report"), [t("What"), t("Value")], [
      [t("report"), name(about.report, 400)], [t("version of ait"), about.version], [t("page written"), about.made], [t("rows"), String(about.rows)],
    ])));
    const note = noteOf(about);
    if (about.command && about.command !== note.command) element.append(h("p", {}, t("Command:")), command(about.command));
    if (note.command) element.append(h("section", { class: "both" }, h("h3", {}, t("Comparison")), command(note.command),
      plainTable(t("Comparison"), [t("What"), t("Value")], [[t("made"), name(note.made ?? "")], [t("version of ait"), name(note.version ?? "")], [t("noise run"), name(about.noise || note.noise || t("none"), 400)]]),
      (note.noise ?? "") !== "" && !about.noise && h("p", { class: "note" }, t("The comparison was judged by a noise run, this page without it: compare that run with golden, too, and give the report to ait report --noise."))));
    if (about.manifests.length === 0) element.append(h("p", {}, t("No manifest lies beside the recordings.")));
    for (const manifest of about.manifests) element.append(manifestSection(manifest));
  },
};

export function parsed(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Fields) : null;
  } catch {
    return null;
  }
}

function manifestSection(manifest: { side: string; path: string; text: string }): HTMLElement {
  const fields = parsed(manifest.text);
  const words = Array.isArray(fields?.command) ? fields.command.map(String).join(" ") : "";
  const plain = Object.entries(fields ?? {}).filter(([, value]) => value === null || typeof value !== "object");
  const nested = Object.entries(fields ?? {}).filter(([key, value]) => value !== null && typeof value === "object" && key !== "command");
  return h("section", { class: "both" }, h("h3", {}, t("{0}: manifest", t(manifest.side))), h("p", { class: "facts" }, name(manifest.path, 300)),
    words !== "" && command(words),
    fields && plainTable(t("Manifest"), [t("What"), t("Value")], [
      ...plain.map(([key, value]) => [name(key), name(String(value), 400)]),
      ...nested.map(([key, value]) => [name(key), name(JSON.stringify(value), 400)]),
    ]),
    h("details", {}, h("summary", {}, t("The whole document")), h("pre", { tabindex: "0" }, name(manifest.text, 200000))));
}
