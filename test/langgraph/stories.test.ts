import { expect, test } from "vitest";
import { type Graph, hosted, inProcess } from "./driving.ts";
import { numbered } from "./normal.ts";
import { flowStories } from "./stories/flow.ts";
import { functionalStories } from "./stories/functional.ts";
import { stateStories } from "./stories/state.ts";
import type { Stories } from "./stories/parts.ts";
import { withinStories } from "./stories/within.ts";
import { isBelow } from "./support.ts";

const all: Stories = { ...functionalStories, ...flowStories, ...withinStories, ...stateStories };

const stories = Object.entries(all).filter(([, { since: [minor] = [0] }]) => !isBelow(minor));

test.each(stories)("as in process: %s", async (_, { make, deeds, but = (seen) => seen }) => {
  const graph = make as () => Graph;
  const [here, there] = [but(await inProcess(graph, deeds)), but(await hosted(graph, deeds))];
  expect(numbered(there)).toEqual(numbered(here));
});
