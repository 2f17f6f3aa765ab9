import type { Frame } from "../client.ts";
import type { Violation } from "../ledger.ts";

/** I4, as a reader sees it: ids increase from event to event, and the first event of a run is `metadata`, number 0. */
export function idsGrow(run: string, frames: readonly Frame[], fromStart: boolean): Violation[] {
  const found: Violation[] = [];
  const say = (message: string, at: number) =>
    found.push({
      invariant: "I4",
      message: `run ${run}: ${message}`,
      evidence: frames.slice(Math.max(0, at - 2), at + 2).map((frame) => frame.raw),
    });
  const first = frames[0];
  if (fromStart && first !== undefined && (first.id !== 0 || first.event !== "metadata")) {
    say(`its stream begins with event ${first.id} "${first.event}", not with metadata 0`, 0);
  }
  for (let i = 0; i < frames.length; i++) {
    const id = frames[i]?.id ?? Number.NaN;
    if (!Number.isSafeInteger(id) || id < 0) say(`event ${i} has no id that counts`, i);
    else if (i > 0 && id <= (frames[i - 1]?.id ?? -1)) say(`event ${id} comes after ${frames[i - 1]?.id}`, i);
  }
  return found;
}

/**
 * I5: the events before a cut and the events of the resumed stream together equal the stream from the start: byte for
 * byte, nothing missing, nothing twice.
 */
export function resumeIsExact(
  run: string,
  before: readonly Frame[],
  resumed: readonly Frame[],
  replay: readonly Frame[],
): Violation[] {
  const together = [...before, ...resumed];
  for (let i = 0; i < Math.max(together.length, replay.length); i++) {
    const got = together[i];
    const due = replay[i];
    if (got !== undefined && due !== undefined && got.raw === due.raw) continue;
    const where = i < before.length ? "before the cut" : "after resuming";
    return [
      {
        invariant: "I5",
        message:
          got === undefined
            ? `run ${run}: resuming after event ${before.at(-1)?.id ?? -1} left out event ${due?.id}`
            : due === undefined
              ? `run ${run}: event ${got.id} was sent ${where}, but a replay does not have it`
              : `run ${run}: event ${got.id}, as sent ${where}, is not what a replay has in its place (${due.id})`,
        evidence: {
          got: got?.raw,
          due: due?.raw,
          ids: {
            before: before.map((f) => f.id),
            resumed: resumed.map((f) => f.id),
            replay: replay.map((f) => f.id),
          },
        },
      },
    ];
  }
  return [];
}
