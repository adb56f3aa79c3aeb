"use strict";
(() => {
  const root = document.documentElement;
  const main = document.querySelector("main");
  const tree = document.getElementById("tree");
  const rows = new Map();
  const newest = new Map();
  for (const row of tree.children) {
    const at = Number(row.id.slice(1));
    const parent = row.dataset.p === undefined ? undefined : Number(row.dataset.p);
    rows.set(at, { row, parent });
    if (parent !== undefined && at > (newest.get(parent) ?? -1)) newest.set(parent, at);
  }

  // The entries from the beginning to this one. A session may be broken, so circles end where they close.
  const path = (at) => {
    const seen = new Set();
    while (at !== undefined && rows.has(at) && !seen.has(at)) {
      seen.add(at);
      at = rows.get(at).parent;
    }
    return seen;
  };
  let branch = new Set([...tree.querySelectorAll(".on")].map((row) => Number(row.id.slice(1))));

  const show = () => {
    for (const [at, { row }] of rows) {
      row.classList.toggle("on", branch.has(at));
      const article = document.getElementById("e" + at);
      if (article && article.tagName === "ARTICLE") article.classList.toggle("off", !branch.has(at));
    }
    root.dataset.shown = main.querySelectorAll("article:not(.off)").length;
  };

  // Shows the branch an entry is on, as far down as it goes, and the entry.
  const goTo = (at) => {
    if (!branch.has(at)) {
      branch = path(at);
      for (let next = newest.get(at); next !== undefined && !branch.has(next); next = newest.get(next)) branch.add(next);
      show();
    }
    tree.querySelector(".here")?.classList.remove("here");
    rows.get(at).row.classList.add("here");
    const target = document.getElementById("e" + at);
    if (target && target.tagName === "DIV") target.firstElementChild.open = true;
    target?.scrollIntoView({ block: "start" });
  };
  const follow = () => {
    const at = /^#e(\d+)$/.exec(location.hash);
    if (at && rows.has(Number(at[1]))) goTo(Number(at[1]));
  };

  document.getElementById("search").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { row } of rows.values()) {
      const text = row.textContent.toLowerCase();
      row.classList.toggle("unfound", !wanted.every((word) => text.includes(word)));
    }
  });
  document.getElementById("filter").addEventListener("change", (event) => {
    tree.className = event.target.value;
  });
  document.getElementById("all").addEventListener("click", (event) => {
    const every = main.classList.toggle("every");
    event.target.textContent = every ? "Show one branch" : "Show all branches";
  });
  document.getElementById("unfold").addEventListener("click", (event) => {
    const open = event.target.textContent === "Open all";
    for (const details of main.querySelectorAll("details")) details.open = open;
    event.target.textContent = open ? "Close all" : "Open all";
  });
  addEventListener("hashchange", follow);

  root.classList.add("js");
  show();
  follow();
})();
