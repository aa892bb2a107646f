import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { isCalm, ready, Reports, visit } from "./browser.js";

const FAULT = "4_Prefill_layer/0_RmsNormOperation";
let reports;
before(async () => { reports = await Reports.start(); });
after(async () => { await reports.close(); });

test("findings come first, in words and with their numbers", async () => {
  const page = await reports.open("demo.html");
  const text = await page.innerText("main");
  assert.match(text, /One operation computes a wrong value/);
  assert.ok(text.includes(FAULT));
  assert.match(text, /It is 0\.05\d* off, \d+ times the 0\.00\d+ that a healthy value would be/);
  assert.match(text, /scale: my equals golden after multiplying it by 1\.05/);
  assert.equal(await page.locator(".layers li").count(), 4);
  await page.click("text=Open the operation");
  await ready(page, "op");
  assert.ok((await page.innerText("h2")).includes(FAULT));
  isCalm(page);
});

test("the error flow is moved through with keys and opened with a click", async () => {
  const page = await reports.open("demo.html");
  await page.keyboard.press("2");
  await ready(page, "flow");
  assert.match(await page.innerText(".strip-box .says"), /fault[\s\S]*0_RmsNormOperation\/outtensor0/);
  await page.focus("canvas.strip");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.innerText(".strip-box .says"), /0_LinearOperation/);
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  await ready(page, "op");
  assert.ok((await page.innerText("h2")).includes(FAULT));
  await visit(page, "flow");
  await page.selectOption("#view-flow label:has-text('Metric') select", "cosine_similarity");
  await page.waitForSelector("h3:has-text('1 − cosine similarity')");
  const box = await page.locator(".chart .u-over").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await ready(page, "op");
  await visit(page, "flow");
  const strip = await page.locator("canvas.strip").boundingBox();
  await page.mouse.click(strip.x + 4, strip.y + 4);
  await ready(page, "op");
  isCalm(page);
});

test("the expected error is drawn as a band below the chart", async () => {
  const page = await reports.open("demo.html");
  await visit(page, "flow");
  await page.selectOption("#view-flow label:has-text('Metric') select", "verdict_error");
  assert.match(await page.innerText(".chart"), /expected/);
  assert.match(await page.getAttribute(".chart [role=img]", "aria-label"), /along \d+ values; the largest is/);
  isCalm(page);
});

test("the graph opens layers, finds operations, zooms, and shows both sides", async () => {
  const page = await reports.open("demo.html");
  await page.keyboard.press("3");
  await ready(page, "graph");
  assert.ok((await page.locator(".node.found").getAttribute("data-name")).includes(FAULT));
  assert.ok((await page.locator(".node.fault").count()) > 3);
  const boxes = await page.locator(".node").count();
  await page.click("text=Close all layers");
  assert.ok((await page.locator(".node").count()) < boxes);
  assert.equal(await page.locator(".node.group").count(), 4);
  await page.locator(".node.group").first().focus();
  await page.keyboard.press("Enter");
  assert.ok((await page.locator(".node").count()) > 10, "a layer opens by key");
  const view = await page.getAttribute("svg.graph", "viewBox");
  await page.focus("svg.graph");
  await page.keyboard.press("+");
  assert.notEqual(await page.getAttribute("svg.graph", "viewBox"), view);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("0");
  const graph = await page.locator("svg.graph").boundingBox();
  await page.mouse.move(graph.x + 8, graph.y + graph.height - 8);
  await page.mouse.down();
  await page.mouse.move(graph.x + 60, graph.y + graph.height - 60);
  await page.mouse.up();
  assert.notEqual(await page.getAttribute("svg.graph", "viewBox"), view);
  await page.fill("input[type=search]", "nothing has this name");
  assert.match(await page.innerText(".graph-box .says"), /no operation holds that/);
  await page.fill("input[type=search]", "5_prefill_layer/0_rms");
  await page.waitForSelector(".node.found[data-name^='5_Prefill_layer/0_RmsNormOperation']");
  await page.keyboard.press("Enter");
  await ready(page, "op");
  await visit(page, "graph");
  await page.click("summary:has-text('layer 2')");
  const sides = await page.innerText("table.sides");
  assert.match(sides, /0_RmsNormOperation[\s\S]*fault[\s\S]*4_Prefill_layer\/0_RmsNormOperation/);
  isCalm(page);
});

test("an operation shows both sides, where the error sits, and what to type", async () => {
  const page = await reports.open("demo.html");
  await page.click("text=Open the operation");
  await ready(page, "op");
  const text = await page.innerText("main");
  for (const part of ["Both sides", "float32", "float16", "maximum", "L2 norm", "cosine_similarity", "Hypotheses that explain it", "What went into it", "How the values are spread", "Where the error sits"])
    assert.ok(text.includes(part), part);
  assert.match(text, /ait llm compare -gp \S+ -mp \S+ --extended/);
  assert.match(text, /ait show \S+outtensor0\.bin/);
  assert.match(text, /ait llm opcheck -i \S+ -ids 4_0/);
  assert.equal(await page.locator("svg.histogram").count(), 1);
  assert.ok(await page.locator("canvas.map").evaluate((canvas) => {
    const colours = new Set();
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    for (let i = 0; i < data.length; i += 4) colours.add(data[i] * 65536 + data[i + 1] * 256 + data[i + 2]);
    return colours.size > 5;
  }), "the map has many colours");
  assert.ok((await page.locator("section:has(h3:has-text('farthest off')) tbody tr").count()) >= 10);
  await page.click("text=after →");
  await page.waitForFunction((before) => !document.querySelector("h2").textContent.includes(before), FAULT);
  isCalm(page);
});

test("the table sorts, filters, searches, copies and is walked with keys", async () => {
  const page = await reports.open("demo.html", { permissions: ["clipboard-read", "clipboard-write"] });
  await page.keyboard.press("4");
  await ready(page, "table");
  assert.match(await page.innerText("#view-table .says"), /^\d+ rows$/);
  await page.click(".head button[title='verdict_error']");
  assert.equal(await page.getAttribute(".head .cell:has(button[title='verdict_error'])", "aria-sort"), "descending");
  const errors = await page.locator(".lines .line .cell:nth-child(4)").allInnerTexts();
  const numbers = errors.map(Number);
  assert.deepEqual(numbers, [...numbers].sort((a, b) => b - a));
  assert.ok(numbers[0] > 0.05);
  await page.selectOption("#view-table select", "fault");
  for (const each of await page.locator(".lines .badge").allInnerTexts()) assert.match(each, /fault/);
  await page.keyboard.press("Escape");
  await page.fill("input[type=search]", "rmsnorm");
  await page.waitForFunction(() => [...document.querySelectorAll(".lines .line")].every((each) => each.textContent.includes("RmsNorm")));
  for (const each of await page.locator(".lines .line .cell:nth-child(3)").allInnerTexts()) assert.match(each, /RmsNorm/);
  await page.click("#copy");
  await page.waitForFunction(() => /copied/.test(document.querySelector("#view-table .says").textContent));
  const csv = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(csv, /^verdict,token_id,data_id,/);
  assert.ok(csv.includes("fault,0,4_Prefill_layer/0_RmsNormOperation/outtensor0,0.05"));
  await page.focus(".grid");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.getAttribute(".grid", "aria-activedescendant"), "line-2");
  await page.keyboard.press("Enter");
  await ready(page, "op");
  isCalm(page);
});

test("what was not compared is listed with its reasons, and how the report was made", async () => {
  const page = await reports.open("demo.html");
  await page.keyboard.press("5");
  await ready(page, "missing");
  assert.match(await page.innerText("main"), /Every row was compared|only in my/);
  await page.keyboard.press("6");
  await ready(page, "run");
  const text = await page.innerText("main");
  assert.match(text, /golden: manifest/);
  assert.match(text, /my: manifest/);
  assert.match(text, /--fault 'scale@layer=2,op=RmsNorm,size=0\.05'|--fault scale@layer=2,op=RmsNorm,size=0\.05/);
  await page.locator("summary:has-text('The whole document')").first().click();
  assert.match(await page.locator("pre").first().innerText(), /"tool": "ait llm dump"/);
  isCalm(page);
});

test("Chinese, dark and narrow", async () => {
  const page = await reports.open("demo.html", { locale: "zh-CN", colorScheme: "dark", viewport: { width: 390, height: 800 } });
  assert.match(await page.innerText("main"), /有一个算子计算出错/);
  assert.equal(await page.getAttribute("html", "lang"), "zh-CN");
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(18, 24, 31)");
  for (const view of ["findings", "flow", "graph", "op/3", "table", "missing", "run"]) {
    await visit(page, view);
    const { wide, seen } = await page.evaluate(() => ({ wide: document.querySelector("main").scrollWidth, seen: document.querySelector("main").clientWidth }));
    assert.ok(wide <= seen + 1, `${view} is ${wide} wide in ${seen}`);
  }
  await page.click("#language");
  await page.waitForFunction(() => document.documentElement.lang === "en");
  await page.click("#theme");
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
  isCalm(page);
});

test("every text of the page has its Chinese", () => {
  const source = path.join(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), "../src");
  const known = fs.readFileSync(path.join(source, "zh.ts"), "utf8");
  const missing = [];
  for (const file of fs.readdirSync(source, { recursive: true })) {
    if (!String(file).endsWith(".ts")) continue;
    for (const [, text] of fs.readFileSync(path.join(source, String(file)), "utf8").matchAll(/\bt\("([^"]+)"/g)) if (!known.includes(`"${text}":`) && text !== "layer {0}") missing.push(text);
  }
  assert.deepEqual(missing, []);
});

test("help names the keys", async () => {
  const page = await reports.open("demo.html");
  await page.keyboard.press("?");
  assert.match(await page.innerText("dialog"), /search/);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("dialog").count(), 0);
  isCalm(page);
});

test("a link reopens the same place", async () => {
  const page = await reports.open("demo.html#/op/3");
  assert.equal(await page.getAttribute("body", "data-ready"), "op");
});

test("dumps and checks of operators have their own views", async () => {
  const dump = await reports.open("dump.html");
  assert.match(await dump.innerText("main"), /Recorded run[\s\S]*tensors written/);
  isCalm(dump);
  const check = await reports.open("opcheck.html");
  assert.match(await check.innerText("main"), /Summary[\s\S]*precision_result[\s\S]*PASS/);
  await check.keyboard.press("2");
  await ready(check, "table");
  await check.fill("input[type=search]", "rmsnorm");
  await check.waitForFunction(() => / of /.test(document.querySelector("#view-table .says").textContent));
  await check.locator(".lines .line").first().click();
  await ready(check, "row");
  assert.match(await check.innerText("main"), /op_param/);
  isCalm(check);
});

test("the picture of the README", { skip: !process.env.AIT_PICTURE }, async () => {
  const page = await reports.open("demo.html", { viewport: { width: 1100, height: 800 } });
  fs.mkdirSync(path.dirname(process.env.AIT_PICTURE), { recursive: true });
  await page.screenshot({ path: process.env.AIT_PICTURE });
});
