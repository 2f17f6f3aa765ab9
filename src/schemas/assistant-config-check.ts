import { invalidField } from "../model/errors.ts";
import { isObject } from "../model/json.ts";
import type { RawBody } from "./read-body.ts";

const PLACES = ["checkpoint_ns", "checkpoint_map"] as const;

/**
 * Refuses an assistant's configuration that names a checkpoint. The checkpoint would have no effect: a run starts from
 * the checkpoint that its own request names, never from one in the configuration of its assistant.
 * @throws ServiceError `validation.failed`
 */
export function refuseCheckpointSettings({ config }: RawBody): void {
  const configurable = isObject(config) ? config["configurable"] : undefined;
  if (!isObject(configurable)) return;
  for (const name of PLACES) {
    const value = Object.hasOwn(configurable, name) ? configurable[name] : undefined;
    if (value === undefined || value === null || value === "") continue;
    if (isObject(value) && Object.keys(value).length === 0) continue;
    throw invalidField(
      `config.configurable.${name}`,
      "is a place in a thread, and no setting of an assistant",
    );
  }
}
