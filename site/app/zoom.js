// The chart of a recording: its time can be stretched, and a click on a band opens what the legend has of it.

import { el } from "./dom.js";
import { t } from "./i18n.js";

const MOST = 64;

/** Give the chart of a figure its buttons. Ctrl and the wheel zoom at the pointer. */
export function addZoom(figure) {
  const [chart, shown] = [figure.querySelector("svg.chart"), figure.querySelector("svg.window")];
  if (!shown || figure.querySelector(".zoom")) return;
  const box = shown.viewBox.baseVal;
  const { x: first, width: whole } = box;
  const move = (x, width = box.width) => {
    box.width = Math.min(whole, Math.max(whole / MOST, width));
    box.x = Math.min(first + whole - box.width, Math.max(first, x));
    shown.classList.toggle("zoomed", box.width < whole);
  };
  const zoom = (factor, at = 0.5) => move(box.x + box.width * (1 - factor) * at, box.width * factor);
  const acts = { in: ["+", () => zoom(1 / 2)], out: ["−", () => zoom(2)], earlier: ["‹", () => move(box.x - box.width / 2)], later: ["›", () => move(box.x + box.width / 2)] };
  const buttons = Object.entries(acts).map(([name, [sign, click]]) =>
    el("button", { type: "button", title: t(`zoom.${name}`), "aria-label": t(`zoom.${name}`), click }, sign));
  chart.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const { left, width } = chart.getBoundingClientRect();
    const place = (event.clientX - left) / width * chart.viewBox.baseVal.width;
    zoom(event.deltaY > 0 ? 2 : 1 / 2, (place - first) / whole);
  }, { passive: false });
  chart.addEventListener("click", (event) => open(event, figure));
  chart.after(el("div", { class: "actions zoom", role: "group", "aria-label": t("zoom") }, ...buttons));
}

/** Open the entry of the band that was clicked; with the keyboard the entry itself is there. */
function open(event, figure) {
  const band = document.elementsFromPoint(event.clientX, event.clientY).find((each) => each.matches(".area"));
  const entry = figure.querySelectorAll(".legend > li")[[...figure.querySelectorAll(".area")].indexOf(band)]?.querySelector("details");
  if (!entry) return;
  entry.open = true;
  entry.firstElementChild.focus();
}
