import type { RecorderContext, RecorderEvent } from "../../fixtures/machines/recorder.ts";
import type { Effect } from "../effects.ts";
import type { Violation } from "../ledger.ts";
import type { Snapshot } from "../snapshot.ts";
import type { Finished } from "./repeats.ts";

/** An event that a client has sent to a machine. */
export interface SentEvent {
  readonly type: RecorderEvent["type"];
  readonly n: string;
  /** By any clock that tells what came before what. */
  readonly sent: number;
  /** When its acknowledgement had arrived; undefined: it never has. */
  acknowledged: number | undefined;
  /** The run that takes it. */
  run?: string;
}

/** A number that a client has written into the context of a machine. Each is larger than those before it. */
export interface SentMark {
  readonly n: number;
  acknowledged: boolean;
}

/** A machine that rests: no run is in progress, and no timer is set. */
export interface MachineNow {
  readonly thread: string;
  readonly sent: readonly SentEvent[];
  readonly record: readonly string[];
  /** The mark in its context; undefined: none. */
  readonly mark?: number | undefined;
  readonly marks?: readonly SentMark[];
  /** Undefined: the machine is not done. */
  readonly output: unknown;
  /** Events whose custom action has run. */
  readonly noted: ReadonlySet<string>;
  /** The results of the actor, of all its attempts. */
  readonly results: ReadonlySet<string>;
}

/** The entry that must come before another about the same event. */
const CAUSE: Readonly<Record<string, string>> = {
  begin: "take",
  done: "begin",
  fired: "take",
  returned: "take",
  tick: "take",
  tock: "tick",
};

/** The entry that must follow sooner or later, unless the machine is done. */
const EFFECT: Readonly<Record<string, string>> = { begin: "done", tick: "tock" };

/** The same for an event that the machine has taken, by its type. */
const EFFECT_OF_EVENT: Readonly<Partial<Record<RecorderEvent["type"], string>>> = {
  LATER: "fired",
  HAND: "returned",
};

/**
 * I14: a machine takes each acknowledged event once and in order, each of its timers fires once, its child machine hands back
 * once what it was handed, each result of an
 * actor is taken once, custom actions have run, and the output is that of the last state.
 */
export function machineKeepsItsWord(now: MachineNow): Violation[] {
  const { thread, sent, record, output, noted, results } = now;
  const found: Violation[] = [];
  const say = (what: string) =>
    found.push({ invariant: "I14", message: `the machine of thread ${thread} ${what}`, evidence: now });
  const events = new Map(sent.map((event) => [event.n, event]));
  const entries = new Set<string>();
  let latest = Number.NEGATIVE_INFINITY;
  for (const entry of record) {
    const [what = "", n = "", result] = entry.split(" ");
    if (entries.has(`${what} ${n}`)) say(`has "${what} ${n}" twice`);
    entries.add(`${what} ${n}`);
    const cause = CAUSE[what];
    if (cause !== undefined && !entries.has(`${cause} ${n}`)) say(`has "${entry}", and no "${cause} ${n}"`);
    if (result !== undefined && !(result.startsWith(`${n}/`) && results.has(result)))
      say(`has "${entry}", which no actor has returned`);
    if (what !== "take") continue;
    const event = events.get(n);
    if (event === undefined) say(`took event ${n}, which nobody has sent`);
    else if ((event.acknowledged ?? Number.POSITIVE_INFINITY) < latest)
      say(`took event ${n} after one that was sent when it was acknowledged`);
    latest = Math.max(latest, event?.sent ?? latest);
  }
  const { mark, marks = [] } = now;
  const least = marks.findLast(({ acknowledged }) => acknowledged)?.n ?? 0;
  if ((mark ?? 0) < least) say(`has lost mark ${least}: it has ${mark ?? "none"}`);
  if (mark !== undefined && !marks.some(({ n }) => n === mark))
    say(`has mark ${mark}, which nobody has written`);
  for (const { type, n, acknowledged } of sent) {
    const isTaken = entries.has(`take ${n}`);
    if (acknowledged !== undefined && !isTaken) say(`has lost event ${n} (${type})`);
    if (isTaken && (type === "NOTE" || type === "WORK") && !noted.has(n))
      say(`took event ${n} (${type}), and its action never ran`);
    if (isTaken && type === "FINISH" && output === undefined) say(`took event ${n}, and is not done`);
  }
  if (output !== undefined) {
    if (JSON.stringify(output) !== JSON.stringify(record)) say("is done with another output than its record");
    return found;
  }
  for (const entry of entries) {
    const [what = "", n = ""] = entry.split(" ");
    const type = what === "take" ? events.get(n)?.type : undefined;
    const next = type === undefined ? EFFECT[what] : EFFECT_OF_EVENT[type];
    if (next !== undefined && !entries.has(`${next} ${n}`))
      say(`has "${entry}", and "${next} ${n}" never came`);
  }
  return found;
}

/** I14 as stored: what a machine has written down stays, in the state of every later checkpoint. */
export function recordsGrow({ threads }: Snapshot): Violation[] {
  const found: Violation[] = [];
  for (const { key, checkpoints } of threads) {
    const records = new Map(checkpoints.map((at) => [at.checkpoint.id, recordOf(at.values)]));
    for (const { checkpoint } of checkpoints) {
      const before = checkpoint.parent === null ? undefined : records.get(checkpoint.parent);
      const after = records.get(checkpoint.id) ?? [];
      if (before === undefined || before.every((entry, place) => after[place] === entry)) continue;
      found.push({
        invariant: "I14",
        message: `thread ${key.thread}: the machine's record at checkpoint ${checkpoint.id} is not its parent's with more`,
        evidence: { before, after },
      });
    }
  }
  return found;
}

const recordOf = (values: Partial<RecorderContext>): readonly string[] => values.record ?? [];

/** Work of actors that must not begin again: its result is stored, whether or not the machine has taken it. */
export function storedResults({ threads }: Snapshot, effects: readonly Effect[]): Finished[] {
  const found: Finished[] = [];
  for (const { key, checkpoints } of threads) {
    const stored = checkpoints.map(({ values, writes }) => [
      values["record"],
      values["__events__"],
      writes.map(({ result }) => result),
    ]);
    const jobs = new Set([...JSON.stringify(stored).matchAll(/(\w+)\/\d+-\d+/g)].map(([, n = ""]) => n));
    for (const task of jobs)
      found.push({
        task,
        run: key.thread,
        effects: effects.length,
        why: "the result of its actor was stored",
      });
  }
  return found;
}
