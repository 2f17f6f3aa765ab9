import type { SystemDeps, ThreadSystem } from "./port.ts";
import { Registry } from "./registry.ts";

export type { SystemLimits, ThreadSystem } from "./port.ts";
export { defaultLimits } from "./port.ts";

/** The actors of one server. Two of them may live in one process. */
export function createSystem(deps: SystemDeps): ThreadSystem {
  return new Registry(deps);
}
