/**
 * The list of experiments, and the page's address: #experiment=<name>&result=<id>. The component's value is JSON text,
 * { name, result }, what the page shows now. A reload opens the same; another page of the app and back, too.
 */
const KEY = "rw-experiments";
const NARROW = 900;
const buttons = () => [...element.querySelectorAll("button[data-name]")];
const named = (name) => buttons().find((one) => one.dataset.name === name);

/** The page's base is not its own path, so that the path has to be said. */
function remember(asked) {
  const hash = `#${new URLSearchParams(asked)}`;
  history.replaceState(null, "", `${location.pathname}${hash}`);
  sessionStorage.setItem(KEY, hash);
}

function mark(name) {
  for (const one of buttons()) {
    if (one.dataset.name === name) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  }
}

function fold() {
  element.querySelector("details").open = innerWidth > NARROW;
}

element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-name]");
  if (!button) return;
  const { name } = button.dataset;
  mark(name);
  remember({ experiment: name });
  fold();
  scrollTo(0, 0);
  trigger("chosen", { name });
});

watch("value", () => {
  if (!props.value) return;
  const { name, result } = JSON.parse(props.value);
  mark(name);
  remember({ experiment: name, result });
});

const before = location.hash || sessionStorage.getItem(KEY) || "";
const asked = Object.fromEntries(new URLSearchParams(before.slice(1)));
if (asked.experiment && named(asked.experiment)) {
  mark(asked.experiment);
  remember(asked);
  trigger("chosen", { name: asked.experiment, result: asked.result || "" });
}
fold();
