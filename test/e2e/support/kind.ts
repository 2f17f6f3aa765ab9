import { test } from "vitest";

/** A test of what our own graphs alone have, or LangGraph.js does otherwise; see `HEDDLE_TEST_GRAPHS` in `server.ts`. */
export const testOfOurs = test.skipIf(process.env["HEDDLE_TEST_GRAPHS"] === "langgraph");
