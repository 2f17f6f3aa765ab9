import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { allRouteDescriptions } from "../../src/http/openapi/document.ts";
import { socketPaths } from "../../src/websocket/upgrade.ts";
import { OFFICIAL_ROUTES } from "../fixtures/official-routes.ts";
import { serve } from "./support/server.ts";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "src/guide/differences.md"), "utf8");

/** The rows of the table below a heading, each with its cells. */
function rowsOf(heading: string): readonly (readonly string[])[] {
  const section = page.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const lines = section.split("\n").filter((line) => line.startsWith("|"));
  // The first two lines are the head.
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}

const different = rowsOf("What is different");
const notServed = rowsOf("What is not served");
/** The routes in the first cells, without their queries. */
const unservedRoutes = notServed.flatMap(([first = ""]) => /^`([A-Z]+ \/[^`?]*)`$/.exec(first)?.[1] ?? []);

const IDS: Readonly<Record<string, string>> = { namespace: "a", basename: "entrypoint.js", agent: "agent" };
const pathOf = (route: string) =>
  route
    .slice(route.indexOf(" ") + 1)
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => IDS[name] ?? "00000000-0000-4000-8000-000000000000");

/** A route without the names of its parameters, which differ between servers. */
const unnamed = (route: string) => route.replaceAll(/\{\w+\}|:\w+/g, "{}");

/**
 * `test/http/openapi.test.ts` checks that each described route is served. The routes of `/ui` exist only where a
 * project has components.
 */
const served: ReadonlySet<string> = new Set(Object.keys(allRouteDescriptions).map(unnamed));

test("each difference has a reason, and a test that exists", () => {
  expect(different.length).toBeGreaterThan(10);
  for (const [what = "", ours = "", why = "", file = ""] of different) {
    for (const cell of [what, ours, why]) expect(cell, what).not.toBe("");
    const path = /^`(test\/[\w/.-]+\.test\.ts)`$/.exec(file)?.[1];
    expect(path, `${what}: ${file} names a test`).toBeDefined();
    expect(existsSync(join(root, path ?? "")), `${what}: ${path} exists`).toBe(true);
  }
});

test("what is not served has a reason each", () => {
  expect(unservedRoutes.length).toBeGreaterThan(5);
  for (const row of notServed) {
    expect(row).toHaveLength(2);
    for (const cell of row) expect(cell).not.toBe("");
  }
});

test.each(unservedRoutes)("%s is not served, and not described", async (route) => {
  const { url } = await serve();
  const [method = ""] = route.split(" ");
  const body = method === "POST" ? { body: "{}", headers: { "content-type": "application/json" } } : {};
  const response = await fetch(url + pathOf(route), { method, ...body });
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ code: "route.not_found" });
  expect([...served]).not.toContain(unnamed(route));
});

test("each official route is served, or stands among those that are not", () => {
  const unserved = new Set(unservedRoutes.map(unnamed));
  const isSocket = (route: string) =>
    route.startsWith("GET ") && socketPaths.some((path) => path.test(pathOf(route)));
  const missing = OFFICIAL_ROUTES.filter(
    (route) => !served.has(unnamed(route)) && !unserved.has(unnamed(route)) && !isSocket(route),
  );
  expect(missing).toEqual([]);
  // A row for a route that no official server has would be wrong.
  const official = new Set(OFFICIAL_ROUTES.map(unnamed));
  expect(unservedRoutes.filter((route) => !official.has(unnamed(route)))).toEqual([]);
});
