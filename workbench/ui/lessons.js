/**
 * The Lessons page: shows the part that the address names (#lesson=L2, #teacher, #terms, else the overview), opens a lesson's
 * runs in the Lab, answers the quiz at once. Quiz answers stay in this browser; how far the notebooks are is read from the server.
 */
const QUIZ = "rw-quiz";
let parts = [];
let said = null;
const wordsOf = (count, one, many) => `${count} ${count === 1 ? one : many}`;

const kept = () => {
  try {
    return JSON.parse(localStorage.getItem(QUIZ)) || {};
  } catch {
    return {};
  }
};
let far = {};

/** The page's base is not its own path, so that links within it have to be said with the path. */
function go(part) {
  history.pushState(null, "", `${location.pathname}#${part}`);
  show();
  scrollTo(0, 0);
}

function show() {
  const asked = decodeURIComponent(location.hash.slice(1)) || "all";
  const part = parts.find((one) => one.dataset.part === asked) || parts[0];
  for (const one of parts) one.hidden = one !== part;
  for (const tab of element.querySelectorAll(".rw-parts a")) {
    const here = tab.dataset.part === part.dataset.part || (tab.dataset.part === "all" && part.dataset.part.startsWith("lesson="));
    if (here) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  tell("");
}

function tell(words, kind = "") {
  said.textContent = words;
  said.className = `rw-message${kind ? ` rw-${kind}` : ""}`;
}

/** Things done of those there are, in one lesson. */
function standing(section) {
  const lesson = section.dataset.part.slice("lesson=".length);
  const known = far[lesson] || { predictions: {}, exercises: {}, questions: {} };
  const quiz = kept()[lesson] || {};
  const revealed = Object.values(known.predictions).filter((one) => "came" in one);
  return {
    lesson,
    predictions: [revealed.length, +section.dataset.predictions, revealed.filter((one) => one.right).length],
    exercises: [Object.values(known.exercises).filter(Boolean).length, +section.dataset.exercises],
    questions: [Object.values(known.questions).filter(Boolean).length, 3],
    quiz: [Object.keys(quiz).length, +section.dataset.quiz, [...section.querySelectorAll("fieldset")].filter((one) => quiz[one.dataset.question] === JSON.parse(one.dataset.key).right).length],
  };
}

function progress() {
  for (const section of parts.filter((one) => one.dataset.part.startsWith("lesson="))) {
    const { lesson, predictions, exercises, questions, quiz } = standing(section);
    const all = [predictions, exercises, questions, quiz];
    const done = all.reduce((sum, [n]) => sum + n, 0);
    const total = all.reduce((sum, [, n]) => sum + n, 0);
    const bar = element.querySelector(`[data-far="${lesson}"]`);
    bar.innerHTML = `<i style="inline-size:${(100 * done) / total}%"></i>`;
    bar.title = `${done} of ${total} parts done`;
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", bar.title);
    element.querySelector(`[data-stand="${lesson}"]`).textContent = done
      ? `So far, on this machine: ${predictions[0]} of ${wordsOf(predictions[1], "prediction", "predictions")} revealed (${predictions[2]} as you said), ` +
        `${exercises[0]} of ${wordsOf(exercises[1], "exercise", "exercises")} passed, ${questions[0]} of ${questions[1]} questions of your own run right. In this browser: ${quiz[0]} of ${quiz[1]} quiz questions answered, ${quiz[2]} right.`
      : "Nothing done yet. What you do in the notebook on this machine shows here.";
    element.querySelector(`[data-score="${lesson}"]`).textContent = quiz[0]
      ? `${quiz[2]} of ${quiz[0]} answered rightly; ${wordsOf(quiz[1] - quiz[0], "question", "questions")} to go.`
      : "Choose an answer: you are told at once whether it is right, and why.";
  }
}

function answer(field, chosen) {
  const { right, because } = JSON.parse(field.dataset.key);
  const good = chosen === right;
  field.dataset.grade = good ? "right" : "wrong";
  field.querySelector(".rw-because").textContent = good ? `✓ Right. ${because}` : `✗ Not so: “${right}”. ${because}`;
}

element.addEventListener("change", (event) => {
  const field = event.target.closest("fieldset[data-question]");
  if (!field) return;
  answer(field, event.target.value);
  const all = kept();
  const lesson = field.closest("[data-of]").dataset.of;
  all[lesson] = { ...all[lesson], [field.dataset.question]: event.target.value };
  localStorage.setItem(QUIZ, JSON.stringify(all));
  progress();
});

element.addEventListener("click", async (event) => {
  const link = event.target.closest("a[href^='#']");
  if (link) {
    event.preventDefault();
    go(link.getAttribute("href").slice(1));
    return;
  }
  const button = event.target.closest("button[data-run]");
  if (!button) return;
  const { of } = button.closest("[data-of]").dataset;
  const { run, moment } = button.dataset;
  tell("Running it for you…", "busy");
  const answered = await fetch(`/lessons/${of}/runs/${run}/${moment}`, { method: "POST" }).catch(() => null);
  const { url, error } = answered ? await answered.json() : { error: "The server does not answer; is it still running?" };
  if (url) location.assign(url);
  else tell(error, "error");
});

async function look() {
  const answered = await fetch("/lessons/progress").catch(() => null);
  if (answered?.ok) far = await answered.json();
  progress();
}

function recall() {
  for (const [lesson, answers] of Object.entries(kept())) {
    for (const [question, chosen] of Object.entries(answers)) {
      const field = element.querySelector(`[data-of="${lesson}"] fieldset[data-question="${question}"]`);
      const option = field && [...field.querySelectorAll("input")].find((one) => one.value === chosen);
      if (!option) continue;
      option.checked = true;
      answer(field, chosen);
    }
  }
}

(async () => {
  element.innerHTML = await (await fetch("/lessons/content")).text();
  parts = [...element.querySelectorAll("section[data-part]")];
  said = element.querySelector("#lesson-said");
  recall();
  addEventListener("popstate", show);
  addEventListener("hashchange", show);
  document.addEventListener("visibilitychange", () => document.hidden || look());
  show();
  await look();
  element.querySelector(".rw-parts").dataset.ready = "true";
})();
