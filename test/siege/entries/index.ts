import type { Entry } from "../siege.ts";
import { bodies, bodiesWithoutKey } from "./bodies.ts";
import { history, largeStates } from "./lists.ts";

/** All that a hostile client is known to try, in the order of the table. */
export const entries: readonly Entry[] = [history, largeStates, bodiesWithoutKey, bodies];
