import type { ChannelVersions, Checkpoint, CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { JsonObject } from "../model/json.ts";
import { serialise } from "./serialisation.ts";

/**
 * A checkpoint that LangGraph has passed to the saver's `put`. Its values are serialised when they are first read. The receiver of the
 * checkpoint MUST read them before another node runs, because a node may change the objects.
 */
export class SaverCheckpoint {
  readonly ns: string;
  readonly parent: string | null;
  /** The id under which the checkpoint is stored. */
  readonly id: string;
  /** LangGraph's id of the checkpoint. */
  readonly langGraphId: string;
  readonly v: number;
  readonly ts: string;
  readonly versions: ChannelVersions;
  readonly seen: Checkpoint["versions_seen"];
  /** The versions of the channels that have changed since the parent checkpoint. */
  readonly newVersions: ChannelVersions;
  readonly source: CheckpointMetadata["source"];
  readonly step: number;
  #rest: object | null;
  #metadata: JsonObject = {};
  #live: Checkpoint["channel_values"] | null;
  #values: JsonObject = {};

  constructor(
    place: { readonly id: string; readonly ns: string; readonly parent: string | null },
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ) {
    this.ns = place.ns;
    this.parent = place.parent;
    this.id = place.id;
    this.langGraphId = checkpoint.id;
    this.v = checkpoint.v;
    this.ts = checkpoint.ts;
    // LangGraph passes copies of these members, which contain no objects of the user, so they need not be serialised now.
    this.versions = checkpoint.channel_versions;
    this.seen = checkpoint.versions_seen;
    this.newVersions = newVersions;
    const { source, step, ...rest } = metadata;
    this.source = source;
    this.step = step;
    this.#rest = rest;
    this.#live = checkpoint.channel_values;
  }

  /** The values of all channels that have one, each value as `serialise` returns it. */
  get values(): JsonObject {
    if (this.#live !== null) {
      this.#values = showMembers(this.#live);
      this.#live = null;
    }
    return this.#values;
  }

  /** The checkpoint's metadata, without `source` and `step`. */
  get metadata(): JsonObject {
    if (this.#rest !== null) {
      this.#metadata = serialise(this.#rest) as JsonObject;
      this.#rest = null;
    }
    return this.#metadata;
  }
}

/** Writes of a task that LangGraph has passed to the saver's `putWrites`. They are serialised once, when they are first read. */
export class SaverWrites {
  readonly ns: string;
  readonly checkpoint: string;
  readonly task: string;
  #live: readonly (readonly [channel: string, value: unknown])[] | null;
  #shown: readonly (readonly [channel: string, value: unknown])[] = [];

  constructor(
    place: { readonly ns: string; readonly checkpoint: string; readonly task: string },
    writes: readonly (readonly [channel: string, value: unknown])[],
  ) {
    this.ns = place.ns;
    this.checkpoint = place.checkpoint;
    this.task = place.task;
    this.#live = writes;
  }

  /** The writes in order, each value as `serialise` returns it. */
  get writes(): readonly (readonly [channel: string, value: unknown])[] {
    if (this.#live !== null) {
      this.#shown = this.#live.map(([channel, value]) => [channel, serialise(value)]);
      this.#live = null;
    }
    return this.#shown;
  }

  get isError(): boolean {
    return (this.#live ?? this.#shown).some(([channel]) => channel === "__error__");
  }
}

function showMembers(live: { readonly [name: string]: unknown }): JsonObject {
  const shown: Record<string, unknown> = {};
  for (const name of Object.keys(live)) shown[name] = serialise(live[name]);
  return shown;
}
