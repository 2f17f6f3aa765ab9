import { invalidField } from "../model/errors.ts";
import { parseUuid } from "../model/ids.ts";
import type { StateProjection } from "../service/state-snapshot.ts";
import type { HistoryRequest, StatePosition } from "../service/thread-states.ts";
import type { UpdateRequest } from "../service/state-update-requests.ts";
import type { RawBody } from "./read-body.ts";
import { historyReadSchema, PAGE_LIMITS, stateReadSchema, stateUpdateSchema } from "./request-schemas.ts";

type Checkpoint = NonNullable<ReturnType<typeof stateReadSchema.parse>["checkpoint"]>;

/**
 * The checkpoint that a request names: by the checkpoint's id, or else by the entry for its namespace in `checkpoint_map`. An `id` of null
 * means the latest checkpoint.
 */
function checkpointPositionOf(
  checkpoint: Checkpoint | undefined,
  checkpoint_id: string | undefined,
): StatePosition {
  const ns = checkpoint?.checkpoint_ns ?? "";
  const { checkpoint_map: map } = checkpoint ?? {};
  const mapped = map && Object.hasOwn(map, ns) ? map[ns] : undefined;
  return { ns, id: parseUuid(checkpoint?.checkpoint_id ?? checkpoint_id ?? mapped) ?? null };
}

/** Parses a request for a state. @throws ServiceError `validation.failed` */
export function parseStateRequest(body: RawBody): {
  readonly position: StatePosition;
  readonly projection: StateProjection;
} {
  const { checkpoint, checkpoint_id, subgraphs, select = [], list_limit } = stateReadSchema.parse(body);
  const whole = subgraphs === true || subgraphs === "true";
  return {
    position: checkpointPositionOf(checkpoint, checkpoint_id),
    projection: {
      ...projectionOf(select),
      ...(whole && { subgraphs: true }),
      ...(list_limit !== undefined && { listLimit: list_limit }),
    },
  };
}

/** Parses a request to update a state. @throws ServiceError `validation.failed` */
export function parseUpdateRequest(body: RawBody): {
  readonly position: StatePosition;
  readonly update: UpdateRequest;
} {
  const { checkpoint, checkpoint_id, ...update } = stateUpdateSchema.parse(body);
  return { position: checkpointPositionOf(checkpoint, checkpoint_id), update };
}

/** Parses a request for the history of a state. @throws ServiceError `validation.failed` */
export function parseHistoryRequest(body: RawBody): {
  readonly asked: HistoryRequest;
  readonly projection: StateProjection;
} {
  const {
    limit = PAGE_LIMITS.initial,
    before,
    metadata,
    checkpoint,
    checkpoint_id,
    select = [],
  } = historyReadSchema.parse(body);
  const named =
    typeof before === "object" ? (before.checkpoint_id ?? before.configurable?.checkpoint_id) : before;
  const older = parseUuid(named);
  return {
    asked: {
      ...checkpointPositionOf(checkpoint, checkpoint_id),
      limit,
      ...(older !== undefined && { before: older }),
      ...(metadata && { metadata }),
    },
    projection: projectionOf(select),
  };
}

const STATE_FIELDS: ReadonlySet<string> = new Set([
  "values",
  "next",
  "tasks",
  "metadata",
  "created_at",
  "checkpoint",
  "parent_checkpoint",
  "checkpoint_id",
  "parent_checkpoint_id",
  "interrupts",
]);

/** The largest number of names in `select`. */
const MAX_SELECTED_NAMES = 1000;

/**
 * Converts `select`, the list of fields to return. If it contains names such as `values.messages`, and not `values` itself, the state's
 * values are limited to these keys; the same holds for `metadata`.
 * @throws ServiceError `validation.failed`
 */
export function projectionOf(select: readonly string[]): StateProjection {
  if (select.length === 0) return {};
  if (select.length > MAX_SELECTED_NAMES)
    throw invalidField("select", `must not have more than ${MAX_SELECTED_NAMES} entries`);
  const fields = new Set<string>();
  const keys = new Set<string>();
  const metadata = new Set<string>();
  for (const name of select) {
    if (name.startsWith("values.")) keys.add(name.slice("values.".length));
    else if (name.startsWith("metadata.")) metadata.add(name.slice("metadata.".length));
    else if (STATE_FIELDS.has(name)) fields.add(name);
    else throw invalidField("select", `"${name.slice(0, 100)}" is no field of a state`);
  }
  const [areKeysLimited, isMetadataLimited] = [
    keys.size > 0 && !fields.has("values"),
    metadata.size > 0 && !fields.has("metadata"),
  ];
  if (areKeysLimited) fields.add("values");
  if (isMetadataLimited) fields.add("metadata");
  return {
    fields,
    ...(areKeysLimited && { keys: [...keys] }),
    ...(isMetadataLimited && { metadata }),
  };
}
