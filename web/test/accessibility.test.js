// axe-core finds nothing serious, in any view, light or dark.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { Reports, visit } from "./browser.js";

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let reports;
before(async () => { reports = await Reports.start(); });
after(async () => { await reports.close(); });

for (const colorScheme of ["light", "dark"])
  test(`no serious finding, ${colorScheme}`, async () => {
    for (const [name, views] of [["demo.html", ["findings", "flow", "graph", "op/48", "table", "missing", "run"]], ["torch.html", ["graph", "missing"]], ["opcheck.html", ["summary", "table", "row/0"]], ["errcheck.html", ["summary"]], ["api-check.html", ["summary"]], ["api-overflow.html", ["summary"]], ["dump.html", ["summary", "run"]]]) {
      const page = await reports.open(name, { colorScheme, bypassCSP: true });
      await page.evaluate(axe);
      for (const view of views) {
        await visit(page, view);
        const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
        const serious = violations.filter((each) => ["serious", "critical"].includes(each.impact));
        assert.deepEqual(serious.map((each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`), [], `${name} ${view}`);
      }
      await page.close();
    }
  });
