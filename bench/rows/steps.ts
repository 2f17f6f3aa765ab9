import { randomUUID } from "node:crypto";
import { startDbos } from "../peers/dbos.ts";
import { startRestate } from "../peers/restate.ts";
import type { Server } from "../server.ts";
import { measure, perform, withServer } from "./measure.ts";
import type { Bench, Figures, Row } from "./row.ts";

/**
 * Rows that compare Heddle with other durable engines: each request creates a new thread, workflow or object, and does
 * the same small work in it.
 */

interface Work {
  readonly path: (id: string) => string;
  readonly body: string;
}

const CLIENTS = 64;

/** Measures the work with {@link CLIENTS} clients, and its latency with a single client (`alone_…`). */
async function worked(bench: Bench, server: Server, { path, body }: Work): Promise<Figures> {
  const request = (clients: number, total: number) => ({
    connections: clients,
    method: "POST" as const,
    paths: Array.from({ length: Math.max(clients, Math.round(total * bench.scale)) }, () =>
      path(randomUUID()),
    ),
    total: Math.max(clients, Math.round(total * bench.scale)),
    body,
    answer: "text" as const,
  });
  await perform(bench, server, request(CLIENTS, 2_000));
  const alone = await perform(bench, server, request(1, 400));
  const { figures } = await measure(bench, server, request(CLIENTS, 4_000));
  return { ...figures, alone_p50_ms: alone.latency.p50, alone_p99_ms: alone.latency.p99 };
}

interface Options extends Partial<Row> {
  readonly name: string;
  readonly what: string;
  readonly start: (bench: Bench) => Promise<Server>;
  readonly work: Work;
}

const row = ({ name, what, start, work, ...more }: Options): Row => ({
  name,
  what: `${what}; a new key each time, ${CLIENTS} clients, and one`,
  run: (bench) => withServer(start(bench), (server) => worked(bench, server, work)),
  ...more,
});

const ours = (name: string, what: string, graph: string, input: object) =>
  row({
    name,
    what,
    start: (bench) => bench.heddle(),
    work: {
      path: (id) => `/threads/${id}/runs/wait`,
      body: JSON.stringify({ assistant_id: graph, input, if_not_exists: "create" }),
    },
  });

const beside = (...rows: string[]): NonNullable<Row["against"]> =>
  rows.flatMap((name) => [
    { row: name, figure: "per_s" as const },
    { row: name, figure: "cpu_us" as const },
    { row: name, figure: "alone_p50_ms" as const },
  ]);

const restate = (name: string, handler: string, what: string, ...against: string[]) =>
  row({
    name,
    what: `Restate, a virtual object with ${what}`,
    start: (bench) => startRestate(bench.directory),
    work: { path: (id) => `/steps/${id}/${handler}`, body: "{}" },
    foreign: true,
    rounds: 1,
    against: beside(...against),
  });

const dbos = (name: string, workflow: string, what: string, ...against: string[]) =>
  row({
    name,
    what: `DBOS on PostgreSQL behind node:http, a workflow with ${what}`,
    start: (bench) => startDbos(bench.directory),
    work: { path: (id) => `/${workflow}/${id}`, body: "{}" },
    foreign: true,
    rounds: 1,
    against: beside(...against),
  });

export const stepRows: readonly Row[] = [
  ours("steps-1", "runs/wait, one node with one `ctx.step`", "steps", { steps: 1 }),
  ours("steps-3", "runs/wait, one node with three `ctx.step`", "steps", { steps: 3 }),
  ours("nodes-3", "runs/wait, three nodes one after the other", "three", { value: 0 }),
  restate("restate-1", "one", "one step", "steps-1"),
  restate("restate-3", "three", "three steps", "steps-3", "nodes-3"),
  dbos("dbos-1", "one", "one step", "steps-1"),
  dbos("dbos-3", "three", "three steps", "steps-3", "nodes-3"),
];
