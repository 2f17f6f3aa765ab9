import type { Command } from "../model/run.ts";
import type { StateWrite } from "../ports/state-update.ts";
import { requireStorable } from "./storable-values.ts";

/** A change of the state that a client requests. */
export interface UpdateRequest {
  readonly values?: unknown;
  readonly command?: Command;
  readonly as_node?: string;
  /** True: the update is refused unless the checkpoint that it names is the latest. */
  readonly require_latest?: boolean;
}

/** Updates that are made together, as the writes of one superstep. */
export interface SuperstepRequest {
  readonly updates: readonly UpdateRequest[];
}

/** @throws ServiceError `validation.failed`, naming the value that cannot be stored */
export function stateWriteOf({ values, command, as_node }: UpdateRequest, at: string): StateWrite {
  return {
    values: requireStorable(values ?? null, `${at}values`),
    command: requireStorable(command ?? null, `${at}command`) as Command | null,
    as_node: as_node ?? null,
    at,
  };
}

export function stateWritesOf(supersteps: readonly SuperstepRequest[]): readonly (readonly StateWrite[])[] {
  return supersteps.map(({ updates }, n) =>
    updates.map((update, i) => stateWriteOf(update, `supersteps[${n}].updates[${i}].`)),
  );
}
