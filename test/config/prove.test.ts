import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { prove } from "../../src/cli/prove-machine-claim.ts";
import { parseCommandLine } from "../../src/cli/command-line.ts";
import { directory as newDirectory } from "../e2e/support/server.ts";

const root = join(import.meta.dirname, "../..");
const several = "./test/fixtures/machines/several.ts";

async function proved(...args: readonly string[]) {
  const asked = parseCommandLine(["prove", ...args], {});
  if (asked.command !== "prove") throw new Error(JSON.stringify(asked));
  const lines: string[] = [];
  return { code: await prove(asked, root, (line) => lines.push(line)), lines };
}

describe("heddle prove", () => {
  test.each([
    ["never paid without APPROVE", 0, "proved: "],
    ["never paid without REJECT", 1, "refuted: "],
  ])("%s: exit code %i", async (claim, code, line) => {
    const { lines, ...given } = await proved("./src/demo/order.ts", claim);
    expect(given.code).toBe(code);
    expect(lines[0]).toContain(line + claim);
  });

  test("a machine of several is named", async () => {
    expect(await proved(`${several}:door`, "never open without OPEN")).toMatchObject({ code: 0 });
    await expect(proved(several, "never open without OPEN")).rejects.toThrow(
      /several\.ts has the machines door, light; name one: \.\/test.*several\.ts:door$/,
    );
    await expect(proved(`${several}:one`, "never open")).rejects.toThrow(
      /several\.ts exports no machine "one"; it has the machines door, light$/,
    );
    await expect(proved("./test/browser/opened.ts", "never open")).rejects.toThrow(
      /opened\.ts exports no XState machine$/,
    );
    await expect(proved("./none.ts", "never open")).rejects.toThrow(/there is no file .*none\.ts$/);
  });

  test("of several versions of a machine, it is the newest one", async () => {
    const file = "./test/fixtures/machines/versions.ts";
    expect(await proved(file, "reachable sent")).toMatchObject({ code: 0 });
    expect(await proved(`${file}:default`, "never sent without SEND")).toMatchObject({ code: 0 });
  });

  test("--draw writes a flowchart", async () => {
    const file = join(await newDirectory(), "door.mmd");
    await proved(`${several}:door`, "reachable open", "--draw", file);
    expect(readFileSync(file, "utf8")).toBe(
      [
        "flowchart LR",
        "  n0(( ))",
        '  n1["shut"]',
        '  n2["open"]',
        "  n0 --> n1",
        '  n1 -->|"OPEN"| n2',
        '  n2 -->|"SHUT"| n1',
        "  linkStyle 0,1 stroke:#c2410c,stroke-width:3px",
        "  classDef path stroke:#c2410c,stroke-width:3px",
        "  class n1,n2 path",
        "",
      ].join("\n"),
    );
  });

  test.each([
    [[], "name the machine and the claim"],
    [["a.ts"], "name the machine and the claim"],
    [["a.ts", "never a", "b"], '"b" is one argument too many'],
    [["a.ts", "never a", "--draw", "a.svg"], '--draw "a.svg" is no Mermaid file'],
    [["a.ts", "never a", "--json"], "heddle prove takes no --json"],
  ])("%j is refused by name", (args, why) => {
    expect(parseCommandLine(["prove", ...args], {})).toEqual({
      command: "refused",
      why: expect.stringContaining(why),
    });
  });
});
