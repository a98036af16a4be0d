// Which figure is large, and the colours. Everything else is in the page as it is.
const charts = [...document.querySelectorAll("[data-chart]")];
const buttons = [...document.querySelectorAll("[data-figure]")];
function choose(name) {
  for (const chart of charts) chart.hidden = chart.dataset.chart !== name;
  for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.figure === name));
}
for (const button of buttons) {
  button.addEventListener("click", () => {
    choose(button.dataset.figure);
    const chart = charts.find((one) => !one.hidden);
    if (chart.getBoundingClientRect().top < 0) chart.scrollIntoView({ block: "start" });
  });
}
if (buttons.length) choose(buttons[0].dataset.figure);
const THEMES = ["auto", "light", "dark"];
const theme = document.getElementById("theme");
theme.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || "auto") + 1) % THEMES.length];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  theme.textContent = `Theme: ${next}`;
});
document.documentElement.dataset.ready = "yes";
