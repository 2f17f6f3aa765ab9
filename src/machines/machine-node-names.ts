/** The names of the nodes that do not run an actor. No actor can have such a name, because XState reserves the prefix `xstate.`. */
export const TRANSITION_NODE = "xstate.transition";
export const WAIT_NODE = "xstate.wait";
export const ACTIONS_NODE = "xstate.actions";

const MAX_NAME_CHARACTERS = 100;

/**
 * The node name of a promise actor. Characters that a node name cannot contain are replaced. Two actors may then have the same node name;
 * each still runs its own logic.
 */
export function actorNode(src: string): string {
  const name = nameInNamespace(src)
    .replaceAll(/\p{Cc}/gu, "_")
    .slice(0, MAX_NAME_CHARACTERS);
  return /^(start|__.*__|xstate\.(transition|wait|actions)|)$/.test(name) ? `actor ${name}` : name;
}

/** Replaces the characters `|` and `:`, which have a meaning in a checkpoint namespace. */
export const nameInNamespace = (src: string) => src.replaceAll(/[|:]/g, "_");
