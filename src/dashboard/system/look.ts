import { countThreads } from "../api/client.ts";
import { THREAD_STATUSES } from "../api/records.ts";
import { KeyNeeded, read } from "../server.ts";
import { failed } from "../app/session.ts";

export interface Tile {
  readonly title: string;
  readonly value: string;
  readonly note?: string;
  readonly bad?: boolean;
}

/** What was seen of the server at one moment. */
export interface Look {
  readonly version: string;
  readonly transport: string;
  /** Milliseconds that `/ok` took. */
  readonly latency: number;
  readonly tiles: readonly Tile[];
}

interface Info {
  readonly version: string;
  readonly heddle?: { readonly transport?: { readonly kind?: string } };
}

const whole = (value: number): string => Math.round(value).toLocaleString("en");

/** What is not told is left out. */
async function maybe<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (cause) {
    if (cause instanceof KeyNeeded) failed(cause);
    return undefined;
  }
}

export async function lookAround(): Promise<Look> {
  const began = performance.now();
  await read("ok");
  const latency = performance.now() - began;
  const [info, total, actors, dead, owed, ...counts] = await Promise.all([
    read<Info>("info"),
    maybe(countThreads({})),
    maybe(read<{ readonly actors: readonly { readonly runs: number }[] }>("inspect/actors?limit=1000")),
    maybe(read<readonly unknown[]>("webhooks/deliveries?status=dead&limit=1000")),
    maybe(read<readonly unknown[]>("webhooks/deliveries?status=pending&limit=1000")),
    ...THREAD_STATUSES.map((status) => maybe(countThreads({ status }))),
  ]);
  const tiles: Tile[] = [];
  if (total !== undefined) tiles.push({ title: "Threads", value: whole(total) });
  THREAD_STATUSES.forEach((status, i) => {
    const count = counts[i];
    if (count !== undefined)
      tiles.push({ title: status, value: whole(count), bad: status === "error" && count > 0 });
  });
  if (actors !== undefined) {
    const live = actors.actors.length;
    tiles.push({
      title: "Live actors",
      value: live >= 1_000 ? "1,000 or more" : whole(live),
      ...(total !== undefined &&
        live < 1_000 && { note: `${whole(Math.max(0, total - live))} threads rest in storage` }),
    });
    tiles.push({
      title: "Runs in progress",
      value: whole(actors.actors.reduce((sum, { runs }) => sum + runs, 0)),
    });
  }
  if (owed !== undefined) tiles.push({ title: "Webhooks owed", value: whole(owed.length) });
  if (dead !== undefined)
    tiles.push({ title: "Webhooks given up", value: whole(dead.length), bad: dead.length > 0 });
  return {
    version: info.version,
    transport: info.heddle?.transport?.kind ?? "?",
    latency,
    tiles,
  };
}
