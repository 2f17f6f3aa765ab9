/** The nodes that are not actors. No actor has such a name, because XState reserves the prefix. */
export const TRANSITION_NODE = "xstate.transition";
export const WAIT_NODE = "xstate.wait";
export const ACTIONS_NODE = "xstate.actions";

/** Characters. */
const LONGEST_NAME = 100;

/** The node of a promise actor. Names that a node cannot have are changed; actors that then have the same node each run as what they are. */
export function actorNode(src: string): string {
  const name = nameInNamespace(src)
    .replaceAll(/\p{Cc}/gu, "_")
    .slice(0, LONGEST_NAME);
  return /^(start|__.*__|xstate\.(transition|wait|actions)|)$/.test(name) ? `actor ${name}` : name;
}

/** Replaces the characters that separate the parts of a namespace. */
export const nameInNamespace = (src: string) => src.replaceAll(/[|:]/g, "_");
