import { setTimeout as sleep } from "node:timers/promises";
import { threadDeleted } from "../../src/model/errors.ts";
import { everyStatelessEndIsDelivered, goneWhenDone } from "./checkers/stateless.ts";
import { GONE } from "./checkers/acknowledged.ts";
import { idsGrow, resumeIsExact } from "./checkers/streams.ts";
import type { Client } from "./client.ts";
import { settle } from "./webhook-receiver.ts";
import type { StatelessRunEntry, StreamEntry } from "./ledger.ts";
import { readOn, REST, together, type Verification } from "./verify.ts";

/** The same for stateless runs: they continue, their streams can be resumed, they end, and they are gone. */
export async function verifyStateless(verification: Verification): Promise<void> {
  const { client, ledger, effects, found, all } = verification;
  const doubtful = [...ledger.stateless.values()].filter((entry) => all || entry.status === undefined);
  await Promise.all([
    resumeStreams(verification, doubtful),
    together(doubtful, async (entry) => {
      if (await isGone(client, entry)) return;
      found({
        invariant: "I3",
        message: `run ${entry.run} (${entry.what}) is still there ${REST} ms after the last request`,
        evidence: entry,
      });
    }),
  ]);
  effects.read();
  const gone = doubtful.filter((entry) => entry.ended !== undefined);
  for (const violation of goneWhenDone(ledger, gone, effects.all)) found(violation);

  async function isGone(from: Client, entry: StatelessRunEntry): Promise<boolean> {
    const deadline = performance.now() + REST;
    while (performance.now() < deadline) {
      const { status } = await from.json("GET", `/threads/${entry.thread}/runs/${entry.run}`);
      if (status === 404) {
        entry.status = GONE;
        entry.ended ??= ledger.now();
        return true;
      }
      await sleep(50);
    }
    return false;
  }
}

/** When all of them are gone: each end was delivered. */
export async function verifyStatelessWebhooks({ client, ledger, hooks, found }: Verification): Promise<void> {
  await settle(client);
  const gone = [...ledger.stateless.values()].filter((entry) => entry.status === GONE);
  for (const violation of everyStatelessEndIsDelivered(ledger, gone, hooks.delivered)) found(violation);
}

/** Resumes streams that a kill has cut, where the run allows it. Some readers come too late. */
async function resumeStreams(
  { client, found }: Verification,
  entries: readonly StatelessRunEntry[],
): Promise<void> {
  const cut = entries.flatMap((entry) =>
    entry.bound
      ? []
      : entry.streams.filter((stream) => stream.how === "cut").map((stream) => ({ entry, stream })),
  );
  await together(cut, async ({ entry, stream }) => {
    const before = [...stream.frames];
    const after = await read(client, entry, stream, before.at(-1)?.id ?? -1);
    const replay = after === undefined ? undefined : await read(client, entry, stream, -1);
    stream.how = "end";
    if (after === undefined || replay === undefined) return;
    stream.frames.push(...after);
    for (const violation of [
      ...idsGrow(entry.run, replay, true),
      ...resumeIsExact(entry.run, before, after, replay),
    ]) {
      found(violation);
    }
  });
}

/** Undefined: the run is gone by now, or was deleted while it was read, and the server said so. */
async function read(client: Client, entry: StatelessRunEntry, { modes }: StreamEntry, after: number) {
  const { status, frames, ended } = await readOn(client, `/runs/${entry.run}`, modes, after);
  const isDeleted = frames.some(
    ({ event, raw }) => event === "error" && raw.includes(threadDeleted().message),
  );
  return status === 200 && ended && !isDeleted ? frames : undefined;
}
