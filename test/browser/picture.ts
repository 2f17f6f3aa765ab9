import { join } from "node:path";
import { chromium } from "playwright-core";
import { createApp } from "../../src/app.ts";
import agent from "../../src/demo/agent.ts";
import approval from "../../src/demo/approval.ts";
import research from "../../src/demo/research.ts";

/** Takes the screenshot of the dashboard for the README, with runs of the demo's graphs: `npm run picture`. */
const root = join(import.meta.dirname, "../..");

const app = await createApp({ graphs: { agent, approval, research } });

async function ask<T>(path: string, body: unknown): Promise<T> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${app.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
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
const shown = await run("Looms", "research", { question: "warp, weft, heddles and reeds" });
const [{ run_id } = { run_id: "" }] = (await (
  await fetch(`${app.url}/threads/${shown}/runs`)
).json()) as readonly { run_id: string }[];
await run("Invitation", "approval", { topic: "the invitation" });

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({
  viewport: { width: 1180, height: 640 },
  colorScheme: "light",
  reducedMotion: "reduce",
});
await page.goto(`${app.url}/#/threads/${shown}/runs/${run_id}?step=2`);
await page.waitForSelector(".line.task");
await page.waitForSelector(".detail .diff");
await page.screenshot({ path: join(root, ".github/dashboard.png") });
await browser.close();
await app.close(0);
