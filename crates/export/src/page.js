"use strict";
(() => {
  const root = document.documentElement;
  const main = document.querySelector("main");
  const tree = document.getElementById("tree");
  const rows = new Map();
  const newest = new Map();
  for (const row of tree.querySelectorAll("a")) {
    const at = Number(row.id.slice(1));
    const parent = row.dataset.p === undefined ? undefined : Number(row.dataset.p);
    rows.set(at, { row, parent });
    if (parent !== undefined && at > (newest.get(parent) ?? -1)) newest.set(parent, at);
  }

  // The entries from the root to this one. Stops at cycles, which a damaged session may contain.
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
    hideEmptyParts();
  };

  // An invisible part is not laid out but reserves space, so hide parts without shown entries.
  const hideEmptyParts = () => {
    const every = main.classList.contains("every");
    for (const part of main.children) part.hidden = !every && !part.querySelector("article:not(.off)");
  };

  // Shows the longest branch through an entry, and scrolls to the entry.
  const goTo = (at) => {
    if (!branch.has(at)) {
      branch = path(at);
      for (let next = newest.get(at); next !== undefined && !branch.has(next); next = newest.get(next)) branch.add(next);
      show();
    }
    tree.querySelector(".here")?.classList.remove("here");
    rows.get(at).row.classList.add("here");
    rows.get(at).row.scrollIntoView({ block: "nearest" });
    const target = document.getElementById("e" + at);
    if (target && target.tagName === "DIV") target.firstElementChild.open = true;
    target?.scrollIntoView({ block: "start" });
  };
  const follow = () => {
    const at = /^#e(\d+)$/.exec(location.hash);
    if (at && rows.has(Number(at[1]))) goTo(Number(at[1]));
  };

  // Selectors of the entries that each filter hides.
  const unlisted = {
    talk: ".noted:not(.labelled),.result:not(.failed,.labelled)",
    "no-tools": ".noted,.result,.calls,.bash",
    user: ":not(.user)",
    labelled: ":not(.labelled)",
    everything: ":not(*)",
  };
  const filter = document.getElementById("filter");
  const search = document.getElementById("search");
  const list = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const isFound = (text) => wanted.every((word) => text.includes(word));
    for (const part of tree.children) {
      let shown = 0;
      for (const row of part.children) {
        row.hidden = row.matches(unlisted[filter.value]) || (wanted.length > 0 && !isFound(row.textContent.toLowerCase()));
        if (!row.hidden) shown += 1;
      }
      part.hidden = shown === 0;
      part.style.containIntrinsicBlockSize = shown * 1.47 + "rem";
    }
  };
  search.addEventListener("input", list);
  filter.addEventListener("change", list);
  document.getElementById("all").addEventListener("click", (event) => {
    const every = main.classList.toggle("every");
    event.target.textContent = every ? "Show one branch" : "Show all branches";
    hideEmptyParts();
  });
  document.getElementById("unfold").addEventListener("click", (event) => {
    const open = event.target.textContent === "Expand all";
    for (const details of main.querySelectorAll("details")) details.open = open;
    event.target.textContent = open ? "Collapse all" : "Expand all";
  });
  addEventListener("hashchange", follow);

  root.classList.add("js");
  list();
  show();
  follow();
})();
