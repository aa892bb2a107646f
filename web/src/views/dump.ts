// The summary of a recorded run, from its manifest.
import type { App } from "../app";
import { h, name, type Child } from "../dom";
import { bytes, number } from "../format";
import { t } from "../i18n";
import { card, command, counted, plainTable } from "../parts";
import { said } from "../sentences";
import { parsed } from "./run";

type Fields = Record<string, unknown>;
const COUNTS = ["announced", "written", "failed", "lost", "skipped"];

export function dump(app: App, element: HTMLElement): void {
  const manifest = parsed(app.about.manifests[0]?.text ?? "");
  if (!manifest) {
    element.append(h("h2", {}, t("Recorded run")), h("p", { class: "problem" }, t("its manifest cannot be read")));
    return;
  }
  const tensors = fieldsOf(manifest.tensors);
  const complete = manifest.complete;
  const isBad = (each: string) => ["failed", "lost"].includes(each) && Number(tensors[each]) > 0;
  element.append(h("h2", {}, complete === true ? t("All that was asked for is recorded") : complete === false ? t("Not all was recorded") : t("Recorded run")),
    h("div", { class: "cards" },
      COUNTS.filter((each) => each in tensors).map((each) => card(t(`tensors ${each}`), counted(Number(tensors[each])), isBad(each) ? "bad" : "")),
      "written_bytes" in tensors && card(t("written"), bytes(Number(tensors.written_bytes))),
      "seconds" in manifest && card(t("seconds"), number(Number(manifest.seconds))),
      "exit_status" in manifest && manifest.exit_status !== null && card(t("exit status"), name(String(manifest.exit_status)), manifest.exit_status === 0 ? "good" : "bad")));
  if (Array.isArray(manifest.command)) element.append(h("p", {}, t("Command:")), command(manifest.command.map(String).join(" ")));
  for (const [title, items] of [["Why it is incomplete", listOf(manifest.incomplete_because)], ["Notes", listOf(manifest.notes)]] as const)
    if (items.length > 0) element.append(h("section", {}, h("h3", {}, t(title)), h("ul", {}, items.map((each) => h("li", {}, said(String(each), 1000))))));
  files(manifest, element);
  processes(manifest, element);
  settings(manifest, element);
}

function fieldsOf(value: unknown): Fields {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Fields) : {};
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function plain(value: unknown): string {
  return value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

function files(manifest: Fields, element: HTMLElement): void {
  const lines = Object.entries(fieldsOf(manifest.written_files)).map(([kind, names]) => [kind, listOf(names).map(String)] as const).filter(([, names]) => names.length > 0);
  if (lines.length === 0) return;
  element.append(h("section", { class: "both" }, h("h3", {}, t("What was written")), plainTable(t("What was written"), [t("What"), t("Folders and files"), t("First of them")],
    lines.map(([kind, names]) => [name(kind), counted(names.length), name(names.slice(0, 3).join(", "), 200)]), [1])));
}

function processes(manifest: Fields, element: HTMLElement): void {
  const list = listOf(manifest.processes).map(fieldsOf);
  if (list.length === 0) return;
  const line = (each: Fields): Child[] => [name(plain(each.pid)), each.ended_in_order === true ? t("yes") : h("strong", {}, t("no")), ...COUNTS.map((key) => counted(Number(fieldsOf(each.tensors)[key] ?? 0))), name(plain(each.first_failure), 300)];
  element.append(h("section", {}, h("h3", {}, t("Processes")), plainTable(t("Processes"), ["pid", t("ended in order"), ...COUNTS.map((key) => t(`tensors ${key}`)), t("first failure")], list.slice(0, 1000).map(line), [2, 3, 4, 5, 6])));
}

function settings(manifest: Fields, element: HTMLElement): void {
  const lines = ["options", "versions"].flatMap((group) => Object.entries(fieldsOf(manifest[group])).filter(([, value]) => plain(value) !== "").map(([key, value]) => [name(key), name(plain(value), 400)]));
  if (lines.length > 0) element.append(h("section", { class: "both" }, h("h3", {}, t("Options and versions")), plainTable(t("Options and versions"), [t("What"), t("Value")], lines)));
}
