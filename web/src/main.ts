import "uplot/dist/uPlot.min.css";
import "./style.css";
import type { App, View } from "./app";
import { go, isDark } from "./app";
import { load } from "./data";
import { announce, button, clear, h, name } from "./dom";
import { language, setLanguage, t } from "./i18n";
import { Model } from "./model";
import { checks, checkRow } from "./views/checks";
import { findings } from "./views/findings";
import { flow } from "./views/flow";
import { graph } from "./views/graph";
import { missing } from "./views/missing";
import { operation } from "./views/operation";
import { run } from "./views/run";
import { table } from "./views/table";

// Columns that every view of a comparison needs at once.
const CORE = [
  "token_id", "data_id", "subject", "tensor", "layer", "verdict", "verdict_error", "verdict_expected",
  "relative_euclidean_distance", "cosine_similarity", "sources", "missing",
];

function viewsOf(kind: string): { shown: View[]; hidden: View[] } {
  if (kind === "comparison") return { shown: [findings, flow, graph, table, missing, run], hidden: [operation] };
  if (kind === "dump") return { shown: [checks, run], hidden: [] };
  return { shown: [checks, table, run], hidden: [checkRow] };
}

class Shell {
  private readonly main = h("main", { id: "main", tabindex: "-1" });
  private readonly tabs = h("nav", { "aria-label": t("Views") });
  private readonly shown: View[];
  private readonly all: View[];

  constructor(private readonly app: App) {
    const { shown, hidden } = viewsOf(app.about.kind);
    this.shown = shown;
    this.all = [...shown, ...hidden];
  }

  start(): void {
    document.title = `ait – ${t(KIND_TITLES[this.app.about.kind] ?? "Report")}`;
    document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
    clear(
      document.body,
      h("a", { class: "skip", href: "#main", onclick: (event: Event) => { event.preventDefault(); this.main.focus(); } }, t("Skip to the content")),
      h("header", {},
        h("h1", {}, h("span", { class: "logo", "aria-hidden": "true" }, "ait"), " ", t(KIND_TITLES[this.app.about.kind] ?? "Report")),
        h("div", { class: "where" }, name(this.app.about.report, 90)),
        h("div", { class: "tools" }, this.languageButton(), this.themeButton(), button("?", () => this.help(), { "aria-label": t("Keys"), title: t("Keys") })),
      ),
      this.tabs,
      this.main,
      h("div", { id: "announce", class: "off-screen", role: "status", "aria-live": "polite" }),
    );
    addEventListener("hashchange", () => void this.route());
    addEventListener("keydown", (event) => this.key(event));
    void this.route();
  }

  private async route(): Promise<void> {
    const parts = location.hash.replace(/^#\/?/, "").split("/").map(decodeSafely);
    const view = this.all.find((each) => each.id === parts[0]) ?? this.shown[0];
    clear(this.tabs, this.shown.map((each, i) =>
      h("a", { href: `#/${each.id}`, "aria-current": each === view ? "page" : null, title: `${t("Key")} ${i + 1}` }, t(each.title))));
    const place = h("div", { class: "view", id: `view-${view.id}` });
    clear(this.main, place);
    try {
      await view.show(this.app, place, parts.slice(1));
    } catch (error) {
      clear(place, h("p", { role: "alert", class: "problem" }, t("This view could not be shown:"), " ", String(error)));
      throw error;
    }
    document.body.dataset.ready = view.id;
    announce(t(view.title));
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) {
      if (event.key === "Escape") target.blur();
      return;
    }
    const number = Number(event.key);
    if (number >= 1 && number <= this.shown.length) go(this.shown[number - 1].id);
    else if (event.key === "/") {
      const search = this.main.querySelector<HTMLInputElement>("input[type=search]");
      if (search) search.focus();
      else go("table");
      event.preventDefault();
    } else if (event.key === "?") this.help();
    else if (event.key === "t") this.switchTheme();
  }

  private help(): void {
    const dialog = h("dialog", { "aria-labelledby": "keys-title" },
      h("h2", { id: "keys-title" }, t("Keys")),
      h("dl", { class: "keys" }, ([
        [`1 – ${this.shown.length}`, t("the views, from left to right")],
        ["/", t("search")],
        ["↑ ↓ ← →", t("move in tables, in the strip of errors and in the graph")],
        ["Enter", t("open what is selected")],
        ["+ − 0", t("larger, smaller, all of the graph")],
        ["t", t("light or dark")],
        ["Esc", t("close, leave a field")],
      ] as const).map(([keys, meaning]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, meaning)])),
      button(t("Close"), () => dialog.close()),
    ) as HTMLDialogElement;
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  private languageButton(): HTMLElement {
    const other = language() === "zh" ? "en" : "zh";
    return button(other === "zh" ? "中文" : "English", () => {
      setLanguage(other);
      document.body.replaceChildren();
      new Shell(this.app).restart();
    }, { id: "language", lang: other === "zh" ? "zh-CN" : "en" });
  }

  private themeButton(): HTMLElement {
    return button("◐", () => this.switchTheme(), { id: "theme", "aria-label": t("Light or dark"), title: t("Light or dark") });
  }

  private switchTheme(): void {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    void this.route();
  }

  private restart(): void {
    current?.stop();
    current = this;
    this.start();
  }

  private stop(): void {
    this.route = async () => {};
    this.key = () => {};
  }

  static begin(app: App): void {
    current = new Shell(app);
    current.start();
  }
}

let current: Shell | undefined;

const KIND_TITLES: Record<string, string> = {
  comparison: "Comparison of two runs",
  opcheck: "Check of operators",
  api_check: "Check of torch functions",
  api_details: "Check of torch functions",
  api_overflow: "Overflows of torch functions",
  errcheck: "Overflows",
  dump: "Recorded run",
};

function decodeSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function begin(): Promise<void> {
  if (typeof DecompressionStream === "undefined") {
    clear(document.body, h("p", { role: "alert", class: "problem" }, t("This browser is too old to unpack the report: take one of 2023 or later.")));
    return;
  }
  const { about, table: rows } = await load();
  if (about.kind === "comparison") await rows.need(...CORE);
  else await rows.need(...rows.names);
  Shell.begin({ about, table: rows, model: new Model(about, rows) });
}

void begin().catch((error: unknown) => {
  clear(document.body, h("p", { role: "alert", class: "problem" }, t("The report is damaged:"), " ", String(error)));
  throw error;
});
