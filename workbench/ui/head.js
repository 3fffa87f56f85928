/**
 * The header follows the model that the server uses: one small question now and then while the page is seen,
 * and Gradio is asked to draw the header anew only when the answer has changed.
 */
const EVERY = { loading: 700, settled: 1500 };
const AFTER_SILENCE = 10000;

let timer = 0;

async function look() {
  clearTimeout(timer);
  if (!element.isConnected) return;
  let pause = EVERY.settled;
  if (!document.hidden) {
    try {
      const answer = await fetch("/model");
      if (!answer.ok) throw new Error(answer.statusText);
      const mark = await answer.text();
      if (mark.includes("loading")) pause = EVERY.loading;
      if (mark !== element.querySelector("[data-mark]")?.dataset.mark) trigger("tick");
    } catch {
      pause = AFTER_SILENCE; // the server has gone, or a laptop woke up
    }
  }
  clearTimeout(timer);
  timer = setTimeout(look, pause);
}
document.addEventListener("rw-look", look);
document.addEventListener("visibilitychange", () => document.hidden || look());
look();
