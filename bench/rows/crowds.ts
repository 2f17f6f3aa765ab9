import { createServer, type AddressInfo } from "node:net";
import type { Server } from "../server.ts";
import { perform, withServer, type Request } from "./measure.ts";
import type { Bench, Figures, Row } from "./row.ts";

/** Rows that check that many runs or webhooks of one kind do not slow down those of another. */

const OF_ONE = JSON.stringify({ assistant_id: "one", input: { value: 1 } });
const OF_SLOW = JSON.stringify({ assistant_id: "slow", input: { value: 1 } });

const runs = (total: number, clients: number, more: Partial<Request> = {}): Request => ({
  connections: Math.min(clients, total),
  method: "POST",
  paths: ["/runs/wait"],
  total,
  body: OF_ONE,
  answer: "text",
  ...more,
});

/** Returns a TCP port on which nothing listens, so that connections are refused. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Seconds after which two delivery attempts of each webhook have been made. */
const TWO_ATTEMPTS_SECONDS = 14;

/**
 * Starts 1,000 runs, each with `webhook` if it is given, and returns the milliseconds to the first event of runs that
 * start after them.
 */
async function measureLaterStarts(bench: Bench, server: Server, webhook?: string) {
  await perform(bench, server, runs(Math.max(64, Math.round(2_000 * bench.scale)), 64));
  const body = JSON.stringify({ ...(JSON.parse(OF_ONE) as object), ...(webhook && { webhook }) });
  await perform(bench, server, runs(Math.max(64, Math.round(1_000 * bench.scale)), 64, { body }));
  const seconds = TWO_ATTEMPTS_SECONDS * Math.min(1, bench.scale);
  const later = runs(1_000_000, 4, { paths: ["/runs/stream"], answer: "events", seconds });
  const { first } = await perform(bench, server, later);
  return { p50: first?.p50 ?? Number.NaN, p99: first?.p99 ?? Number.NaN };
}

const webhooks: Row = {
  name: "webhooks-1000",
  what: "1,000 runs whose webhook is a closed port; starts of later runs, four at a time, until each webhook was tried twice; and the same without webhooks",
  target: "first event p99 under 100 ms",
  goals: [{ figure: "first_p99_ms", most: 100 }],
  long: true,
  run: async (bench): Promise<Figures> => {
    const alone = await withServer(bench.heddle(), (server) => measureLaterStarts(bench, server));
    const hook = `http://127.0.0.1:${await closedPort()}/`;
    const { p50, p99 } = await withServer(bench.heddle(), (server) =>
      measureLaterStarts(bench, server, hook),
    );
    return { first_p50_ms: p50, first_p99_ms: p99, alone_p50_ms: alone.p50, alone_p99_ms: alone.p99 };
  },
};

const SLOTS = 8;
const many = { "x-api-key": "of-many" };
const few = { "x-api-key": "of-few" };

const tenants: Row = {
  name: "tenants",
  what: `runs of 200 ms, ${SLOTS} in progress at most; one tenant has 10,000 in the queue, another has one at a time, 20 in all: against the same with no queue`,
  target: "under 2 times as long as alone",
  goals: [{ figure: "slower", most: 2 }],
  long: true,
  run: (bench) =>
    withServer(
      bench.heddle({ slots: SLOTS, keys: ["many:of-many", "few:of-few"] }),
      async (server): Promise<Figures> => {
        await perform(
          bench,
          server,
          runs(Math.max(64, Math.round(2_000 * bench.scale)), 64, { headers: many }),
        );
        const one = () => perform(bench, server, runs(20, 1, { headers: few, body: OF_SLOW }));
        const alone = await one();
        const queued = Math.max(100, Math.round(10_000 * bench.scale));
        await perform(bench, server, runs(queued, 64, { paths: ["/runs"], headers: many, body: OF_SLOW }));
        const beside = await one();
        return {
          p50_ms: beside.latency.p50,
          p99_ms: beside.latency.p99,
          alone_p50_ms: alone.latency.p50,
          alone_p99_ms: alone.latency.p99,
          slower: beside.latency.p50 / alone.latency.p50,
        };
      },
    ),
};

export const crowdRows: readonly Row[] = [webhooks, tenants];
