// A browser that opens a report from disk and notes all that it should not do.
import { chromium } from "playwright-core";
import assert from "node:assert/strict";
import path from "node:path";

const FOLDER = process.env.AIT_PAGES;

export class Reports {
  static async start(options = {}) {
    const browser = await chromium.launch({
      executablePath: process.env.AIT_CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
    });
    return new Reports(browser, options);
  }
  constructor(browser, options) {
    this.browser = browser;
    this.options = options;
  }
  async open(name, options = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 860 }, locale: "en-US", ...this.options, ...options });
    const page = await context.newPage();
    const file = "file://" + path.join(FOLDER, name);
    page.troubles = [];
    page.on("console", (message) => { if (message.type() === "error" || message.type() === "warning") page.troubles.push(message.text()); });
    page.on("pageerror", (error) => page.troubles.push(String(error)));
    page.on("request", (request) => { if (request.url().split("#")[0] !== file && !request.url().startsWith("data:")) page.troubles.push("asks for " + request.url()); });
    page.on("dialog", (dialog) => { page.troubles.push("dialog"); void dialog.dismiss(); });
    const start = Date.now();
    await page.goto(file);
    await page.waitForSelector("body[data-ready]");
    page.openedAfter = Date.now() - start;
    return page;
  }
  async close() {
    await this.browser.close();
  }
}

// Goes to a view and waits until it is there.
export async function visit(page, hash) {
  const before = await page.evaluate(() => { delete document.body.dataset.ready; return location.hash; });
  if (before === "#/" + hash) await page.evaluate(() => { location.hash = "#/"; });
  await page.evaluate((to) => { delete document.body.dataset.ready; location.hash = "#/" + to; }, hash);
  await page.waitForSelector("body[data-ready]");
}

export async function ready(page, id) {
  await page.waitForSelector(`body[data-ready="${id}"]`);
}

export function isCalm(page) {
  assert.deepEqual(page.troubles, []);
}
