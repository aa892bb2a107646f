// English is the key of every text; texts that a run brings along stay as they are.
import { ZH } from "./zh";

let chosen: "en" | "zh" = /^zh\b/i.test(navigator.language) ? "zh" : "en";

export function language(): "en" | "zh" {
  return chosen;
}

export function setLanguage(to: "en" | "zh"): void {
  chosen = to;
}

// t("layer {0}", 3)
export function t(text: string, ...values: (string | number)[]): string {
  const found = chosen === "zh" ? (ZH[text] ?? text) : text;
  return found.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)] ?? ""));
}
