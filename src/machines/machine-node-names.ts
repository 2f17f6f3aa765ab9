/** The names of the nodes that run no actor. No actor can have such a name, because XState reserves the prefix `xstate.`. */
export const TRANSITION_NODE = "xstate.transition";
export const WAIT_NODE = "xstate.wait";
export const ACTIONS_NODE = "xstate.actions";

/** The length of the longest name of a node, in characters. */
const LONGEST_NAME = 100;

/** The node of a promise actor. Characters that the name of a node cannot have are replaced. Two actors may then share a node name; each still runs its own logic. */
export function actorNode(src: string): string {
  const name = nameInNamespace(src)
    .replaceAll(/\p{Cc}/gu, "_")
    .slice(0, LONGEST_NAME);
  return /^(start|__.*__|xstate\.(transition|wait|actions)|)$/.test(name) ? `actor ${name}` : name;
}

/** Replaces the characters that separate the parts of a namespace. */
export const nameInNamespace = (src: string) => src.replaceAll(/[|:]/g, "_");
