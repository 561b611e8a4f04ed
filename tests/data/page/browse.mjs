// Opens the pages of `landfall serve` in Chromium and prints as JSON what it saw: node browse.mjs CHROMIUM AXE URL PROFILE
// It speaks the DevTools protocol over a pipe, so that nothing else has to be installed.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

const [chromium, axe, url, profile] = process.argv.slice(2);
const browser = spawn(chromium, [
  "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--no-proxy-server",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", `--user-data-dir=${profile}`, "--remote-debugging-pipe",
], { stdio: ["ignore", "ignore", "inherit", "pipe", "pipe"] });
browser.on("exit", (code) => { if (!ended) { console.error(`chromium has ended: ${code}`); process.exit(1); } });

let ended = false, number = 0, rest = "", loaded = () => {};
const answers = new Map(), seen = { errors: [], hosts: [], pages: [] };

browser.stdio[4].setEncoding("utf8");
browser.stdio[4].on("data", (text) => {
  const messages = (rest + text).split("\0");
  rest = messages.pop();
  messages.map((message) => JSON.parse(message)).forEach(heard);
});

function heard({ id, result, error, method, params }) {
  if (id) {
    const { resolve, reject } = answers.get(id);
    answers.delete(id);
    return error ? reject(new Error(error.message)) : resolve(result);
  }
  if (method === "Page.loadEventFired") { loaded(); }
  if (method === "Runtime.exceptionThrown") { seen.errors.push(params.exceptionDetails.text); }
  if (method === "Runtime.consoleAPICalled") { seen.errors.push(`${params.type}: ${JSON.stringify(params.args)}`); }
  if (method === "Log.entryAdded") { seen.errors.push(params.entry.text); }
  if (method === "Network.requestWillBeSent" && !params.request.url.startsWith("data:")) {
    const { host } = new URL(params.request.url);
    if (!seen.hosts.includes(host)) { seen.hosts.push(host); }
  }
}

function send(method, params = {}, sessionId = undefined) {
  const id = ++number;
  browser.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
  return new Promise((resolve, reject) => answers.set(id, { resolve, reject }));
}

const { targetId } = await send("Target.createTarget", { url: "about:blank" });
const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
const page = (method, params) => send(method, params, sessionId);
for (const part of ["Page", "Runtime", "Network", "Log"]) { await page(`${part}.enable`); }
await page("Emulation.setFocusEmulationEnabled", { enabled: true });
await send("Browser.grantPermissions", { origin: url, permissions: ["clipboardReadWrite", "clipboardSanitizedWrite"] });

async function run(expression) {
  const { result, exceptionDetails } = await page("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
  if (exceptionDetails) { throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text); }
  return result.value;
}

async function until(expression) {
  for (let turn = 0; turn < 1200; turn++) {
    if (await run(expression)) { return; }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`it never came to this: ${expression}`);
}

async function open(path, width, scheme) {
  await page("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile: false });
  await page("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
  const load = new Promise((resolve) => { loaded = resolve; });
  await page("Page.navigate", { url: url + path });
  await load;
}

const views = ["light", "dark"].flatMap((scheme) => [
  ["/", 400, scheme], ["/", 1280, scheme], ["/", 1920, scheme], ["/changes", 1280, scheme], ["/nodes", 400, scheme],
]);
const check = readFileSync(axe, "utf8");
for (const [path, width, scheme] of views) {
  await open(path, width, scheme);
  await run("document.querySelectorAll('details').forEach((one, at) => { one.open = at < 3; }); true");
  await run(`${check}; true`);
  const found = JSON.parse(await run("axe.run().then((found) => JSON.stringify(found.violations.map((one) => [one.impact, one.id, one.nodes[0].html])))"));
  const wide = await run("document.documentElement.scrollWidth > innerWidth");
  const background = await run("getComputedStyle(document.body).backgroundColor");
  seen.pages.push({ path, width, scheme, wide, background, serious: found.filter(([impact]) => ["serious", "critical"].includes(impact)) });
}

await open("/", 1280, "light");
const names = "[...document.querySelectorAll('#results summary')].map((one) => one.textContent)";
seen.before = (await run(names)).length;
await page("Input.dispatchKeyEvent", { type: "keyDown", key: "/", text: "/" });
await until("document.activeElement.type === 'search'");
await page("Input.insertText", { text: "kubelet" });
await until(`${names}.length === 1`);
seen.found = (await run(names))[0];
await run("document.querySelector('details').open = true; document.querySelector('.cmd button').click(); true");
await until("document.querySelector('.cmd button').textContent === 'Copied'");
seen.copied = await run("navigator.clipboard.readText()");
seen.shown = await run("document.querySelector('.cmd').firstElementChild.textContent");

console.log(JSON.stringify(seen));
ended = true;
await send("Browser.close").catch(() => {});
