// Checks the HTML report of `samestory file --html` in Chromium: at two widths, in light and dark, with five scripts, by mouse
// and by keyboard, and with axe-core. Called by `make test-pages`.
//
//   node dev/pages/check.mjs PROGRAM PICTURES
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const require = createRequire(import.meta.url);
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [program, pictures] = process.argv.slice(2);
const root = path.resolve(import.meta.dirname, "../..");
const work = fs.mkdtempSync(path.join(os.tmpdir(), "samestory-pages-"));
fs.mkdirSync(pictures, { recursive: true });

// Five scripts, more groups than a page holds, a group of many, hostile texts, and related articles from the demo.
const evil = "<script>window.bad = 1</script><img src=x onerror=\"window.bad = 2\">\" onmouseover='x' </script> & \u202etxet";
const texts = {
  ar: "أعلنت سلطة الميناء يوم الجمعة أن العبّارة إلى الجزيرة ستعود إلى الإبحار ابتداء من يوم الاثنين بعد إصلاح المحرك الذي تعطّل في العاصفة الأخيرة. وقال المتحدث باسم السلطة إن الرحلات ستكون كل ساعتين في الأسبوع الأول، ثم كل ساعة عندما تعود السفينة الثانية من الحوض الجاف. ورحّب سكان الجزيرة بالخبر لأن المدرسة والعيادة بقيتا دون إمدادات عدة أيام.",
  ja: "港湾局は金曜日、嵐で故障したエンジンの修理が終わったため、島へのフェリーを月曜日から再開すると発表した。最初の一週間は二時間に一本の運航となり、二隻目の船がドックから戻れば一時間に一本に増える予定だという。島の住民は、学校と診療所に数日間物資が届いていなかったことから、この知らせを歓迎している。料金は変わらない。",
  hi: "बंदरगाह प्राधिकरण ने शुक्रवार को बताया कि पिछले तूफान में खराब हुए इंजन की मरम्मत के बाद द्वीप के लिए फेरी सोमवार से फिर चलेगी। प्रवक्ता ने कहा कि पहले सप्ताह में फेरी हर दो घंटे पर चलेगी और दूसरा जहाज गोदी से लौटने के बाद हर घंटे चलेगी। द्वीप के लोगों ने इस खबर का स्वागत किया क्योंकि स्कूल और दवाखाने में कई दिनों से सामान नहीं पहुंचा था।",
};
const titles = { ar: "العبّارة تعود يوم الاثنين", ja: "島へのフェリー、月曜日に再開", hi: "द्वीप की फेरी सोमवार से फिर चलेगी" };
const articles = fs.readFileSync(path.join(root, "demo/articles.ndjson"), "utf8").trim().split("\n").map(line => JSON.parse(line));
const add = (id, title, body, day, more = {}) => articles.push({ id, title, body, url: `https://${id.split("-")[0]}.example/${id}`, published_at: `2026-03-${String(day).padStart(2, "0")}T06:00:00Z`, ...more });
for (const language of Object.keys(texts)) {
  add(`one-${language}`, titles[language], texts[language], 2);
  add(`two-${language}`, titles[language], texts[language].replace(/[.。।][^.。।]*[.。।]$/u, "."), 3);
  add(`three-${language}`, titles[language], texts[language], 4);
}
const words = n => Array.from({ length: 90 }, (_, k) => "word" + ((n * 7919 + k * 104729) % 9973).toString(36)).join(" ");
for (let n = 0; n < 40; n++) {
  add(`desk${n}-a`, `Story number ${n} of the council`, words(n), 1 + (n % 20));
  add(`desk${n}-b`, `Story number ${n} of the council`, words(n) + (n % 2 ? " and one more sentence of another desk" : ""), 5 + (n % 20));
}
for (let n = 0; n < 60; n++) add(`wire${n}-x`, "A wire report that sixty outlets carry", words(999), 6);
add("evil-1", evil, words(500) + " " + evil, 7, { host: evil, content_type: "text/plain", url: "javascript:window.bad=3//" });
add("evil-2", evil, words(500) + " " + evil + " changed a little", 8, { host: evil, content_type: "text/plain", url: "https://x.example/\"><script>" });
fs.writeFileSync(path.join(work, "articles.ndjson"), articles.map(article => JSON.stringify(article) + "\n").join(""));
execFileSync(program, ["file", "articles.ndjson", "--no-article", "--output", "out.ndjson", "--clusters", "clusters.ndjson", "--html", "report.html", "--quiet"], { cwd: work });
const lines = name => fs.readFileSync(path.join(work, name), "utf8").trim().split("\n").map(line => JSON.parse(line));
const duplicates = new Set(lines("out.ndjson").filter(line => line.verdict !== "unique" && line.match_type !== "same-article").map(line => line.cluster_id));
const groups = lines("clusters.ndjson").filter(cluster => duplicates.has(cluster.cluster_id)).length;

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--force-prefers-reduced-motion"] });
const complaints = [];
async function open(width, scheme, file = "report.html") {
  const page = await browser.newPage();
  await page.setViewport({ width, height: 900, deviceScaleFactor: 1 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  page.on("console", message => ["error", "warn"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", error => complaints.push(String(error)));
  page.on("request", request => request.url().startsWith("file:") && request.url().includes(file) || complaints.push("request: " + request.url()));
  await page.setOfflineMode(true);
  await page.goto(pathToFileURL(path.join(work, file)).href);
  return page;
}
const status = page => page.$eval("#status", node => node.textContent);
const shown = page => page.$$eval("tr.summary", rows => rows.map(row => ({ title: row.querySelector(".title").textContent, cells: [...row.querySelectorAll("td")].map(cell => cell.textContent) })));
const press = (page, label) => page.evaluate(label => { const button = [...document.querySelectorAll(".chip, .views button, #clear, #next, #previous")].find(node => node.textContent.startsWith(label)); if (!button) throw new Error("no button " + label); button.click(); }, label);
async function accessible(page, where) {
  // The policy of the page keeps scripts out, also this one; the debugger may evaluate it.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const bad = violations.filter(found => ["serious", "critical"].includes(found.impact));
  assert.deepEqual(bad.map(found => `${found.id}: ${found.nodes[0].html} ${found.nodes[0].failureSummary}`), [], where);
}

for (const width of [1440, 390]) for (const scheme of ["light", "dark"]) {
  const page = await open(width, scheme);
  const where = `${width} ${scheme}`;
  // Every group can be reached: there are pages, and none is cut off.
  let seen = 0, turns = 0;
  for (;;) {
    seen += (await shown(page)).length;
    if (await page.$eval("#next", button => button.disabled) || turns++ > 20) break;
    await press(page, "Next");
  }
  assert.equal(seen, groups, `${where}: groups on all pages`);
  await page.reload();
  assert.equal((await shown(page))[0].title, "A wire report that sixty outlets carry", `${where}: the largest is first`);
  assert.ok((await shown(page))[0].cells.some(cell => cell.includes("wire")), `${where}: outlets come from the addresses`);
  // A cluster names 32 outlets at most, and this one has 60.
  assert.ok((await shown(page))[0].cells.includes("wire0.example, wire1.example and 30 or more others"), `${where}: ${(await shown(page))[0].cells}`);
  // A folded page is short, also on a phone.
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  assert.ok(height < (width < 500 ? 9000 : 4000), `${where}: ${height} pixels high`);
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(await overflow(), 0, `${where}: wider than the screen`);
  await page.screenshot({ path: path.join(pictures, `overview-${width}-${scheme}.png`) });
  await accessible(page, where);
  for (const language of Object.keys(texts)) {
    await page.$eval("#search", (input, value) => { input.value = value; input.dispatchEvent(new Event("input")); }, titles[language]);
    assert.equal((await shown(page)).length, 1, `${where}: search for ${titles[language]}`);
    await page.click("tr.summary .title");
    assert.ok(await page.$eval("mark", mark => mark.textContent.length > 0), `${where}: ${language} is marked`);
    assert.equal(await overflow(), 0, `${where}: ${language} is wider than the screen`);
    await page.screenshot({ path: path.join(pictures, `${language}-${width}-${scheme}.png`), fullPage: true });
    await accessible(page, `${where} ${language}`);
  }
  // A search without a result says so, and how to go back.
  await page.$eval("#search", input => { input.value = "no such words"; input.dispatchEvent(new Event("input")); });
  assert.equal(await page.$eval("#none", node => node.textContent), `None of the ${groups} groups fits the search and the filters.`);
  await accessible(page, `${where}, empty`);
  await press(page, "Clear");
  assert.ok((await status(page)).endsWith(`of ${groups} groups`), where);
  // Filters show what they would leave, and cannot leave nothing.
  const chips = await page.$$eval("#chips .chip, #tongues .chip", nodes => nodes.map(node => ({ text: node.textContent, count: +node.querySelector(".count").textContent.replace(",", ""), off: node.disabled })));
  for (const chip of chips) {
    assert.ok(chip.off === (chip.count === 0), `${where}: ${chip.text}`);
    if (chip.off) continue;
    await press(page, chip.text);
    assert.ok((await status(page)).includes(`of ${chip.count} groups`), `${where}: ${chip.text}: ${await status(page)}`);
    await page.reload();
  }
  await page.select("#order", "doubt");
  const doubtful = await shown(page);
  assert.notEqual(doubtful[0].title, "A wire report that sixty outlets carry", where);
  // Hostile articles are text.
  await page.$eval("#search", input => { input.value = "onerror"; input.dispatchEvent(new Event("input")); });
  await page.click("tr.summary .title");
  assert.ok((await page.$eval(".text", node => node.textContent)).includes(evil), where);
  assert.equal(await page.$$eval("a", links => links.filter(link => !/^https?:/.test(link.href)).length), 0, where);
  assert.equal(await page.evaluate(() => window.bad), undefined, where);
  await press(page, "Related");
  assert.ok((await shown(page)).length > 0, `${where}: related`);
  await page.click("tr.summary .title");
  await accessible(page, `${where}, related`);
  await page.close();
}

// By keyboard alone: search, sort, filter, unfold.
const page = await open(1440, "light");
const focus = () => page.evaluate(() => document.activeElement.id || document.activeElement.className + " " + document.activeElement.textContent.slice(0, 30));
const visited = [];
for (let n = 0; n < 60 && !(visited.at(-1) || "").startsWith("title"); n++) { await page.keyboard.press("Tab"); visited.push(await focus()); }
for (const wanted of ["search", "order", "chip all", "title"]) assert.ok(visited.some(name => name.startsWith(wanted)), `Tab does not reach ${wanted}: ${visited}`);
await page.keyboard.press("Enter");
assert.equal(await page.$eval("tr.summary .title", button => button.getAttribute("aria-expanded")), "true");
await page.keyboard.press("Enter");
assert.equal(await page.$eval("tr.summary .title", button => button.getAttribute("aria-expanded")), "false");
// A link to a group opens it.
const id = await page.$$eval("tr.summary", rows => rows[7].id);
await page.goto(pathToFileURL(path.join(work, "report.html")).href + "#" + id);
await page.reload();
assert.equal(await page.evaluate(id => document.getElementById(id).querySelector(".title").getAttribute("aria-expanded"), id), "true");
// A report without groups, and one of nothing.
for (const [name, text] of [["unique", articles.slice(0, 1)], ["nothing", []]]) {
  fs.writeFileSync(path.join(work, name + ".ndjson"), text.map(article => JSON.stringify(article) + "\n").join(""));
  execFileSync(program, ["file", name + ".ndjson", "--output", "bare.ndjson", "--html", name + ".html", "--quiet"], { cwd: work });
  const bare = await open(1440, "light", name + ".html");
  assert.equal(await bare.$eval("#none", node => node.textContent), "No article repeats an earlier one.");
  await accessible(bare, name);
}
await browser.close();
assert.deepEqual(complaints, [], "the browser complained");
fs.rmSync(work, { recursive: true });
console.log(`the report: ${groups} groups checked at 1440 and 390 pixels, light and dark, by keyboard and with axe-core; pictures in ${pictures}`);
