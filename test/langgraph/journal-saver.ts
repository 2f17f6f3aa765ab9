import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import type { LangGraphLibrary } from "../../src/langgraph/user-library.ts";
import type { SaverCheckpoint, SaverWrites } from "../../src/langgraph/saver-inputs.ts";
import {
  toCheckpointRecord,
  storedLangGraphData,
  addWrites,
} from "../../src/langgraph/checkpoint-records.ts";
import { CheckpointIdMap } from "../../src/langgraph/checkpoint-id-map.ts";
import { createAttemptSaver, type SaverIo } from "../../src/langgraph/checkpoint-saver.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { Checkpoint as Stored } from "../../src/model/checkpoint.ts";
import type { CheckpointWithState } from "../../src/ports/engine.ts";
import type { Harness } from "../contracts/harness.ts";
import { Writer } from "../storage/samples.ts";

/** One thread over the journal: stores what a saver reports, as an attempt would. */
class ThreadIo implements SaverIo {
  readonly ids = new CheckpointIdMap({ checkpointId: (_, own = "") => own });
  readonly writer: Writer;
  readonly #storage: Harness;
  readonly #namespaces = new Set<string>();
  #tail: Promise<void>;

  constructor(storage: Harness, thread: string) {
    this.#storage = storage;
    this.writer = new Writer(() => storage.journal, { tenant: "_", thread });
    this.#tail = this.writer.append({ kind: "created" });
  }

  get #journal() {
    return this.#storage.journal;
  }

  /** Resolves when everything reported is stored. */
  async stored(): Promise<void> {
    await this.#tail;
  }

  async read(ns: string, id: string | null): Promise<CheckpointWithState | null> {
    await this.stored();
    const { key } = this.writer;
    const found =
      id === null
        ? (await this.#journal.history(key, { ns, limit: 1 }))[0]
        : await this.#journal.checkpoint(key, ns, id);
    return found === undefined ? null : this.#position(found);
  }

  async history(
    ns: string,
    query: { before?: string; limit: number },
  ): Promise<readonly CheckpointWithState[]> {
    await this.stored();
    const found = await this.#journal.history(this.writer.key, { ns, ...query });
    return Promise.all(found.map((one) => this.#position(one)));
  }

  async namespaces(): Promise<readonly string[]> {
    return [...this.#namespaces].toSorted();
  }

  async #position(head: Stored): Promise<CheckpointWithState> {
    const { key } = this.writer;
    const values = await this.#journal.values(key, head);
    return { head, values, writes: await this.#journal.writes(key, head.ns, head.id) };
  }

  put(made: SaverCheckpoint): void {
    this.#namespaces.add(made.ns);
    this.#then(async () => {
      const before = made.parent === null ? null : await this.#parent(made.ns, made.parent);
      const channels = storedLangGraphData(before?.head?.engine ?? null)?.channels ?? {};
      const shown = shownOf(made, before?.values ?? {});
      const record = toCheckpointRecord(
        made,
        shown,
        before === null ? { shown: {}, channels } : { shown: before.values, channels },
      );
      const rest = { run_id: null, writes: null, next: [], graph: "" };
      await this.writer.append({ checkpoints: [{ ...record, ...rest }] });
    });
  }

  async #parent(ns: string, id: string): Promise<CheckpointWithState | null> {
    const found = await this.#journal.checkpoint(this.writer.key, ns, id);
    return found === undefined ? null : this.#position(found);
  }

  putWrites({ ns, checkpoint, task, writes }: SaverWrites): void {
    this.#then(async () => {
      const left = await this.#journal.writes(this.writer.key, ns, checkpoint);
      const site = { ns, checkpoint, task, name: "" };
      const before = left.find((each) => each.task === task);
      await this.writer.append({ writes: [addWrites(site, writes, before)] });
    });
  }

  #then(work: () => Promise<void>): void {
    this.#tail = this.#tail.then(work);
  }
}

/** The state after a checkpoint: its changed channels, and the parent's other ones. */
function shownOf({ versions, newVersions, values }: SaverCheckpoint, before: JsonObject): JsonObject {
  const shown: Record<string, unknown> = {};
  for (const channel of Object.keys(versions)) {
    if (!Object.hasOwn(newVersions, channel)) {
      if (Object.hasOwn(before, channel)) shown[channel] = before[channel];
    } else if (Object.hasOwn(values, channel)) {
      shown[channel] = values[channel];
    }
  }
  return shown;
}

/**
 * A saver of many threads over the journal. Each call uses a new attempt's saver, so that it reads only what is stored.
 */
export class JournalSaver extends BaseCheckpointSaver {
  readonly #library: LangGraphLibrary;
  readonly #storage: Harness;
  readonly #threads = new Map<string, ThreadIo>();

  constructor(library: LangGraphLibrary, storage: Harness) {
    super();
    this.#library = library;
    this.#storage = storage;
  }

  #io(thread: string): ThreadIo {
    const io = this.#threads.get(thread) ?? new ThreadIo(this.#storage, thread);
    this.#threads.set(thread, io);
    return io;
  }

  #saver({ configurable }: RunnableConfig): BaseCheckpointSaver {
    const { thread_id: thread } = (configurable ?? {}) as { thread_id?: string };
    // Without a thread, the saver answers as for a missing one.
    return createAttemptSaver(this.#library, thread ?? "", this.#io(thread ?? ""));
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    return this.#saver(config).getTuple(config);
  }

  async *list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple> {
    const { thread_id: thread } = (config.configurable ?? {}) as { thread_id?: string };
    let { limit } = options ?? {};
    for (const each of thread === undefined ? this.#threads.keys() : [thread]) {
      const saver = createAttemptSaver(this.#library, each, this.#io(each));
      for await (const tuple of saver.list(config, { ...options, ...(limit !== undefined && { limit }) })) {
        if (limit !== undefined) limit--;
        yield tuple;
      }
    }
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    versions: ChannelVersions,
  ): Promise<RunnableConfig> {
    return this.#saver(config).put(config, checkpoint, metadata, versions);
  }

  async putWrites(config: RunnableConfig, writes: PendingWrite[], task: string): Promise<void> {
    await this.#saver(config).putWrites(config, writes, task);
  }

  async deleteThread(thread: string): Promise<void> {
    const { writer } = this.#io(thread);
    await this.#io(thread).stored();
    const { epoch, seq } = writer.record;
    await this.#storage.journal.remove(writer.key, { epoch, seq });
    this.#threads.delete(thread);
  }

  /** Resolves when everything passed to `put` is stored. */
  async stored(): Promise<void> {
    for (const io of this.#threads.values()) await io.stored();
  }
}
