// Checks examples/wasm in Chromium: its answers are those of the same code run natively, texts stay texts, and the page works by
// keyboard, at two widths, in light and dark. Called by `make test-wasm`.
//
//   node dev/pages/wasm.mjs SITE NATIVE
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const require = createRequire(import.meta.url);
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [site, native] = process.argv.slice(2);

const ferry = "The ferry between Saltmere and Gull Island will run again from Monday after six weeks of repairs, the operator said on Thursday. Engineers replaced both engines and a cracked propeller shaft at the yard in Tarn Bay, and a trial trip went well.";
const harvest = "Farmers in the Vale expect the smallest apple harvest since 1998 after a late frost in May. Many of them will sell juice instead of fruit, said Ottoline Marsh, who grows old kinds on the slopes above the river.";
const arabic = "أعلنت سلطة الميناء يوم الجمعة أن العبّارة إلى الجزيرة ستعود إلى الإبحار ابتداء من يوم الاثنين بعد إصلاح المحرك الذي تعطّل في العاصفة الأخيرة.";
const japanese = "港湾局は金曜日、嵐で故障したエンジンの修理が終わったため、島へのフェリーを月曜日から再開すると発表した。最初の一週間は二時間に一本の運航となる。";
const hostile = `<script>window.bad = 1</script><img src=//elsewhere.example/x onerror="window.bad = 2">" onmouseover='x' & \u202e😀 `;
const pairs = [
  [ferry, ferry], [ferry, ferry.replace("Thursday", "Friday evening")], [ferry, harvest], [ferry, `${ferry} ${harvest} ${harvest}`],
  [arabic, `${arabic} ${arabic}`], [japanese, japanese.replace("金曜日", "土曜日")], [arabic, japanese],
  [`<html><body><h1>News</h1><p>${ferry}</p></body></html>`, ferry], [hostile + ferry, ferry + hostile],
  ["", ""], [ferry, ""], [`${harvest} `.repeat(500), ferry], ["x".repeat(5 << 20), ferry], [ferry, ferry],
  // Half of an emoji is no text; JavaScript has such strings, and replaces the half when it encodes them.
  [`${ferry} \ud83d`, `\ude00 ${ferry}`], ["\ud800".repeat(1000), ferry], ["😀👩‍👩‍👧‍👦🏳️‍🌈".repeat(1000), "😀"], [`\u202e${arabic}\u0000\u200f`, arabic],
  // Two megabytes: mostly markup, too much text, and almost as much text as is compared.
  [`<p>${ferry}</p>${"<div><b>".repeat(1 << 18)}`, ferry], [`${ferry} `.repeat(8500), ferry], [`${ferry} `.repeat(4200), `${harvest} `.repeat(4700)],
];
// Every article of the demonstration with the next one, for the answer alone.
const bodies = fs.readFileSync(new URL("../../demo/articles.ndjson", import.meta.url), "utf8").trim().split("\n").map(line => JSON.parse(line).body);
const shown = pairs.length;
for (let number = 1; number < bodies.length; number++) pairs.push([bodies[number - 1], bodies[number]]);
const expected = execFileSync(native, { input: pairs.map(pair => JSON.stringify(pair.map(text => text.toWellFormed())) + "\n").join(""), maxBuffer: 1 << 28 })
  .toString().trim().split("\n").map(line => JSON.parse(line));

// The same exports, of which `run` is one instruction: unreachable.
const trap = Buffer.from("0061736d01000000" + "010a0260017f017f6000017f" + "030403000001" + "0503010001"
  + "072304066d656d6f72790200077265736572766500000372756e000106616e737765720002" + "0a0f0304004100" + "0b0300000b040041000b", "hex");
const types = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".wasm": "application/wasm" };
const server = http.createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  const broken = request.headers.referer?.includes("broken");
  if (request.headers.referer?.includes("trap") && pathname.endsWith(".wasm")) return response.writeHead(200).end(trap);
  const file = path.join(site, path.basename(pathname) || "index.html");
  if (!fs.existsSync(file) || (broken && file.endsWith(".wasm"))) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": types[path.extname(file)] }).end(fs.readFileSync(file));
});
await new Promise(resolve => server.listen(0, "127.0.0.1", resolve));
const home = `http://127.0.0.1:${server.address().port}/`;

// With megabytes in a field too, no step may take a minute.
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"], protocolTimeout: 60_000,
});
const complaints = [];
async function open(width = 1280, scheme = "light") {
  const page = await browser.newPage();
  await page.setViewport({ width, height: 900, deviceScaleFactor: 1 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  page.on("console", message => ["error", "warn"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", error => complaints.push(String(error)));
  page.on("request", request => request.url().startsWith(home) || complaints.push("request: " + request.url()));
  await page.goto(home);
  await page.waitForFunction(() => document.querySelector("#status").textContent === "Ready.");
  return page;
}
const status = page => page.$eval("#status", node => node.textContent);
async function enter(page, [older, newer]) {
  await page.$eval("#older", (field, value) => { field.value = value; }, older);
  await page.$eval("#newer", (field, value) => { field.value = value; }, newer);
  await page.focus("#compare");
  await page.keyboard.press("Enter");
}
try {
  const page = await open();
  const answers = await page.evaluate(async pairs => {
    const { load } = await import("./page.js");
    const compare = await load("samestory_wasm.wasm");
    return pairs.map(([older, newer]) => compare(older, newer));
  }, pairs);
  for (const [number, answer] of answers.entries()) {
    assert.equal(JSON.stringify(answer), JSON.stringify(expected[number]), `pair ${number}: in the browser and natively`);
  }
  assert.deepEqual([0, 1, 2].map(number => answers[number].relation), ["exact", "near", "different"]);
  assert.equal(pairs[12][0].length, 5 << 20);
  for (const number of [12, 19]) assert.match(answers[number].error, /^A text is too long: /, `pair ${number}`);
  assert.equal(answers.filter(answer => answer.error).length, 2);

  // What people see is what the engine answered, also of texts that would like to be more than text.
  for (const [number, pair] of pairs.slice(0, shown).entries()) {
    await enter(page, pair);
    const answer = expected[number];
    if (answer.error) {
      assert.equal(await status(page), answer.error);
      assert.ok(await page.$eval("#result", section => section.hidden), "an old answer must not stay");
      continue;
    }
    assert.ok((await status(page)).startsWith(answer.duplicate ? "Duplicate: " : "Not a duplicate: "), await status(page));
    for (const side of ["older", "newer"]) {
      const text = answer[side].map(piece => piece.text).join("");
      assert.equal(await page.$eval(`#pieces-${side}`, node => node.textContent), text, `pair ${number}, ${side}`);
      const marks = answer[side].filter(piece => piece.passage !== undefined).length;
      assert.equal((await page.$$(`#pieces-${side} mark`)).length, marks, `pair ${number}, ${side}: marked`);
      assert.equal((await page.$$(`#pieces-${side} :not(mark)`)).length, 0, `pair ${number}, ${side}: nothing but text and marks`);
    }
  }
  assert.equal(await page.evaluate(() => window.bad), undefined);
  await enter(page, [arabic, ferry]);
  const direction = selector => page.$eval(selector, node => getComputedStyle(node).direction);
  for (const side of ["", "pieces-"]) {
    assert.deepEqual([await direction(`#${side}older`), await direction(`#${side}newer`)], ["rtl", "ltr"]);
  }
  await page.close();

  for (const width of [1280, 390]) for (const scheme of ["light", "dark"]) {
    const page = await open(width, scheme);
    await enter(page, pairs[1]);
    const { scrollWidth, clientWidth } = await page.evaluate(() => ({
      scrollWidth: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth,
    }));
    assert.ok(clientWidth > 0);
    assert.equal(scrollWidth, clientWidth, `${width} ${scheme}: wider than the screen`);
    const [field, button] = await page.$$eval("#newer, #compare", nodes => nodes.map(node => node.getBoundingClientRect().toJSON()));
    assert.ok(button.top >= field.bottom && button.height < 100, `${width} ${scheme}: the button belongs under the texts`);
    // The policy of the page keeps scripts out, also this one; the debugger may evaluate it.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    const bad = violations.filter(found => ["serious", "critical"].includes(found.impact));
    assert.deepEqual(bad.map(found => `${found.id}: ${found.nodes[0].html}`), [], `${width} ${scheme}`);
    await page.close();
  }
  assert.deepEqual(complaints, []);

  const broken = await browser.newPage();
  await broken.goto(home + "?broken");
  await broken.waitForFunction(() => document.querySelector("#status").textContent !== "Loading…");
  assert.match(await status(broken), /^The engine cannot be loaded: .*404$/);
  assert.ok(await broken.$eval("#compare", button => button.disabled));

  const stopped = await browser.newPage();
  await stopped.goto(home + "?trap");
  await stopped.waitForFunction(() => document.querySelector("#status").textContent === "Ready.");
  await stopped.$eval("#result", section => { section.hidden = false; });
  await enter(stopped, ["", ""]);
  assert.equal(await status(stopped), "The engine stopped: unreachable. Reload the page.");
  assert.ok(await stopped.$eval("#result", section => section.hidden), "an old answer must not stay");

  const size = fs.statSync(path.join(site, "samestory_wasm.wasm")).size;
  console.log(`${pairs.length} pairs compared in ${await browser.version()}, as natively; ${(size / 1e6).toFixed(1)} MB of WebAssembly`);
} finally {
  await browser.close();
  server.close();
}
