import type { Checkpoint } from "../model/checkpoint.ts";
import { EMPTY_OBJECT, type JsonObject } from "../model/json.ts";
import type { TimeBudget, BudgetShare } from "../ports/time-budget.ts";
import { andThen, type Eventually } from "../ports/eventually.ts";
import {
  LARGE_VALUE_BYTES,
  readListItems,
  readWholeValue,
  type PausableRead,
  type PauseReason,
  type ValueSource,
} from "./channel-values.ts";
import type { DecodedValuesCache } from "./decoded-values-cache.ts";

/**
 * The maximum number of list segments and whole values that are read in one turn of the event loop. Reading that many takes some
 * milliseconds.
 */
const MAX_READS_PER_TURN = 256;

/**
 * Reads the state at a checkpoint: the values of `channels`, or of all channels if that is undefined. A small state is read in one turn of
 * the event loop, a large one in pieces that yield to other work. `shared`: a cache of large values that other reads have decoded.
 */
export function readStateValues(
  source: ValueSource,
  checkpoint: Checkpoint,
  channels: readonly string[] | undefined,
  budget: TimeBudget,
  shared?: DecodedValuesCache,
): Eventually<JsonObject> {
  const reading = new Reading(source, checkpoint, channels, shared);
  const stop = reading.advance();
  return stop === "end" ? reading.values : reading.rest(stop, budget.share(source.key.tenant));
}

class Reading {
  readonly values: Record<string, unknown> = {};
  readonly #source: ValueSource;
  readonly #segments: PausableRead<void>;
  /** The bytes that were read in this turn of the event loop. */
  #bytes = 0;

  constructor(
    source: ValueSource,
    checkpoint: Checkpoint,
    channels: readonly string[] | undefined,
    shared: DecodedValuesCache | undefined,
  ) {
    const get = (key: string): Eventually<Buffer | undefined> =>
      andThen(source.get(key), (bytes) => {
        this.#bytes += bytes?.length ?? 0;
        return bytes;
      });
    const decode = shared?.decode.bind(shared, this.values);
    this.#source = { ...EMPTY_OBJECT, ...source, get, ...(decode && { decode }) };
    this.#segments = this.#fill(checkpoint, channels ?? Object.keys(checkpoint.channels));
  }

  *#fill(checkpoint: Checkpoint, channels: readonly string[]): PausableRead<void> {
    const { values } = this;
    for (const channel of channels) {
      if (!Object.hasOwn(checkpoint.channels, channel)) continue;
      const ref = checkpoint.channels[channel];
      if (ref === undefined) continue;
      if (ref.kind === "small") values[channel] = ref.value;
      else if (ref.kind === "whole") {
        values[channel] = yield* readWholeValue(this.#source, channel, ref.at);
        yield;
      } else {
        const items: unknown[] = [];
        yield* readListItems(this.#source, channel, ref.spans, items);
        values[channel] = items;
      }
    }
  }

  /**
   * Reads until {@link MAX_READS_PER_TURN} segments or values, or more than {@link LARGE_VALUE_BYTES} bytes, were read in this turn of the
   * event loop, or until the read has to wait. Returns why it stopped. `value`: the result of the promise for which the read waited last.
   */
  advance(value?: unknown): PauseReason | "end" {
    this.#bytes = 0;
    let step = this.#segments.next(value);
    for (let i = 1; step.done !== true && step.value === undefined; i++) {
      if (i >= MAX_READS_PER_TURN || this.#bytes > LARGE_VALUE_BYTES) return undefined;
      step = this.#segments.next();
    }
    return step.done === true ? "end" : step.value;
  }

  async rest(first: PauseReason, share: BudgetShare): Promise<JsonObject> {
    for (let stop: PauseReason | "end" = first; stop !== "end";) {
      if (stop instanceof Promise) stop = this.advance(await stop);
      else {
        await share.next();
        stop = this.advance();
      }
    }
    return this.values;
  }
}
