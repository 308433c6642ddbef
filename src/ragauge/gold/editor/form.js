// The form of `ragauge gold edit`. Offsets in the page are UTF-16 units, stored ones UTF-8 bytes.
"use strict";

const at = (id) => document.getElementById(id);
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

const state = {
  revision: "", items: [], saved: [], changed: new Set(), current: -1, doc: null, text: "", bytes: new Uint8Array(),
  blocks: [], documents: new Map(), selection: null,
};

// --- offsets ---

function byteAt(index) {
  return encoder.encode(state.text.slice(0, index)).length;
}

function indexAt(byte) {
  return decoder.decode(state.bytes.subarray(0, byte)).length;
}

// A selection may begin or end between the two halves of a character beyond U+FFFF.
function wholeCharacters(start, end) {
  const inside = (index) => index > 0 && index < state.text.length &&
    /[\uDC00-\uDFFF]/.test(state.text[index]) && /[\uD800-\uDBFF]/.test(state.text[index - 1]);
  return [inside(start) ? start - 1 : start, inside(end) ? end + 1 : end];
}

function trimmed(start, end) {
  const said = state.text.slice(start, end);
  const before = said.length - said.trimStart().length;
  return said.trim() === "" ? null : [start + before, start + before + said.trim().length];
}

// --- talking ---

function say(message, isProblem = false) {
  at("status").textContent = message;
  at("status").classList.toggle("problem", isProblem);
}

async function ask(path, options) {
  const answer = await fetch(path, options);
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.message);
  return said;
}

// --- items ---

const item = () => state.items[state.current];
const isChanged = (index) => state.changed.has(index);
const changedOnes = () => [...state.changed].sort((one, other) => one - other);

function take(found) {
  state.revision = found.revision;
  state.items = found.items;
  state.saved = found.items.map((each) => JSON.stringify(each));
  state.changed = new Set();
}

function rowOf(index) {
  const each = state.items[index];
  const row = document.createElement("li");
  row.id = `item-${index}`;
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-current", String(index === state.current));
  const name = part("span", "qid", each.qid);
  if (isChanged(index)) name.append(part("span", "tag", "changed"));
  if (each.draft) name.append(part("span", "tag", "draft"));
  if (each.blocked) name.append(part("span", "tag", "unreadable"));
  button.append(name, part("span", "said", each.question || "no question"));
  button.addEventListener("click", async () => {
    await choose(index);
    at(`item-${index}`)?.firstChild.focus();
  });
  row.append(button);
  return row;
}

function showItems() {
  const wanted = at("filter").value.trim().toLowerCase();
  const shown = state.items.map((_, index) => index).filter((index) =>
    `${state.items[index].qid} ${state.items[index].question}`.toLowerCase().includes(wanted));
  at("items").replaceChildren(...shown.map(rowOf));
  tell();
}

// Long lists are not drawn anew for every letter that is typed.
function showRow(index) {
  at(`item-${index}`)?.replaceWith(rowOf(index));
  tell();
}

function tell() {
  at("save").disabled = state.changed.size === 0;
  document.title = `${state.changed.size ? "* " : ""}${at("file").textContent} - ragauge gold edit`;
}

function noteChange() {
  const same = JSON.stringify(item()) === state.saved[state.current];
  if (same) state.changed.delete(state.current);
  else state.changed.add(state.current);
  showRow(state.current);
}

function part(kind, name, text) {
  const made = document.createElement(kind);
  made.className = name;
  made.textContent = text;
  return made;
}

async function choose(index) {
  const before = state.current;
  state.current = index;
  const chosen = item();
  at("fields").disabled = Boolean(chosen.blocked);
  at("blocked").hidden = !chosen.blocked;
  at("blocked").textContent = chosen.blocked || "";
  at("qid").textContent = `${chosen.qid}, line ${chosen.line}`;
  at("question").value = chosen.question;
  at("paraphrases").value = chosen.paraphrases.join("\n");
  at("paraphrases").disabled = chosen.paraphrases.some((said) => said.includes("\n"));
  at("expect").value = chosen.expect;
  at("anchor").value = chosen.anchor_section;
  at("draft").checked = chosen.draft;
  if (before >= 0) showRow(before);
  showRow(index);
  const first = spotsOf(chosen)[0];
  if (first) await openDocument(first.doc);
  await showLists();
  showText();
  if (first) reveal(first);
}

const spotsOf = (each) => each.evidence.flatMap((entry) => entry.spots);

// Only the field that was edited is read: others may hold what a field cannot show.
const fields = {
  question: (chosen, field) => { chosen.question = field.value; },
  paraphrases: (chosen, field) => {
    chosen.paraphrases = field.value.split("\n").filter((line) => line.trim() !== "");
  },
  expect: (chosen, field) => { chosen.expect = field.value; },
  anchor: (chosen, field) => { chosen.anchor_section = field.value.trim(); },
  draft: (chosen, field) => { chosen.draft = field.checked; },
};

function changed(event) {
  const chosen = item();
  if (!chosen || chosen.blocked) return;
  fields[event.target.id](chosen, event.target);
  noteChange();
}

async function showLists() {
  const chosen = item();
  const entries = await Promise.all(chosen.evidence.map(async (entry, place) => {
    const row = document.createElement("li");
    const spot = entry.spots[0];
    if (entry.problem) {
      row.append(part("span", "where", entry.label), part("span", "problem", entry.problem));
    } else {
      const where = entry.spots.map((each) => `${each.doc}, bytes ${each.start} to ${each.end}`);
      row.append(part("span", "where", [entry.label, ...where].filter(Boolean).join(" · ")));
      row.append(part("span", "quote", await textOf(spot)));
      row.append(action("Show", `Show evidence ${place + 1}`, () => show(spot)));
    }
    row.append(action("Remove", `Remove evidence ${place + 1}`, () => {
      chosen.evidence.splice(place, 1);
      refresh(`Evidence ${place + 1} is removed`);
    }));
    return row;
  }));
  at("evidence").replaceChildren(...(entries.length ? entries : [part("li", "empty", "none yet")]));
  const refused = chosen.negatives.map((id, place) => {
    const row = document.createElement("li");
    row.append(part("span", "where", id));
    row.append(action("Show", `Show negative ${id}`, () => showBlock(id)));
    row.append(action("Remove", `Remove negative ${id}`, () => {
      chosen.negatives.splice(place, 1);
      refresh(`${id} is no negative any more`);
    }));
    return row;
  });
  at("negatives").replaceChildren(...(refused.length ? refused : [part("li", "empty", "none yet")]));
}

function action(text, label, does) {
  const button = part("button", "", text);
  button.type = "button";
  button.setAttribute("aria-label", label);
  button.addEventListener("click", does);
  return button;
}

async function refresh(message) {
  noteChange();
  await showLists();
  showText();
  say(message);
}

// --- the document ---

async function load(doc) {
  if (!state.documents.has(doc)) {
    state.documents.set(doc, await ask(`/document?doc=${encodeURIComponent(doc)}`));
  }
  return state.documents.get(doc);
}

async function textOf(spot) {
  const found = await load(spot.doc);
  return decoder.decode(encoder.encode(found.text).subarray(spot.start, spot.end));
}

async function openDocument(doc) {
  if (doc === state.doc) return;
  const found = await load(doc);
  state.doc = doc;
  state.text = found.text;
  state.bytes = encoder.encode(found.text);
  state.blocks = found.blocks;
  select(null);
  at("doc").value = doc;
  const options = found.sections.map(([id, title, start]) => {
    const option = part("option", "", `${id} ${title}`.trim());
    option.value = start;
    return option;
  });
  at("section").replaceChildren(...options);
  at("text").scrollTop = 0;
}

function showText() {
  const marks = [];
  if (item()) {
    const named = new Set(item().negatives);
    for (const [id, start, end] of state.blocks) if (named.has(id)) marks.push([start, end, "negative"]);
    for (const spot of spotsOf(item())) {
      if (spot.doc === state.doc) marks.push([spot.start, spot.end, "evidence"]);
    }
  }
  const cuts = new Set([0, state.text.length]);
  const placed = marks.map(([start, end, kind]) => [indexAt(start), indexAt(end), kind]);
  placed.forEach(([start, end]) => { cuts.add(start); cuts.add(end); });
  const edges = [...cuts].sort((one, other) => one - other);
  const parts = [];
  for (let place = 0; place + 1 < edges.length; place += 1) {
    const said = state.text.slice(edges[place], edges[place + 1]);
    const kinds = placed.filter(([start, end]) => start <= edges[place] && edges[place + 1] <= end)
      .map((mark) => mark[2]);
    if (kinds.length === 0) parts.push(document.createTextNode(said));
    else parts.push(part("mark", kinds.includes("evidence") ? "evidence" : "negative", said));
  }
  at("text").replaceChildren(...parts);
}

function rangeOf(start, end) {
  const walker = document.createTreeWalker(at("text"), NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  let passed = 0;
  let begun = false;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const size = node.data.length;
    if (!begun && start < passed + size) { range.setStart(node, start - passed); begun = true; }
    if (begun && end <= passed + size) { range.setEnd(node, end - passed); return range; }
    passed += size;
  }
  return null;
}

function reveal(spot) {
  const range = rangeOf(indexAt(spot.start), indexAt(spot.end));
  if (range === null) return;
  const pane = at("text");
  pane.scrollTop += range.getBoundingClientRect().top - pane.getBoundingClientRect().top - 60;
}

async function show(spot) {
  await openDocument(spot.doc);
  showText();
  reveal(spot);
}

async function showBlock(id) {
  const doc = at("doc");
  const named = [...doc.options].map((option) => option.value)
    .filter((name) => id.startsWith(`${name}#`)).sort((one, other) => other.length - one.length)[0];
  const block = named && (await load(named)).blocks.find(([each]) => each === id);
  if (!block) { say(`${id} is no block of this corpus`, true); return; }
  await show({ doc: named, start: block[1], end: block[2] });
}

// --- the selection ---

function select(extent) {
  state.selection = extent;
  const ready = extent !== null && item() && !item().blocked;
  at("add").disabled = at("refuse").disabled = !ready;
  at("selected").textContent = extent === null ? "Nothing is selected" :
    `Selected: bytes ${byteAt(extent[0])} to ${byteAt(extent[1])}, ${shortened(state.text.slice(...extent))}`;
}

function shortened(said) {
  const line = said.replace(/\s+/g, " ");
  const letters = [...line];
  return letters.length > 60 ? `“${letters.slice(0, 57).join("")}...”` : `“${line}”`;
}

function offsetOf(node, offset) {
  const range = document.createRange();
  range.selectNodeContents(at("text"));
  range.setEnd(node, offset);
  return range.toString().length;
}

document.addEventListener("selectionchange", () => {
  const chosen = document.getSelection();
  if (chosen.rangeCount === 0 || chosen.isCollapsed) return;
  const range = chosen.getRangeAt(0);
  const pane = at("text");
  if (!pane.contains(range.startContainer) || !pane.contains(range.endContainer)) return;
  const start = offsetOf(range.startContainer, range.startOffset);
  const end = offsetOf(range.endContainer, range.endOffset);
  select(trimmed(...wholeCharacters(start, end)));
});

at("text").addEventListener("mousedown", () => select(null));

at("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const needle = at("needle").value;
  if (needle === "") return;
  const from = state.selection === null ? 0 : state.selection[0] + 1;
  let start = state.text.indexOf(needle, from);
  if (start < 0) start = state.text.indexOf(needle);
  if (start < 0) { say("The document does not have this text", true); return; }
  const range = rangeOf(start, start + needle.length);
  document.getSelection().removeAllRanges();
  document.getSelection().addRange(range);
  select(trimmed(...wholeCharacters(start, start + needle.length)));
  reveal({ start: byteAt(start), end: byteAt(start + needle.length) });
  say("Found");
});

at("add").addEventListener("click", () => {
  const [start, end] = state.selection;
  const spot = { doc: state.doc, start: byteAt(start), end: byteAt(end) };
  const same = spotsOf(item()).some((each) =>
    each.doc === spot.doc && each.start === spot.start && each.end === spot.end);
  if (same) { say("This is evidence already", true); return; }
  item().evidence.push({ quote: state.text.slice(start, end), label: "", spots: [spot] });
  const touched = blocksAt(spot.start, spot.end);
  const kept = item().negatives.filter((id) => !touched.includes(id));
  const dropped = item().negatives.length - kept.length;
  item().negatives = kept;
  select(null);
  refresh(dropped ? "Added as evidence; it was a negative before" : "Added as evidence");
});

at("refuse").addEventListener("click", () => {
  const [start, end] = state.selection.map(byteAt);
  const overlaps = spotsOf(item()).some((each) =>
    each.doc === state.doc && blocksAt(each.start, each.end).some((id) => blocksAt(start, end).includes(id)));
  if (overlaps) { say("This block holds evidence, so it is no negative", true); return; }
  const fresh = blocksAt(start, end).filter((id) => !item().negatives.includes(id));
  if (fresh.length === 0) { say("No other block is selected", true); return; }
  item().negatives.push(...fresh);
  select(null);
  refresh(`Marked as negative: ${fresh.join(", ")}`);
});

function blocksAt(start, end) {
  return state.blocks.filter(([, from, to]) => from < end && start < to).map(([id]) => id);
}

// --- saving ---

function editOf(index) {
  const each = state.items[index];
  return {
    index, question: each.question, paraphrases: each.paraphrases, expect: each.expect,
    negatives: each.negatives, anchor_section: each.anchor_section, draft: each.draft,
    evidence: each.evidence.map((entry) =>
      entry.ref !== undefined ? entry.ref : { ...entry.spots[0], quote: entry.quote }),
  };
}

async function save() {
  const edits = changedOnes().map(editOf);
  const body = JSON.stringify({ revision: state.revision, edits });
  if (edits.length === 0) return;
  at("save").disabled = true;
  say("Saving");
  try {
    take(await ask("/save", { method: "POST", body }));
    showItems();
    await choose(state.current);
    say(`Saved ${edits.length} ${edits.length === 1 ? "item" : "items"}`);
  } catch (error) {
    say(`Not saved: ${error.message}`, true);
    tell();
  }
}

at("save").addEventListener("click", save);
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
    event.preventDefault();
    save();
  }
});
for (const id of Object.keys(fields)) {
  at(id).addEventListener("input", changed);
}
at("filter").addEventListener("input", showItems);
at("doc").addEventListener("change", async () => { await openDocument(at("doc").value); showText(); });
at("section").addEventListener("change", () => {
  const start = Number(at("section").value);
  reveal({ start, end: Math.min(start + 1, state.bytes.length) });
});
window.addEventListener("beforeunload", (event) => {
  if (changedOnes().length > 0) event.preventDefault();
});

async function begin() {
  try {
    const found = await ask("/items");
    at("file").textContent = found.name;
    take(found);
    at("doc").replaceChildren(...found.documents.map((doc) => part("option", "", doc)));
    if (found.documents.length) await openDocument(found.documents[0]);
    showItems();
    await choose(0);
    say(`${found.items.length} ${found.items.length === 1 ? "item" : "items"}`);
  } catch (error) {
    say(error.message, true);
  }
}

begin();
