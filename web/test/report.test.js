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

test("a noise run gives the band of every metric", async () => {
  const page = await reports.open("noise.html");
  assert.match(await page.innerText("main"), /Threshold: what the noise run has there/);
  await visit(page, "flow");
  for (const metric of ["verdict_error", "cosine_similarity", "max_absolute_error"]) {
    await page.selectOption("#view-flow label:has-text('Metric') select", metric);
    await page.waitForSelector(".chart .says:has-text('expected, as the noise run has it')");
  }
  await visit(page, "run");
  assert.match(await page.innerText("main"), /noise run\tnoise/);
  isCalm(page);
});

test("layers open and close with a click and with keys, in both graphs", async () => {
  const page = await reports.open("demo.html");
  await page.keyboard.press("3");
  await ready(page, "graph");
  const count = (selector) => page.locator(selector).count();
  assert.equal(await page.locator(".my .node.found").getAttribute("data-name"), FAULT);
  assert.ok((await count(".my .node.fault")) > 3);
  for (const side of [".my", ".golden"]) assert.equal(await count(`${side} .frame`), 1, "the layer of the fault is open");
  await page.click(".golden .frame-title");
  for (const side of [".my", ".golden"]) assert.equal(await count(`${side} .frame`), 0, "a click closes it");
  assert.equal(await count(".my .node.group"), 4);
  assert.match(await page.getAttribute(".my .node.group[data-name='layer 2']", "class"), /fault/, "closed it has the worst colour inside");
  await page.click(".my .node.group[data-name='layer 1']");
  assert.equal(await count(".golden .frame"), 1, "a click opens it");
  await page.keyboard.press("Enter");
  assert.equal(await count(".golden .frame"), 0, "the focus stays on it, and a key closes it");
  await page.click("text=Open all layers");
  assert.equal(await count(".my .frame"), 4);
  await page.click("text=Close all layers");
  assert.equal(await count(".my .frame"), 0);
  isCalm(page);
});

test("graphs zoom, move and are searched", async () => {
  const page = await reports.open("demo.html");
  await visit(page, "graph");
  const view = () => page.getAttribute(".my svg.graph", "viewBox");
  const first = await view();
  await page.focus(".my svg.graph");
  await page.keyboard.press("+");
  assert.notEqual(await view(), first);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("0");
  const all = await view();
  const graph = await page.locator(".my svg.graph").boundingBox();
  await page.mouse.move(graph.x + 8, graph.y + graph.height - 8);
  await page.mouse.down();
  await page.mouse.move(graph.x + 60, graph.y + graph.height - 60);
  await page.mouse.up();
  assert.notEqual(await view(), all);
  await page.fill("input[type=search]", "nothing has this name");
  assert.match(await page.innerText(".selection"), /no operation holds that/);
  await page.fill("input[type=search]", "5_prefill_layer/0_rms");
  await page.waitForSelector(".my .node.found[data-name^='5_Prefill_layer/0_RmsNormOperation']");
  await page.keyboard.press("Enter");
  await ready(page, "op");
  isCalm(page);
});

test("a click on a node shows its partner, and what has none is to be seen", async () => {
  const page = await reports.open("torch.html");
  await visit(page, "graph");
  await page.click(".my .node[data-name='4_Prefill_layer/3_RmsNormOperation']");
  assert.equal(await page.locator(".golden .node.partner").getAttribute("data-name"), "root.model.layers.2.post_attention_layernorm");
  assert.match(await page.innerText(".selection"), /golden: root\.model\.layers\.2\.post_attention_layernorm ↔ my: 4_Prefill_layer\/3_RmsNormOperation/);
  await page.click(".golden .node[data-name='root.model.layers.2.self_attn.q_proj']");
  assert.match(await page.locator(".my .node.partner").first().getAttribute("data-name"), /1_Attention\/0_LinearOperation/);
  const alone = page.locator(".my .node.alone").first();
  await alone.focus();
  await page.keyboard.press("Enter");
  assert.match(await page.innerText(".selection"), /golden: no partner ↔ my: [\s\S]*no tensor of golden-path agrees with it/i);
  assert.equal(await page.locator(".golden .node.partner").count(), 0);
  await page.keyboard.press("Enter");
  await ready(page, "op");
  isCalm(page);
});

test("the tree of modules opens, is walked with keys and selects", async () => {
  const page = await reports.open("torch.html");
  await visit(page, "graph");
  const item = (label) => page.locator(`.tree [role=treeitem][data-path='${label}']`);
  assert.equal(await item("4_Prefill_layer/0_RmsNormOperation").getAttribute("aria-selected"), "true", "what was found is shown");
  assert.match(await item("4_Prefill_layer").getAttribute("class"), /fault/, "coloured by the worst inside");
  assert.match(await item("2_Prefill_layer").getAttribute("class"), /noise/);
  await item("4_Prefill_layer/0_RmsNormOperation").focus();
  await page.keyboard.press("ArrowLeft");
  assert.equal(await item("4_Prefill_layer").getAttribute("aria-selected"), "true");
  await page.keyboard.press("ArrowLeft");
  assert.equal(await item("4_Prefill_layer").getAttribute("aria-expanded"), "false");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".my .node.found").getAttribute("data-name"), "4_Prefill_layer/1_Attention/0_LinearOperation");
  await page.selectOption(".tree-head select", "golden");
  assert.equal(await item("root.model.layers.2.self_attn.q_proj").getAttribute("aria-selected"), "true");
  await page.keyboard.press("Escape");
  await item("root.model.layers.3").locator(".twisty").click();
  assert.equal(await item("root.model.layers.3").getAttribute("aria-expanded"), "true");
  isCalm(page);
});

test("an operation shows both sides, where the error sits, and what to type", async () => {
  const page = await reports.open("demo.html");
  await page.click("text=Open the operation");
  await ready(page, "op");
  const text = await page.innerText("main");
  for (const part of ["Both sides", "float32", "float16", "maximum", "L2 norm", "Cosine similarity", "worst row", "usual error", "elements differ.", "Hypotheses that explain it", "What went into it", "How the values are spread", "Where the error sits"])
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
  for (const name of ["torch.html", "torch-again.html"]) {
    const page = await reports.open(name);
    await visit(page, "missing");
    const text = await page.innerText("main");
    assert.match(text, /my\t169\t153\t0\t16/, name);
    assert.match(text, /They were paired by the values of tensors, and by the types and order of operations\. Layers: 4 in golden, 4 in my\./, name);
    assert.match(text, /my\t8\tgolden-path has no tensor of its size\./, name);
    assert.match(text, /24 × only in my: .*golden-path has no tensor of its size/, name);
    await page.locator("summary:has-text('has no tensor of its size')").click();
    assert.ok((await page.locator("ul.rows li").count()) >= 24);
    await visit(page, "run");
    assert.match(await page.innerText("main"), /Comparison[\s\S]*ait llm compare -gp/, name);
    isCalm(page);
  }
  const page = await reports.open("demo.html");
  await page.keyboard.press("5");
  await ready(page, "missing");
  assert.match(await page.innerText("main"), /Every row was compared/);
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

test("the picture of the README", { skip: !process.env.AIT_PICTURE }, async () => {
  const page = await reports.open("demo.html", { viewport: { width: 1100, height: 800 } });
  fs.mkdirSync(path.dirname(process.env.AIT_PICTURE), { recursive: true });
  await page.screenshot({ path: process.env.AIT_PICTURE });
});
