"use strict";
/* The table of questions and the drill-down. Data come from blocks in this file; all text goes into
   the page as text nodes, so nothing in it can become an element. */
(() => {
  const SIGNS = { good: "✓", warn: "!", bad: "✕", quiet: "·" };
  const MARK_SIGNS = { gold: "★", possible: "☆", document: "▤", negative: "⊘", cited: "❞" };
  const MARK_TONES = { gold: "good", possible: "warn", document: "quiet", negative: "bad", cited: "info" };
  const LONG = 420;
  const TEASER = 260;
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  /* ---------- text and elements ---------- */

  const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu;

  function visible(text) {
    return text.replace(/\r\n?|\u2028|\u2029/g, "\n").replace(UNSAFE, (found) => {
      const code = found.charCodeAt(0);
      return code < 256 ? "\\x" + code.toString(16).padStart(2, "0")
        : "\\u" + code.toString(16).padStart(4, "0");
    });
  }

  function make(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else made.setAttribute(name, value === true ? "" : visible(String(value)));
    }
    add(made, children);
    return made;
  }

  function add(parent, children) {
    for (const child of children.flat(3)) {
      if (child === null || child === undefined || child === "") continue;
      parent.append(child instanceof Node ? child : visible(String(child)));
    }
  }

  function chip(word, tone, about) {
    return make("span", { class: "chip " + tone, title: about || null },
      make("span", { "aria-hidden": "true" }, SIGNS[tone] || ""), " " + word);
  }

  const number = (value) =>
    value === null || value === undefined ? "-" : value.toFixed(4);
  const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ",");

  /* ---------- blocks ---------- */

  const blocks = new Map();

  function load(name) {
    if (!blocks.has(name)) blocks.set(name, unpack(name));
    return blocks.get(name);
  }

  async function unpack(name) {
    const bytes = Uint8Array.from(atob(byId(name).textContent), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  /* The numbers of pieces: each is stored as its difference from the one before. */
  function absolute(steps) {
    let at = 0;
    return steps.map((each) => (at += each));
  }

  async function pieces(numbers, size) {
    const wanted = [...new Set(numbers.map((each) => Math.floor(each / size)))];
    await Promise.all(wanted.flatMap((each) => [load("pieces-" + each), load("texts-" + each)]));
    const found = new Map();
    for (const each of numbers) {
      const columns = await load("pieces-" + Math.floor(each / size));
      const texts = await load("texts-" + Math.floor(each / size));
      const [id, doc, section, where, type] = columns.map((column) => column[each % size]);
      found.set(each, { id, doc, section, where, type, text: texts[each % size] });
    }
    return found;
  }

  /* ---------- theme ---------- */

  const THEMES = ["auto", "light", "dark"];

  function remembered() {
    try { return localStorage.getItem("ragauge-theme"); } catch { return null; }
  }

  function setTheme(theme) {
    if (theme === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme);
    byId("theme").textContent = "Theme: " + theme;
    try { localStorage.setItem("ragauge-theme", theme); } catch { /* not kept, then */ }
  }

  function startTheme() {
    const known = remembered();
    let theme = THEMES.includes(known) ? known : "auto";
    setTheme(theme);
    byId("theme").hidden = false;
    byId("theme").addEventListener("click", () => {
      theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
      setTheme(theme);
    });
  }

  /* ---------- the table ---------- */

  let data = null;
  const column = {};
  const state = { order: [], page: 0, size: 50, sort: null, down: true, failing: false, text: "", chosen: {} };
  const part = {};

  const isNumber = (each) => each.form === "number" || each.right;

  function cell(each, place) {
    const value = each.values[place];
    if (each.form === "choice") {
      if (value < 0) return "";
      const choice = each.choices[value];
      return each.name === "type" || each.name === "cause" ? choice.name
        : chip(choice.name, choice.tone, choice.meaning);
    }
    if (each.form === "number") return each.name === "turn" ? value : number(value);
    return value === null ? "" : value;
  }

  function compared(each, down) {
    const values = each.values;
    const sign = down ? -1 : 1;
    const absent = each.form === "choice" ? (value) => value < 0
      : (value) => value === null || value === "";
    const isText = typeof values.find((value) => value !== null) === "string";
    const collator = new Intl.Collator("en", { numeric: true });
    const compare = isText ? collator.compare : (a, b) => a - b;
    return (a, b) => {
      const one = values[a], other = values[b];
      if (absent(one) || absent(other)) return absent(one) - absent(other) || a - b;
      return sign * compare(one, other) || a - b;
    };
  }

  function select(page = 0) {
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (let place = 0; place < data.count; place++) {
      if (state.failing && !data.failing[place]) continue;
      if (Object.entries(state.chosen).some(([name, value]) => column[name].values[place] !== value)) continue;
      if (words.length && !words.every((word) => data.search[place].includes(word))) continue;
      found.push(place);
    }
    state.order = found.sort(compared(column[state.sort], state.down));
    state.page = page;
    show();
  }

  /* Answers, and what the table cuts off questions, are found too. They lie in blocks that are
     unpacked once somebody searches; until then, and while that goes on, ids and the table are. */
  const CUT_OFF = / … \([\d,]+ more characters are not on this page\)$/;
  let reading = "";

  function readOn() {
    if (reading || !data.detailed) return;
    reading = "going on";
    readTexts().finally(() => { reading = "done"; if (state.text) select(state.page); });
  }

  async function readTexts() {
    const size = data.questions_per_block;
    const places = [];
    data.stored.forEach((stored, place) => { places[stored] = place; });
    const isCut = (place) => column.question.values[place].endsWith("…");
    for (let first = 0; first < places.length; first += size) {
      const mine = places.slice(first, first + size);
      const [answers, questions] = await Promise.all([
        unpack("answers-" + first / size), mine.some(isCut) ? unpack("questions-" + first / size) : []]);
      mine.forEach((place, at) => {
        const texts = [...(answers[at] || []), (questions[at] || {}).question].filter((each) => typeof each === "string");
        if (texts.length) data.search[place] += "\n" + texts.map((each) => each.replace(CUT_OFF, "")).join("\n").toLowerCase();
      });
    }
  }

  function show() {
    const pages = Math.max(1, Math.ceil(state.order.length / state.size));
    state.page = Math.min(Math.max(state.page, 0), pages - 1);
    const first = state.page * state.size;
    const rows = state.order.slice(first, first + state.size);
    const focused = part.body.contains(document.activeElement) ? document.activeElement : null;
    part.body.replaceChildren(...rows.map(row));
    focusAgain(focused);
    if (!rows.length) {
      part.body.append(make("tr", null,
        make("td", { colspan: part.heads.length, class: "quiet" }, "No question matches.")));
    }
    const end = first + rows.length;
    part.count.textContent = state.order.length === data.count
      ? grouped(data.count) + (data.count === 1 ? " question" : " questions")
      : grouped(state.order.length) + " of " + grouped(data.count) + " questions";
    part.reading.textContent = reading === "going on" && state.text ? "reading answers …" : "";
    part.range.textContent = rows.length ? grouped(first + 1) + "–" + grouped(end) : "0";
    part.back.disabled = state.page === 0;
    part.next.disabled = state.page >= pages - 1;
    for (const head of part.heads) {
      const isSorted = head.dataset.name === state.sort;
      head.setAttribute("aria-sort", isSorted ? (state.down ? "descending" : "ascending") : "none");
    }
  }

  /* The table is made anew when answers were read: the button of the same question goes on for one
     that was replaced. */
  function focusAgain(button) {
    const place = button && !button.isConnected && button.matches("button.open") ? button.dataset.place : null;
    const target = place === null ? button : part.body.querySelector('button.open[data-place="' + place + '"]');
    if (target && target.isConnected) target.focus();
  }

  function row(place) {
    const cells = data.shown.map((each) => {
      if (each.form === "id") {
        return make("th", { scope: "row" },
          make("button", { type: "button", class: "open", "data-place": place, title: each.values[place].slice(0, 400) },
            each.values[place].slice(0, 80)));
      }
      const classes = [isNumber(each) ? "number" : each.form, each.wide ? "wide" : ""];
      return make("td", { class: classes.join(" ").trim() }, cell(each, place));
    });
    return make("tr", { class: data.failing[place] ? "failing" : null }, cells);
  }

  function sortBy(name) {
    if (state.sort === name) state.down = !state.down;
    else { state.sort = name; state.down = column[name].form !== "id" && column[name].form !== "text"; }
    select();
  }

  function startTable() {
    const labelled = (label, control) => make("label", null, make("span", null, label), control);
    const search = make("input", {
      type: "search", id: "search", autocomplete: "off",
      placeholder: data.detailed ? "id, question, answer   /" : "id   /",
      title: data.detailed ? "Finds ids, questions and answers, as far as this page has them" : null,
      onfocus: readOn, oninput: (event) => { state.text = event.target.value; readOn(); select(); },
    });
    const filters = data.columns.filter((each) => each.filtered && each.choices.length > 1);
    const selects = filters.map((each) => labelled(each.head, make("select", {
      "data-filter": each.name,
      onchange: (event) => {
        if (event.target.value === "") delete state.chosen[each.name];
        else state.chosen[each.name] = Number(event.target.value);
        select();
      },
    }, make("option", { value: "" }, each.all_choices),
    each.choices.map((choice, place) => make("option", { value: place },
      choice.name.slice(0, 60) + " (" + grouped(each.values.filter((value) => value === place).length) + ")")))));
    const failing = make("input", {
      type: "checkbox", id: "failing",
      onchange: (event) => { state.failing = event.target.checked; select(); },
    });
    part.count = make("p", { role: "status", "aria-live": "polite", class: "count" });
    part.reading = make("p", { id: "reading", class: "quiet" });
    part.range = make("span", { class: "range" });
    const turn = (step) => () => { state.page += step; show(); byId("table").scrollIntoView({ block: "start" }); };
    part.back = make("button", { type: "button", onclick: turn(-1), "aria-label": "Previous page" }, "‹");
    part.next = make("button", { type: "button", onclick: turn(1), "aria-label": "Next page" }, "›");
    const size = make("select", {
      id: "size", onchange: (event) => { state.size = Number(event.target.value); state.page = 0; show(); },
    }, [50, 100, 250].map((each) => make("option", { value: each }, each + " a page")));
    size.setAttribute("aria-label", "Questions a page");
    part.heads = data.shown.map((each) => make("th", {
      scope: "col", "data-name": each.name,
      class: ((isNumber(each) ? "number " : "") + (each.wide ? "wide " : "") + each.form).trim(),
    }, make("button", { type: "button", title: each.about || null, onclick: () => sortBy(each.name) }, each.head)));
    part.body = make("tbody");
    part.unknown = make("p", { role: "status", "aria-live": "polite", id: "unknown" });
    part.body.addEventListener("click", (event) => {
      const line = event.target.closest("tr");
      const button = line && line.querySelector("button.open");
      const isSelecting = !event.target.matches("button") && String(document.getSelection());
      if (button && !isSelecting) openAt(Number(button.dataset.place));
    });
    part.body.addEventListener("keydown", step);
    byId("table").replaceChildren(
      part.unknown,
      make("div", { class: "controls" }, labelled("Search", search), selects,
        make("label", { class: "check" }, failing, make("span", null, data.sides.length > 1 ? "only worse" : "only failing"))),
      make("div", { class: "pager" }, part.count, part.reading, size, part.back, part.range, part.next),
      make("div", { class: "scroll questions" }, make("table", null,
        make("caption", { class: "unseen" }, "Questions; the heads sort, and a question's button opens it"),
        make("thead", null, make("tr", null, part.heads)), part.body)));
    byId("table").hidden = false;
    select();
  }

  function step(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (!(event.key in moves) || !event.target.matches("button.open")) return;
    const buttons = [...part.body.querySelectorAll("button.open")];
    const next = buttons[buttons.indexOf(event.target) + moves[event.key]];
    if (next) { event.preventDefault(); next.focus(); }
  }

  /* ---------- the drill-down ---------- */

  const drill = byId("drill");
  let current = -1;
  let from = null;

  function nameOf(place) {
    const turn = column.turn ? column.turn.values[place] : null;
    return turn === null ? column.qid.values[place] : column.qid.values[place] + " turn " + turn;
  }

  /* Halves of characters cannot stand in an address. */
  const whole = (text) => text.replace(/[\ud800-\udfff]/gu, "\ufffd");

  function hashOf(place) {
    const turn = column.turn ? column.turn.values[place] : null;
    return "#q=" + encodeURIComponent(whole(column.qid.values[place])) + (turn === null ? "" : "&turn=" + turn);
  }

  /* Opening adds one entry to the history, so that Back closes; later ones use that entry again. */
  const OURS = { ragauge: "opened" };
  const isOurs = () => Boolean(history.state) && history.state.ragauge === OURS.ragauge;

  function openAt(place) {
    from = document.activeElement;
    if (isOurs()) history.replaceState(OURS, "", hashOf(place));
    else history.pushState(OURS, "", hashOf(place));
    unknown("");
    render(place);
  }

  function unknown(qid) {
    part.unknown.textContent = qid === "" ? "" : visible("No question of this page has the id " + qid.slice(0, 200) + ".");
    part.unknown.className = qid === "" ? "" : "notice warn";
  }

  /* Where a question is that an address names. One without a turn is wanted before the turns. */
  function placeOf(qid, turn) {
    const found = [];
    column.qid.values.forEach((each, place) => { if (whole(each) === qid) found.push(place); });
    const turnOf = (place) => (column.turn ? column.turn.values[place] : null);
    if (turn !== undefined) return found.find((place) => turnOf(place) === Number(turn));
    return found.find((place) => turnOf(place) === null) ?? found[0];
  }

  /* The dialog shows what the address names, and is closed where that is no question. */
  function followHash() {
    if (!data) return;
    const named = location.hash.match(/^#q=(.*?)(?:&turn=(\d+))?$/s);
    let place, qid = "";
    if (named) {
      qid = named[1];
      try { qid = decodeURIComponent(qid); } catch { /* as it stands, then */ }
      place = placeOf(qid, named[2]);
    }
    if (place !== undefined) { unknown(""); render(place); return; }
    unknown(named ? qid + (named[2] === undefined ? "" : " turn " + named[2]) : "");
    if (named) byId("questions").scrollIntoView();
    current = -1;
    if (drill.open) drill.close();
  }

  function copyable(text, what) {
    if (!text) return null;
    const said = make("span", { role: "status", class: "said" });
    const copy = async () => {
      try { await navigator.clipboard.writeText(text); said.textContent = " copied"; } catch {
        const range = document.createRange();
        range.selectNodeContents(place);
        const selection = document.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        said.textContent = " selected";
      }
    };
    const place = make("code", null, text);
    return make("span", { class: "place" }, place,
      make("button", { type: "button", class: "copy", "aria-label": "Copy " + what, onclick: copy }, "copy"), said);
  }

  function facts(pairs) {
    const isKnown = (value) => value !== null && value !== undefined && value !== "";
    const rows = pairs.filter(([, value]) => isKnown(value))
      .map(([name, value]) => make("div", null, make("dt", null, name), make("dd", null, value)));
    return rows.length ? make("dl", { class: "facts" }, rows) : null;
  }

  function items(texts) {
    return texts && texts.length ? make("ul", { class: "lines" }, texts.map((each) => make("li", null, each))) : null;
  }

  /* A text with its evidence marked; offsets count characters, not the halves that scripts count. */
  function marked(text, spans) {
    if (!spans || !spans.length) return [text];
    const all = Array.from(text);
    const parts = [];
    let at = 0;
    for (const [start, end] of [...spans].sort((a, b) => a[0] - b[0])) {
      const begin = Math.max(start, at);
      if (end <= begin) continue;
      parts.push(all.slice(at, begin).join(""), make("mark", null, all.slice(begin, end).join("")));
      at = end;
    }
    parts.push(all.slice(at).join(""));
    return parts;
  }

  function passageText(text, spans) {
    if (text === null || text === undefined || text === "") return null;
    const whole = make("p", { class: "text" }, marked(text, spans));
    if (text.length <= LONG) return whole;
    const first = spans && spans.length ? Math.min(...spans.map((each) => each[0])) : 0;
    const all = Array.from(text);
    const begin = Math.max(0, first - 80);
    const shifted = (spans || []).map(([a, b]) => [a - begin, Math.min(b - begin, TEASER)])
      .filter(([a, b]) => b > a && a >= 0);
    const shown = marked(all.slice(begin, begin + TEASER).join(""), shifted);
    const teaser = make("span", { class: "teaser" }, begin ? "… " : "", shown, " …");
    const more = make("span", { class: "more" }, " all " + grouped(all.length) + " characters");
    return make("details", { class: "text" }, make("summary", null, teaser, more), whole);
  }

  function about(parts) {
    const known = parts.filter(Boolean);
    return known.length ? make("p", { class: "about" }, known.join(" · ")) : null;
  }

  function passage(hits, place, piece, ranked) {
    const names = Object.keys(data.marks);
    const marks = names.filter((_, bit) => hits.marks[place] & (1 << bit));
    const score = hits.score && hits.score[place];
    const distance = hits.delta_s && hits.delta_s[place];
    return make("li", { class: "passage " + marks.join(" ") },
      make("div", { class: "line" }, ranked ? make("span", { class: "rank" }, place + 1) : null,
        make("code", null, piece.id),
        marks.map((mark) => make("span", { class: "chip " + MARK_TONES[mark] },
          make("span", { "aria-hidden": "true" }, MARK_SIGNS[mark]), " " + data.marks[mark])),
        make("span", { class: "scores" }, score !== null && score !== undefined ? number(score) : "",
          distance !== null && distance !== undefined ? " ΔS " + number(distance) : "")),
      about([piece.doc !== piece.id ? piece.doc : null, piece.section, piece.where, piece.type]),
      passageText(piece.text, hits.highlights && hits.highlights[place]));
  }

  function passages(hits, found, ranked) {
    return make(ranked ? "ol" : "ul", { class: "passages" },
      absolute(hits.piece).map((each, place) => passage(hits, place, found.get(each), ranked)));
  }

  function answerPart(attempt) {
    if (!attempt.answered) return null;
    const said = attempt.answer === undefined
      ? make("p", { class: "notice" }, "The answer is left out to keep the page small.")
      : passageText(attempt.answer, null) || make("p", { class: "quiet" }, "The answer is empty.");
    return [make("h4", null, "Answer"), make("blockquote", null, said)];
  }

  /* What is marked and what counts for a rank are decided by two rules; where they differ, it is said. */
  function rankNote(attempt, side) {
    const known = column["rank " + side];
    const rank = known && known.values[current];
    const first = attempt.hits ? attempt.hits.marks.findIndex((each) => each & 1) : -1;
    if (!rank || attempt.error || first < 0 || !/^(miss|\d+)$/.test(rank) || Number(rank) <= first + 1) return null;
    return make("p", { class: "notice" }, "Hit " + (first + 1) + " is marked ★ but does not count for rank " + side + " (" + rank
      + "), by the rule above.");
  }

  function attemptPart(attempt, found, note) {
    if (!attempt) return make("p", { class: "quiet" }, "No trace here.");
    const refused = attempt.refusal ? [chip("refused", "warn"), " found by " + attempt.refusal] : null;
    return make("div", { class: "attempt" },
      facts([
        ["label", attempt.label], ["asked", attempt.asked], ["trace", copyable(attempt.trace, "the place of the trace")],
        ["error", attempt.error], ["refusal", refused],
        ["ΔS", attempt.delta_s === undefined ? null : number(attempt.delta_s)],
        ["latency", attempt.latency_ms === undefined ? null : attempt.latency_ms + " ms"],
        ["λ, recorded", attempt.lambda_state],
        ["earlier traces", attempt.replaced ? grouped(attempt.replaced) + ", which do not count" : null],
      ]),
      answerPart(attempt),
      attempt.citations ? [make("h4", null, "Citations"), passages(attempt.citations, found, false)] : null,
      make("h4", null, "Hits"), note,
      attempt.hits ? passages(attempt.hits, found, true) : make("p", { class: "quiet" }, "No hits."),
      attempt.left_out ? make("p", { class: "notice" }, grouped(attempt.left_out) + " more hits are left out of this page.") : null);
  }

  function slotName(attempt) {
    const parts = [];
    if (attempt.paraphrase !== undefined) parts.push("paraphrase " + attempt.paraphrase);
    if (attempt.seed !== undefined) parts.push("seed " + attempt.seed);
    if (attempt.turn !== undefined) parts.push("turn " + attempt.turn);
    return parts.join(" · ") || "question";
  }

  /* The slots of both sides, each with what a and b did in it. */
  function slots(question) {
    const found = new Map();
    [question.attempts || [], question.other || []].forEach((attempts, side) => {
      for (const each of attempts) {
        let name = slotName(each);
        for (let again = 2; found.has(name) && found.get(name)[side]; again++) name = slotName(each) + " (" + again + ")";
        if (!found.has(name)) found.set(name, [null, null]);
        found.get(name)[side] = each;
      }
    });
    return [...found];
  }

  function sidesPart(pair, found, isOnly) {
    if (data.sides.length < 2) return attemptPart(pair[0], found);
    const note = (place) => (isOnly && pair[place] ? rankNote(pair[place], "ab"[place]) : null);
    return make("div", null, data.rule ? make("p", { class: "quiet rule" }, data.rule) : null,
      make("div", { class: "sides" }, data.sides.map((side, place) => make("section", { class: "side" },
        make("h3", null, side.slice(0, 120)), attemptPart(pair[place], found, note(place))))));
  }

  function attemptsPart(question, found) {
    const all = slots(question);
    if (!all.length) {
      return make("p", { class: "notice" }, question.cut
        ? "The details of this question are left out to keep the page small."
        : "There is no trace of this question.");
    }
    if (all.length === 1) return sidesPart(all[0][1], found, true);
    const place = make("div", { role: "tabpanel", id: "slot", tabindex: "0" });
    const tabs = all.map(([name, pair], number) => make("button", {
      type: "button", role: "tab", "aria-controls": "slot", onclick: () => choose(number),
      onkeydown: (event) => {
        const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!move) return;
        event.preventDefault();
        choose((number + move + all.length) % all.length).focus();
      },
    }, name, pair.filter((each) => each && each.label).map((each) => make("small", null, " " + each.label))));
    const choose = (number) => {
      tabs.forEach((tab, each) => { tab.setAttribute("aria-selected", each === number); tab.tabIndex = each === number ? 0 : -1; });
      place.replaceChildren(sidesPart(all[number][1], found));
      return tabs[number];
    };
    choose(0);
    return [make("div", { role: "tablist", "aria-label": "Slots", class: "tabs" }, tabs), place];
  }

  function expectedPart(question, found) {
    const known = new Map();
    for (const each of question.evidence ? absolute(question.evidence.piece) : []) {
      const piece = found.get(each);
      known.set(piece.id, piece.text);
    }
    const rows = (question.expected || []).map((each) => make("li", { class: "passage" },
      make("div", { class: "line" }, make("code", null, each.name),
        each.grade === undefined ? null : make("span", { class: "chip quiet" }, "grade " + each.grade),
        each.rung ? make("span", { class: "chip quiet" }, "rung " + each.rung) : null),
      about([each.doc !== each.name ? each.doc : null, each.where]),
      passageText(each.quote || known.get(each.name), null)));
    return rows.length ? [make("h3", null, "Expected evidence"), make("ul", { class: "passages" }, rows)] : null;
  }

  function goldPart(question, place) {
    const gold = question.gold || (column.gold && column.gold.values[place]);
    const expects = { answer: "an answer", refuse: "a refusal" }[question.expect];
    return facts([
      ["expects", expects], ["gold", copyable(gold, "the place of the gold item")],
      ["trace", question.attempts ? null : copyable(column.trace && column.trace.values[place], "the place of the trace")],
      ["tags", (question.tags || []).join(", ")], ["paraphrases", items(question.paraphrases)],
      ["any of these claims", items(question.claims)], ["must contain", items(question.must_contain)],
      ["forbidden", items(question.forbidden)], ["known wrong", items(question.negatives)],
    ]);
  }

  async function valuesPart(place) {
    if (!data.metrics.length) return null;
    const columns = await load("values-" + Math.floor(place / data.questions_per_block));
    const rows = data.metrics.map((name, each) => [name, columns[each][place % data.questions_per_block]])
      .filter(([, value]) => value !== null)
      .map(([name, value]) => make("div", null, make("dt", null, make("code", null, name)), make("dd", null, number(value))));
    if (!rows.length) return null;
    return make("details", { class: "values", open: rows.length <= 12 },
      make("summary", null, rows.length + " values of this question"),
      make("dl", { class: "facts numbers" }, rows));
  }

  function numbersOf(question) {
    const lists = [...(question.attempts || []), ...(question.other || [])].flatMap((each) => [each.hits, each.citations]);
    return [question.evidence, ...lists].flatMap((hits) => (hits ? absolute(hits.piece) : []));
  }

  /* Questions are stored in the order in which they got room, those that fail first. */
  async function questionAt(place) {
    if (!data.detailed) return {};
    const size = data.questions_per_block;
    const stored = data.stored[place];
    const block = Math.floor(stored / size);
    const [questions, answers] = await Promise.all([load("questions-" + block), load("answers-" + block)]);
    const question = questions[stored % size];
    const said = answers[stored % size] || [];
    [...(question.attempts || []), ...(question.other || [])].forEach((each, number) => {
      if (typeof said[number] === "string") each.answer = said[number];
    });
    return question;
  }

  async function render(place) {
    current = place;
    const question = await questionAt(place);
    const found = await pieces(numbersOf(question), data.pieces_per_block);
    const values = await valuesPart(place);
    if (current !== place) return;
    const chips = data.columns.filter((each) => each.form === "choice").map((each) => {
      const choice = each.choices[each.values[place]];
      if (!choice) return null;
      const name = make("small", null, each.head + " ");
      return make("span", { class: "known" }, name, chip(choice.name, choice.tone, choice.meaning));
    });
    const words = data.columns.filter((each) => each.form === "word" && each.name !== "gold" && each.name !== "trace")
      .map((each) => [each.head, each.values[place]]);
    const asked = question.question || (column.question && column.question.values[place]);
    const at = state.order.indexOf(place);
    const close = make("button", { type: "button", onclick: () => drill.close() }, "Close");
    const goTo = (move, name, key, disabled) =>
      make("button", { type: "button", title: key, disabled, onclick: () => neighbour(move) }, name);
    const came = data.sides.length < 2 ? make("h3", null, "What came") : null;
    drill.replaceChildren(
      make("div", { class: "top" },
        make("p", { class: "quiet" }, at < 0 ? "hidden by the filters" : grouped(at + 1) + " of " + grouped(state.order.length)),
        goTo(-1, "Previous", "p", at <= 0), goTo(1, "Next", "n", at < 0 || at >= state.order.length - 1),
        close),
      make("div", { class: "inside" },
        make("h2", { id: "drill-title" }, make("code", null, nameOf(place))),
        asked ? make("p", { class: "asked" }, asked) : null,
        make("p", { class: "chips" }, chips), facts(words), goldPart(question, place), expectedPart(question, found),
        data.detailed ? [came, attemptsPart(question, found)] : make("p", { class: "notice" }, data.note),
        values));
    if (!drill.open) drill.showModal();
    drill.scrollTop = 0;
    close.focus();
  }

  /* A question that the filters hide has no neighbours. */
  function neighbour(move) {
    const at = state.order.indexOf(current);
    const next = at < 0 ? undefined : state.order[at + move];
    if (next !== undefined) { history.replaceState(history.state, "", hashOf(next)); render(next); }
  }

  drill.addEventListener("close", () => {
    if (drill.open) return;
    if (current >= 0) history.replaceState(history.state, "", "#questions");
    current = -1;
    focusAgain(from);
  });
  drill.addEventListener("click", (event) => { if (event.target === drill) drill.close(); });
  drill.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = { n: 1, p: -1 }[event.key];
    if (move) neighbour(move);
  });

  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName || "");
    if (event.key === "/" && !typing && !drill.open && byId("search")) {
      event.preventDefault();
      byId("search").focus();
      byId("search").select();
    } else if (event.key === "Escape" && event.target.id === "search") {
      event.target.value = "";
      state.text = "";
      select();
    }
  });
  window.addEventListener("hashchange", followHash);

  async function start() {
    startTheme();
    if (!byId("index")) return;
    root.classList.add("scripted");
    if (typeof DecompressionStream === "undefined") {
      root.classList.remove("scripted");
      byId("table").replaceChildren(make("p", { class: "notice warn" },
        "This browser cannot unpack the questions: it is older than 2023."));
      byId("table").hidden = false;
      return;
    }
    data = await load("index");
    for (const each of data.columns) {
      each.choices = each.choices || [];
      column[each.name] = each;
    }
    data.stored = [];
    let stored = 0;
    for (const wanted of [1, 0]) {
      data.failing.forEach((failing, place) => { if (failing === wanted) data.stored[place] = stored++; });
    }
    data.shown = data.columns.filter((each) => !each.hidden);
    const texts = column.question ? column.question.values : null;
    data.search = column.qid.values.map((qid, place) => (qid + "\n" + (texts ? texts[place] : "")).toLowerCase());
    state.sort = data.sort;
    startTable();
    followHash();
  }

  start();
})();
