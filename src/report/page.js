// The report: an overview of all groups that unfolds into texts side by side. Everything that comes from an article is put
// into the page as text, never as HTML, and an address is linked only if it is http or https.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
// A cluster names no more outlets than OUTLETS.
const PAGE = 25, PAIRS = 3, MEMBERS = 20, OUTLETS = 32;
const KINDS = { near: "near-duplicate", rewritten: "rewritten", partial: "partial copy", exact: "exact copy", reviewed: "by --pairs",
  extends: "extends the earlier text", "same-template": "same template, other facts", "follow-up": "follow-up", "same-furniture": "same page furniture" };
const number = n => n.toLocaleString("en");
const percent = s => Math.floor(s * 100 + 1e-9) + "%";
const day = time => time && time >= "1971" ? time.slice(0, 10) : "–";

// An element with attributes and children; text children stay text.
function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined) node.append(child);
  return node;
}
const foreign = (name, language, text, attributes) => el(name, { dir: "auto", lang: language === "und" ? undefined : language, ...attributes }, text);

function linked(url, node) {
  const safe = url && url.length < 2048 && /^https?:\/\//i.test(url);
  return safe ? el("a", { href: url, rel: "noopener noreferrer nofollow" }, node) : node;
}

// A text with the given ranges marked. Ranges are in UTF-16 units, sorted, and do not overlap.
function marked(article, ranges, mark) {
  const parts = [];
  let at = 0;
  for (const [from, to] of ranges) {
    if (from > at) parts.push(article.text.slice(at, from));
    parts.push(el("mark", { class: mark }, article.text.slice(from, to)));
    at = to;
  }
  parts.push(article.text.slice(at));
  if (article.more) parts.push(el("span", { class: "more" }, ` … ${number(article.more)} more characters`));
  return parts;
}

function side(article, language, when, ranges, mark) {
  const facts = [when, article.host, day(article.time) === "–" ? null : day(article.time)].filter(Boolean).map((fact, n) => [n ? " · " : "", el("bdi", {}, fact)]);
  const text = article.text === null
    ? el("p", { class: "more" }, "The text could not be read again.")
    : foreign("div", language, marked(article, ranges, mark), { class: "text", tabindex: "0", role: "group", "aria-label": `text of the ${when} article` });
  return el("section", { class: "side" },
    el("div", { class: "head" }, foreign("b", language, linked(article.url, article.title || article.id)), el("span", {}, facts), el("span", { class: "id" }, el("bdi", {}, article.id))), text);
}

function badge(kind) {
  return el("span", { class: "badge " + kind }, KINDS[kind] || kind);
}

function pairView(pair, language, heading) {
  const title = el(heading, { class: "facts" }, badge(pair.kind), " ",
    el("span", {}, pair.kind === "exact" ? "the same text" : `confidence ${Math.min(99, Math.floor(pair.confidence * 100))}% · similarity ${percent(pair.similarity)}`));
  const why = el("p", { class: "why" }, pair.why);
  if (pair.old === null) return el("div", { class: "match" }, title, why, el("p", { class: "more" }, `${pair.old_id} → ${pair.new_id}: the texts are left out to keep this page small`));
  const old = data.articles[pair.old];
  if (pair.kind === "exact") return el("div", { class: "match" }, title, side(old, language, "earlier", [], ""));
  const later = data.articles[pair.new];
  const key = pair.differences ? el("p", { class: "key" }, el("mark", { class: "diff" }, "marked: what differs")) : el("p", { class: "key" }, el("mark", {}, "marked: what both have"));
  return el("div", { class: "match" }, title, why, key,
    el("div", { class: "pair" }, side(old, language, "earlier", pair.in_old, pair.differences ? "diff" : ""), side(later, language, "later", pair.in_new, pair.differences ? "diff" : "")));
}

// A list of which a part is shown, with a button for the rest.
function unfolding(items, step, render, noun, kind) {
  const list = el(kind, {}), button = el("button", { type: "button", class: "morebutton" });
  let shown = 0;
  const add = () => {
    const first = items.slice(shown, shown + step).map(render);
    list.append(...first);
    shown += first.length;
    button.hidden = shown === items.length;
    button.textContent = `${number(items.length - shown)} more ${noun}`;
    return first[0];
  };
  button.addEventListener("click", () => { const first = add(); first.tabIndex = -1; first.focus(); });
  add();
  return el("div", {}, list, button);
}

function groupView(group) {
  const rows = group.members.map(member => el("li", {},
    foreign("span", group.language, linked(member.url, member.title || member.id)),
    el("span", { class: "more" }, [member.host, day(member.time) === "–" ? null : day(member.time), member.match_type || "first"].filter(Boolean).map(fact => [" · ", el("bdi", {}, fact)]))));
  const list = el("div", { class: "members" }, el("h3", {}, `The ${number(group.size)} articles`), unfolding(rows, MEMBERS, row => row, "articles", "ul"));
  if (group.size > group.members.length) list.append(el("p", { class: "more" }, `${number(group.size - group.members.length)} more articles are only in the output`));
  return [group.pairs.length ? unfolding(group.pairs, PAIRS, pair => pairView(pair, group.language, "h3"), "matches", "div") : null, list];
}

// What the page shows, and how it is narrowed down.
const views = { groups: data.groups, related: data.related };
const state = { view: data.groups.length || !data.related.length ? "groups" : "related", kind: "all", language: "all", order: "size", words: "", page: 0, open: new Set() };
const folded = text => text.normalize("NFKD").replace(/\p{M}/gu, "").toLocaleLowerCase();
for (const view of Object.values(views)) for (const item of view) item.haystack = folded(item.search);

const matchesWords = item => !state.words || state.words.split(/\s+/).every(word => item.haystack.includes(word));
const matchesKind = (item, kind) => kind === "all" || item.kinds.includes(kind);
const matchesLanguage = (item, language) => language === "all" || item.language === language;
const ORDERS = {
  size: (a, b) => b.size - a.size || a.order - b.order,
  newest: (a, b) => (b.last || "").localeCompare(a.last || "") || a.order - b.order,
  oldest: (a, b) => (a.first || "").localeCompare(b.first || "") || a.order - b.order,
  doubt: (a, b) => a.confidence - b.confidence || a.order - b.order,
};

const chips = document.getElementById("chips"), tongues = document.getElementById("tongues"), rows = document.getElementById("rows");
const status = document.getElementById("status"), pages = document.getElementById("pages"), empty = document.getElementById("empty");

function chip(key, value, label, count) {
  const pressed = state[key] === value;
  const button = el("button", { type: "button", class: "chip", "aria-pressed": String(pressed), disabled: count === 0 && !pressed }, `${label} `, el("span", { class: "count" }, number(count)));
  button.addEventListener("click", () => { state[key] = value; state.page = 0; state.open.clear(); draw(); refocus(key, value); });
  button.dataset.key = key + " " + value;
  return button;
}
function refocus(key, value) {
  const again = [...document.querySelectorAll(".chip")].find(button => button.dataset.key === key + " " + value);
  if (again) again.focus();
}

function draw() {
  const all = views[state.view];
  const byWords = all.filter(matchesWords);
  const forKinds = byWords.filter(item => matchesLanguage(item, state.language));
  const forLanguages = byWords.filter(item => matchesKind(item, state.kind));
  const kinds = [...new Set(all.flatMap(item => item.kinds))];
  chips.replaceChildren(chip("kind", "all", "all", forKinds.length), ...kinds.map(kind => chip("kind", kind, data.kinds[kind] || kind, forKinds.filter(item => matchesKind(item, kind)).length)));
  const languages = [...new Set(all.map(item => item.language))].sort((a, b) => data.languages[a].localeCompare(data.languages[b]));
  tongues.closest("fieldset").hidden = languages.length < 2;
  tongues.replaceChildren(chip("language", "all", "all", forLanguages.length), ...languages.map(language => chip("language", language, data.languages[language], forLanguages.filter(item => item.language === language).length)));
  const found = forKinds.filter(item => matchesKind(item, state.kind)).sort(ORDERS[state.order]);
  const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
  state.page = Math.min(state.page, last);
  const from = state.page * PAGE, shown = found.slice(from, from + PAGE);
  const noun = state.view === "groups" ? "groups" : "related pairs";
  status.textContent = found.length === 0 ? `0 of ${number(all.length)} ${noun}` : `${number(from + 1)}–${number(from + shown.length)} of ${number(found.length)} ${noun}` + (found.length < all.length ? ` (${number(all.length)} in all)` : "");
  empty.hidden = found.length > 0;
  document.getElementById("none").textContent = all.length ? `None of the ${number(all.length)} ${noun} fits the search and the filters.` : "No article repeats an earlier one.";
  document.getElementById("clear").hidden = all.length === 0;
  document.querySelector("table.overview").hidden = found.length === 0;
  document.querySelectorAll(".groupsonly").forEach(cell => { cell.hidden = state.view !== "groups"; });
  rows.replaceChildren(...shown.flatMap(row));
  pages.hidden = last === 0;
  document.getElementById("previous").disabled = state.page === 0;
  document.getElementById("next").disabled = state.page === last;
  document.getElementById("page").textContent = `page ${number(state.page + 1)} of ${number(last + 1)}`;
  for (const button of document.querySelectorAll("#views button")) button.setAttribute("aria-pressed", String(button.dataset.view === state.view));
}

function row(item) {
  const id = "d" + item.order, open = state.open.has(item.id);
  const button = el("button", { type: "button", class: "title", "aria-expanded": String(open), "aria-controls": id }, foreign("span", item.language, item.title));
  const cells = [
    el("th", { scope: "row", class: "what" }, button, " ", item.url ? linked(item.url, el("span", { class: "out" }, "open", el("span", { class: "hidden" }, " the article"))) : null),
    el("td", { class: "n", "data-label": "articles" }, number(item.size)),
    el("td", { "data-label": "first seen" }, day(item.first)),
    el("td", { "data-label": "last seen" }, day(item.last)),
    el("td", { class: "hosts", "data-label": "outlets" }, el("bdi", {}, item.hosts.slice(0, 2).join(", ") || "–"), item.hosts.length > 2 ? ` and ${number(item.hosts.length - 2)} ${item.hosts.length < OUTLETS ? "more" : "or more others"}` : ""),
    el("td", { class: "n", "data-label": "least similarity" }, percent(item.similarity)),
    el("td", { "data-label": "how" }, item.kinds.filter(kind => kind !== "review").map(badge), item.kinds.includes("review") ? el("span", { class: "badge review" }, "to review") : null),
  ];
  const summary = el("tr", { id: "g" + item.id, class: "summary" }, cells);
  const box = el("td", { colspan: "7", id }), detail = el("tr", { class: "detail", hidden: !open }, box);
  const fill = () => { if (!box.childNodes.length) box.append(...(state.view === "groups" ? groupView(item) : item.pairs.map(pair => pairView(pair, item.language, "h3"))).filter(Boolean)); };
  if (open) fill();
  button.addEventListener("click", () => {
    const opens = detail.hidden;
    if (opens) { fill(); state.open.add(item.id); } else state.open.delete(item.id);
    detail.hidden = !opens;
    button.setAttribute("aria-expanded", String(opens));
  });
  return [summary, detail];
}

function turn(by) {
  state.page += by;
  state.open.clear();
  draw();
  document.getElementById("controls").scrollIntoView({ block: "start" });
}
document.getElementById("previous").addEventListener("click", () => turn(-1));
document.getElementById("next").addEventListener("click", () => turn(1));
document.getElementById("order").addEventListener("change", event => { state.order = event.target.value; state.page = 0; draw(); });
document.getElementById("search").addEventListener("input", event => { state.words = folded(event.target.value.trim()); state.page = 0; draw(); });
document.getElementById("clear").addEventListener("click", () => {
  Object.assign(state, { kind: "all", language: "all", words: "", page: 0 });
  document.getElementById("search").value = "";
  draw();
  document.getElementById("search").focus();
});
for (const button of document.querySelectorAll("#views button")) button.addEventListener("click", () => {
  Object.assign(state, { view: button.dataset.view, kind: "all", language: "all", page: 0 });
  state.open.clear();
  draw();
});

// A link to a group, #g and its id, opens it on its page.
function follow() {
  const id = decodeURIComponent(location.hash.slice(2));
  const at = [...data.groups].sort(ORDERS[state.order]).findIndex(group => group.id === id);
  if (at < 0) return;
  Object.assign(state, { view: "groups", kind: "all", language: "all", words: "", page: Math.floor(at / PAGE) });
  state.open.add(id);
  draw();
  document.getElementById("g" + id).scrollIntoView();
}
// A small report is open where it is most worth looking.
if (data.groups.length === 1) state.open.add(data.groups[0].id);
draw();
follow();
window.addEventListener("hashchange", follow);
