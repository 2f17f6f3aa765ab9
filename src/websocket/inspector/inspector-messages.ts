import type { InspectedActor, InspectedEvent, InspectedState } from "../../ports/inspector.ts";

/** The version of `@statelyai/inspect` whose message format is used. */
const FORMAT = "0.7.2";

/** If the JSON text of a graph's state has more characters than this, the message has only their number. */
const MAX_STATE_CHARACTERS = 64 * 1024;

export interface MessageStamp {
  readonly seq: number;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** Creates the message for a new actor. `definition` is the actor's statechart as JSON text. */
export function actorMessage(
  actor: InspectedActor,
  state: InspectedState,
  definition: string,
  stamp: MessageStamp,
): string {
  const { name, parent } = actor;
  return JSON.stringify({
    type: "@xstate.actor",
    name,
    definition,
    ...(parent !== null && { parentId: parent }),
    snapshot: snapshotOf(state),
    ...base(actor, stamp),
  });
}

export function eventMessage(
  actor: InspectedActor,
  event: InspectedEvent,
  source: string | null,
  stamp: MessageStamp,
): string {
  return JSON.stringify({
    type: "@xstate.event",
    event,
    ...(source !== null && { sourceId: source }),
    ...base(actor, stamp),
  });
}

export function snapshotMessage(
  actor: InspectedActor,
  state: InspectedState,
  event: InspectedEvent,
  stamp: MessageStamp,
): string {
  return JSON.stringify({
    type: "@xstate.snapshot",
    event,
    snapshot: snapshotOf(state),
    ...base(actor, stamp),
  });
}

function base({ id, kind, machine, thread, run }: InspectedActor, { seq, at }: MessageStamp) {
  return {
    sessionId: id,
    rootId: thread,
    createdAt: String(at),
    id: null,
    _version: FORMAT,
    // Members that `@statelyai/inspect` does not have, and that its receivers ignore.
    seq,
    kind,
    machine,
    thread_id: thread,
    ...(run !== null && { run_id: run }),
  };
}

function snapshotOf({ status, value, context, children, tags, output, values }: InspectedState) {
  return {
    status,
    value,
    context: values === undefined ? context : { ...context, values: bounded(values) },
    children: Object.fromEntries(children.map((id) => [id, { id, xstate$$type: 1 }])),
    historyValue: {},
    tags,
    ...(output !== undefined && { output }),
  };
}

function bounded(values: object): unknown {
  const { length } = JSON.stringify(values);
  return length <= MAX_STATE_CHARACTERS ? values : { left_out: `${length} characters` };
}
