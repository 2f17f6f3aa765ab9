import { isTerminal } from "../../src/model/run.ts";
import { threadStatus, type ThreadKey } from "../../src/model/thread.ts";
import { Transcript } from "./transcript.ts";
import type { World } from "./world.ts";

/** Checks I1 to I8 of a world that has come to rest (I2 and I8 were watched as it ran). */
export async function check(world: World): Promise<readonly string[]> {
  const { observed } = world;
  for (const [id, key] of observed.admitted) await checkRun(world, key, id);
  for (const key of world.threads) await checkThread(world, key);
  const { journal, catalog } = world.life.storage;
  for await (const { key, what } of journal.verify())
    observed.violation("I4", `thread ${key.thread}: ${what}`);
  for await (const key of journal.unsettled())
    observed.violation("I7", `thread ${key.thread} is marked as at work`);
  const listed = new Set((await catalog.threads("_", { limit: 1_000 })).map(({ thread }) => thread));
  for (const thread of observed.threads) {
    if (!listed.has(thread)) observed.violation("I7", `thread ${thread} is not in the index`);
  }
  return observed.violations;
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
  const transcript = world.transcripts.get(id);
  if (transcript === undefined) return;
  for (const fault of transcript.faults) observed.violation("I4", `run ${id}: ${fault}`);
  const all = await Transcript.replay(world.life.hub, key, record);
  // What was received must be what the log has, from the start without a gap up to the last one received.
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

async function checkThread(world: World, key: ThreadKey): Promise<void> {
  const { observed } = world;
  const { journal } = world.life.storage;
  const thread = await journal.thread(key);
  if (thread === undefined)
    return observed.violation("I1", `thread ${key.thread} was acknowledged and is gone`);
  if (threadStatus(thread) === "busy") observed.violation("I3", `thread ${key.thread} is busy for ever`);
  // I6: the state is what the steps say, one after another.
  const history = [...(await journal.history(key, { ns: "", limit: 10_000 }))].reverse();
  const logs = new Map<string, readonly string[]>();
  for (const checkpoint of history) {
    const before = checkpoint.parent === null ? [] : logs.get(checkpoint.parent);
    if (before === undefined) {
      observed.violation("I6", `checkpoint ${checkpoint.id} has lost its parent`);
      continue;
    }
    const added = Object.entries(checkpoint.source === "loop" ? (checkpoint.writes ?? {}) : {})
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([, update]) => (update as { log?: string[] } | null)?.log ?? []);
    const { log = [] } = (await journal.values(key, checkpoint, ["log"])) as { log?: readonly string[] };
    logs.set(checkpoint.id, log);
    if (JSON.stringify(log) !== JSON.stringify([...before, ...added])) {
      observed.violation(
        "I6",
        `checkpoint ${checkpoint.id}: ${JSON.stringify(log)} is not ${JSON.stringify([...before, ...added])}`,
      );
    }
  }
  if (thread.checkpoint !== null && !logs.has(thread.checkpoint)) {
    observed.violation("I6", `thread ${key.thread} stands at a checkpoint that is not in its history`);
  }
}
