/**
 * `npm run bench [-- --row NAME,... --rounds N --scale X --out FILE --profile DIR --peer --node PATH --quiet MINUTES]`: every row and the
 * control rows that it is set against, round by round; a table on the screen, `FILE.json` and `FILE.md` beside it. With `--peer` the
 * official JavaScript server takes the rows that it can in the same rounds, and the rows of other engines are measured too. With
 * `--node` Heddle runs on another Node, too, in the same rounds. With `--quiet` each measurement waits for a quiet machine, and is made again when that did not last, for so many minutes in all.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE_ROOT } from "../src/build/bundles.ts";
import { build } from "./build.ts";
import { leaveNothing, LoadProcess, ServerProcess } from "./child.ts";
import { describeMachine, measureSync } from "./machine.ts";
import { markdown } from "./markdown.ts";
import { numberOf, pathOf, readOptions, refuse } from "./options.ts";
import { reportPeer, reportRow, type Report } from "./report.ts";
import { newProject, removeProjects, startLangGraph } from "./peers/langgraph.ts";
import { controls } from "./rows/controls.ts";
import { rows } from "./rows/heddle.ts";
import type { Bench, Figures, Row } from "./rows/row.ts";
import { crowds } from "./rows/crowds.ts";
import { hosted } from "./rows/hosted.ts";
import { growths } from "./rows/growth.ts";
import { searches } from "./rows/searches.ts";
import { special } from "./rows/special.ts";
import { stepped } from "./rows/steps.ts";
import { Quiet, quietly } from "./quiet.ts";
import { startHeddle } from "./start.ts";
import { watched } from "./rows/watched.ts";
import { watchers } from "./rows/watchers.ts";
import { workers } from "./rows/workers.ts";

const all: readonly Row[] = [
  ...controls,
  ...rows,
  ...growths,
  ...special,
  ...crowds,
  ...watched,
  ...watchers,
  ...workers,
  ...searches,
  ...hosted,
  ...stepped,
];

/** The rows asked for, each behind the controls that it needs. */
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
  const newData = () => mkdtempSync(join(directory, "data-"));
  return {
    load,
    built,
    directory,
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

/** The same work for the official JavaScript server, or a share of it. */
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

/** The same work for Heddle on another Node. */
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

/** What a Node says of itself. */
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
leaveNothing(directory);
const load = await LoadProcess.start(built);
const bench = newBench(load, built, directory, scale, values.profile);
const measured = new Map<string, Figures[]>();
const failures = new Map<string, string>();
/** Patience is for what has a target, in every round, and for what that is set against. */
const isMadeOnce = (row: Row) =>
  row.rounds !== undefined || (row.goals === undefined && !controls.includes(row));

/** Rows of Heddle itself: what controls and other engines do on another Node is not asked. */
const isOnOtherNode = (row: Row) =>
  otherNode !== undefined && !controls.includes(row) && row.foreign !== true;

/** Tries of one round to have it in a quiet time. */
const TRIES = 4;
const quiet = new Quiet(patience);
/** What stands in for the row's name where the peer is meant. */
const ofPeer = (name: string) => `${name}, peer`;
/** The same for another Node. */
const onOtherNode = (name: string) => `${name}, ${otherNode?.version ?? ""}`;

/** One round of a row; once it has failed there are no more. `once`: it is not made again. */
async function measureRow(name: string, once: boolean, round: () => Promise<Figures>): Promise<void> {
  if (failures.has(name)) return;
  const tries = once ? 1 : TRIES;
  try {
    const { told, noise } = await quietly(quiet, tries, async () => {
      process.stderr.write(`${name} ... `);
      const began = performance.now();
      const told = await round();
      process.stderr.write(
        `${Object.entries(told)
          .map(([figure, value]) => `${figure} ${Number(value.toPrecision(4))}`)
          .join(", ")}; took ${Math.round((performance.now() - began) / 1000)} s\n`,
      );
      return told;
    });
    const all: Figures = { ...told, stolen: noise.stolen * 100, memory_ns: noise.memory };
    measured.set(name, [...(measured.get(name) ?? []), all]);
  } catch (error) {
    failures.set(name, error instanceof Error ? error.message : String(error));
    process.stderr.write(`failed: ${failures.get(name)}\n`);
  }
}

const before = measureSync(directory, 500);

/** What has been measured in so many rounds, in the files too: what comes to an end too early leaves those before it. */
function tell(rounds: number): Report {
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
              measured.get(onOtherNode(row.name)) ?? [],
              failures.get(onOtherNode(row.name)),
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
              measured.get(ofPeer(row.name)) ?? [],
              failures.get(ofPeer(row.name)),
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
      await measureRow(row.name, isMadeOnce(row), () => row.run(bench));
      if (otherNode !== undefined && isOnOtherNode(row)) {
        await measureRow(onOtherNode(row.name), true, () => row.run(otherNodeBench(bench, otherNode.path)));
      }
      const { share = 0, rounds: most = rounds } = row.peer ?? {};
      if (!values.peer || share === 0 || round > most) continue;
      await measureRow(ofPeer(row.name), true, () => row.run(peerBench(bench, share)));
    }
    report = tell(round);
  }
  if (report !== undefined) process.stdout.write(markdown(report));
} finally {
  load.stop();
  removeProjects();
}
process.exitCode = failures.size === 0 ? 0 : 1;
