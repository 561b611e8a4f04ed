"use strict";
(() => {
  const find = document.getElementById("find");
  if (!find) return;
  const rows = [...document.querySelectorAll("tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const found = document.getElementById("found");
  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach((row, at) => {
      const fits = words.every((word) => texts[at].includes(word));
      row.hidden = !fits;
      count += fits;
    });
    found.textContent = words.length ? `${count} of ${rows.length} rows` : "";
  };
  const begin = () => {
    const hash = location.hash.match(/^#find=(.*)$/);
    if (hash) {
      find.value = decodeURIComponent(hash[1]);
      filter();
    }
  };
  find.closest("label").hidden = false;
  find.addEventListener("input", filter);
  window.addEventListener("hashchange", begin);
  begin();
})();
(() => {
  const map = document.getElementById("map");
  if (!map) return;
  const all = map.getAttribute("viewBox");
  const show = (box) => {
    map.setAttribute("viewBox", box || all);
    map.classList.toggle("in", Boolean(box));
  };
  const turn = (group) => show(map.classList.contains("in") ? null : group.dataset.box);
  map.classList.add("zoom");
  // a screen reader ignores the buttons in an element with the role `img`
  map.setAttribute("role", "group");
  document.getElementById("zoom-help").hidden = false;
  for (const group of map.querySelectorAll(".group")) {
    group.setAttribute("tabindex", "0");
    group.setAttribute("role", "button");
    group.addEventListener("click", () => turn(group));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        turn(group);
      }
    });
  }
  document.addEventListener("keydown", (event) => event.key === "Escape" && show(null));
})();
