import { type CronFilter, type CronRecord, matchesCron, type OnRunCompleted } from "../../model/cron.ts";
import { ServiceError } from "../../model/errors.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Permits } from "../../model/permitted-resources.ts";
import type { ThreadKey } from "../../model/thread.ts";
import type { TimeBudget } from "../../ports/time-budget.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CronStorage } from "../../ports/cron-storage.ts";
import type { Engine } from "../../ports/engine.ts";
import type { Journal } from "../../ports/journal.ts";
import type { Assistants } from "../assistants.ts";
import { SortedPages } from "../sorted-pages.ts";
import { requireStorable, requireStorableObject } from "../storable-values.ts";
import { visibleThread } from "../threads.ts";
import type { Webhooks } from "../webhooks/webhooks.ts";
import { checkCronRun } from "./cron-run-request.ts";
import { firstSlot, nextSlot } from "./cron-schedule.ts";

/** The settings of a cron: when it fires, and which run it starts. In an update every field is optional. */
export interface CronDefinition {
  readonly schedule?: string;
  /** An IANA name; null: UTC. */
  readonly timezone?: string | null;
  /** Epoch milliseconds; null: no end. */
  readonly end_time?: number | null;
  readonly enabled?: boolean;
  readonly on_run_completed?: OnRunCompleted;
  readonly metadata?: JsonObject;
  /** Fields of a run request. Their types have been checked already. */
  readonly run: JsonObject;
}

export interface NewCron extends CronDefinition {
  /** An assistant's id, or the name of a graph. */
  readonly assistant_id: string;
  readonly schedule: string;
}

export const cronOrders = [
  "cron_id",
  "assistant_id",
  "thread_id",
  "next_run_date",
  "end_time",
  "created_at",
  "updated_at",
] as const;

type CronOrder = (typeof cronOrders)[number];

export interface CronSearch extends CronFilter {
  readonly limit: number;
  readonly offset: number;
  readonly sort_by?: CronOrder;
  readonly sort_order?: "asc" | "desc";
}

/** The owner of a new cron, if the server has users: the user who creates it, the cron's id, and which assistants the cron may use. */
export interface CronOwner {
  /** The id that a new cron gets. */
  readonly cron_id: string;
  /** The user for whom the cron starts runs, in the form in which users are stored. */
  readonly user: JsonObject;
  /** Returns whether the cron may use an assistant with this metadata; absent: it may use all. */
  readonly mayUse?: Permits | undefined;
}

/**
 * The crons of all tenants. `permits` returns whether the request may reach a cron with the given metadata. Other crons count as missing.
 */
export interface Crons {
  /**
   * Creates a cron whose runs get a thread of their own. @throws ServiceError `validation.failed`, `assistant.not_found`, `graph.not_found`
   */
  create(tenant: string, settings: NewCron, owner?: CronOwner): Promise<CronRecord>;
  /** Creates a cron whose runs use this thread. @throws ServiceError as {@link create}, and `thread.not_found` */
  createOn(key: ThreadKey, settings: NewCron, owner?: CronOwner): Promise<CronRecord>;
  /** @throws ServiceError `cron.not_found` */
  get(tenant: string, id: string, permits?: Permits): Promise<CronRecord>;
  /**
   * Replaces the given fields; metadata is merged. If the run request changes, `user` becomes the user of the cron's runs, so that nobody
   * can start a changed run in another user's name.
   * @throws ServiceError `cron.not_found`, `validation.failed`; if the run request changes, also `assistant.not_found` and
   * `graph.not_found`
   */
  update(
    tenant: string,
    id: string,
    settings: CronDefinition,
    permits?: Permits,
    user?: JsonObject,
  ): Promise<CronRecord>;
  /** @throws ServiceError `cron.not_found` */
  delete(tenant: string, id: string, permits?: Permits): Promise<void>;
  /** Default order: newest first. `assistant_id` may be a graph's name. */
  search(
    tenant: string,
    query: CronSearch,
  ): Promise<{ readonly crons: readonly CronRecord[]; readonly total: number }>;
  count(tenant: string, filter: CronFilter): Promise<number>;
  /** Deletes the crons of an assistant that was deleted. */
  deleteOfAssistant(tenant: string, assistant: string): Promise<void>;
  /** Deletes the crons of a thread that was deleted. */
  deleteOfThread(key: ThreadKey): Promise<void>;
  /** True when the cron's thread or assistant was deleted. */
  isUseless(tenant: string, cron: CronRecord): Promise<boolean>;
  /** Registers the one listener that is called when a cron has been created or changed. */
  watch(listener: () => void): void;
}

interface Deps {
  readonly cronStorage: CronStorage;
  readonly journal: Journal;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly assistants: Assistants;
  readonly webhooks: Webhooks;
  /** Makes long searches yield to other work. */
  readonly budget: TimeBudget;
}

export function createCrons(parts: Deps): Crons {
  const { cronStorage, journal, clock, newId, assistants, webhooks, budget } = parts;
  let listener: () => void = () => undefined;
  const gone = () => new ServiceError("cron.not_found", "Cron not found");

  async function make(
    tenant: string,
    thread: string | null,
    settings: NewCron,
    owner: CronOwner | undefined,
  ): Promise<CronRecord> {
    const { run, schedule, timezone = null, end_time = null, enabled = true } = settings;
    checkWebhook(run);
    const assistant = await assistants.resolve(tenant, settings.assistant_id, owner?.mayUse);
    const { assistant_id } = assistant;
    const now = clock.now();
    const first = firstSlot({ schedule, timezone }, now);
    const cron: CronRecord = {
      cron_id: owner?.cron_id ?? newId(),
      assistant_id,
      thread_id: thread,
      on_run_completed: thread === null ? (settings.on_run_completed ?? "delete") : null,
      schedule,
      timezone,
      end_time,
      next: enabled ? within(first, end_time) : null,
      enabled,
      payload: stored(run),
      metadata: requireStorableObject(settings.metadata, "metadata"),
      user: owner?.user ?? null,
      created_at: now,
      updated_at: now,
    };
    await checkCronRun(parts, tenant, cron, assistant);
    await cronStorage.change({ tenant, cron: cron.cron_id }, () => cron);
    listener();
    return cron;
  }

  async function get(tenant: string, id: string, permits?: Permits): Promise<CronRecord> {
    return reachable(await cronStorage.find({ tenant, cron: id }), permits);
  }

  /** @throws ServiceError `cron.not_found` */
  function reachable(cron: CronRecord | undefined, permits: Permits | undefined): CronRecord {
    if (cron === undefined || permits?.(cron.metadata) === false) throw gone();
    return cron;
  }

  function checkWebhook({ webhook }: JsonObject): void {
    if (typeof webhook === "string") webhooks.accept({ webhook });
  }

  async function* found(tenant: string, filter: CronFilter): AsyncGenerator<CronRecord> {
    const wanted = await named(tenant, filter);
    for await (const cron of cronStorage.list(tenant)) if (matchesCron(cron, wanted)) yield cron;
  }

  /** Replaces the name of a graph in `assistant_id` by the id of the graph's default assistant. */
  async function named(tenant: string, filter: CronFilter): Promise<CronFilter> {
    if (filter.assistant_id === undefined) return filter;
    try {
      const { assistant_id } = await assistants.resolve(tenant, filter.assistant_id);
      return { ...filter, assistant_id };
    } catch (cause) {
      // The assistant does not exist. Its id is kept, because crons of a deleted assistant may still exist.
      if (cause instanceof ServiceError && cause.code.endsWith(".not_found")) return filter;
      throw cause;
    }
  }

  return {
    create: (tenant, settings, owner) => make(tenant, null, settings, owner),

    async createOn(key, settings, owner) {
      await visibleThread(journal, key);
      return make(key.tenant, key.thread, settings, owner);
    },

    get,

    async update(tenant, id, settings, permits, user) {
      checkWebhook(settings.run);
      // The run is checked only if it changes: a cron whose graph has changed can still be disabled or rescheduled.
      const isRunChanged = Object.keys(settings.run).length > 0;
      if (isRunChanged) {
        const cron = merged(await get(tenant, id, permits), settings, clock.now());
        await checkCronRun(parts, tenant, cron, await assistants.resolve(tenant, cron.assistant_id));
      }
      const changed = await cronStorage.change({ tenant, cron: id }, (before) => {
        const after = merged(reachable(before, permits), settings, clock.now());
        return isRunChanged && user !== undefined ? { ...after, user } : after;
      });
      listener();
      return changed as CronRecord;
    },

    async delete(tenant, id, permits) {
      await cronStorage.change({ tenant, cron: id }, (before) => {
        reachable(before, permits);
        return null;
      });
    },

    async search(tenant, { limit, offset, sort_by = "created_at", sort_order = "desc", ...filter }) {
      // Keeps only the ids and sort keys of the matching crons in memory, because crons may have large inputs. The crons of the page are
      // read afterwards.
      const places = async function* (): AsyncGenerator<Place> {
        for await (const cron of found(tenant, filter)) yield placeOf(cron, sort_by);
      };
      const ordered = new SortedPages(places, placeOrder(sort_order));
      const share = budget.share(tenant);
      const crons: CronRecord[] = [];
      let left = limit;
      for await (const { id } of ordered.from(offset, limit)) {
        if (left-- === 0) break;
        if (share.isSpent()) await share.next();
        const cron = await cronStorage.find({ tenant, cron: id });
        // The cron may have been deleted since the scan.
        if (cron !== undefined) crons.push(cron);
      }
      return { crons, total: ordered.total };
    },

    async count(tenant, filter) {
      let count = 0;
      for await (const _ of found(tenant, filter)) count++;
      return count;
    },

    async deleteOfAssistant(tenant, assistant) {
      for await (const cron of cronStorage.list(tenant)) {
        if (cron.assistant_id === assistant)
          await cronStorage.change({ tenant, cron: cron.cron_id }, (now) =>
            now === undefined ? undefined : null,
          );
      }
    },

    async deleteOfThread({ tenant, thread }) {
      for (const cron of await cronStorage.ofThread(tenant, thread)) {
        await cronStorage.change({ tenant, cron }, (now) => (now?.thread_id === thread ? null : undefined));
      }
    },

    async isUseless(tenant, { thread_id: thread, assistant_id }) {
      if (thread !== null && (await journal.thread({ tenant, thread })) === undefined) return true;
      try {
        await assistants.get(tenant, assistant_id);
        return false;
      } catch (cause) {
        if (cause instanceof ServiceError && cause.code === "assistant.not_found") return true;
        throw cause;
      }
    },

    watch(heard) {
      listener = heard;
    },
  };
}

/** Applies an update to a cron, and computes the next time at which it fires, from `now` on. */
function merged(before: CronRecord, settings: CronDefinition, now: number): CronRecord {
  const { run, metadata, on_run_completed, ...times } = settings;
  const cron = { ...before, ...times, updated_at: now };
  const next = firstSlot(cron, now);
  return {
    ...cron,
    on_run_completed: before.thread_id === null ? (on_run_completed ?? before.on_run_completed) : null,
    next: cron.enabled ? within(next, cron.end_time) : null,
    payload: { ...before.payload, ...stored(run) },
    metadata: { ...before.metadata, ...requireStorableObject(metadata, "metadata") },
  };
}

/** Checks that the fields of a run request can be stored. Errors use the names that the fields have in the request. */
const stored = (run: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(run).map(([field, value]) => [field, requireStorable(value, field)]));

const within = (slot: number | null, end: number | null) =>
  slot === null || (end !== null && slot > end) ? null : slot;

/**
 * The cron after it has fired at `slot`. It fires next at the first time of its schedule after both `slot` and `now`. All times are epoch
 * milliseconds.
 */
export function advancedCron(cron: CronRecord, slot: number, now: number): CronRecord {
  return { ...cron, next: within(nextSlot(cron, Math.max(slot, now)), cron.end_time) };
}

type Sortable = string | number | null;

interface Place {
  readonly id: string;
  readonly by: Sortable;
}

const placeOf = (cron: CronRecord, sort_by: CronOrder): Place => ({
  id: cron.cron_id,
  by: sort_by === "next_run_date" ? cron.next : cron[sort_by],
});

/** Compares the sort keys of two crons, and their ids if the keys are equal. Ids are unique and sort by creation time. */
function placeOrder(sort_order: "asc" | "desc"): (a: Place, b: Place) => number {
  const sign = sort_order === "desc" ? -1 : 1;
  return (a, b) => sign * (compare(a.by, b.by) || compare(a.id, b.id));
}

/** Returns a function that compares two crons, as a search with this order sorts them. */
export function compareCrons(
  sort_by: CronOrder,
  sort_order: "asc" | "desc",
): (a: CronRecord, b: CronRecord) => number {
  const order = placeOrder(sort_order);
  return (a, b) => order(placeOf(a, sort_by), placeOf(b, sort_by));
}

/** Orders sort keys. A missing value comes last in ascending order. */
function compare(one: Sortable, other: Sortable): number {
  if (one === other) return 0;
  if (one === null) return 1;
  if (other === null) return -1;
  return one < other ? -1 : 1;
}
