// A hundred thousand rows stay fluid.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { isCalm, ready, Reports, visit } from "./browser.js";

// How many times slower than itself a busy machine may be.
const PATIENCE = Number(process.env.AIT_PATIENCE ?? 1);
let reports;
before(async () => { reports = await Reports.start(); });
after(async () => { await reports.close(); });

test("the file is small and its first view is there at once", async (t) => {
  const bytes = fs.statSync(path.join(process.env.AIT_PAGES, "large.html")).size;
  assert.ok(bytes < 20e6, `${bytes} bytes`);
  const page = await reports.open("large.html");
  t.diagnostic(`${(bytes / 1e6).toFixed(1)} MB, first view after ${page.openedAfter} ms`);
  assert.ok(page.openedAfter < 2000 * PATIENCE, `${page.openedAfter} ms`);
  assert.match(await page.innerText("main"), /root\.model\.layers\.20\.self_attn\.o_proj/);
  assert.equal(await page.locator(".layers li").count(), 40);
  isCalm(page);
});

test("all views open with many rows", async () => {
  const page = await reports.open("large.html");
  for (const view of ["flow", "graph", "op/31234", "table", "missing", "run"]) await visit(page, view);
  assert.match(await page.innerText("main"), /100\u202f?000|100000/);
  isCalm(page);
});

test("forty layers open at once, and close one by one", async (t) => {
  const page = await reports.open("large.html");
  await visit(page, "graph");
  const start = Date.now();
  await page.click("text=Open all layers");
  assert.equal(await page.locator(".my .node").count(), 1000);
  t.diagnostic(`all layers open in ${Date.now() - start} ms`);
  await page.locator(".my .frame-title[data-group='layer 39']").focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".golden .node").count(), 976);
  isCalm(page);
});

test("the table scrolls at thirty frames a second and finds its last row", async (t) => {
  const page = await reports.open("large.html");
  await visit(page, "table");
  const frames = await page.evaluate(() => new Promise((resolve) => {
    const grid = document.querySelector(".grid");
    const start = performance.now();
    let count = 0;
    const step = (now) => {
      ++count;
      grid.scrollTop += 1700;
      if (now - start < 2000) requestAnimationFrame(step);
      else resolve((count * 1000) / (now - start));
    };
    requestAnimationFrame(step);
  }));
  t.diagnostic(`${frames.toFixed(0)} frames a second`);
  assert.ok(frames >= 30 / PATIENCE, `${frames} frames a second`);
  assert.ok((await page.locator(".lines .line").count()) < 100, "only rows in sight are in the document");
  await page.focus(".grid");
  await page.keyboard.press("End");
  await page.waitForSelector("#line-99999");
  const start = Date.now();
  await page.click(".head button[title='verdict_error']");
  await page.waitForFunction(() => document.querySelector(".head [aria-sort=descending]"));
  await page.fill("input[type=search]", "layers.20.self_attn.o_proj/");
  await page.waitForFunction(() => /^100 of /.test(document.querySelector("#view-table .says").textContent));
  t.diagnostic(`sorted and searched in ${Date.now() - start} ms`);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  await ready(page, "op");
  assert.match(await page.innerText("h2"), /layers\.20\.self_attn\.o_proj/);
  isCalm(page);
});
