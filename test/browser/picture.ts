import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { EXECUTABLE } from "./chromium.ts";
import { createApp } from "../../src/app.ts";
import agent from "../../src/demo/agent.ts";
import approval from "../../src/demo/approval.ts";
import order from "../../src/demo/order.ts";
import research from "../../src/demo/research.ts";

/** Takes the pictures of the dashboard for the README and the guide, with runs of the demo's graphs: `npm run picture`. */
const root = join(import.meta.dirname, "../..");

const app = await createApp({ graphs: { agent, approval, order, research } });

async function ask<T>(path: string, body: unknown, method = "POST"): Promise<T> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${app.url}${path}`, { method, headers, body: JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

async function run(title: string, assistant_id: string, input: object): Promise<string> {
  const { thread_id } = await ask<{ thread_id: string }>("/threads", { metadata: { title } });
  await ask(`/threads/${thread_id}/runs/wait`, { assistant_id, input });
  return thread_id;
}

const says = (content: string) => ({ messages: [{ role: "user", content }] });
await run("Letter to the bank", "approval", { topic: "the bank" });
await run("Count these words", "agent", says("Count the words of: the quick brown fox"));
await run("Spring sale", "approval", { topic: "the spring sale" });
await run("Hello", "agent", says("Hello, who are you?"));
const machine = await run("A refund", "order", { amount: 300 });
await ask("/runs/crons", { assistant_id: "agent", schedule: "0 9 * * MON", input: says("What is new?") });
const { assistant_id } = await ask<{ assistant_id: string }>("/assistants", {
  graph_id: "agent",
  name: "Careful",
  context: { model: "small" },
});
await ask(`/assistants/${assistant_id}`, { context: { model: "large" } }, "PATCH");
for (const [person, text] of [
  ["ann", "likes tea"],
  ["bob", "writes in the morning"],
]) {
  const item = { namespace: ["users", person], key: "habit", value: { text } };
  await ask("/store/items", item, "PUT");
}
const shown = await run("Looms", "research", { question: "warp, weft, heddles and reeds" });
const [{ run_id } = { run_id: "" }] = (await (
  await fetch(`${app.url}/threads/${shown}/runs`)
).json()) as readonly { run_id: string }[];
await run("Invitation", "approval", { topic: "the invitation" });

const browser = await chromium.launch({
  executablePath: EXECUTABLE,
  args: ["--no-sandbox", "--disable-gpu"],
});

type Look = "light" | "dark" | "narrow";

/** Opens a page and takes a picture when all elements are there. */
async function shot(path: string, wanted: readonly string[], look: Look): Promise<Buffer> {
  const page = await browser.newPage({
    viewport: look === "narrow" ? { width: 390, height: 760 } : { width: 1180, height: 640 },
    colorScheme: look === "dark" ? "dark" : "light",
    reducedMotion: "reduce",
  });
  await page.goto(`${app.url}${path}`);
  for (const selector of wanted) await page.waitForSelector(selector, { state: "attached" });
  // Drawings are laid out by a worker.
  await page.waitForTimeout(700);
  const picture = await page.screenshot();
  await page.close();
  return picture;
}

const timeline = `/#/threads/${shown}/runs/${run_id}?step=2`;
const detail = [".line.task", ".detail .diff"];
const runs = [".all-runs tbody tr"];
const questions = [".questions li"];
const comparison = `/#/assistants/${assistant_id}?with=1`;
const shots = [
  ["dashboard", timeline, detail, "light"],
  ["dashboard-runs", "/#/runs", runs, "dark"],
  ["dashboard-inbox", "/#/inbox", questions, "narrow"],
  ["dashboard-assistants", comparison, [".diff"], "light"],
] as const;
for (const [name, path, wanted, look] of shots) {
  writeFileSync(join(root, ".github", `${name}.png`), await shot(path, wanted, look));
}

/** Each page, and what is there when it is drawn. */
const pages = {
  threads: ["/#/threads", ['a[href*="threads/"]']],
  thread: [`/#/threads/${shown}`, [".composer"]],
  "runs-of-a-thread": [`/#/threads/${shown}?tab=runs`, [".runs li"]],
  history: [`/#/threads/${shown}?tab=history`, ["main input[type=range]"]],
  run: [timeline, detail],
  machine: [`/#/threads/${machine}`, ["main button"]],
  runs: ["/#/runs", runs],
  inbox: ["/#/inbox", questions],
  store: ["/#/store", ["main li"]],
  crons: ["/#/crons", ["main li, main tr"]],
  assistants: ["/#/assistants", ["main li, main tr"]],
  "an-assistant": [comparison, [".diff"]],
  graphs: ["/#/graphs", ["main svg g"]],
  system: ["/#/system", ["main svg"]],
  inspector: [`/inspector?thread_id=${shown}`, ["svg g"]],
  docs: ["/docs", ["body h1"]],
} as const;

/** One picture of a page in all its looks, at half the size. */
async function sheet(looks: readonly Buffer[]): Promise<Buffer> {
  const page = await browser.newPage({ viewport: { width: 1574, height: 380 } });
  const images = looks.map(
    (look) => `<img src="data:image/png;base64,${look.toString("base64")}" height=370>`,
  );
  await page.setContent(`<body style="margin:5px;background:#888;display:flex;gap:5px">${images.join("")}`);
  const picture = await page.screenshot({ type: "jpeg", quality: 80 });
  await page.close();
  return picture;
}

for (const [name, [path, wanted]] of Object.entries(pages)) {
  const looks = [];
  for (const look of ["light", "dark", "narrow"] as const) looks.push(await shot(path, wanted, look));
  writeFileSync(join(root, ".github/pages", `${name}.jpg`), await sheet(looks));
}
await browser.close();
await app.close(0);
