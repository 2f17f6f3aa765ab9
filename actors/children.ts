import type { AnyActorRef } from "./xstate.ts";

/** The actors below one, by id: as a snapshot holds them. */
export interface Children {
  readonly [id: string]: AnyActorRef;
}

export const NO_CHILDREN: Children = Object.freeze({});

/**
 * These and one more. A table without a prototype: in an ordinary object each id, which comes once and never again, would
 * leave a hidden class behind.
 */
export function withChild(children: Children, id: string, child: AnyActorRef): Children {
  const all: Record<string, AnyActorRef> = Object.create(null);
  for (const other in children) all[other] = children[other] as AnyActorRef;
  all[id] = child;
  return all;
}

export function withoutChild(children: Children, id: string): Children {
  let rest: Record<string, AnyActorRef> | undefined;
  for (const other in children) {
    if (other !== id)
      (rest ??= Object.create(null) as Record<string, AnyActorRef>)[other] = children[other] as AnyActorRef;
  }
  return rest ?? NO_CHILDREN;
}
