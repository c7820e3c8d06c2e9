"use strict";
(() => {
  const main = document.getElementById("main");
  const notice = document.getElementById("notice");
  const light = document.getElementById("live");
  let stream = null;

  const show = (text) => { notice.textContent = text; notice.hidden = !text; };
  const state = (kind, text) => { light.className = `live ${kind}`; light.textContent = text; };

  // A section takes over from the one before it what the reader did to that: charts that are zoomed, details
  // that are open, boxes that are ticked, how far it is scrolled, and what has the focus.
  const carry = (old, fresh) => {
    const charts = [...old.querySelectorAll(".chart")];
    [...fresh.querySelectorAll(".chart")].forEach((place, index) => {
      if (charts[index]) place.replaceWith(charts[index]);
    });
    for (const details of old.querySelectorAll("details[id]")) {
      const same = fresh.querySelector(`details[id="${CSS.escape(details.id)}"]`);
      if (same) same.open = details.open;
    }
    for (const box of old.querySelectorAll("input[type=checkbox]:checked")) {
      const same = fresh.querySelector(`input[type=checkbox][value="${CSS.escape(box.value)}"]`);
      if (same) same.checked = true;
    }
    const scrolled = [...old.querySelectorAll(".scroll, pre")].map((each) => [each.scrollLeft, each.scrollTop]);
    return () => {
      [...fresh.querySelectorAll(".scroll, pre")].forEach((each, index) => {
        if (scrolled[index]) [each.scrollLeft, each.scrollTop] = scrolled[index];
      });
    };
  };

  // A section waits while it is read or chosen from, and while it is the target of a request: an answer finds
  // the section that was there when the request was sent.
  const waiting = new Map();
  let target = null, sender = null;
  document.body.addEventListener("htmx:beforeRequest", ({ detail }) => { target = detail.target; sender = detail.elt; });
  document.body.addEventListener("htmx:afterRequest", () => { target = null; });
  const isRead = (section) => {
    if (section === target) return true;
    const selection = getSelection();
    const choosing = document.activeElement instanceof HTMLSelectElement && section.contains(document.activeElement);
    return choosing || (!selection.isCollapsed && selection.rangeCount && section.contains(selection.anchorNode));
  };

  const swap = (name, html) => {
    const old = document.getElementById(name);
    if (!old) return;
    if (isRead(old)) { waiting.set(name, html); return; }
    waiting.delete(name);
    const template = document.createElement("template");
    template.innerHTML = html;
    const fresh = template.content.firstElementChild;
    const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
    const scroll = carry(old, fresh);
    old.replaceWith(fresh);
    scroll();
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    htmx.process(fresh);
    if (window.Plotly) planish.draw(fresh);
  };
  setInterval(() => { for (const [name, html] of waiting) swap(name, html); }, 500);

  // The server sends the sections that have changed, each as HTML.
  const listen = () => {
    stream?.close();
    waiting.clear();
    if (!document.body.dataset.events) return;
    stream = new EventSource(document.body.dataset.events + location.search);
    stream.onopen = () => { state("on", "live"); };
    stream.onerror = () => { state("off", "no connection; trying again"); };
    stream.onmessage = ({ data }) => {
      // Only what the stream itself has said is over: why a file could not be opened stays to be read.
      if (main.classList.contains("gone")) show("");
      main.classList.remove("gone");
      for (const [name, html] of Object.entries(JSON.parse(data))) swap(name, html);
    };
    stream.addEventListener("gone", ({ data }) => {
      show(JSON.parse(data));
      main.classList.add("gone");
    });
    stream.addEventListener("bye", () => { stream.close(); state("off", "the dashboard has ended"); });
  };

  // A section that is slow to draw has a button that asks for it.
  addEventListener("click", async ({ target }) => {
    const name = target.dataset?.draw;
    if (!name) return;
    target.disabled = true;
    const answer = await fetch(location.href, { headers: { "HX-Target": name } }).catch(() => null);
    const text = await answer?.text() ?? "";
    const drawn = new DOMParser().parseFromString(text, "text/html").getElementById(name);
    if (drawn) swap(name, drawn.outerHTML); else target.disabled = false;
  });

  // What is in the address is what is shown: after a click on a column, the form has to say so too. A form that
  // was sent itself may have been changed again meanwhile.
  const follow = () => {
    const given = new URLSearchParams(location.search);
    for (const field of document.querySelectorAll(".filters [name]")) {
      const value = given.get(field.name) ?? (field.type === "hidden" ? field.defaultValue : "");
      if (field !== document.activeElement) field.value = value || field.options?.[0].value || value;
    }
    listen();
  };
  document.body.addEventListener("htmx:pushedIntoHistory", () => {
    if (sender instanceof HTMLFormElement) listen(); else follow();
  });
  document.body.addEventListener("htmx:historyRestore", follow);

  const ages = () => {
    for (const each of document.querySelectorAll("time[data-since]")) {
      const seconds = Math.max(0, Math.round(Date.now() / 1000 - each.dataset.since));
      const [minutes, hours, days] = [seconds / 60, seconds / 3600, seconds / 86400].map(Math.floor);
      each.textContent = days > 1 ? `${days} d` : hours ? `${hours} h ${minutes % 60} min`
        : minutes ? `${minutes} min` : `${seconds} s`;
    }
  };
  ages();
  setInterval(ages, 1000);

  // A store's file is sent as it is; the server keeps a copy until it ends.
  const open = async (file) => {
    show(`Opening ${file.name} …`);
    try {
      const answer = await fetch(`/open?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
      const { page, error } = await answer.json();
      if (page) location.assign(page); else show(error);
    } catch (error) {
      show(`${file.name} cannot be sent: ${error.message}`);
    }
  };
  document.getElementById("open-store").addEventListener("change", ({ target }) => {
    if (target.files[0]) open(target.files[0]);
  });
  addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]);
  });

  listen();
})();
