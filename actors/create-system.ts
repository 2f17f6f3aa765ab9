import type { SystemDeps, ThreadSystem } from "./thread-system-interface.ts";
import { ThreadRegistry } from "./thread-registry.ts";

export type { SystemLimits, ThreadSystem } from "./thread-system-interface.ts";
export { defaultSystemLimits as defaultLimits } from "./thread-system-interface.ts";

/** Creates the actor system of one server. Several systems may exist in one process. */
export function createSystem(deps: SystemDeps): ThreadSystem {
  return new ThreadRegistry(deps);
}
