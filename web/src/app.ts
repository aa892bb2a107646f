// What the views share: the report, where to go, and what the reader chose.
import type { About, Table } from "./data";
import type { Model } from "./model";

export interface App {
  about: About;
  table: Table;
  model: Model;
}

export interface View {
  id: string;
  title: string; // in English, the key of its translation
  // Fills the element; `rest` is what follows the view in the address.
  show(app: App, element: HTMLElement, rest: string[]): void | Promise<void>;
}

export function go(...parts: (string | number)[]): void {
  location.hash = "#/" + parts.map((part) => encodeURIComponent(String(part))).join("/");
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
