import { isTerminal, type RunStatus } from "../../src/model/run.ts";
import { threadStatusOf, type ThreadKey } from "../../src/model/thread.ts";
import { machineKeepsItsWord, type SentEvent } from "../chaos/checkers/machines.ts";
import { splitThreadKey } from "../../src/storage/keys.ts";
import type { SimulatedMachine } from "./machines.ts";
import type { StatelessRun } from "./observed.ts";
import { Transcript } from "./transcript.ts";
import type { World } from "./world.ts";

/** Checks a world at rest. I2, I8, I11 and I12 were checked while it ran. */
export async function check(world: World): Promise<readonly string[]> {
  await world.drive(checkAll(world));
  return world.observed.violations;
}

async function checkAll(world: World): Promise<void> {
  const { observed } = world;
  for (const [id, key] of observed.admitted) await checkRun(world, key, id);
  for (const key of world.clients.threads) await checkThread(world, key);
  for (const machine of world.clients.machines.all) {
    if (!machine.hasBegun) continue;
    await checkThread(world, machine.key);
    await checkMachine(world, machine);
  }
  for (const [id, stateless] of observed.stateless) await checkStateless(world, stateless, id);
  const { journal, catalog } = world.life.storage;
  for await (const { key, what } of journal.verify())
    observed.violation("I4", `thread ${key.thread}: ${what}`);
  for await (const key of journal.unsettled())
    observed.violation("I7", `thread ${key.thread} is marked as at work`);
  const listed = new Set((await catalog.threads("_", { limit: 1_000 })).map(({ thread }) => thread));
  for (const thread of observed.threads) {
    if (!listed.has(thread)) observed.violation("I7", `thread ${thread} is not in the index`);
  }
  for (const run of observed.batches.refused())
    observed.violation("I13", `run ${run} was stored, although its batch was refused`);
  for (const at of world.disk.values.keys()) {
    const thread = splitThreadKey(at)?.key.thread;
    if (thread !== undefined && !listed.has(thread)) observed.violation("I10", `${at} was left behind`);
    if (at.startsWith("!sweep/")) observed.violation("I10", `${at} is to be swept for ever`);
  }
}

async function checkRun(world: World, key: ThreadKey, id: string): Promise<void> {
  const { observed } = world;
  const { journal } = world.life.storage;
  const record = await journal.run(key, id);
  if (record === undefined) {
    const mayBeGone = observed.rollable.has(id) || observed.rolled.has(key.thread);
    if (!mayBeGone) observed.violation("I1", `run ${id} was acknowledged and is gone`);
    return;
  }
  if (!isTerminal(record.status)) observed.violation("I3", `run ${id} is ${record.status} for ever`);
  await checkWebhook(world, key, id, record.status);
  const transcript = world.clients.transcripts.get(id);
  if (transcript === undefined) return;
  for (const fault of transcript.faults) observed.violation("I4", `run ${id}: ${fault}`);
  // Only the thread of a stateless run is deleted while a client may still read: some time after its end.
  if (transcript.isThreadDeleted)
    observed.violation("I4", `run ${id}: its reader was told that the thread was deleted`);
  const all = await Transcript.replay(world.life.runLogs, key, record);
  // The received events must equal the log, from the start without a gap up to the last received one.
  const last = transcript.last;
  const expected = [...all].filter(([event]) => event <= last);
  let place = 0;
  for (const [event, text] of transcript.frames) {
    const certain = place++ >= transcript.uncertain;
    const stored = all.get(event);
    if (stored === undefined ? certain : stored !== text) {
      observed.violation("I5", `run ${id}: event ${event} was ${text}, is ${stored ?? "not stored"}`);
    }
  }
  for (const [event, text] of expected) {
    const missed = !transcript.frames.has(event) && transcript.uncertain === 0;
    if (missed) observed.violation("I5", `run ${id}: event ${event} was never received: ${text}`);
  }
  if (transcript.ended && transcript.uncertain === 0 && all.size !== transcript.frames.size) {
    observed.violation(
      "I5",
      `run ${id}: the stream ended after ${transcript.frames.size} of ${all.size} events`,
    );
  }
}

/**
 * Checks a stateless run: it continued, or was stopped, to an end that had to be stored. Then it is deleted with its
 * thread, and only its pending webhook remains.
 */
async function checkStateless(
  world: World,
  { key, acknowledged, temporary }: StatelessRun,
  id: string,
): Promise<void> {
  const { observed } = world;
  const { journal } = world.life.storage;
  if ((await journal.thread(key)) !== undefined) {
    observed.violation("I10", `thread ${key.thread} (${temporary}) has outlived run ${id}`);
  }
  for (const fault of world.clients.transcripts.get(id)?.faults ?? [])
    observed.violation("I4", `run ${id}: ${fault}`);
  if (!acknowledged) return;
  // A run that no client can observe any more may end without a webhook.
  const mayStop = temporary === "bound" && !observed.hooked.has(id);
  if (!observed.closed.has(id) && !mayStop)
    observed.violation("I1", `run ${id} (${temporary}) is gone without an end`);
  if (!observed.rollable.has(id)) await checkWebhook(world, key, id);
}

/** I9: every end with a webhook has a pending delivery, and nothing else has. */
async function checkWebhook(
  world: World,
  { tenant }: ThreadKey,
  id: string,
  status?: RunStatus,
): Promise<void> {
  const { observed } = world;
  const { outbox } = world.life.storage;
  const owed = await outbox.find({ tenant, id });
  const content = await outbox.content({ tenant, id });
  const hooked = observed.hooked.has(id);
  if (!hooked) {
    if (owed !== undefined || observed.delivered.has(id))
      observed.violation("I9", `run ${id} has no webhook, and one is owed`);
    return;
  }
  const delivered = observed.delivered.get(id) ?? new Set();
  for (const said of delivered) {
    if (status !== undefined && said !== status)
      observed.violation("I9", `run ${id} is ${status}, and was delivered as ${said}`);
  }
  if (delivered.size > 1)
    observed.violation("I9", `run ${id} ended once, and was delivered as ${[...delivered].join()}`);
  // A delivery is pending until it has been received.
  if (delivered.size > 0 && owed === undefined) return;
  if (owed === undefined || content === undefined) {
    return observed.violation("I9", `run ${id} ended, and its webhook is not owed`);
  }
  if (!isTerminal(content.run.status))
    observed.violation("I9", `run ${id} is delivered as ${content.run.status}`);
  if (status !== undefined && content.run.status !== status) {
    observed.violation("I9", `run ${id} is ${status}, and is delivered as ${content.run.status}`);
  }
}

async function checkThread(world: World, key: ThreadKey): Promise<void> {
  const { observed } = world;
  const { journal } = world.life.storage;
  const thread = await journal.thread(key);
  if (thread === undefined)
    return observed.violation("I1", `thread ${key.thread} was acknowledged and is gone`);
  if (threadStatusOf(thread) === "busy") observed.violation("I3", `thread ${key.thread} is busy for ever`);
  // I6: the state equals the sequence of the steps' writes.
  const history = [...(await journal.history(key, { ns: "", limit: 10_000 }))].reverse();
  const logs = new Map<string, readonly string[]>();
  for (const checkpoint of history) {
    const before = checkpoint.parent === null ? [] : logs.get(checkpoint.parent);
    if (before === undefined) {
      observed.violation("I6", `checkpoint ${checkpoint.id} has lost its parent`);
      continue;
    }
    const stepped = checkpoint.source === "loop" || checkpoint.source === "update";
    const added = Object.entries(stepped ? (checkpoint.writes ?? {}) : {})
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([, update]) => (update as { log?: string[] } | null)?.log ?? []);
    const { log = [] } = (await journal.sharedValues(key, checkpoint, ["log"])) as {
      log?: readonly string[];
    };
    logs.set(checkpoint.id, log);
    const { run_id: run } = checkpoint;
    if (run === null) {
      // Pending writes of finished tasks count as well.
      const whole = JSON.stringify([log.slice(0, before.length), log.slice(log.length - added.length)]);
      if (whole !== JSON.stringify([before, added])) {
        observed.violation("I6", `checkpoint ${checkpoint.id}: ${JSON.stringify(log)} is no update`);
      }
      continue;
    }
    if (observed.atExit.has(run)) {
      if (!isWholeRun(before, log, added)) {
        observed.violation(
          "I6",
          `checkpoint ${checkpoint.id}: ${JSON.stringify(log)} is no run after ${JSON.stringify(before)}`,
        );
      }
      continue;
    }
    if (JSON.stringify(log) !== JSON.stringify([...before, ...added])) {
      observed.violation(
        "I6",
        `checkpoint ${checkpoint.id}: ${JSON.stringify(log)} is not ${JSON.stringify([...before, ...added])}`,
      );
    }
  }
  for (const { thread: of, checkpoint } of observed.updates) {
    if (of === key.thread && !logs.has(checkpoint)) {
      observed.violation("I1", `the update ${checkpoint} was acknowledged and is gone`);
    }
  }
  if (thread.checkpoint !== null && !logs.has(thread.checkpoint)) {
    observed.violation("I6", `thread ${key.thread} stands at a checkpoint that is not in its history`);
  }
}

async function checkMachine({ observed, life }: World, machine: SimulatedMachine): Promise<void> {
  const { key, marks } = machine;
  const { journal } = life.storage;
  const [head] = await journal.history(key, { ns: "", limit: 1 });
  const {
    record = [],
    mark,
    __output__,
  } = (head === undefined ? {} : await journal.values(key, head)) as {
    readonly record?: readonly string[];
    readonly mark?: number;
    readonly __output__?: unknown;
  };
  const { noted, results } = observed;
  const sent: SentEvent[] = [];
  for (const event of machine.sent) {
    // oxlint-disable-next-line no-await-in-loop -- the data is in memory
    const run = event.run === undefined ? undefined : await journal.run(key, event.run);
    // An event whose own run was cancelled may have been taken before that or not.
    sent.push(run?.status === "interrupted" ? { ...event, acknowledged: undefined } : event);
  }
  const now = {
    thread: key.thread,
    sent,
    marks,
    mark,
    record,
    output: __output__ ?? undefined,
    noted,
    results,
  };
  for (const { invariant, message } of machineKeepsItsWord(now)) observed.violation(invariant, message);
}

const planOf = (line: string): string => line.slice(0, line.indexOf(" "));

/** If a run stores nothing before its end, one checkpoint contains all that its steps added, including the last one. */
function isWholeRun(before: readonly string[], log: readonly string[], last: readonly string[]): boolean {
  const added = log.slice(before.length);
  const kept = JSON.stringify(log.slice(0, before.length)) === JSON.stringify(before);
  const own = new Set(added);
  // A run that goes on with another one's plan, after an update, may take that one's steps once more.
  const plans = new Set(before.map(planOf));
  const isOnce = [...own].every((line) => {
    const times = added.filter((other) => other === line).length;
    return times === 1 || (times === 2 && plans.has(planOf(line)));
  });
  return kept && isOnce && last.every((line) => own.has(line));
}
