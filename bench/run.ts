/**
 * `npm run bench [-- --row NAME,... --rounds N --scale X --out FILE --profile DIR]`: every row and the control rows that it is set
 * against, round by round; a table on the screen, `FILE.json` and `FILE.md` beside it.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build, ROOT } from "./build.ts";
import { LoadProcess, ServerProcess } from "./child.ts";
import { describeMachine, measureSync } from "./machine.ts";
import { markdown, reportRow, type Report } from "./report.ts";
import { controls } from "./rows/controls.ts";
import { rows } from "./rows/heddle.ts";
import type { Bench, Figures, Row } from "./rows/row.ts";
import { crowds } from "./rows/crowds.ts";
import { hosted } from "./rows/hosted.ts";
import { searches } from "./rows/searches.ts";
import { special } from "./rows/special.ts";
import { watched } from "./rows/watched.ts";
import { workers } from "./rows/workers.ts";

const all: readonly Row[] = [
  ...controls,
  ...rows,
  ...special,
  ...crowds,
  ...watched,
  ...workers,
  ...searches,
  ...hosted,
];

/** The rows asked for, each behind the controls that it needs. */
function choose(names: readonly string[]): Row[] {
  const chosen = new Set<Row>();
  const add = (name: string) => {
    const row = all.find((candidate) => candidate.name === name);
    if (row === undefined) {
      throw new Error(`no row "${name}"; there are: ${all.map((r) => r.name).join(", ")}, controls`);
    }
    for (const { row: control } of row.against ?? []) add(control);
    chosen.add(row);
  };
  for (const name of names) {
    if (name === "controls") for (const row of controls) chosen.add(row);
    else add(name);
  }
  return [...chosen];
}

function newBench(
  load: LoadProcess,
  built: string,
  directory: string,
  scale: number,
  profile: string | undefined,
): Bench {
  const script = (name: string) => join(built, "bench", "servers", `${name}.js`);
  return {
    load,
    built,
    directory,
    scale,
    control: (name, ...args) => ServerProcess.start(script(name), args),
    heddle: (options = {}) => {
      const data = options.data ?? mkdtempSync(join(directory, "data-"));
      return ServerProcess.start(script("heddle"), [JSON.stringify({ ...options, data })], profile);
    },
  };
}

const { values } = parseArgs({
  options: {
    row: { type: "string", multiple: true },
    rounds: { type: "string", default: "3" },
    scale: { type: "string", default: "1" },
    out: { type: "string" },
    profile: { type: "string" },
  },
});
const names =
  values.row?.flatMap((list) => list.split(",")) ??
  all.filter(({ long }) => long !== true).map((row) => row.name);
const chosen = choose(names);
const rounds = Number(values.rounds);
const scale = Number(values.scale);

const built = build();
writeFileSync(join(built, "bench", "cold.json"), JSON.stringify({ graphs: { cold: "./cold.js:cold" } }));
const base = join(ROOT, "dist", "bench-data");
mkdirSync(base, { recursive: true });
const directory = mkdtempSync(join(base, "run-"));
const load = await LoadProcess.start(built);
const bench = newBench(load, built, directory, scale, values.profile);
const measured = new Map<string, Figures[]>(chosen.map((row) => [row.name, []]));
const failures = new Map<string, string>();
const before = measureSync(directory, 500);

try {
  for (let round = 1; round <= rounds; round++) {
    for (const row of chosen) {
      if (failures.has(row.name)) continue;
      process.stderr.write(`round ${round}/${rounds} ${row.name} ... `);
      try {
        const told = await row.run(bench);
        measured.get(row.name)?.push(told);
        process.stderr.write(
          `${Object.entries(told)
            .map(([figure, value]) => `${figure} ${Number(value.toPrecision(4))}`)
            .join(", ")}\n`,
        );
      } catch (error) {
        failures.set(row.name, error instanceof Error ? error.message : String(error));
        process.stderr.write(`failed: ${failures.get(row.name)}\n`);
      }
    }
  }
  const report: Report = {
    machine: describeMachine(directory),
    fdatasync_ms: [before, measureSync(directory, 500)],
    rounds,
    scale,
    rows: chosen.map((row) => reportRow(row, (name) => measured.get(name) ?? [], failures.get(row.name))),
  };
  const text = markdown(report);
  process.stdout.write(text);
  if (values.out !== undefined) {
    writeFileSync(`${values.out}.json`, `${JSON.stringify(report, undefined, 1)}\n`);
    writeFileSync(`${values.out}.md`, text);
  }
} finally {
  load.stop();
  rmSync(directory, { recursive: true, force: true });
}
process.exitCode = failures.size === 0 ? 0 : 1;
