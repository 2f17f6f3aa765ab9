/**
 * `npm run bench [-- --row NAME,... --rounds N --scale X --out FILE --profile DIR --peer --node PATH --quiet
 * MINUTES]`: measures each selected row and its control rows, round by round. Prints a table; `--out` also writes
 * `FILE.json` and `FILE.md`. `--peer` also measures the official JavaScript server, on the rows that it supports, and
 * the rows of other engines, in the same rounds. `--node` also measures Heddle on another version of Node. `--quiet`
 * waits for a quiet machine before each measurement, and repeats those during which it was not quiet; waiting and
 * repeating take at most this many minutes in all.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE_ROOT } from "../src/build/package-bundles.ts";
import { build } from "./build.ts";
import { removeOnExit, LoadProcess, ServerProcess } from "./child.ts";
import { describeMachine, measureSync } from "./machine.ts";
import { markdown } from "./markdown.ts";
import { numberOf, pathOf, readOptions, refuse } from "./options.ts";
import { reportPeer, reportRow, type Report } from "./report.ts";
import { newProject, removeProjects, startLangGraph } from "./peers/langgraph.ts";
import { clusterRows } from "./rows/cluster.ts";
import { controlRows } from "./rows/controls.ts";
import { heddleRows } from "./rows/heddle.ts";
import type { Bench, Figures, Row } from "./rows/row.ts";
import { crowdRows } from "./rows/crowds.ts";
import { hostedRows } from "./rows/hosted.ts";
import { growthRows } from "./rows/growth.ts";
import { searchRows } from "./rows/searches.ts";
import { specialRows } from "./rows/special.ts";
import { stepRows } from "./rows/steps.ts";
import { HostNoiseMeter, measureWhileQuiet } from "./quiet.ts";
import { startHeddle } from "./start.ts";
import { watchedRows } from "./rows/watched.ts";
import { watchers } from "./rows/watchers.ts";
import { workers } from "./rows/workers.ts";

const all: readonly Row[] = [
  ...controlRows,
  ...heddleRows,
  ...growthRows,
  ...specialRows,
  ...crowdRows,
  ...watchedRows,
  ...watchers,
  ...workers,
  ...searchRows,
  ...hostedRows,
  ...stepRows,
  ...clusterRows,
];

/** Returns the selected rows, each after the rows with which it is compared. */
function choose(names: readonly string[]): Row[] {
  const chosen = new Set<Row>();
  const add = (name: string) => {
    const row = all.find((candidate) => candidate.name === name);
    if (row === undefined) {
      refuse(`no row "${name}"; there are: ${all.map((r) => r.name).join(", ")}, controls`);
    }
    for (const { row: control } of row.against ?? []) add(control);
    chosen.add(row);
  };
  for (const name of names) {
    if (name === "controls") for (const row of controlRows) chosen.add(row);
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
  const newData = () => mkdtempSync(join(directory, "data-"));
  return {
    load,
    built,
    directory,
    profile,
    scale,
    share: 1,
    newData,
    start: (data = newData()) => startHeddle(built, data),
    control: (name, ...args) => ServerProcess.start(script(name), args),
    heddle: (options = {}) => {
      const { data = newData() } = options;
      return ServerProcess.start(script("heddle"), [JSON.stringify({ ...options, data })], { profile });
    },
  };
}

/**
 * The bench in which the official JavaScript server takes Heddle's place. `share` is the share of the work that it
 * gets.
 */
function peerBench(bench: Bench, share: number): Bench {
  return {
    ...bench,
    share,
    scale: bench.scale * share,
    newData: newProject,
    heddle: ({ data = newProject() } = {}) => startLangGraph(data),
    start: async (data = newProject()) => {
      const began = performance.now();
      const server = await startLangGraph(data);
      const took = performance.now() - began;
      await server.kill();
      return took;
    },
  };
}

/** The bench in which another Node executable runs Heddle. */
function otherNodeBench(bench: Bench, node: string): Bench {
  const script = join(bench.built, "bench", "servers", "heddle.js");
  return {
    ...bench,
    heddle: (options = {}) => {
      const { data = bench.newData() } = options;
      return ServerProcess.start(script, [JSON.stringify({ ...options, data })], { node });
    },
    start: (data = bench.newData()) => startHeddle(bench.built, data, node),
  };
}

/** Returns the version of a Node executable. */
function versionOf(node: string): string {
  const { status, stdout } = spawnSync(node, ["--version"], { encoding: "utf8" });
  if (status !== 0) refuse(`--node "${node}" is no Node that runs here`);
  return stdout.trim();
}

const values = readOptions({
  row: { type: "string", multiple: true },
  rounds: { type: "string", default: "3" },
  scale: { type: "string", default: "1" },
  out: { type: "string" },
  profile: { type: "string" },
  peer: { type: "boolean", default: false },
  node: { type: "string" },
  quiet: { type: "string", default: "0" },
});
const names =
  values.row?.flatMap((list) => list.split(",")) ??
  all
    .filter(({ long, foreign }) => long !== true && (values.peer || foreign !== true))
    .map((row) => row.name);
const chosen = choose(names);
const rounds = numberOf("rounds", values.rounds, { least: 1 });
const scale = numberOf("scale", values.scale, { least: 0.001, fractions: true });
const patience = numberOf("quiet", values.quiet, { least: 0, fractions: true }) * 60_000;
const out = values.out === undefined ? undefined : pathOf("out", values.out);
const otherNode =
  values.node === undefined ? undefined : { path: values.node, version: versionOf(values.node) };

const built = await build();
const base = join(PACKAGE_ROOT, "dist", "bench-data");
mkdirSync(base, { recursive: true });
const directory = mkdtempSync(join(base, "run-"));
removeOnExit(directory);
const load = await LoadProcess.start(built);
const bench = newBench(load, built, directory, scale, values.profile);
const measured = new Map<string, Figures[]>();
const failures = new Map<string, string>();
/**
 * Whether noise never causes a repetition of this row: it has its own limit of rounds, or it has no target and is no
 * control.
 */
const isMeasuredOnce = (row: Row) =>
  row.rounds !== undefined || (row.goals === undefined && !controlRows.includes(row));

/**
 * Whether the row is also measured on the other Node: `--node` is given, and the row measures Heddle, not a control or
 * another engine.
 */
const isOnOtherNode = (row: Row) =>
  otherNode !== undefined && !controlRows.includes(row) && row.foreign !== true;

/** The largest number of times that a round is measured, if the machine is never quiet meanwhile. */
const MAX_TRIES = 4;
const quiet = new HostNoiseMeter(patience);
/** The key under which the peer's rounds of a row are stored. */
const peerRowName = (name: string) => `${name}, peer`;
/** The key under which a row's rounds on the other Node are stored. */
const otherNodeRowName = (name: string) => `${name}, ${otherNode?.version ?? ""}`;

/**
 * Measures one round of a row, unless an earlier round of the row has failed. `once`: noise does not cause a
 * repetition.
 */
async function measureRow(name: string, once: boolean, round: () => Promise<Figures>): Promise<void> {
  if (failures.has(name)) return;
  const tries = once ? 1 : MAX_TRIES;
  try {
    const { result, noise } = await measureWhileQuiet(quiet, tries, async () => {
      process.stderr.write(`${name} ... `);
      const began = performance.now();
      const result = await round();
      process.stderr.write(
        `${Object.entries(result)
          .map(([figure, value]) => `${figure} ${Number(value.toPrecision(4))}`)
          .join(", ")}; took ${Math.round((performance.now() - began) / 1000)} s\n`,
      );
      return result;
    });
    const all: Figures = { ...result, stolen: noise.stolen * 100, memory_ns: noise.memory };
    measured.set(name, [...(measured.get(name) ?? []), all]);
  } catch (error) {
    failures.set(name, error instanceof Error ? error.message : String(error));
    process.stderr.write(`failed: ${failures.get(name)}\n`);
  }
}

const before = measureSync(directory, 500);

/**
 * Reports the rounds so far, and writes the report to the files of `--out`, so that an interrupted bench leaves its
 * results.
 */
function reportRounds(rounds: number): Report {
  const report: Report = {
    machine: describeMachine(directory),
    fdatasync_ms: [before, measureSync(directory, 500)],
    rounds,
    scale,
    rows: chosen.map((row) => reportRow(row, (name) => measured.get(name) ?? [], failures.get(row.name))),
    ...(otherNode === undefined ? {} : { other_node: otherNode.version }),
    on_other_node: chosen.flatMap((row) =>
      isOnOtherNode(row)
        ? [
            reportPeer(
              row,
              measured.get(row.name) ?? [],
              measured.get(otherNodeRowName(row.name)) ?? [],
              failures.get(otherNodeRowName(row.name)),
            ),
          ]
        : [],
    ),
    peer: chosen.flatMap((row) =>
      values.peer && row.peer !== undefined
        ? [
            reportPeer(
              row,
              measured.get(row.name) ?? [],
              measured.get(peerRowName(row.name)) ?? [],
              failures.get(peerRowName(row.name)),
            ),
          ]
        : [],
    ),
  };
  if (out !== undefined) {
    writeFileSync(`${out}.json`, `${JSON.stringify(report, undefined, 1)}\n`);
    writeFileSync(`${out}.md`, markdown(report));
  }
  return report;
}

try {
  let report: Report | undefined;
  for (let round = 1; round <= rounds; round++) {
    process.stderr.write(`round ${round}/${rounds}\n`);
    for (const row of chosen) {
      if (round > (row.rounds ?? rounds)) continue;
      await measureRow(row.name, isMeasuredOnce(row), () => row.run(bench));
      if (otherNode !== undefined && isOnOtherNode(row)) {
        await measureRow(otherNodeRowName(row.name), true, () =>
          row.run(otherNodeBench(bench, otherNode.path)),
        );
      }
      const { share = 0, rounds: most = rounds } = row.peer ?? {};
      if (!values.peer || share === 0 || round > most) continue;
      await measureRow(peerRowName(row.name), true, () => row.run(peerBench(bench, share)));
    }
    report = reportRounds(round);
  }
  if (report !== undefined) process.stdout.write(markdown(report));
} finally {
  load.stop();
  removeProjects();
}
process.exitCode = failures.size === 0 ? 0 : 1;
