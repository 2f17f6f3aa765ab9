import { isObject } from "../model/json.ts";
import type { RawBody } from "./body.ts";
import { invalidField } from "./errors.ts";

/** Known fields that are not served yet, and what may stand in them because it asks for nothing. */
type Unserved = { readonly [field: string]: (value: unknown) => boolean };

const only =
  (...values: readonly unknown[]) =>
  (value: unknown) =>
    values.includes(value);
const blank = (value: unknown) => isObject(value) && Object.keys(value).length === 0;

const bodies = {
  thread: {},
  run: {},
  assistant: {},
  // A run starts from a state of its root graph.
  checkpoint: { checkpoint_ns: only(""), checkpoint_map: blank },
} as const satisfies { readonly [body: string]: Unserved };

/** Refuses what would otherwise be ignored, and so be taken for served. @throws ServiceError `validation.failed` */
export function refuseUnserved(body: RawBody, kind: keyof typeof bodies): void {
  refuse(body, bodies[kind], "");
  if (kind !== "run" && kind !== "assistant") return;
  const { checkpoint, config } = body;
  if (kind === "run" && isObject(checkpoint)) refuse(checkpoint, bodies.checkpoint, "checkpoint.");
  const configurable = isObject(config) ? config["configurable"] : undefined;
  if (isObject(configurable)) refuse(configurable, bodies.checkpoint, "config.configurable.");
}

function refuse(object: { readonly [name: string]: unknown }, unserved: Unserved, under: string): void {
  for (const field in unserved) {
    const value = Object.hasOwn(object, field) ? object[field] : undefined;
    if (value === undefined || value === null || unserved[field]?.(value)) continue;
    throw invalidField(`${under}${field}`, "is not served yet");
  }
}
