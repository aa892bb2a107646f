// The pages of checks and recordings, each of a real run: the answer, its own views, one row.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isCalm, ready, Reports, visit } from "./browser.js";

let reports;
before(async () => { reports = await Reports.start(); });
after(async () => { await reports.close(); });
const main = (page) => page.innerText("main");

test("a check of operators names the one that is wrong", async () => {
  const page = await reports.open("opcheck.html");
  assert.match(await page.innerText("h1"), /Check of operators/);
  const text = await main(page);
  assert.match(text, /3 of 232 outputs of operators fail/);
  assert.match(text, /4_0\tRmsNormOperation\tFAILED\tFAILED\t204\.\d+/);
  assert.match(text, /By type of operation[\s\S]*RmsNormOperation\t27\t1/);
  assert.match(text, /Worst by error_of_bound\s+op_id.*\s+4_0\t/);
  await page.click("text=4_0");
  await ready(page, "row");
  const row = await main(page);
  assert.match(row, /4_0 RmsNormOperation[\s\S]*bound_result: FAILED[\s\S]*ait llm opcheck -i \S+ -ids 4_0[\s\S]*op_param/);
  await page.click("text=after →");
  await page.waitForFunction(() => document.querySelector("h2").textContent.startsWith("4_1_0"));
  await page.keyboard.press("2");
  await ready(page, "table");
  await page.selectOption("#view-table select", "failing");
  assert.match(await page.innerText(".says"), /3 of 232 rows/);
  await page.fill("input[type=search]", "rmsnorm");
  await page.waitForFunction(() => /^1 of /.test(document.querySelector("#view-table .says").textContent));
  await page.locator(".lines .line").first().click();
  await ready(page, "row");
  assert.match(await page.innerText("h2"), /4_0 RmsNormOperation/);
  isCalm(page);
});

test("overflows of operators come in their order, with what to type next", async () => {
  const page = await reports.open("errcheck.html");
  const text = await main(page);
  assert.match(text, /\d+ operators overflow[\s\S]*The first is the one to look at: LinearOperation_3_1_0:MatMulF16Kernel/);
  assert.match(text, /ait llm dump --exec "…" -ids 3_1_0 -time 2/);
  assert.match(text, /In the order of the reports\s+operator\treports\s+LinearOperation_3_1_0:MatMulF16Kernel\t\d+/);
  await page.keyboard.press("2");
  await ready(page, "table");
  assert.ok((await page.locator(".lines .line").count()) >= 2);
  isCalm(page);
});

test("a check of torch functions has its results and its details", async () => {
  const page = await reports.open("api-check.html");
  assert.match(await page.innerText("h1"), /Check of torch functions/);
  const text = await main(page);
  assert.match(text, /Nothing fails|\d+ of \d+ rows fail/);
  for (const each of ["Forward Test Success", "Backward Test Success", "Forward Within Rounding", "Backward Within Rounding"]) assert.ok(text.includes(each), each);
  assert.match(text, /Backward Test Success\s+N\/A\s+\d+/);
  await page.keyboard.press("2");
  await ready(page, "table");
  await page.fill("input[type=search]", "linear*0");
  await page.waitForFunction(() => /^1 of /.test(document.querySelector("#view-table .says").textContent));
  await page.focus(".grid");
  await page.keyboard.press("Enter");
  await ready(page, "row");
  assert.match(await main(page), /Functional\*linear\*0[\s\S]*Forward Test Success: True/);
  isCalm(page);
  const details = await reports.open("api-details.html");
  assert.match(await main(details), /Worst by Roundings[\s\S]*Roundings Allowed[\s\S]*forward\.output\.0\t/);
  isCalm(details);
});

test("overflows of torch functions say whose they are", async () => {
  const page = await reports.open("api-overflow.html");
  const text = await main(page);
  assert.match(text, /No overflow is of the device's making/);
  assert.match(text, /Calls that overflow[\s\S]*Tensor_mul_1_forward\tnormal\tin a higher precision it does not overflow/);
  assert.match(text, /both overflow: the values are too large/);
  isCalm(page);
});

test("a recording says what was written and how", async () => {
  for (const [name, tensors, what] of [["dump.html", /1[\u202f]?954\s+tensors written/, /execute_range\t0,1/], ["torch-dump.html", /432\s+tensors written/, /torch_tensors\/cpu_\d+/]]) {
    const page = await reports.open(name);
    const text = await main(page);
    assert.match(text, /All that was asked for is recorded/, name);
    assert.match(text, tensors, name);
    assert.match(text, what, name);
    assert.match(text, /pid\tended in order\ttensors announced/, name);
    assert.match(text, /Options and versions[\s\S]*glibc\t/, name);
    await visit(page, "run");
    await page.locator("summary:has-text('The whole document')").click();
    assert.match(await page.innerText("pre"), /"tool": "ait llm dump"/);
    isCalm(page);
  }
});

test("checks and recordings speak Chinese and fit narrow windows", async () => {
  for (const [name, says] of [["opcheck.html", /232 个算子输出中有 3 个未通过/], ["errcheck.html", /首先应检查第一个/], ["api-check.html", /未通过|全部通过/], ["api-overflow.html", /没有由设备造成的溢出/], ["dump.html", /应采集的内容已全部采集/]]) {
    const page = await reports.open(name, { locale: "zh-CN", viewport: { width: 390, height: 800 }, colorScheme: "dark" });
    assert.match(await main(page), says);
    const { wide, has } = await page.evaluate(() => ({ wide: document.querySelector("main").scrollWidth, has: document.querySelector("main").clientWidth }));
    assert.ok(wide <= has + 1, `${name} is ${wide} wide in ${has}`);
    isCalm(page);
  }
});
