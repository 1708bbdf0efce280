// The page around the engine. Texts become text nodes and nothing else: what they contain is never read as HTML.

/** Loads the engine. The result compares two texts and returns its answer as an object. */
export async function load(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  const { instance } = await WebAssembly.instantiate(await response.arrayBuffer(), {});
  const { memory, reserve, run, answer } = instance.exports;
  return (older, newer) => {
    const texts = [older, newer].map(text => new TextEncoder().encode(text));
    const at = reserve(texts[0].length + texts[1].length);
    // A view is made after each call, because memory may have moved.
    const input = new Uint8Array(memory.buffer, at, texts[0].length + texts[1].length);
    input.set(texts[0]);
    input.set(texts[1], texts[0].length);
    const length = run(texts[0].length);
    return JSON.parse(new TextDecoder().decode(new Uint8Array(memory.buffer, answer(), length)));
  };
}

const find = id => document.getElementById(id);
const words = {
  exact: "the same text", near: "a near-duplicate", rewritten: "the same in other words", partial: "one lies mostly in the other",
  extends: "the newer contains the older and adds more than it repeats", "same-template": "the same form with other facts",
  "follow-up": "other news of the same story", "same-furniture": "only page furniture in common", different: "different texts",
};
const percent = share => `${(share * 100).toFixed(1)} %`;

function row(name, value) {
  const line = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = name;
  const cell = document.createElement("td");
  cell.textContent = value;
  line.append(head, cell);
  return line;
}

function pieces(list) {
  return list.map(({ text, passage }) => {
    if (passage === undefined) return document.createTextNode(text);
    const mark = document.createElement("mark");
    mark.textContent = text;
    return mark;
  });
}

function show(answer) {
  find("result").hidden = "error" in answer;
  if ("error" in answer) {
    find("status").textContent = answer.error;
    return;
  }
  const meaning = words[answer.relation] ?? answer.relation;
  find("status").textContent = `${answer.duplicate ? "Duplicate" : "Not a duplicate"}: ${meaning}. Confidence ${percent(answer.confidence)}.`;
  find("evidence").replaceChildren(
    row("languages", answer.languages.join(" / ")),
    row("similarity", percent(answer.similarity)),
    row("older in newer", percent(answer.containment.older_in_newer)),
    row("newer in older", percent(answer.containment.newer_in_older)),
    ...answer.evidence.map(({ measure, share }) => row(measure, percent(share))),
  );
  find("pieces-older").replaceChildren(...pieces(answer.older));
  find("pieces-newer").replaceChildren(...pieces(answer.newer));
}

let compare;
find("form").addEventListener("submit", event => {
  event.preventDefault();
  try {
    show(compare(find("older").value, find("newer").value));
  } catch (error) {
    find("result").hidden = true;
    find("status").textContent = `The engine stopped: ${error.message}. Reload the page.`;
  }
});
try {
  compare = await load("samestory_wasm.wasm");
  find("compare").disabled = false;
  find("status").textContent = "Ready.";
} catch (error) {
  find("status").textContent = `The engine cannot be loaded: ${error.message}`;
}
