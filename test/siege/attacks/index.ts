import type { Attack } from "../siege.ts";
import { bodies, bodiesWithoutKey } from "./bodies.ts";
import { halfOpen } from "./connections.ts";
import { history, largeStates, unreadSearches, unreadStates } from "./lists.ts";
import { metadataFilter, storeIn, storeSearch } from "./searches.ts";
import {
  assistantThreads,
  dueCrons,
  dueTimers,
  idleStates,
  largeBodies,
  largeRuns,
  wrongBody,
} from "./work.ts";

/** All known attacks, in the order of the table. */
export const attacks: readonly Attack[] = [
  history,
  largeStates,
  unreadStates,
  unreadSearches,
  bodiesWithoutKey,
  bodies,
  halfOpen,
  metadataFilter,
  wrongBody,
  storeIn,
  storeSearch,
  largeBodies,
  idleStates,
  largeRuns,
  assistantThreads,
  dueCrons,
  dueTimers,
];
