// Renews a page when the server says that something happened. Without it the pages can be read too.
"use strict";

(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const indicator = document.getElementById("stream");
  const main = document.getElementById("main");

  // The theme: that of the system, or what was chosen on this machine.
  const button = document.getElementById("theme");
  let stored = null;
  try { stored = localStorage.getItem("ragauge-theme"); } catch { /* storage is off */ }
  if (stored === "light" || stored === "dark") root.dataset.theme = stored;
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      const next = (root.dataset.theme || system) === "dark" ? "light" : "dark";
      root.dataset.theme = next;
      try { localStorage.setItem("ragauge-theme", next); } catch { /* storage is off */ }
    });
  }

  document.addEventListener("change", (event) => {
    const target = event.target;
    if (target instanceof HTMLSelectElement && target.dataset.submit) target.form.submit();
  });

  if (!main || !main.dataset.live || !window.EventSource) return;

  const say = (text, tone) => {
    if (indicator.textContent === text) return;
    indicator.hidden = false;
    indicator.textContent = text;
    indicator.className = `stream ${tone}`;
  };

  // One fetch at a time; what happens meanwhile is fetched once more behind it.
  let busy = false;
  let again = false;
  const renew = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (answer.status === 401) { location.reload(); return; }
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const next = fresh.getElementById("main");
      if (next && next.innerHTML !== main.innerHTML) replace(next);
      const foot = fresh.querySelector("footer");
      if (foot) document.querySelector("footer").replaceChildren(...foot.childNodes);
    } catch { /* the server is away: the stream says so */ } finally {
      busy = false;
      if (again) { again = false; setTimeout(renew, 500); }
    }
  };

  // The focus stays where it is, by the place of the element among those that can have it.
  const focusable = "a[href], button, input, select, summary, [tabindex]";
  const replace = (next) => {
    const places = [...main.querySelectorAll(focusable)];
    const at = places.indexOf(document.activeElement);
    const address = at >= 0 ? places[at].getAttribute("href") : null;
    const opened = [...main.querySelectorAll("details")].map((part) => part.open);
    const scrolled = [...main.querySelectorAll(".scroll")].map((part) => part.scrollLeft);
    main.replaceChildren(...next.childNodes);
    [...main.querySelectorAll("details")].forEach((part, number) => { if (number in opened) part.open = opened[number]; });
    [...main.querySelectorAll(".scroll")].forEach((part, number) => { part.scrollLeft = scrolled[number] || 0; });
    if (at >= 0) {
      const fresh = [...main.querySelectorAll(focusable)];
      const same = fresh.find((part) => address && part.getAttribute("href") === address) || fresh[at];
      if (same) same.focus({ preventScroll: true });
    }
    main.dispatchEvent(new CustomEvent("renewed"));
  };

  // From where the page was made: what happens until the stream is open is told too.
  let last = main.dataset.position || null;
  let source = null;
  let wait = 1000;
  const connect = () => {
    source = new EventSource(last ? `/events?after=${encodeURIComponent(last)}` : "/events");
    source.onopen = () => {
      wait = 1000;
      say("live", "on");
    };
    const heard = (event) => { if (event.lastEventId) last = event.lastEventId; };
    let greeted = false;
    source.addEventListener("hello", (event) => { heard(event); if (greeted) renew(); greeted = true; });
    for (const kind of ["window", "minute", "alert", "decision"]) {
      source.addEventListener(kind, (event) => { heard(event); renew(); });
    }
    source.onerror = () => {
      say("reconnecting", "off");
      // A browser gives up for good after an answer that is no stream; we do not.
      if (source.readyState === EventSource.CLOSED) {
        source.close();
        setTimeout(connect, wait);
        wait = Math.min(wait * 2, 30000);
      }
    };
  };
  connect();
  addEventListener("pagehide", () => source && source.close());
  addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
})();
