import type { ChannelRef } from "../model/checkpoint.ts";

/** References to the values of a checkpoint's channels. */
export type ChannelRefs = { readonly [channel: string]: ChannelRef };

// The stored form of a reference. For a whole value it is the number of the checkpoint that wrote the value. For a list it is the list's
// spans (see `Spans` in `channel-values.ts`), flattened into one array of numbers. For a small value it is an object that contains the value.

interface Box {
  readonly is: unknown;
}
export type StoredRefs = { readonly [channel: string]: number | readonly number[] | Box };

export function packRefs(refs: ChannelRefs): StoredRefs {
  const stored: Record<string, number | readonly number[] | Box> = {};
  for (const channel of Object.keys(refs)) {
    const ref = refs[channel] as ChannelRef;
    if (ref.kind === "small") stored[channel] = { is: ref.value };
    else stored[channel] = ref.kind === "whole" ? ref.at : ref.spans.flatMap(({ at, end }) => [at, end]);
  }
  return stored;
}

export function unpackRefs(stored: StoredRefs): ChannelRefs {
  const refs: Record<string, ChannelRef> = {};
  for (const [channel, at] of Object.entries(stored)) {
    if (typeof at === "number") refs[channel] = { kind: "whole", at };
    else if ("is" in at) refs[channel] = { kind: "small", value: at.is };
    else {
      const spans: { at: number; end: number }[] = [];
      for (let i = 0; i + 1 < at.length; i += 2)
        spans.push({ at: at[i] as number, end: at[i + 1] as number });
      refs[channel] = { kind: "list", spans };
    }
  }
  return refs;
}
