/**
 * The Compare page's address, #cmp=<comparison>&request=<name>, and its rows. The component's value is JSON text:
 * { id, arms: [{ name, run, last }] }. A reload opens the same comparison; a request that is pressed is explained
 * by each arm's own run. All of that is shown as text.
 */
const at = () => new URLSearchParams(location.hash.slice(1));

/** What the page shows: null, or the component's value. */
let shown = null;

/** The page's base is not its own path, so that the path has to be said. */
const goTo = (hash) => history.replaceState(null, "", `${location.pathname}#${hash}`);

function remember(name, value) {
  const hash = at();
  if (value === null) hash.delete(name);
  else hash.set(name, value);
  goTo(hash);
}

const rows = () => [...document.querySelectorAll("#pairs tr[data-request]")];
const button = (row) => row.querySelector("button");

function make(tag, text, more = {}) {
  return Object.assign(document.createElement(tag), { textContent: text }, more);
}

/** What one arm's run says of a request at its end. */
async function answer({ run, last }, request) {
  const asked = await fetch(`/runs/${run}/why?${new URLSearchParams({ seq: String(last), request })}`);
  if (asked.status === 404) return { headline: "the server has forgotten this run; compare again to ask it.", detail: [] };
  if (!asked.ok) throw new Error(await asked.text());
  return asked.json();
}

/** One arm's part of the explanation, with the way to its run in the Lab. */
async function told(arm, request) {
  const part = make("div", "");
  try {
    const { headline, detail } = await answer(arm, request);
    part.append(make("b", arm.name), ` ${headline}`, ...detail.map((line) => make("p", line)));
  } catch (error) {
    part.append(make("b", arm.name), ` could not be asked: ${error.message}`);
  }
  const where = new URLSearchParams({ run: arm.run, seq: String(arm.last), request });
  part.append(make("a", "open in the Lab", { href: `/#${where}` }));
  return part;
}

/** Table and charts come with the same answer as the value, but are drawn later: what `find` finds, or null after a while. */
async function drawn(find) {
  for (let i = 0; i < 100; i++) {
    const found = find();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 30));
  }
  return null;
}

const labels = () => [...document.querySelectorAll("#dots .ytick text")];

/** The selected request's name stands out beside its dots. */
async function mark(request) {
  await drawn(() => labels().length);
  for (const label of labels()) label.classList.toggle("rw-chosen", label.textContent === request);
}

function close() {
  for (const row of document.querySelectorAll("#pairs .rw-told")) row.remove();
  for (const row of rows()) button(row).setAttribute("aria-expanded", "false");
  for (const label of labels()) label.classList.remove("rw-chosen");
}

async function open(row) {
  close();
  const { request } = row.dataset;
  const arms = shown.arms;
  button(row).setAttribute("aria-expanded", "true");
  mark(request);
  const cell = make("td", "", { colSpan: row.children.length });
  const box = make("div", "asking…", { className: "rw-answers" });
  cell.append(box);
  const under = make("tr", "", { className: "rw-told" });
  under.append(cell);
  row.after(under);
  remember("request", request);
  box.replaceChildren(...(await Promise.all(arms.map((arm) => told(arm, request)))));
}

document.addEventListener("click", (event) => {
  const row = event.target instanceof Element ? event.target.closest("#pairs tr[data-request]") : null;
  if (!row || !shown) return;
  if (button(row).getAttribute("aria-expanded") === "true") {
    close();
    remember("request", null);
  } else open(row);
});

watch("value", async () => {
  if (!props.value) return;
  shown = JSON.parse(props.value);
  if (at().get("cmp") !== shown.id) {
    goTo(new URLSearchParams({ cmp: shown.id }));
    return;
  }
  const request = at().get("request");
  const row = request && (await drawn(() => rows().find((one) => one.dataset.request === request)));
  if (row) open(row);
});

const named = at().get("cmp");
if (named) trigger("opened", { id: named });
