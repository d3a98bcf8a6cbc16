// Draws the node from snapshots. Every text goes in as text: names come from manifests and are not trusted.

const MOST_DECISIONS = 100;
const UNITS = ["", "Ki", "Mi", "Gi", "Ti"];

const byId = (id) => document.getElementById(id);

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

function bytes(amount) {
  let unit = 0;
  let left = amount;
  while (Math.abs(left) >= 1024 && unit < UNITS.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${left >= 100 || unit === 0 ? Math.round(left) : left.toFixed(1)} ${UNITS[unit]}B`;
}

const FORMATS = { cpu: (milli) => `${milli}m`, memory: bytes, pids: String };

function severity(share) {
  if (share >= 0.95) return "bad";
  return share >= 0.8 ? "near" : "good";
}

// A bar beside words that say the same: it is for the eye only.
function bar(share) {
  const filled = element("i");
  filled.style.setProperty("--share", Math.min(Math.max(share, 0), 1));
  const whole = element("span", { className: `bar ${severity(share)}` }, filled);
  whole.setAttribute("aria-hidden", "true");
  return whole;
}

// Nodes that are already there are filled anew, so that focus and open details stay where they are.
function keyed(parent, items, key, make, fill) {
  const there = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    const child = there.get(name) ?? make(item);
    there.delete(name);
    child.dataset.key = name;
    fill(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const gone of there.values()) gone.remove();
}

function drawConditions(conditions) {
  const make = () => element("li");
  keyed(byId("conditions"), conditions, (each) => each.type, make, (item, each) => {
    const isWell = (each.type === "Ready") === (each.status === "True");
    item.className = isWell ? "good" : "bad";
    item.title = each.message;
    item.textContent = `${isWell ? "✓" : "✗"} ${each.type} ${each.status}`;
  });
}

function amount(level, resource) {
  const used = level.used[resource];
  const bound = level.bounds[resource];
  const format = FORMATS[resource];
  if (used === null && !bound) return element("td", { textContent: "–" });
  const text = used === null ? "–" : format(used);
  if (!bound) return element("td", {}, text);
  // For cpu, what is used elsewhere takes nothing away: only the limit counts.
  const share = resource === "cpu" ? (used ?? 0) / bound.limit : 1 - bound.left / bound.limit;
  const place = bound.place === "self" ? "" : ` (${bound.place})`;
  const cell = element("td", { title: `${bound.file} of ${bound.path}` }, `${text} of ${format(bound.limit)}`);
  if (place) cell.append(element("span", { className: "quiet", textContent: place }));
  if (severity(share) !== "good") cell.append(element("span", { className: severity(share), textContent: " ⚠" }));
  cell.append(bar(share));
  return cell;
}

function drawTree(levels) {
  const make = () => element("tr");
  keyed(byId("rows"), levels, (level) => level.path, make, (row, level) => {
    row.dataset.kind = level.kind;
    const name = element("th", { scope: "row", title: level.path, textContent: level.name });
    name.style.setProperty("--depth", level.depth);
    const held = level.throttled;
    const heldText = held === null ? "–" : `${Math.round(100 * held)} %`;
    row.replaceChildren(
      name,
      amount(level, "cpu"),
      element("td", { textContent: level.weight ?? "–" }),
      element("td", { className: held > 0.25 ? "bad" : held > 0 ? "near" : "", textContent: heldText }),
      element("td", { textContent: level.cpus ?? "–" }),
      amount(level, "memory"),
      amount(level, "pids"),
    );
  });
}

function groups(items, key) {
  const found = new Map();
  for (const item of items) found.set(item[key], [...(found.get(item[key]) ?? []), item]);
  return found;
}

function hue(owner) {
  let sum = 0;
  for (const letter of owner) sum = (31 * sum + letter.codePointAt(0)) % 360;
  return sum;
}

function paint(box, owner) {
  box.classList.add("cpu");
  if (owner === "shared") box.classList.add("plain");
  else if (owner === "reserved" || owner === "offline") box.classList.add(owner);
  else box.style.setProperty("--hue", hue(owner));
  return box;
}

function drawCpu(cpu) {
  const box = element("span", { textContent: cpu.cpu, title: `CPU ${cpu.cpu}: ${cpu.owner}` });
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", box.title);
  return paint(box, cpu.owner);
}

function drawCores(cpus) {
  const cores = [...groups(cpus, "core").values()];
  return element("div", { className: "cores" },
    ...cores.map((threads) => element("span", { className: "core" }, ...threads.map(drawCpu))));
}

let drawnCpus = "";

function drawCpus(cpus) {
  const state = JSON.stringify(cpus);
  if (state === drawnCpus) return;
  drawnCpus = state;
  const sockets = [...groups(cpus, "socket")].map(([socket, ofSocket]) => {
    if (socket === null) return element("div", { className: "socket" }, "offline", drawCores(ofSocket));
    const nodes = [...groups(ofSocket, "numa")].map(([numa, ofNode]) =>
      element("div", { className: "numa" }, `NUMA node ${numa}`, drawCores(ofNode)));
    return element("div", { className: "socket" }, `socket ${socket}`, ...nodes);
  });
  byId("cpus").replaceChildren(...sockets);
  const owners = [...groups(cpus, "owner")].map(([owner, ofOwner]) =>
    element("li", {}, paint(element("span", { textContent: ofOwner.length }), owner), ` ${owner}`));
  byId("legend").replaceChildren(...owners);
}

function duration(seconds) {
  if (seconds === null) return "at no time in sight";
  if (seconds >= 5400) return `in ${Math.round(seconds / 3600)} h`;
  return seconds >= 90 ? `in ${Math.round(seconds / 60)} min` : `in ${seconds.toFixed(1)} s`;
}

function drawHeadroom(gauges) {
  const make = () => element("div", { className: "gauge" });
  keyed(byId("headroom"), gauges, (each) => `${each.signal} ${each.hard}`, make, (box, each) => {
    const format = each.unit === "bytes" ? bytes : (count) => String(Math.round(count));
    const amount = each.available - each.left;
    const isCrossed = each.left < 0;
    const words = isCrossed ? `below ${format(amount)}` : `${format(each.left)} left above ${format(amount)}`;
    box.replaceChildren(
      element("strong", { textContent: `${each.signal}${each.hard ? "" : " (soft)"}` }),
      bar(isCrossed || each.available <= 0 ? 1 : amount / each.available),
      element("span", { className: isCrossed ? "bad" : "", textContent: words }),
      element("br"),
      element("span", { className: "quiet", textContent: isCrossed ? "" : `crossed ${duration(each.seconds)}` }),
    );
  });
}

function comparison({ resource, requested, used, capacity }) {
  const verdict = requested <= capacity - used ? "fits" : `${requested - (capacity - used)} too much`;
  return `${resource}: asked for ${requested} with ${used} of ${capacity} taken: ${verdict}`;
}

function threshold({ signal, threshold, hard, available, capacity, ratePerSecond }) {
  const kind = hard ? "hard" : "soft";
  return `${signal} below ${threshold} (${kind}): ${available} of ${capacity} left, falling by ${Math.round(ratePerSecond)} a second`;
}

function candidate({ namespace, name, priority, usage, request, exceedsRequest }, place) {
  const over = exceedsRequest ? "more than" : "within";
  return `${place + 1}. ${namespace}/${name}: uses ${usage}, ${over} its request of ${request}; priority ${priority}`;
}

function sentences(decision) {
  const record = decision.admission ?? decision.eviction ?? {};
  return [
    ...(record.message ? [record.message] : []),
    ...(record.policy ?? []),
    ...(record.failures ?? []),
    ...(record.preemption ?? []),
    ...(record.resources ?? []),
    ...(record.comparisons ?? []).map(comparison),
    ...(record.pressure ? [threshold(record.pressure)] : []),
    ...(record.candidates ?? []).map(candidate),
  ];
}

function drawDecision(decision) {
  const record = decision.admission ?? decision.eviction ?? {};
  const verdict = decision.admission
    ? record.admitted ? "admitted" : `refused: ${record.reason}`
    : `evicted${record.deadAt ? "" : " (not dead yet)"}`;
  const when = new Date(record.decidedAt).toLocaleTimeString();
  const isWell = Boolean(decision.admission && record.admitted);
  const listed = sentences(decision).map((each) => element("li", { textContent: each }));
  return element("details", {},
    element("summary", {},
      element("span", { className: "quiet", textContent: `${when} ` }),
      `${record.namespace}/${record.name} `,
      element("span", { className: isWell ? "good" : "bad", textContent: verdict })),
    listed.length ? element("ul", {}, ...listed) : element("p", { className: "quiet", textContent: "nothing more was noted" }),
    element("p", { className: "quiet", textContent: `more: nodeagent explain pod/${record.name}` }));
}

let newestDrawn = -1;

async function drawDecisions(newest) {
  if (newest === newestDrawn) return;
  const answer = await fetch(`/nodeagent/v1/decisions?limit=${MOST_DECISIONS}`);
  if (!answer.ok) return;
  newestDrawn = newest;
  const { items } = await answer.json();
  keyed(byId("decisions"), items, (each) => each.id, drawDecision, () => {});
}

function draw(snapshot) {
  byId("node").textContent = snapshot.node;
  document.title = `${snapshot.node} · nodeagent`;
  drawConditions(snapshot.conditions);
  drawHeadroom(snapshot.headroom);
  drawTree(snapshot.tree);
  drawCpus(snapshot.cpus);
  drawDecisions(snapshot.newestDecision);
}

const PATIENCE_MILLISECONDS = 5000;
let lastMessage = 0;

const stream = new EventSource("events");
stream.addEventListener("message", (event) => {
  draw(JSON.parse(event.data));
  lastMessage = Date.now();
  byId("state").textContent = `live, ${new Date().toLocaleTimeString()}`;
  byId("state").className = "";
});
// A stream ends now and then, and the browser opens the next one by itself: only silence after that is news.
stream.addEventListener("error", () => {
  const noticed = Date.now();
  setTimeout(() => {
    if (lastMessage >= noticed) return;
    byId("state").textContent = "no answer from the agent; trying again";
    byId("state").className = "bad";
  }, PATIENCE_MILLISECONDS);
});
