import { ServiceError } from "../../model/errors.ts";

/**
 * Returns the only write of a superstep.
 * @throws ServiceError `state.concurrent_update` if there are several, because no rule says which of them wins
 */
export function requireSingleWrite(writes: readonly unknown[], key: string): unknown {
  if (writes.length > 1) {
    throw new ServiceError(
      "state.concurrent_update",
      `${writes.length} tasks of one step wrote "${key}", which holds one value; ` +
        `write it in one node, or declare it with list() or reduce()`,
    );
  }
  return writes[0];
}
