import { parseFields } from "../model/errors.ts";
import { isObject } from "../model/json.ts";
import { MAX_TTL_MINUTES, ttlStrategies, type ThreadLifetime, type TtlStrategy } from "../model/thread.ts";

/** The settings of `checkpointer.ttl` in a configuration file. */
export interface ThreadTtlConfig {
  /** The default lifetime of threads. Absent: threads do not expire. */
  readonly lifetime?: ThreadLifetime;
  /** Milliseconds between two searches for expired threads. These are then deleted or pruned, as `lifetime.strategy` says. */
  readonly interval?: number;
}

/** Reads `checkpointer.ttl`. If it is invalid, calls `refuse` with the key and what is wrong. */
export function parseThreadTtl(given: unknown, refuse: (what: string) => never): ThreadTtlConfig {
  if (!isObject(given)) return refuse("checkpointer.ttl must be an object");
  const parseMinutes = (name: string) => (): number | undefined => {
    const value = given[name] ?? undefined;
    if (value === undefined || isMinutes(value)) return value;
    return refuse(`checkpointer.ttl.${name} must be a number of minutes, above 0`);
  };
  const { strategy, minutes, sweep } = parseFields({
    strategy: () => {
      const { strategy = "delete" } = given;
      if (isStrategy(strategy)) return strategy;
      return refuse(`checkpointer.ttl.strategy must be one of ${ttlStrategies.join(", ")}`);
    },
    minutes: parseMinutes("default_ttl"),
    sweep: parseMinutes("sweep_interval_minutes"),
  });
  return {
    ...(minutes !== undefined && { lifetime: { strategy, minutes } }),
    ...(sweep !== undefined && { interval: sweep * 60_000 }),
  };
}

const isMinutes = (value: unknown): value is number =>
  typeof value === "number" && value > 0 && value <= MAX_TTL_MINUTES;

const isStrategy = (value: unknown): value is TtlStrategy =>
  (ttlStrategies as readonly unknown[]).includes(value);
