import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Client as Line1 } from "@langchain/langgraph-sdk";
import { Client as Line2 } from "langgraph-sdk-2";
import type { AppOptions } from "../../src/app.ts";
import { readConfig } from "../../src/config/config.ts";
import { chapters } from "../../src/conformance/chapters.ts";
import { connect } from "../../src/conformance/connect-sdk.ts";
import { conformanceGraphs } from "./support/conformance-graphs.ts";
import { isHosted } from "./support/suite-variant.ts";
import { serve, type Server } from "./support/server.ts";

const project = join(import.meta.dirname, "../conformance/langgraph.json");

const line1 = ["SDK 1.15", Line1] as const;
const line2 = ["SDK 2.0", Line2 as unknown as typeof Line1] as const;

type Lines = readonly (readonly [name: string, client: typeof Line1])[];
const kinds: readonly (readonly [name: string, options: () => AppOptions, lines: Lines])[] = [
  ["the conformance project", () => ({ config: readConfig(project, {}) }), [line1, line2]],
  // Rewritten in LangGraph.js, these graphs would be the ones above.
  ...(isHosted
    ? []
    : [
        [
          "the same graphs in Heddle's own form",
          () => ({ graphs: conformanceGraphs, webhooks: { allow_internal: true } }),
          [line1],
        ] as const,
      ]),
];

describe.each(kinds)("a server of %s", (_, options, lines) => {
  describe.each(lines)("over %s", (_, Client) => {
    const cleanUps: (() => Promise<void>)[] = [];
    let server: Server;
    beforeAll(async () => {
      server = await serve(options(), { atEnd: (cleanUp) => cleanUps.push(cleanUp), demo: false });
    });
    afterAll(async () => {
      // The server before its directory.
      // oxlint-disable-next-line no-await-in-loop -- in reverse order of creation: a part may use those created before it
      for (const cleanUp of cleanUps.toReversed()) await cleanUp();
    });

    describe.each(chapters)("$name", ({ checks }) => {
      test.each(checks)("$title", async ({ run }) => {
        expect(await run(connect({ Client }, server.url))).toBeUndefined();
      });
    });

    test("the server has warned of nothing but runs that were to fail", () => {
      expect(server.complaints.filter((line) => !/kaboom|GraphRecursionError/.test(line))).toEqual([]);
    });
  });
});
