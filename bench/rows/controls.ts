import { fork } from "node:child_process";
import { once } from "node:events";
import { measureSync } from "../machine.ts";
import type { Summary } from "../stats.ts";
import { measure, perform, withServer, type Request } from "./measure.ts";
import type { Bench, Figures, Row } from "./row.ts";

const RUN: Request = {
  connections: 1,
  method: "POST",
  paths: ["/threads/01a1f8d4-8000-7000-8000-000000000000/runs/wait"],
  total: 0,
  body: '{"assistant_id":"one","input":{"value":1}}',
  answer: "text",
};

/** A row for a control server that always sends the same response. */
function constant(name: string, server: string, connections: number, total: number, what: string): Row {
  return {
    name,
    what,
    run: (bench) =>
      withServer(bench.control(server, bench.directory), async (process) => {
        const count = Math.max(connections, Math.round(total * bench.scale));
        await perform(bench, process, { ...RUN, connections, total: Math.ceil(count / 4) });
        return (await measure(bench, process, { ...RUN, connections, total: count })).figures;
      }),
  };
}

function events(name: string, connections: number, count: number, size: number, times: number): Row {
  return {
    name,
    what: `bare uWebSockets: ${connections} stream(s) of ${count} events, data of ${size} bytes, 64 events to a write`,
    run: (bench) =>
      withServer(bench.control("uws"), async (process) => {
        const each = Math.max(10, Math.round(count * bench.scale));
        const request: Request = {
          connections,
          method: "POST",
          paths: [`/events/${each}/${size}`],
          total: connections * times,
          body: "{}",
          answer: "events",
        };
        await perform(bench, process, request);
        return (await measure(bench, process, request, "event")).figures;
      }),
  };
}

function group(actors: number, total: number): Row {
  return {
    name: `level-${actors}`,
    what: `group commit on LevelDB alone, ${actors} waiting, two synced batches an operation`,
    run: async (bench) => {
      const count = Math.max(actors, Math.round(total * bench.scale));
      const child = fork(
        `${bench.built}/bench/servers/level.js`,
        [bench.directory, String(actors), String(count)],
        { stdio: ["ignore", "inherit", "inherit", "ipc"] },
      );
      const [told] = (await once(child, "message")) as [GroupResult];
      return {
        per_s: told.operations / told.seconds,
        p50_ms: told.latency.p50,
        p99_ms: told.latency.p99,
        cpu_us: (told.cpu / told.operations) * 1e6,
        synced: told.batches / told.operations,
      };
    },
  };
}

interface GroupResult {
  readonly operations: number;
  readonly seconds: number;
  readonly latency: Summary;
  readonly batches: number;
  readonly cpu: number;
}

const sync: Row = {
  name: "fdatasync",
  what: "append 4 KiB and fdatasync, one after the other",
  run: async (bench: Bench): Promise<Figures> => {
    const measured = measureSync(bench.directory, Math.max(20, Math.round(1000 * bench.scale)));
    return { per_s: 1000 / measured.mean, p50_ms: measured.p50, p99_ms: measured.p99 };
  },
};

/** Rows that measure servers and storage without Heddle, as a reference for Heddle's rows. */
export const controlRows: readonly Row[] = [
  sync,
  constant("uws-1", "uws", 1, 20_000, "bare uWebSockets, constant JSON, one client"),
  constant("uws-64", "uws", 64, 200_000, "the same, 64 clients"),
  constant("node-http-64", "node-http", 64, 100_000, "bare node:http, constant JSON, 64 clients"),
  group(1, 2_000),
  group(256, 40_000),
  constant("uws-commit-1", "uws-commit", 1, 2_000, "bare uWebSockets, two synced batches before each answer"),
  constant("uws-commit-256", "uws-commit", 256, 40_000, "the same, 256 clients"),
  events("uws-events-1", 1, 200_000, 100, 3),
  events("uws-events-100", 100, 200, 100, 5),
  events("uws-events-640", 1, 50_000, 600, 3),
];
