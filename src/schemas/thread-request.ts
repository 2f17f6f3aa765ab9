import { invalidField } from "../model/errors.ts";
import { parseUuid } from "../model/ids.ts";
import type { ThreadLifetime, TtlStrategy } from "../model/thread.ts";
import { parseValuePath, type ValuePath } from "../service/value-path.ts";
import type { ThreadSearchQuery } from "../service/thread-search.ts";
import type { RawBody } from "./read-body.ts";
import { PAGE_LIMITS, PAGE_OFFSETS, threadSearchSchema } from "./request-schemas.ts";

/** Converts the `ttl` of a request. A plain number is the number of minutes after which the thread is deleted. */
export function toThreadLifetime(
  ttl: number | { readonly ttl: number; readonly strategy?: TtlStrategy },
): ThreadLifetime {
  if (typeof ttl === "number") return { strategy: "delete", minutes: ttl };
  return { strategy: ttl.strategy ?? "delete", minutes: ttl.ttl };
}

/** The largest number of paths in `extract` of one search. */
const MAX_PATHS = 10;
/** The names with which a path in `extract` may begin. */
const ROOTS: readonly unknown[] = ["values", "metadata", "config", "interrupts", "status", "error"];

/** Parses the body of a thread search. @throws ServiceError `validation.failed` */
export function parseThreadSearch(body: RawBody): ThreadSearchQuery {
  const {
    limit = PAGE_LIMITS.initial,
    offset = PAGE_OFFSETS.initial,
    ids,
    extract,
    ...rest
  } = threadSearchSchema.parse(body);
  return {
    ...rest,
    limit,
    offset,
    ...(ids && { ids: ids.map((id) => parseUuid(id) ?? id) }),
    ...(extract && { extract: pathsOf(extract) }),
  };
}

function pathsOf(extract: { readonly [name: string]: string }): ReadonlyMap<string, ValuePath> {
  const entries = Object.entries(extract);
  if (entries.length > MAX_PATHS) throw invalidField("extract", `must not have more than ${MAX_PATHS} paths`);
  return new Map(
    entries.map(([name, text]) => {
      const path = parseValuePath(text);
      if (path !== undefined && ROOTS.includes(path[0])) return [name, path];
      throw invalidField(
        `extract.${name}`,
        `must be a path such as values.messages[-1].content, and begin with one of ${ROOTS.join(", ")}`,
      );
    }),
  );
}
