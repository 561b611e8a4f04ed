"use strict";
(function () {
  var said = document.getElementById("said");
  function say(text) { said.textContent = ""; setTimeout(function () { said.textContent = text; }, 50); }
  function select(code) {
    var range = document.createRange(), chosen = getSelection();
    range.selectNodeContents(code); chosen.removeAllRanges(); chosen.addRange(range);
  }
  function copy(button) {
    var code = button.previousElementSibling, text = code.textContent;
    function done() { button.textContent = "Copied"; say("Copied"); setTimeout(function () { button.textContent = "Copy"; }, 1500); }
    function byHand() { select(code); if (document.execCommand("copy")) { done(); } else { say("Selected: press Ctrl+C"); } }
    if (navigator.clipboard) { navigator.clipboard.writeText(text).then(done, byHand); } else { byHand(); }
  }
  function buttons() {
    document.querySelectorAll(".cmd").forEach(function (line) {
      if (line.querySelector("button")) { return; }
      var button = document.createElement("button");
      button.type = "button"; button.textContent = "Copy";
      button.setAttribute("aria-label", "Copy: " + line.textContent);
      line.appendChild(button);
    });
  }
  document.addEventListener("click", function (event) {
    var button = event.target.closest && event.target.closest(".cmd button");
    if (button) { copy(button); }
  });
  buttons();
  var form = document.querySelector("form[role=search]");
  if (!form) { return; }
  var field = form.querySelector("input[type=search]"), waiting, asked = 0;
  function search() {
    var number = ++asked, target = "/?" + new URLSearchParams(new FormData(form));
    fetch(target).then(function (answer) { return answer.text(); }).then(function (text) {
      if (number !== asked) { return; }
      var found = new DOMParser().parseFromString(text, "text/html").getElementById("results");
      if (!found) { return; }
      document.getElementById("results").replaceWith(found);
      history.replaceState(null, "", target);
      buttons();
      say(found.getAttribute("data-found"));
    }).catch(function () {});
  }
  field.addEventListener("input", function () { clearTimeout(waiting); waiting = setTimeout(search, 200); });
  document.addEventListener("keydown", function (event) {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(event.target.tagName) && !event.ctrlKey && !event.metaKey) {
      event.preventDefault(); field.focus(); field.select();
    }
  });
})();
