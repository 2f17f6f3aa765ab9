import { body, warmUp } from "./heddle.ts";
import { makeThreads, measure, perform, withServer, type Request } from "./measure.ts";
import type { Row } from "./row.ts";

/** A row that measures runs with one node that blocks its JavaScript thread for 2 ms, with 64 clients. */
function burnRow(name: string, where: string, workerRows: number | undefined, more: Partial<Row>): Row {
  return {
    name,
    what: `runs/wait of a graph whose node is busy for 2 ms, 64 clients; nodes run ${where}`,
    run: (bench) =>
      withServer(bench.heddle(workerRows === undefined ? {} : { workers: workerRows }), async (server) => {
        await warmUp(bench, server);
        const asking = async (total: number): Promise<Request> => ({
          connections: 64,
          method: "POST",
          paths: (await makeThreads(bench, server, total)).map((id) => `/threads/${id}/runs/wait`),
          total,
          body: body("burn", { value: 1 }),
          answer: "text",
        });
        await perform(bench, server, await asking(200));
        const total = Math.max(64, Math.round(3_000 * bench.scale));
        return (await measure(bench, server, await asking(total))).figures;
      }),
    ...more,
  };
}

/** Rows that show how much faster node functions run when worker threads use a second core. */
export const workers: readonly Row[] = [
  burnRow("burn-64", "in the server's own thread", undefined, {}),
  burnRow("burn-64-workers", "in two worker threads", 2, {
    target: "1.6 times burn-64 on two cores",
    goals: [{ figure: "per_s", to: "burn-64", least: 1.6 }],
    against: [
      { row: "burn-64", figure: "per_s" },
      { row: "burn-64", figure: "ok_p99_ms" },
    ],
  }),
];
