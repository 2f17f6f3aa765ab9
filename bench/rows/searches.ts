import type { Server } from "../server.ts";
import { makeThreads, measure, perform, withServer } from "./measure.ts";
import type { Bench, Figures, Row } from "./row.ts";

/** Rows that check that a search for one page of threads takes the same time however many threads there are. */

const USERS = 100;
/** For each 1,000 threads, this many more are created that wait at a breakpoint. */
const WAITING = 10;

/**
 * Creates `threads` threads that belong to 100 users, and as many as a hundredth of them in addition, each with a run
 * that waits at a breakpoint.
 */
async function fill(bench: Bench, server: Server, threads: number): Promise<void> {
  const each = Math.max(1, Math.round(threads / USERS));
  for (let user = 0; user < USERS; user++) {
    await perform(bench, server, {
      connections: Math.min(64, each),
      method: "POST",
      paths: ["/threads"],
      total: each,
      body: JSON.stringify({ metadata: { user: `user ${user}`, deep: { n: user } } }),
      answer: "text",
    });
  }
  const waiting = Math.max(20, Math.round((threads * WAITING) / 1_000));
  const ids = await makeThreads(bench, server, waiting);
  await perform(bench, server, {
    connections: Math.min(64, waiting),
    method: "POST",
    paths: ids.map((id) => `/threads/${id}/runs/wait`),
    total: waiting,
    body: JSON.stringify({ assistant_id: "one", input: { value: 1 }, interrupt_before: "*" }),
    answer: "text",
  });
}

const pages = (bench: Bench, search: object) => ({
  connections: 1,
  method: "POST" as const,
  paths: ["/threads/search"],
  // In the first thousand searches of a new process, much of the CPU is the compiler's.
  total: Math.max(20, Math.round(5_000 * bench.scale)),
  body: JSON.stringify(search),
  answer: "text" as const,
});

const UNDER = (["p50_ms", "status_p50_ms", "member_p50_ms", "updated_p50_ms"] as const).map((figure) => ({
  figure,
  most: 5,
}));

function row(name: string, threads: number, more: Partial<Row>): Row {
  return {
    name,
    rounds: 1,
    what: `POST /threads/search, a page of 10 of ${threads.toLocaleString("en-US")} threads, one client: the newest; those that are interrupted (1 in 100); those of one user of 100`,
    target: "p50 under 5 ms",
    goals: UNDER,
    run: (bench) =>
      withServer(bench.heddle(), async (server): Promise<Figures> => {
        await fill(bench, server, Math.max(1_000, Math.round(threads * bench.scale)));
        const p50 = async (search: object) =>
          (await perform(bench, server, pages(bench, search))).latency.p50;
        await p50({});
        const { figures } = await measure(bench, server, pages(bench, {}));
        return {
          ...figures,
          status_p50_ms: await p50({ status: "interrupted" }),
          member_p50_ms: await p50({ metadata: { user: "user 7" } }),
          updated_p50_ms: await p50({ sort_by: "updated_at", status: "interrupted" }),
        };
      }),
    ...more,
  };
}

export const searchRows: readonly Row[] = [
  row("search-1k", 1_000, {}),
  row("search-100k", 100_000, {
    target: "p50 under 5 ms, within 1.3 of 1,000 threads",
    goals: [...UNDER, { figure: "p50_ms", to: "search-1k", most: 1.3 }],
    against: [{ row: "search-1k", figure: "p50_ms" }],
  }),
];
