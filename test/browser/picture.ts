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
await run("A refund", "order", { amount: 300 });
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

/** Takes a picture when all elements are there. */
async function picture(
  name: string,
  path: string,
  wanted: readonly string[],
  colorScheme: "light" | "dark",
  width: number,
): Promise<void> {
  const height = width < 500 ? 760 : 640;
  const page = await browser.newPage({ viewport: { width, height }, colorScheme, reducedMotion: "reduce" });
  await page.goto(`${app.url}/#/${path}`);
  for (const selector of wanted) await page.waitForSelector(selector);
  await page.screenshot({ path: join(root, ".github", `${name}.png`) });
  await page.close();
}

const timeline = `threads/${shown}/runs/${run_id}?step=2`;
await picture("dashboard", timeline, [".line.task", ".detail .diff"], "light", 1180);
await picture("dashboard-runs", "runs", [".all-runs tbody tr"], "dark", 1180);
await picture("dashboard-inbox", "inbox", [".questions li"], "light", 390);
await picture("dashboard-assistants", `assistants/${assistant_id}?with=1`, [".diff"], "light", 1180);
await browser.close();
await app.close(0);
