import type { ThreadSystem } from "../../actors/port.ts";
import type { Checkpoint } from "../model/checkpoint.ts";
import { ServiceError } from "../model/errors.ts";
import { contains, type JsonObject } from "../model/json.ts";
import type { ThreadKey, ThreadRecord } from "../model/thread.ts";
import type { Engine } from "../ports/engine.ts";
import type { Journal } from "../ports/journal.ts";
import { type Question, questionsOf } from "./questions.ts";
import { checkpointOf, metadataOf } from "./records.ts";
import { latestAt, snapshot, type Asked, type StateSelection } from "./snapshot.ts";
import { writeOf, type UpdateRequest } from "./supersteps.ts";
import { threadAt, whole } from "./threads.ts";

/** A place in a thread's history. */
export interface StatePlace {
  /** `""`: the root graph; else a subgraph's namespace. */
  readonly ns: string;
  /** A checkpoint's id in lower case; null: the latest one. */
  readonly id: string | null;
}

export interface HistoryRequest extends StatePlace {
  readonly limit: number;
  /** Only states older than this checkpoint. */
  readonly before?: string;
  /** Only states whose metadata has all this. */
  readonly metadata?: JsonObject;
}

/** A thread's states over time. */
export interface States {
  /** @throws ServiceError `thread.not_found`, `checkpoint.not_found` */
  at(key: ThreadKey, place: StatePlace, selection: StateSelection): Promise<JsonObject>;
  /**
   * The newest first, those of all branches; the thread's own state is the first of all. @throws ServiceError
   * `thread.not_found`, `checkpoint.not_found`
   */
  history(key: ThreadKey, asked: HistoryRequest, selection: StateSelection): Promise<readonly JsonObject[]>;
  /**
   * Changes the state at a place, on a branch of its own where that is not the latest one. Resolves, once stored, with what
   * the wire tells of the checkpoint that was made.
   * @throws ServiceError as {@link ThreadSystem.update} does, and `validation.failed`
   */
  update(key: ThreadKey, place: StatePlace, update: UpdateRequest): Promise<JsonObject>;
  /**
   * The questions that wait, each with what it takes for an answer: states have the interrupts alone.
   * @throws ServiceError `thread.not_found`
   */
  questions(key: ThreadKey): Promise<readonly Question[]>;
}

interface Deps {
  readonly system: ThreadSystem;
  readonly journal: Journal;
  readonly engine: Engine;
}

/** Checkpoints that are looked at in one go where not all of them are wanted. */
const GO = 100;

export function createStates({ system, journal, engine }: Deps): States {
  async function checkpointOfPlace(key: ThreadKey, ns: string, id: string): Promise<Checkpoint> {
    const found = await journal.checkpoint(key, ns, id);
    if (found !== undefined) return found;
    throw new ServiceError("checkpoint.not_found", `Checkpoint ${id} not found`);
  }

  async function laterOf(key: ThreadKey, { ns, id }: Checkpoint): Promise<Checkpoint | undefined> {
    const [later] = await journal.history(key, { ns, limit: 1, after: id });
    return later;
  }

  async function one(asked: Asked, record: ThreadRecord, { ns, id }: StatePlace & { id: string }) {
    const checkpoint = await checkpointOfPlace(asked.key, ns, id);
    const latest = ns === "" && record.checkpoint === id;
    return snapshot(asked, checkpoint, latest ? undefined : await laterOf(asked.key, checkpoint));
  }

  /** Checkpoints, each with the next newer one. */
  async function page(key: ThreadKey, { ns, limit, before, metadata }: HistoryRequest) {
    const found: { readonly checkpoint: Checkpoint; readonly later: Checkpoint | undefined }[] = [];
    let older = before;
    let later = before === undefined ? undefined : await journal.checkpoint(key, ns, before);
    for (;;) {
      const go = metadata === undefined ? limit - found.length : GO;
      if (go <= 0) return found;
      // oxlint-disable-next-line no-await-in-loop -- each begins where the one before ended
      const some = await journal.history(key, {
        ns,
        limit: go,
        ...(older !== undefined && { before: older }),
      });
      for (const checkpoint of some) {
        if (metadata === undefined || contains(metadataOf(key.thread, checkpoint, true), metadata)) {
          found.push({ checkpoint, later });
        }
        later = checkpoint;
        if (found.length === limit) return found;
      }
      older = some.at(-1)?.id;
      if (some.length < go) return found;
    }
  }

  /** The thread's own state first, should it stand at an older one: it went back there and has not gone on. */
  async function ownFirst(
    key: ThreadKey,
    { checkpoint: own, seq }: ThreadRecord,
    asked: HistoryRequest,
    found: Awaited<ReturnType<typeof page>>,
  ) {
    if (own === null || asked.ns !== "" || asked.before !== undefined) return found;
    if (found[0]?.checkpoint.id === own) return found;
    // The thread has moved on since its record was read.
    if ((await threadAt(journal, key)).seq !== seq) return found;
    const checkpoint = await checkpointOfPlace(key, "", own);
    const { metadata } = asked;
    if (metadata !== undefined && !contains(metadataOf(key.thread, checkpoint, true), metadata)) return found;
    const others = found.filter((other) => other.checkpoint.id !== own);
    return [{ checkpoint, later: undefined }, ...others].slice(0, asked.limit);
  }

  return {
    at: (key, place, selection) =>
      whole(journal, key, async (record) => {
        const asked = { engine, journal, key, selection };
        const id = place.id ?? (place.ns === "" ? record.checkpoint : null);
        if (id === null) return latestAt(asked, place.ns);
        return one(asked, record, { ns: place.ns, id });
      }),

    history: (key, request, selection) =>
      whole(journal, key, async (record) => {
        const asked = { engine, journal, key, selection };
        if (request.id !== null) return [await one(asked, record, { ns: request.ns, id: request.id })];
        const found = await ownFirst(key, record, request, await page(key, request));
        const states: JsonObject[] = [];
        for (const { checkpoint, later } of found) {
          const latest = request.ns === "" && checkpoint.id === record.checkpoint;
          // oxlint-disable-next-line no-await-in-loop -- a long state after the other, not all in memory at once being read
          states.push(await snapshot(asked, checkpoint, latest ? undefined : later));
        }
        return states;
      }),

    questions: questionsOf(journal),

    async update(key, { ns, id }, update) {
      const supersteps = [[writeOf(update, "")]];
      const made = await system.update(key, { from: id, ns, supersteps });
      const checkpoint = checkpointOf(key.thread, made.ns, made.id);
      const { checkpoint_map: _, ...configurable } = checkpoint;
      return { checkpoint, configurable, checkpoint_id: made.id };
    },
  };
}
