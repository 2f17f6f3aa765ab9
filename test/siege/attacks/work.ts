import { setTimeout as sleep } from "node:timers/promises";
import { defineAttack, type Siege } from "../siege.ts";
import { expectRefusal } from "./searches.ts";

const MIB = 1024 * 1024;

/** Returns a JSON text of about `bytes` bytes: parts joined by commas. */
function filled(bytes: number, part: (i: number) => string): string {
  const parts: string[] = [];
  for (let i = 0, length = 0; length < bytes; i++) {
    const one = part(i);
    parts.push(one);
    length += one.length + 1;
  }
  return parts.join(",");
}

export const wrongBody = defineAttack({
  name: "wrong-body",
  sent: "a body of 10 MB that is wrong everywhere",
  full: { size: 10 * MIB, wait: 600 },
  small: { size: MIB },
  async attack({ hostile }, size: number) {
    // With no more entries than a body may have.
    const wrong = filled(size, () => "10000");
    for (const [path, body] of [
      ["/runs/wait", `{"assistant_id":"chat","config":{"tags":[${wrong}]}}`],
      ["/runs/wait", `{"assistant_id":"chat","command":{"goto":[${wrong}]}}`],
      ["/threads", `{"supersteps":[${wrong}]}`],
    ] as const) {
      expectRefusal(await hostile.send("POST", path, body), 422, '"errors"');
    }
  },
});

export const largeBodies = defineAttack({
  name: "large-bodies",
  sent: "bodies of 16 MiB: a wide object, empty lists, deep lists, small numbers, texts with an escape",
  full: { size: 15.9 * MIB, wait: 600 },
  small: { size: 2 * MIB },
  async attack({ hostile }, size: number) {
    const lists = `[${filled(size, () => "[]")}]`;
    const wide = `{${filled(size, (i) => `"${i.toString(36)}":0`)}}`;
    const deep = `[${filled(size, () => "[".repeat(200) + "]".repeat(200))}]`;
    const ones = `[${filled(size, () => "1")}]`;
    const numbers = `[${filled(size, () => "1000000.5")}]`;
    const escaped = `["\\ud83d\\ude00",${filled(size - 20, () => "1000000.5")}]`;
    const text = `"${"x".repeat(size)}"`;
    for (const value of [wide, lists, deep, ones]) {
      for (const member of ["metadata", "context", "input"]) {
        const answer = await hostile.send(
          "POST",
          "/runs/wait",
          `{"assistant_id":"chat","${member}":${value}}`,
        );
        if (size > 10 * MIB) expectRefusal(answer, 413, "too large");
      }
    }
    for (const value of [numbers, escaped, text]) {
      const { status, start } = await hostile.send("POST", "/threads", `{"metadata":{"value":${value}}}`);
      if (status !== 200) throw new Error(`answered ${status}: ${start.slice(0, 300)}`);
    }
  },
});

export const idleStates = defineAttack({
  name: "idle-states",
  sent: "runs on many threads, each of which leaves a large state",
  full: { size: { threads: 300, bytes: 4 * MIB } },
  async attack({ hostile }, { threads, bytes }: { threads: number; bytes: number }) {
    for (let i = 0; i < threads; i++) {
      await hostile.run(await hostile.thread(), "keep", { text: "x".repeat(bytes) });
    }
  },
});

export const largeRuns = defineAttack({
  name: "large-runs",
  sent: "runs on many threads at once, whose node makes a large state of a small input",
  full: { size: { threads: 40, bytes: 6 * MIB, runs: 3 }, memory: 900 },
  small: { size: { threads: 12, bytes: 2 * MIB, runs: 2 } },
  async attack(
    { hostile },
    size: { readonly threads: number; readonly bytes: number; readonly runs: number },
  ) {
    await Promise.all(
      Array.from({ length: size.threads }, async () => {
        const thread = await hostile.thread();
        for (let i = 0; i < size.runs; i++) await hostile.run(thread, "make", { size: size.bytes });
      }),
    );
  },
});

interface Many {
  readonly count: number;
}

export const assistantThreads = defineAttack({
  name: "assistant-threads",
  sent: "the delete of an assistant with thousands of threads",
  full: { size: { count: 3_000 } },
  small: { size: { count: 100 } },
  async prepare(siege: Siege, { count }: Many) {
    const { hostile } = siege;
    const { assistant_id } = await hostile.json<{ assistant_id: string }>("POST", "/assistants", {
      graph_id: "chat",
      name: "to be deleted",
    });
    for (let from = 0; from < count; from += 50) {
      await Promise.all(
        Array.from({ length: Math.min(50, count - from) }, async () => {
          const thread = await hostile.thread();
          await hostile.run(thread, assistant_id, { messages: [{ type: "human", content: "x" }] });
        }),
      );
    }
  },
  async attack({ hostile }) {
    const { start } = await hostile.send("POST", "/assistants/search", { name: "to be deleted" });
    const [{ assistant_id = "" } = {}] = JSON.parse(start) as { assistant_id?: string }[];
    const { status } = await hostile.send("DELETE", `/assistants/${assistant_id}?delete_threads=true`);
    if (status !== 204) throw new Error(`answered ${status}`);
    const left = await hostile.json<number>("POST", "/threads/count", { metadata: { assistant_id } });
    if (left !== 0) throw new Error(`${left} threads are left`);
  },
});

export const dueCrons = defineAttack({
  name: "due-crons",
  sent: "thousands of crons that are due at once",
  full: { size: { count: 3_000, isAwaited: true } },
  // The small size does not wait a minute; only the searches remain.
  small: { size: { count: 100, isAwaited: false } },
  async attack({ hostile }, { count, isAwaited }: Many & { readonly isAwaited: boolean }) {
    const end = new Date(Date.now() + 3_600_000).toISOString();
    for (let from = 0; from < count; from += 50) {
      await Promise.all(
        Array.from({ length: Math.min(50, count - from) }, () =>
          hostile.json("POST", "/runs/crons", {
            assistant_id: "chat",
            schedule: "* * * * *",
            end_time: end,
            input: { messages: [{ type: "human", content: "x" }] },
          }),
        ),
      );
    }
    const pages = [
      { limit: 10, sort_by: "next_run_date" },
      { limit: 1000 },
      { limit: 10, offset: count - 5 },
    ];
    for (const page of pages) {
      const { status, start } = await hostile.send("POST", "/runs/crons/search", page);
      if (status !== 200) throw new Error(`the search answered ${status}: ${start.slice(0, 300)}`);
    }
    const minute = 60_000;
    if (isAwaited) await sleep(minute - (Date.now() % minute) + 15_000);
  },
});

/** Milliseconds within which timers that are due at once have fired. */
const FIRED = 60_000;

export const dueTimers = defineAttack({
  name: "due-timers",
  sent: "thousands of machines whose timers are due at once",
  full: { size: { count: 10_000, seconds: 60 } },
  small: { size: { count: 200, seconds: 5 } },
  async prepare({ hostile }: Siege, { count, seconds }: Timers) {
    const at = Date.now() + seconds * 1_000;
    for (let from = 0; from < count; from += 50) {
      await Promise.all(
        Array.from({ length: Math.min(50, count - from) }, async () =>
          hostile.run(await hostile.thread(), "alarm", { at }),
        ),
      );
    }
  },
  async attack({ hostile }, { count, seconds }) {
    const rung = { status: "idle", metadata: { graph_id: "alarm" } };
    const deadline = Date.now() + seconds * 1_000 + FIRED;
    for (;;) {
      const fired = await hostile.json<number>("POST", "/threads/count", rung);
      if (fired === count) return;
      if (Date.now() > deadline) throw new Error(`${fired} of ${count} timers have fired`);
      await sleep(500);
    }
  },
});

interface Timers extends Many {
  /** Until they are due, from the beginning of the preparation. */
  readonly seconds: number;
}
