/**
 * `npm run scale -- [--threads N] [--runs N] [--minutes N] [--data DIR]`: fills a data directory, then measures each page of the dashboard:
 * the time from the server's answer to the first row, and the memory of tabs during live updates. Exits with 1 if a limit is exceeded.
 * The directory is kept (`dist/scale`, or DIR), and one that was filled in part is filled up: the next call measures the same data.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Browser, chromium } from "playwright-core";
import { WebSocket } from "ws";
import { numberOf, readOptions } from "../../bench/options.ts";
import { createApp, END, graph, list, messages, send, value } from "../../src/index.ts";
import { EXECUTABLE } from "./chromium.ts";

/** Milliseconds from the answer to the first row. */
const MAX_FIRST_ROW_MS = 300;
/** Milliseconds after which a page is given up. */
const FIRST_ROW_TIMEOUT_MS = 60_000;
/** Loads of a page that are measured. */
const LOADS = 5;
/** The memory of a tab after the last minute, as a multiple of that after the first. */
const MAX_GROWTH = 1.5;
/** Requests at a time while the directory is filled. Many, because their writes share the waits for the disk. */
const REQUESTS = 256;
/** Milliseconds between two lines about the progress. */
const PROGRESS_MS = 5_000;
/** Runs per second while the tabs are watched. */
const LIVE_RATE = 20;
const MODES = { stream_mode: ["values", "messages-tuple"] };

const values = readOptions({
  threads: { type: "string", default: "10000" },
  runs: { type: "string", default: "100000" },
  minutes: { type: "string", default: "10" },
  data: { type: "string" },
});
const threadCount = numberOf("threads", values.threads, { least: 10 });
const runCount = numberOf("runs", values.runs, { least: 100 });
const minutes = numberOf("minutes", values.minutes, { least: 0 });
const data =
  values.data ?? join(import.meta.dirname, `../../dist/scale/${threadCount}-threads-${runCount}-runs`);
mkdirSync(data, { recursive: true });
/** Beside the directory: how much of each part is in it. */
const progressFile = `${data}.json`;

/** Most runs answer with a message; some fail, some ask. */
const work = graph({
  state: { messages: messages(), kind: value("") },
  nodes: {
    answer: async ({ kind }, ctx) => {
      if (kind === "bad") throw new TypeError("the file is missing");
      if (kind === "ask") await ctx.interrupt({ question: "May it be sent?", to: "a customer" });
      const message = ctx.message({ model: "large" });
      for (const word of ["This ", "is ", "the ", "answer."]) message.write(word);
      message.usage({ input_tokens: 120, output_tokens: 4 });
      return { messages: [message.end()] };
    },
  },
  edges: { start: "answer" },
});

/** A run of 100,000 events that the page shows: 5,000 tasks side by side, and 200 steps of 450 tokens. */
const long = graph({
  state: { messages: messages(), steps: list<number>(), part: value(0) },
  nodes: {
    part: async () => ({}),
    go: async ({ steps }, ctx) => {
      const message = ctx.message();
      for (let i = 0; i < 450; i++) message.write("word ");
      message.end();
      return { steps: [steps.length] };
    },
  },
  edges: {
    start: () => Array.from({ length: 5_000 }, (_, part) => send("part", { part })),
    part: "go",
    go: ({ steps }) => (steps.length < 200 ? "go" : END),
  },
});

const app = await createApp({
  graphs: { work, long },
  data,
  dashboard: { prices: { large: { in: 2, out: 8 } } },
});

/** Sends a request to the server within this process, which takes a fraction of the time of one over the network. */
async function ask<T>(path: string, body: unknown, method = "POST"): Promise<T> {
  const headers = { "content-type": "application/json" };
  const request = new Request(`${app.url}${path}`, { method, headers, body: JSON.stringify(body) });
  const answer = await app.fetch(request);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

const write = (line: string) => process.stdout.write(`${line}\n`);

const writeLoad = () =>
  write(
    `load of the machine: ${loadavg()
      .map((load) => load.toFixed(1))
      .join(", ")}`,
  );

const filled: { [part: string]: number } = readProgress();

function readProgress(): { [part: string]: number } {
  try {
    return JSON.parse(readFileSync(progressFile, "utf8")) as { [part: string]: number };
  } catch {
    return {};
  }
}

/** Does work for each number below `count`, many at a time, from where an earlier call has stopped. */
async function each(part: string, count: number, workOn: (i: number) => Promise<unknown>): Promise<void> {
  const first = filled[part] ?? 0;
  if (first >= count) return;
  const began = performance.now();
  const inWork = new Set<number>();
  let next = first;
  const store = () => {
    filled[part] = Math.min(next, ...inWork);
    writeFileSync(progressFile, JSON.stringify(filled));
  };
  const progress = setInterval(() => {
    store();
    const rate = (next - first) / ((performance.now() - began) / 1000);
    write(`  ${next} of ${count} ${part}, ${rate.toFixed(0)}/s`);
  }, PROGRESS_MS);
  const worker = async () => {
    for (let i = next++; i < count; i = next++) {
      inWork.add(i);
      await workOn(i);
      inWork.delete(i);
    }
  };
  await Promise.all(Array.from({ length: REQUESTS }, worker));
  clearInterval(progress);
  next = count;
  store();
}

const inputOf = (kind: string) => ({ kind, messages: [{ role: "user", content: "What is it?" }] });
/** The last run of one thread in 30 asks; one run in 40 fails. */
const kindOf = (i: number) =>
  i >= runCount - threadCount && i % 30 === 0 ? "ask" : i % 40 === 0 ? "bad" : "good";

/** The id of a thread, the same in each call. */
const threadId = (i: number) => `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`;

async function fill(): Promise<void> {
  await each("threads", threadCount, (i) =>
    ask("/threads", {
      thread_id: threadId(i),
      if_exists: "do_nothing",
      metadata: { title: `Order ${i}`, customer: `c${i % 500}` },
    }),
  );
  await each("runs", runCount, (i) =>
    ask(`/threads/${threadId(i % threadCount)}/runs/wait`, {
      assistant_id: "work",
      input: inputOf(kindOf(i)),
      multitask_strategy: "enqueue",
    }),
  );
  await each("items", 10_000, (i) =>
    ask(
      "/store/items",
      { namespace: ["users", `u${i % 200}`], key: `k${i}`, value: { text: `likes tea ${i}` } },
      "PUT",
    ),
  );
  await each("crons and assistants", 30, async (i) => {
    await ask("/runs/crons", { assistant_id: "work", schedule: `${i} 9 * * MON`, input: inputOf("good") });
    await ask("/assistants", { graph_id: "work", name: `Assistant ${i}` });
  });
  await each("long runs", 1, async () => {
    const metadata = { title: "Long", is: "long" };
    const { thread_id } = await ask<{ thread_id: string }>("/threads", { metadata });
    await ask(`/threads/${thread_id}/runs/wait`, {
      assistant_id: "long",
      input: {},
      config: { recursion_limit: 300 },
    });
  });
}

const began = performance.now();
await fill();
write(`filled in ${Math.round((performance.now() - began) / 1000)} s: ${data}`);
writeLoad();

const [longThread] = await ask<readonly { thread_id: string }[]>("/threads/search", {
  metadata: { is: "long" },
});
const [longRun] = await ask<readonly { run_id: string }[]>("/runs/search", {
  thread_id: longThread?.thread_id,
});
const [someRun] = await ask<readonly { thread_id: string; run_id: string }[]>("/runs/search", {
  graph_id: "work",
  status: "success",
});
const some = `threads/${someRun?.thread_id}`;
const longPath = `threads/${longThread?.thread_id}`;

interface PageCase {
  readonly name: string;
  readonly path: string;
  readonly row: string;
  /** The ends of the addresses whose answers the first row needs. Absent: it comes over a socket, with the first message. */
  readonly answers?: readonly string[];
}

const pages: readonly PageCase[] = [
  { name: "threads", path: "", row: "a.thread", answers: ["/threads/search"] },
  { name: "runs", path: "runs", row: ".all-runs tbody tr", answers: ["/runs/search"] },
  {
    name: "runs that failed",
    path: "runs?status=error",
    row: ".all-runs tbody tr",
    answers: ["/runs/search"],
  },
  { name: "inbox", path: "inbox", row: ".questions li", answers: ["/threads/search"] },
  { name: "store", path: "store", row: ".listing tbody tr", answers: ["/store/items/search"] },
  { name: "crons", path: "crons", row: ".crons li.card", answers: ["/runs/search"] },
  { name: "assistants", path: "assistants", row: ".sided aside li", answers: ["/assistants/search"] },
  {
    name: "graphs",
    path: "graphs",
    row: ".graphs-page .chips a",
    answers: ["/assistants/search"],
  },
  { name: "system", path: "system", row: ".charts svg", answers: ["/metrics", "/history"] },
  { name: "thread", path: some, row: ".messages li", answers: ["/state", "/runs"] },
  { name: "its runs", path: `${some}?tab=runs`, row: ".runs a.main", answers: ["/runs"] },
  { name: "its history", path: `${some}?tab=history`, row: ".history .travel", answers: ["/history"] },
  { name: "run", path: `${some}/runs/${someRun?.run_id}`, row: ".line.task" },
  { name: "run of 100,000 events", path: `${longPath}/runs/${longRun?.run_id}`, row: ".line.task" },
  { name: "its thread", path: longPath, row: ".flow .card, .messages li", answers: ["/state", "/runs"] },
];

interface Measured {
  /** Milliseconds from the answer to the frame with the first row. */
  readonly row: number;
  /** Milliseconds that the server took. */
  readonly server: number;
}

/** An entry of the page's resource timing, in milliseconds. */
interface Answer {
  readonly name: string;
  readonly requestStart: number;
  readonly responseEnd: number;
}

async function measure(browser: Browser, { path, row, answers }: PageCase): Promise<Measured> {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  const page = await context.newPage();
  await page.addInitScript({
    content: `{
      const observer = new MutationObserver(() => {
        if (document.querySelector(${JSON.stringify(row)}) === null) return;
        observer.disconnect();
        requestAnimationFrame(() => (globalThis.firstRowAt = performance.now()));
      });
      observer.observe(document, { childList: true, subtree: true });
      globalThis.socketMessages = [];
      globalThis.WebSocket = class extends WebSocket {
        #sentAt = performance.now();
        constructor(...given) {
          super(...given);
          this.addEventListener("message", () => {
            const message = { name: this.url, requestStart: this.#sentAt, responseEnd: performance.now() };
            globalThis.socketMessages.push(message);
          }, { once: true });
        }
        send(data) {
          this.#sentAt = performance.now();
          super.send(data);
        }
      };
    }`,
  });
  await page.goto(`${app.url}/#/${path}`);
  await page.waitForFunction(() => "firstRowAt" in globalThis, undefined, { timeout: FIRST_ROW_TIMEOUT_MS });
  const at = await page.evaluate<number>("firstRowAt");
  const all = await page.evaluate<readonly Answer[]>(
    answers === undefined
      ? "socketMessages"
      : `performance.getEntriesByType("resource").map(({ name, requestStart, responseEnd }) => ({ name, requestStart, responseEnd }))`,
  );
  const needed = all
    .filter(({ name, responseEnd }) => {
      const { pathname } = new URL(name);
      return responseEnd <= at && answers?.some((end) => pathname.endsWith(end)) !== false;
    })
    .toSorted((a, b) => a.responseEnd - b.responseEnd);
  const last = needed.at(-1);
  if (last === undefined) throw new Error(`The answer that the first row of /${path} needs was not seen`);
  const measured = { row: at - last.responseEnd, server: last.responseEnd - last.requestStart };
  await context.close();
  return measured;
}

/** The measurement with the middle time of some, because others may use the machine too. */
async function middleOf(count: number, work: () => Promise<Measured>): Promise<Measured> {
  const all: Measured[] = [];
  // oxlint-disable-next-line no-await-in-loop -- one at a time, so that none slows another
  for (let i = 0; i < count; i++) all.push(await work());
  return all.toSorted((a, b) => a.row - b.row)[Math.floor(count / 2)] as Measured;
}

/** Sends commands of the Chrome DevTools Protocol, one after another, over a connection of their own. Resolves with the last result. */
async function devtools<T>(url: string, ...commands: readonly (readonly [string, object?])[]): Promise<T> {
  const socket = new WebSocket(url);
  try {
    await once(socket, "open");
    let result: unknown;
    for (const [id, [method, params = {}]] of commands.entries()) {
      socket.send(JSON.stringify({ id, method, params }));
      // oxlint-disable-next-line no-await-in-loop -- in order
      const [text] = (await once(socket, "message")) as [Buffer];
      const answer = JSON.parse(text.toString()) as { result?: unknown; error?: { message: string } };
      if (answer.error !== undefined) throw new Error(`${method}: ${answer.error.message}`);
      ({ result } = answer);
    }
    return result as T;
  } finally {
    socket.close();
  }
}

/**
 * A Chromium for measurements of memory. Playwright does not control it: it would have every tab keep the bodies of its responses for the
 * developer tools, up to 200 MB, which would count as memory of the tab.
 */
async function startPlainBrowser(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const profile = mkdtempSync(join(tmpdir(), "heddle-scale-"));
  const child = spawn(
    EXECUTABLE,
    [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--window-size=1400,900",
      "--remote-debugging-port=0",
      `--user-data-dir=${profile}`,
      "about:blank",
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  const ended = once(child, "exit");
  let output = "";
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-10_000);
      const found = /DevTools listening on (ws:\S+)/.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`Chromium ended with ${code}:\n${output}`)));
  });
  const close = async () => {
    // A signal would end only the script that starts the browser.
    await devtools(url, ["Browser.close"]);
    await ended;
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  return { url, close };
}

/** The number of collections of a tab's heap in each minute, and the milliseconds between two of them. */
const COLLECTIONS = 3;
const COLLECTION_INTERVAL_MS = 1_000;

/**
 * Bytes of a tab: its heap after a collection, and its process. The smallest of several heaps counts: while a page reads and parses a response,
 * its heap has up to 2 MiB more, which the next collection frees.
 */
async function memoryOf(tab: Tab): Promise<Memory> {
  let least = await collectedMemoryOf(tab);
  for (let i = 1; i < COLLECTIONS; i++) {
    // oxlint-disable-next-line no-await-in-loop -- one collection after the other
    await sleep(COLLECTION_INTERVAL_MS);
    // oxlint-disable-next-line no-await-in-loop -- one collection after the other
    const memory = await collectedMemoryOf(tab);
    if (memory.heap < least.heap) least = memory;
  }
  return least;
}

interface Memory {
  readonly heap: number;
  readonly resident: number;
}

async function collectedMemoryOf({ url, pid }: Tab): Promise<Memory> {
  const { usedSize } = await devtools<{ usedSize: number }>(
    url,
    ["HeapProfiler.collectGarbage"],
    ["Runtime.getHeapUsage"],
  );
  const resident = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return { heap: usedSize, resident: Number(resident) * 1024 };
}

interface Tab {
  readonly name: string;
  /** The address at which it is measured. */
  readonly url: string;
  readonly pid: number;
}

async function tab(browser: string, name: string, path: string): Promise<Tab> {
  const pids = async () => {
    const { processInfo } = await devtools<{ processInfo: { type: string; id: number }[] }>(browser, [
      "SystemInfo.getProcessInfo",
    ]);
    return processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id);
  };
  const before = new Set(await pids());
  // A browser context of its own gives it a process of its own.
  const { browserContextId } = await devtools<{ browserContextId: string }>(browser, [
    "Target.createBrowserContext",
    { disposeOnDetach: false },
  ]);
  const { targetId } = await devtools<{ targetId: string }>(browser, [
    "Target.createTarget",
    { url: `${app.url}/#/${path}`, browserContextId },
  ]);
  await sleep(5_000);
  const pid = (await pids()).find((id) => !before.has(id));
  if (pid === undefined) throw new Error(`the tab "${name}" has no process of its own`);
  return { name, url: new URL(`/devtools/page/${targetId}`, browser).href, pid };
}

/** Starts runs at a steady rate until `isOver`: some on the thread that is open, the others on further ones. */
async function updates(isOver: () => boolean): Promise<void> {
  const others = await ask<readonly { thread_id: string }[]>("/threads/search", {
    limit: 500,
    select: ["thread_id"],
  });
  for (let i = 0; !isOver(); i++) {
    const thread = i % LIVE_RATE === 0 ? someRun?.thread_id : others[i % others.length]?.thread_id;
    const body = { assistant_id: "work", input: inputOf(i % 40 === 7 ? "bad" : "good"), ...MODES };
    void ask(`/threads/${thread}/runs`, { ...body, multitask_strategy: "enqueue" }).catch(() => undefined);
    await sleep(1000 / LIVE_RATE);
  }
}

const breaches: string[] = [];
const browser = await chromium.launch({
  executablePath: EXECUTABLE,
  args: ["--no-sandbox", "--disable-gpu"],
});
try {
  write("page: the server's answer, from it to the first row");
  for (const one of pages) {
    // The first load compiles the script, and fills the server's caches.
    await measure(browser, one);
    const { row, server } = await middleOf(LOADS, () => measure(browser, one));
    write(`  ${one.name}: ${server.toFixed(0)} ms, ${row.toFixed(0)} ms`);
    if (row > MAX_FIRST_ROW_MS) breaches.push(`${one.name}: first row after ${row.toFixed(0)} ms`);
  }
  if (minutes > 0) {
    const plain = await startPlainBrowser();
    try {
      const tabs = [
        await tab(plain.url, "threads, and one of them", some),
        await tab(plain.url, "runs", "runs"),
        await tab(plain.url, "inbox", "inbox"),
        await tab(plain.url, "system", "system"),
      ];
      let isOver = false;
      const load = updates(() => isOver);
      const first = new Map<Tab, number>();
      write("memory of tabs, heap after a collection (process), in MiB");
      for (let minute = 1; minute <= minutes; minute++) {
        await sleep(60_000);
        const cells: string[] = [];
        for (const one of tabs) {
          const { heap, resident } = await memoryOf(one);
          if (minute === 1) first.set(one, heap);
          const growth = heap / (first.get(one) ?? heap);
          cells.push(`${one.name} ${(heap / 2 ** 20).toFixed(1)} (${(resident / 2 ** 20).toFixed(0)})`);
          if (minute === minutes && growth > MAX_GROWTH)
            breaches.push(`${one.name}: ${growth.toFixed(2)} times the memory of the first minute`);
        }
        write(`  minute ${minute}: ${cells.join(", ")}`);
      }
      isOver = true;
      await load;
    } finally {
      await plain.close();
    }
  }
} finally {
  await browser.close();
  await app.close(0);
}
writeLoad();
for (const breach of breaches) write(`EXCEEDED ${breach}`);
process.exit(breaches.length > 0 ? 1 : 0);
