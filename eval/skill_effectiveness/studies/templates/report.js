"use strict";
(function () {
  var form = document.getElementById("filters");
  var task = document.getElementById("filter-task");
  var preference = document.getElementById("filter-preference");
  var text = document.getElementById("filter-text");
  var count = document.getElementById("filter-count");
  var rows = Array.from(document.querySelectorAll("#task-table tbody tr"));
  var pairs = Array.from(document.querySelectorAll("details.pair"));
  function holds(item) {
    var wanted = text.value.trim().toLowerCase();
    return (!task.value || item.dataset.task === task.value)
      && (!wanted || item.textContent.toLowerCase().includes(wanted));
  }
  function apply() {
    var seen = 0;
    pairs.forEach(function (pair) {
      pair.hidden = !(holds(pair) && (!preference.value || pair.dataset.preference === preference.value));
      seen += pair.hidden ? 0 : 1;
    });
    var kept = new Set(pairs.filter(function (pair) { return !pair.hidden; }).map(function (pair) { return pair.dataset.task; }));
    var shown = 0;
    rows.forEach(function (row) {
      row.hidden = !((holds(row) && !preference.value) || ((text.value.trim() || preference.value) && kept.has(row.dataset.task)));
      shown += row.hidden ? 0 : 1;
    });
    count.textContent = shown + " of " + rows.length + " tasks, " + seen + " of " + pairs.length + " pairs";
  }
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  [task, preference, text].forEach(function (field) {
    field.addEventListener("input", apply);
    field.addEventListener("change", apply);
  });
  form.hidden = false;
  apply();
})();
