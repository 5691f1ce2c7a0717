"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const stepper = document.getElementById("stepper");
  if (!stepper || !data.steps) return;
  const byId = (id) => document.getElementById(id);
  const live = data.live === true;
  let current = 0;

  const element = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const fill = (parent, children) => parent.replaceChildren(...children);
  const together = (events) => events.join(" together with ") || "start";
  const numberOf = (index) => index + data.offset;
  const title = (index) =>
    numberOf(index) === 0
      ? "Start"
      : `Instant ${numberOf(index)}: ${together(data.steps[index].fired)}`;

  const repeats = (number) => data.repeatsFrom !== null && number >= data.repeatsFrom;

  const instantEntry = (step, index) => {
    const number = numberOf(index);
    const entry = element("li");
    const link = element("a", `${number}  ${together(step.fired)}`);
    link.href = `#step-${number}`;
    if (number === data.lost) {
      const well = data.endless ? "goes on" : "completes";
      link.append(element("span", `no continuation ${well} from here on`, "lost"));
    }
    if (data.repeatsFrom !== null && number === data.repeatsFrom) {
      link.append(element("span", "from here on it repeats for ever", "repeats"));
    }
    if (repeats(number)) link.classList.add("cycle");
    if (index === current) link.setAttribute("aria-current", "step");
    entry.append(link);
    return entry;
  };

  const handledEntry = ([event, note, tone]) => {
    const entry = element("li", event);
    if (note) entry.append(": ", element("span", note, tone));
    return entry;
  };

  const outlook = (completes) => {
    if (completes === null) return null;
    return completes
      ? element("span", ` can still ${data.endless ? "go on" : "complete"}`, "outlook")
      : element("span", ` never ${data.endless ? "goes on" : "completes"}`, "outlook bad");
  };

  const choiceEntry = ([number, events, taken, completes]) => {
    const entry = element("li");
    const text = together(events);
    if (live && current === data.steps.length - 1) {
      const button = element("button", text);
      button.type = "button";
      button.addEventListener("click", () => choose(number));
      entry.append(button);
    } else {
      entry.append(element("span", text, taken ? "taken" : ""));
      if (taken) entry.append(element("span", " taken here", "mark"));
    }
    const known = outlook(completes);
    if (known) entry.append(known);
    return entry;
  };

  const partRows = (part) => {
    const name = element("dt", part.name, part.changed ? "changed" : "");
    if (part.changed) name.append(" ", element("span", "changed", "mark"));
    const value = element("dd", undefined, part.changed ? "changed" : "");
    for (const [text, tone] of part.items) value.append(element("span", text, `chip ${tone}`));
    if (part.items.length === 0) value.append(element("span", "none", "outlook"));
    return [name, value];
  };

  const card = (section) => {
    const made = element("section", undefined, "card");
    made.setAttribute("aria-label", section.name);
    const list = element("dl");
    list.append(...section.parts.flatMap(partRows));
    made.append(element("h5", section.name), list);
    return made;
  };

  const list = (id, entries) => {
    fill(byId(id), entries);
    byId(`${id}-box`).hidden = entries.length === 0;
  };

  const showFate = (step) => {
    const fate = byId("step-fate");
    const round = repeats(numberOf(current)) && current === data.steps.length - 1;
    fate.hidden = step.canComplete === null && !round;
    if (round) {
      fate.className = "fate bad";
      fate.textContent =
        `The state is that after instant ${data.repeatsFrom - 1} again: it goes round for ever.`;
      return;
    }
    fate.className = step.canComplete ? "fate good" : "fate bad";
    fate.textContent = step.canComplete
      ? `A run can still ${data.endless ? "go on for ever" : "complete"} from here.`
      : `No continuation ${data.endless ? "goes on for ever" : "completes"} from here.`;
  };

  const show = (number, remember = true) => {
    current = Math.min(Math.max(number, 0), data.steps.length - 1);
    const step = data.steps[current];
    const last = data.steps.length - 1;
    byId("position").textContent = `Step ${numberOf(current)} of ${numberOf(last)}`;
    byId("first").disabled = byId("previous").disabled = current === 0;
    byId("last").disabled = byId("next").disabled = current === last;
    if (live) byId("undo").disabled = current === last;
    byId("step-title").textContent = title(current);
    showFate(step);
    fill(byId("instants"), data.steps.map(instantEntry));
    list("handled", step.handled.map(handledEntry));
    list("waits", step.waits.map((text) => element("li", text)));
    const choices = step.choices.map(choiceEntry);
    if (step.unlisted > 0) {
      const rest = step.unlisted < 1000 ? `${step.unlisted} more` : "every other tie of these events";
      choices.push(element("li", `and ${rest}, not listed`));
    }
    list("choices", choices);
    byId("choices").className = live && current === last ? "live" : "";
    fill(byId("state"), step.sections.map(card));
    const entry = byId("instants").querySelector("[aria-current]");
    const box = byId("instants");
    if (box.scrollHeight > box.clientHeight) {
      box.scrollTop = entry.offsetTop - box.offsetTop - box.clientHeight / 2;
    }
    if (remember) history.replaceState(null, "", `#step-${numberOf(current)}`);
  };

  const fromAddress = () => {
    const match = /^#step-(\d+)$/.exec(location.hash);
    return match ? Number(match[1]) - data.offset : null;
  };

  const move = { first: () => 0, previous: () => current - 1, next: () => current + 1,
    last: () => data.steps.length - 1 };
  for (const [id, target] of Object.entries(move)) {
    byId(id).addEventListener("click", () => show(target()));
  }
  const keys = { ArrowLeft: "previous", ArrowRight: "next", Home: "first", End: "last" };
  document.addEventListener("keydown", (event) => {
    const plain = !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;
    const scrolls = event.target.closest && event.target.closest("pre, .drawing, summary");
    if (!plain || scrolls || !(event.key in keys)) return;
    event.preventDefault();
    show(move[keys[event.key]]());
  });
  window.addEventListener("hashchange", () => {
    const number = fromAddress();
    if (number !== null) {
      show(number, false);
      stepper.scrollIntoView();
    }
  });

  // ------------------------------------------------------------------ over a live model

  const ask = async (address, body) => {
    const answer = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const content = await answer.json();
    if (!answer.ok) throw new Error(content.error);
    return content;
  };
  const say = (text) => { byId("message").textContent = text; };

  const showEnd = (end) => {
    const box = byId("why");
    box.hidden = end === null;
    if (end === null) return;
    const [headline, ...chain] = end.why;
    const sentences = element("ol", undefined, "chain");
    sentences.append(...chain.map((text) => element("li", text)));
    fill(byId("why-text"), [element("p", headline, "headline"), ...(chain.length ? [sentences] : [])]);
  };

  const goTo = async (actions, number) => {
    try {
      const content = await ask("/story", { actions });
      data.steps = content.steps;
      data.lost = content.lost;
      data.actions = content.actions;
      byId("replay").hidden = content.command === "";
      byId("command").textContent = content.command;
      showEnd(content.end);
      say(content.message);
      show(number === undefined ? data.steps.length - 1 : number);
      byId("step-title").focus({ preventScroll: true });
    } catch (error) {
      say(`The server did not do that: ${error.message}`);
    }
  };
  const choose = (number) => goTo([...data.actions, number]);
  if (live) {
    byId("undo").addEventListener("click", () => goTo(data.actions.slice(0, current), current));
    byId("save").addEventListener("click", async () => {
      try {
        const content = await ask("/save", { actions: data.actions });
        say(content.message);
      } catch (error) {
        say(`The path was not saved: ${error.message}`);
      }
    });
  }

  show(fromAddress() ?? 0, false);
})();
