// Names that want to be obeyed are shown.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isCalm, Reports, visit } from "./browser.js";

let reports;
before(async () => { reports = await Reports.start(); });
after(async () => { await reports.close(); });

test("names of a run are text in every view", async () => {
  const page = await reports.open("hostile.html");
  let seen = "";
  for (const view of ["findings", "flow", "graph", ...Array.from({ length: 27 }, (_, i) => `op/${i}`), "missing", "run", "table"]) {
    await visit(page, view);
    seen += await page.innerText("main");
    assert.equal(await page.evaluate(() => window.obeyed), undefined, view);
    assert.equal(await page.locator("main img, main script, main iframe").count(), 0, view);
    const { wide, has } = await page.evaluate(() => ({ wide: document.querySelector("main").scrollWidth, has: document.querySelector("main").clientWidth }));
    assert.ok(wide <= has + 1, `${view} is ${wide} wide in ${has}`);
  }
  assert.ok(seen.includes("</script><script>window.obeyed = 1</script>"));
  assert.ok(seen.includes('<img src=x onerror="window.obeyed = 1">'));
  assert.ok(seen.includes("emoji 🦙🔥 and 漢字"));
  assert.ok(seen.includes("right\\u202eto left"), "marks of direction are shown, not obeyed");
  assert.ok(!/[\u202a-\u202e\u2066-\u2069]/.test(seen));
  assert.ok(seen.includes("nnnnnnnnnn…nnnnnnnnnn"), "a name of 10 000 characters is shortened");
  isCalm(page);
});

test("a copied cell is no formula", async () => {
  const page = await reports.open("hostile.html", { permissions: ["clipboard-read", "clipboard-write"] });
  await visit(page, "table");
  await page.fill("input[type=search]", "HYPERLINK");
  await page.waitForFunction(() => / of /.test(document.querySelector("#view-table .says").textContent));
  await page.click("#copy");
  await page.waitForFunction(() => /copied/.test(document.querySelector("#view-table .says").textContent));
  const csv = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(csv.includes("\"'=HYPERLINK("));
  isCalm(page);
});
