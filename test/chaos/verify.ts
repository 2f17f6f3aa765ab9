import { setTimeout as sleep } from "node:timers/promises";
import {
  everythingRests,
  GONE,
  nothingIsLost,
  type RunNow,
  type ThreadNow,
} from "./checkers/acknowledged.ts";
import { machineKeepsItsWord } from "./checkers/machines.ts";
import { everyEndIsDelivered } from "./checkers/webhooks.ts";
import { idsGrow, resumeIsExact } from "./checkers/streams.ts";
import { ConnectionLost, type Client, type Frame, type StreamEnd } from "./client.ts";
import type { Effects } from "./effects.ts";
import { settle, type WebhookReceiver } from "./webhook-receiver.ts";
import type { Ledger, RunEntry, StreamEntry, Violation } from "./ledger.ts";
import { TERMINAL } from "./load.ts";
import type { SeededRandom } from "./random.ts";

/** Milliseconds: the limit for undisturbed work to finish. */
export const REST = 15_000;
/** Milliseconds by which a timer may be late. */
const LATE = 5_000;
/** The number of streams read concurrently. */
const TOGETHER = 16;
/** The share of completed streams that are replayed. */
const SAMPLE = 0.2;

export interface Verification {
  readonly client: Client;
  readonly ledger: Ledger;
  readonly dice: SeededRandom;
  readonly hooks: WebhookReceiver;
  readonly effects: Effects;
  readonly found: (violation: Violation) => void;
  /** True: verify everything that was ever acknowledged; false: only what may have changed since the last time. */
  readonly all: boolean;
}

/** Verifies everything acknowledged on a restarted server: I1, I3, and the streams: I4, I5. */
export async function verify(verification: Verification): Promise<void> {
  const { client, ledger, hooks, found, all } = verification;
  const doubtful = [...ledger.runs.values()].filter((entry) => all || entry.status === undefined);
  const names = all ? [...ledger.threads.keys()] : [...ledger.threads.keys()].slice(-100);
  const threads = new Set([...names, ...doubtful.map((entry) => entry.thread)]);

  // Streams are resumed first: a reader comes back as soon as it can, while the run continues.
  const [resumed] = await Promise.all([
    resumeStreams(verification, doubtful),
    letMachinesGoOn(verification).then(() => allRest(client, [...threads])),
  ]);

  const runs: RunNow[] = [];
  const states: ThreadNow[] = [];
  for (const thread of threads) {
    const statuses = await runStatuses(client, thread);
    for (const entry of ledger.runsOf(thread)) runs.push({ entry, status: statuses.get(entry.run) });
    states.push(await threadNow(client, thread));
  }
  for (const violation of [...nothingIsLost(ledger, runs, states), ...everythingRests(runs, states, REST)]) {
    found(violation);
  }
  await checkMachines(verification, runs);
  if (all) {
    const owed = await settle(client);
    for (const violation of everyEndIsDelivered(runs, hooks.delivered, owed)) found(violation);
  }
  for (const { entry, status } of runs) {
    if (status !== undefined && !TERMINAL.has(status)) continue;
    entry.status ??= status ?? GONE;
    entry.ended ??= ledger.now();
  }
  const there = new Set(runs.filter((now) => now.status !== undefined).map((now) => now.entry.run));
  await compareStreams(verification, doubtful, resumed, there);
}

/** Starts a run without input on the machines that were held when the server died. */
async function letMachinesGoOn({ client, ledger }: Verification): Promise<void> {
  for (const machine of ledger.machines.values()) {
    if (!machine.needsRun) continue;
    const body = { assistant_id: "machine", input: null, multitask_strategy: "enqueue" };
    const { status } = await client.json("POST", `/threads/${machine.thread}/runs`, body);
    if (status === 200) machine.needsRun = false;
  }
}

async function allRest(client: Client, threads: readonly string[]): Promise<void> {
  const deadline = performance.now() + REST;
  let busy = [...threads];
  while (busy.length > 0 && performance.now() < deadline) {
    const still: string[] = [];
    for (const thread of busy) {
      const { json } = await client.json("GET", `/threads/${thread}`);
      const { status, values } = (json ?? {}) as { status?: string; values?: MachineValues | null };
      const { __snapshot__: machine } = values ?? {};
      const timers = machine?.timers ?? [];
      const awaited = timers.some(({ due }) => due + LATE > Date.now());
      if (status === "busy" || awaited) still.push(thread);
    }
    busy = still;
    if (busy.length > 0) await sleep(50);
  }
}

/** The values of a machine's thread. */
interface MachineValues {
  readonly record?: readonly string[];
  readonly mark?: number;
  readonly __output__?: unknown;
  readonly __snapshot__?: { readonly timers?: readonly { readonly due: number }[] };
}

/** Compares the machines of these runs with the events that were sent to them. */
async function checkMachines(
  { client, ledger, effects, found }: Verification,
  runs: readonly RunNow[],
): Promise<void> {
  effects.read();
  const noted = new Set<string>();
  const results = new Set<string>();
  for (const { node, task, pid, attempt } of effects.all) {
    if (node === "note") noted.add(task.replace("note ", ""));
    else if (node === "work") results.add(`${task}/${pid}-${attempt}`);
  }
  // What a run had to do that was given up is not done.
  const failed = new Set(runs.flatMap(({ entry, status }) => (status === "error" ? entry.thread : [])));
  const cancelled = new Set<string | undefined>(
    runs.flatMap(({ entry, status }) => (status === "interrupted" ? entry.run : [])),
  );
  for (const thread of new Set(runs.map(({ entry }) => entry.thread))) {
    const machine = ledger.machines.get(thread);
    if (machine === undefined || failed.has(thread)) continue;
    const { json } = await client.json("GET", `/threads/${thread}/state`);
    const { record = [], mark, __output__ } = (json as { values?: MachineValues }).values ?? {};
    const { marks } = machine;
    // An event whose own run was cancelled may have been taken before that or not.
    const sent = machine.sent.map((event) =>
      cancelled.has(event.run) ? { ...event, acknowledged: undefined } : event,
    );
    const now = { thread, sent, record, mark, marks, output: __output__ ?? undefined, noted, results };
    for (const violation of machineKeepsItsWord(now)) found(violation);
  }
}

async function runStatuses(client: Client, thread: string): Promise<Map<string, string>> {
  const statuses = new Map<string, string>();
  for (let offset = 0; ; offset += 500) {
    const { status, json } = await client.json("GET", `/threads/${thread}/runs?limit=500&offset=${offset}`);
    const page = status === 200 ? (json as { run_id: string; status: string }[]) : [];
    for (const run of page) statuses.set(run.run_id, run.status);
    if (page.length < 500) return statuses;
  }
}

async function threadNow(client: Client, thread: string): Promise<ThreadNow> {
  const got = await client.json("GET", `/threads/${thread}`);
  if (got.status !== 200) return { thread, status: undefined, log: [] };
  const { json } = await client.json("GET", `/threads/${thread}/state`);
  const log = (json as { values?: { log?: unknown } } | undefined)?.values?.log;
  return {
    thread,
    status: (got.json as { status: string }).status,
    log: Array.isArray(log) ? log.map(String) : [],
  };
}

interface Resumed {
  readonly entry: RunEntry;
  readonly modes: readonly string[];
  readonly before: readonly Frame[];
  readonly after: readonly Frame[];
}

/** Resumes streams that a kill has cut, from the id of the last received event. */
async function resumeStreams(
  { client, found }: Verification,
  entries: readonly RunEntry[],
): Promise<Resumed[]> {
  const cut = entries.flatMap((entry) =>
    entry.streams.filter((stream) => stream.how === "cut").map((stream) => ({ entry, stream })),
  );
  return together(cut, async ({ entry, stream }) => {
    const { frames: after, ended } = await read(client, entry, stream.modes, stream.frames.at(-1)?.id ?? -1);
    if (!ended) {
      found({
        invariant: "I3",
        message: `run ${entry.run}: a resumed stream did not come to its end within ${REST} ms`,
        evidence: { thread: entry.thread, before: stream.frames.length, after: after.length },
      });
    }
    return { entry, modes: stream.modes, before: stream.frames, after };
  });
}

/** Compares the received events with a replay from the start: all resumed streams, and a sample of the others. */
async function compareStreams(
  { client, dice, found }: Verification,
  entries: readonly RunEntry[],
  resumed: readonly Resumed[],
  there: ReadonlySet<string>,
): Promise<void> {
  await together(resumed, async ({ entry, modes, before, after }) => {
    if (!there.has(entry.run)) return;
    const { frames: replay } = await read(client, entry, modes, -1);
    for (const violation of [
      ...idsGrow(entry.run, replay, true),
      ...resumeIsExact(entry.run, before, after, replay),
    ]) {
      found(violation);
    }
    // A stream that was cut is complete now, and is not resumed a second time.
    for (const stream of entry.streams) {
      if (stream.frames !== before) continue;
      stream.frames.push(...after);
      stream.how = "end";
    }
  });
  const whole = entries.flatMap((entry) =>
    entry.streams.filter((stream) => stream.how === "end").map((stream) => ({ entry, stream })),
  );
  const some = whole.filter(({ entry }) => there.has(entry.run) && dice.chance(SAMPLE));
  await together(some, async ({ entry, stream }) => {
    const { frames: replay } = await read(client, entry, stream.modes, -1);
    // Also reads from a random position, for all streams.
    const at = replay.length === 0 ? -1 : dice.between(0, replay.length - 1);
    const { frames: rest } = await read(client, entry, stream.modes, replay[at]?.id ?? -1);
    for (const violation of [
      ...resumeIsExact(entry.run, stream.frames, [], replay),
      ...resumeIsExact(entry.run, replay.slice(0, at + 1), rest, replay),
    ]) {
      found(violation);
    }
  });
}

async function read(client: Client, entry: RunEntry, modes: StreamEntry["modes"], after: number) {
  return readOn(client, `/threads/${entry.thread}/runs/${entry.run}`, modes, after);
}

/** Reads a run's stream after an event; `ended`: it ended in time. */
export async function readOn(client: Client, run: string, modes: StreamEntry["modes"], after: number) {
  const frames: Frame[] = [];
  const query = modes.map((mode) => `stream_mode=${mode}`).join("&");
  const end: StreamEnd | undefined = await Promise.race([
    client.stream(
      "GET",
      `${run}/stream?${query}`,
      undefined,
      { "last-event-id": String(after) },
      () => {},
      (frame) => frames.push(frame),
    ),
    sleep(REST, undefined, { ref: false }),
  ]);
  if (end?.how === "cut") throw new ConnectionLost(end.error ?? "a stream was cut");
  return { status: end?.status ?? 200, frames, ended: end !== undefined };
}

/** Processes a list with limited concurrency. */
export async function together<T, R>(list: readonly T[], each: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const left = list.values();
  await Promise.all(
    Array.from({ length: TOGETHER }, async () => {
      for (const one of left) results.push(await each(one));
    }),
  );
  return results;
}
