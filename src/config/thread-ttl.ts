import { isObject } from "../model/json.ts";
import { MAX_TTL_MINUTES, ttlStrategies, type ThreadLifetime, type TtlStrategy } from "../model/thread.ts";

/** The settings of `checkpointer.ttl` in a configuration file. */
export interface ThreadTtlConfig {
  /** The default lifetime of threads; absent: they do not expire. */
  readonly lifetime?: ThreadLifetime;
  /** Milliseconds between two searches for expired threads, which are then deleted. */
  readonly interval?: number;
}

/** Reads `checkpointer.ttl`. `refuse` is called with what is wrong. */
export function readThreadTtl(given: unknown, refuse: (what: string) => never): ThreadTtlConfig {
  if (!isObject(given)) return refuse("checkpointer.ttl must be an object");
  const { strategy = "delete", default_ttl: minutes, sweep_interval_minutes: sweep } = given;
  if (!isStrategy(strategy)) refuse(`checkpointer.ttl.strategy must be one of ${ttlStrategies.join(", ")}`);
  if (isSaid(minutes) && !isMinutes(minutes)) refuse("checkpointer.ttl.default_ttl must be minutes, above 0");
  if (isSaid(sweep) && !isMinutes(sweep)) {
    refuse("checkpointer.ttl.sweep_interval_minutes must be minutes, above 0");
  }
  return {
    ...(isMinutes(minutes) && { lifetime: { strategy: strategy as TtlStrategy, minutes } }),
    ...(isMinutes(sweep) && { interval: sweep * 60_000 }),
  };
}

const isSaid = (value: unknown) => value !== undefined && value !== null;

const isMinutes = (value: unknown): value is number =>
  typeof value === "number" && value > 0 && value <= MAX_TTL_MINUTES;

const isStrategy = (value: unknown): value is TtlStrategy =>
  (ttlStrategies as readonly unknown[]).includes(value);
