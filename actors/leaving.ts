import type { Cell } from "./thread/cell.ts";

/** Leaves what is in progress to the next start: noted in the records, so that the attempt does not count against its run. */
export async function leave(cells: readonly Cell[]): Promise<void> {
  const left: Promise<void>[] = [];
  for (const cell of cells) {
    const attempt = cell.attempt;
    if (attempt === null || !cell.alive) continue;
    const run = { ...attempt.run, parked: attempt.run.parked + 1 };
    cell.runs.set(run.run_id, run);
    left.push(cell.write({ kind: "left", durable: true, runs: [run] }, (thread) => thread));
  }
  await Promise.allSettled(left);
  for (const cell of cells) {
    cell.alive = false;
    cell.attempt?.revoke();
    cell.attempt?.sink.abandon();
    cell.actor?.stop();
  }
}
