import { ChildActorMap } from "../child-actor-map.ts";
import { childActorsOf } from "../statechart-interpreter.ts";
import type { AnyActorRef } from "../xstate.ts";
import type { JsonObject } from "../../src/model/json.ts";
import type { InspectedEvent, InspectedState, InspectedStateValue } from "../../src/ports/inspector.ts";

/**
 * The most entries of a list, or children, that are shown. A run may have thousands of tasks, and is shown after each
 * task, so longer lists would be slow.
 */
const MAX_ENTRIES = 20;
const MAX_TEXT_CHARACTERS = 500;

interface Seen {
  readonly status: InspectedState["status"];
  readonly value?: InspectedStateValue;
  readonly context?: { readonly [name: string]: unknown };
  readonly output?: object;
}

/**
 * The part of an actor's snapshot that the inspector shows: status, state value, context, the ids of the children, and
 * the output. Long lists are cut.
 */
export function inspectedStateOf(actor: AnyActorRef, thread: string): InspectedState {
  const { status, value = status, context = {}, output } = actor.getSnapshot() as Seen;
  return {
    status,
    value,
    context: contextOf(context, thread),
    children: childActorsOf(actor, MAX_ENTRIES).map(({ id }) => id),
    tags: [],
    ...(output !== undefined && { output: output as JsonObject }),
  };
}

function contextOf(context: { readonly [name: string]: unknown }, thread: string): JsonObject {
  const shown: { [name: string]: unknown } = {};
  for (const [name, value] of Object.entries(context)) {
    if (value instanceof ChildActorMap) shown[name] = cut([...value.names(MAX_ENTRIES)], value.size);
    else shown[name] = Array.isArray(value) ? firstEntries(value) : value;
  }
  // Shows the thread's id instead of the name in the actor's context, which is internal and includes the tenant.
  shown["thread"] = thread;
  return shown;
}

/**
 * The first entries of a list. Of an object, such as a task, only the id and the name are shown: a task also has its
 * input, which may be the whole state of the graph.
 */
function firstEntries(list: readonly unknown[]): unknown {
  const some = list.slice(0, MAX_ENTRIES).map((item) => (typeof item === "object" ? named(item) : item));
  return cut(some, list.length);
}

function cut(some: readonly unknown[], all: number): readonly unknown[] {
  return all <= MAX_ENTRIES ? some : [...some, `and ${all - MAX_ENTRIES} more`];
}

function named(item: unknown): JsonObject {
  const { id = null, name = null } = (item ?? {}) as { readonly id?: unknown; readonly name?: unknown };
  return { id, name };
}

/**
 * The part of an event that the inspector shows: without functions and nested objects, and with long lists and texts
 * cut.
 */
export function inspectedEventOf(event: { readonly type: string }): InspectedEvent {
  const { type } = event;
  // The input of the init event is left out, because the actor's context contains it too.
  if (type === "xstate.init") return { type };
  const shown: { type: string; [name: string]: unknown } = { type };
  for (const [name, value] of Object.entries(event) as [string, unknown][]) {
    if (name === "type") continue;
    if (Array.isArray(value)) shown[name] = firstEntries(value);
    else if (value instanceof Error)
      shown[name] = { name: value.name, message: value.message.slice(0, MAX_TEXT_CHARACTERS) };
    else if (typeof value === "object" && value !== null) shown[name] = flat(value);
    else if (typeof value === "string") shown[name] = value.slice(0, MAX_TEXT_CHARACTERS);
    else if (typeof value !== "function") shown[name] = value;
  }
  return shown;
}

function flat(object: object): JsonObject {
  return Object.fromEntries(
    Object.entries(object).filter(([, value]) => value === null || typeof value !== "object"),
  );
}
