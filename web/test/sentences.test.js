// What the page says in Chinese of the native program's sentences: each form is one that the program says, and what real runs say has its Chinese.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { isCalm, Reports, visit } from "./browser.js";

const ROOT = path.join(path.dirname(new URL(import.meta.url).pathname), "../..");
let reports;
before(async () => { reports = await Reports.start({ locale: "zh-CN" }); });
after(async () => { await reports.close(); });

test("every form stands in the program's source", () => {
  // Literals that follow each other are one, and {} and {:.2g} are places.
  const source = ["locate", "match", "compare"].flatMap((folder) => fs.readdirSync(path.join(ROOT, "src", folder)).filter((file) => file.endsWith(".cpp")).map((file) => fs.readFileSync(path.join(ROOT, "src", folder, file), "utf8"))).join("\n").replace(/"\s*\n\s*"/g, "");
  const forms = [...fs.readFileSync(path.join(ROOT, "web/src/sentences.ts"), "utf8").matchAll(/^ {2}\["((?:[^"\\]|\\.)+)", "/gm)].map(([, text]) => text);
  assert.ok(forms.length > 100);
  const strange = forms.filter((form) => !form.split(/\{\d:?\}/).every((part) => source.includes(part)));
  assert.deepEqual(strange, [], "src/ says these in other words now; change web/src/sentences.ts with it");
});

test("findings, verdicts and reasons of real runs are Chinese", async () => {
  for (const [name, views] of [["torch.html", ["findings", "op/0", "op/48", "op/120", "missing", "graph"]], ["demo.html", ["findings", "op/48", "op/300", "missing"]]]) {
    const page = await reports.open(name);
    for (const view of views) {
      await visit(page, view);
      assert.deepEqual(await page.locator("main [lang=en]").allInnerTexts(), [], `${name} ${view}`);
    }
    await visit(page, "findings");
    assert.match(await page.innerText(".causes"), /缩放 \(scale\): 标杆经如下改动后与待测一致：乘以 1\.05/);
    isCalm(page);
  }
});

test("what has no Chinese stays English and is marked", async () => {
  const page = await reports.open("hostile.html");
  await visit(page, "missing");
  assert.match(await page.locator("main [lang=en]").first().innerText(), /^nnnn.*…n+$/);
  isCalm(page);
});
