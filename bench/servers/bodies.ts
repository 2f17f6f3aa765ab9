/** What the control servers answer: the bytes that Heddle sends for the same request, made once. */

/** About as long as the answer of a one-node run. */
export const CONSTANT_JSON = JSON.stringify({ value: 1, text: "x".repeat(160) });

/** In one piece, as what comes from a network is: a text that was repeated is a tree, which has to be laid flat for each event. */
const PAD = Buffer.alloc(64 * 1024, "x").toString("latin1");
/** Bytes of the data beside its number and its pad. */
const BARE = `{"i":,"pad":""}`.length;

/** Data for `ctx.emit` that takes `size` bytes as JSON. */
export function customData(i: number, size: number): { readonly i: number; readonly pad: string } {
  return { i, pad: PAD.slice(0, Math.max(0, size - BARE - String(i).length)) };
}

/** A `custom` event as Heddle frames it, whose data has `size` bytes. */
export function customEvent(id: number, size: number): string {
  return `event: custom\ndata: ${JSON.stringify(customData(id, size))}\nid: ${id}\n\n`;
}
