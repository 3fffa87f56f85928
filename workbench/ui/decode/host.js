/** The Decode picture inside Gradio's page. The component's value is JSON text: {run, plain}. An address that names a run comes first. */
const ready = new Promise((done) => {
  const script = document.createElement("script");
  script.src = "/decode.js";
  script.onload = () => done(globalThis.RadixPlayer);
  const look = () => (globalThis.RadixPlayer?.el ? document.head.append(script) : setTimeout(look, 20));
  look();
}).then((RP) => RP.mountDecode(element.querySelector(".rd-root")));

function addressed() {
  const at = new URLSearchParams(location.hash.slice(1));
  const id = (name) => (/^[\w-]{1,64}$/.test(at.get(name) || "") ? at.get(name) : null);
  return id("run") && { run: id("run"), plain: id("plain"), request: at.get("request") };
}

let first = true;
async function show(text) {
  const given = text ? JSON.parse(text) : null;
  const asked = (first && addressed()) || given;
  const words = first ? "Run from the address:" : "Run of just now:";
  first = false;
  const picture = await ready;
  if (asked && asked.run) await picture.show(asked, words);
  else {
    picture.strip.textContent = "No run is shown yet. Choose a preset and press Run.";
    picture.root.dataset.ready = "empty";
  }
}

show(props.value);
watch("value", () => show(props.value));
