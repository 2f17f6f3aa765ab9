import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { StreamMode as OfficialStreamMode } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { servedKeys } from "../../src/config/config-keys.ts";
import { multitaskStrategies, type StreamMode } from "../../src/model/run.ts";

const read = (path: string) => readFileSync(join(import.meta.dirname, "../../src", path), "utf8");

test("the guide's table of the configuration names every key that is read", () => {
  const keys = servedKeys();
  expect(keys.length).toBeGreaterThan(50);
  const rows = read("guide/configuration.md")
    .split("\n")
    .filter((line) => line.startsWith("| `"));
  const isNamed = (key: string) =>
    rows.some((row) => {
      const [, section = ""] = /^\| `([^`]+)`/.exec(row) ?? [];
      const rest = key === section ? "" : key.replace(`${section}.`, "");
      return (
        key === section ||
        (key.startsWith(`${section}.`) && row.includes(`\`${rest}\``)) ||
        row.includes(`\`${key}\``)
      );
    });
  expect(keys.filter((key) => !isNamed(key))).toEqual([]);
});

/** The stream modes that the official clients do not know. The compiler asks for a new one here. */
const OWN_MODES: Readonly<Record<Exclude<StreamMode, OfficialStreamMode>, true>> = { logs: true };

test("the guide describes each stream mode of Heddle's own, and names it as a difference", () => {
  for (const mode of Object.keys(OWN_MODES)) {
    expect(read("guide/clients.md")).toContain(`\`${mode}\` brings`);
    expect(read("guide/differences.md")).toContain(`| Stream mode \`${mode}\` |`);
  }
});

test("the guide has a row for each multitask strategy, and the text about the actors a sentence", () => {
  const guide = read("guide/runs.md");
  const [, about = ""] = read("../actors/README.md").split("decides what happens to a new run");
  const [paragraph = ""] = about.split("\n\n");
  for (const strategy of multitaskStrategies) {
    expect(guide).toContain(`\n| \`${strategy}\` | `);
    expect(paragraph).toContain(`\`${strategy}\``);
  }
});
