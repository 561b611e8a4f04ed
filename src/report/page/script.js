"use strict";
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
  // a picture has no buttons in it, for those who read it aloud
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
