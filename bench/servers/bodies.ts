/** The responses of the control servers: the bytes that Heddle sends for the same request, created once. */

/** About as long as the response to a one-node run. */
export const CONSTANT_JSON = JSON.stringify({ value: 1, text: "x".repeat(160) });

/**
 * A flat string, as a text from the network is. V8 stores a repeated string as a tree, which it would have to flatten
 * for each event.
 */
const PADDING = Buffer.alloc(64 * 1024, "x").toString("latin1");
/** Bytes of the data without its number and padding. */
const UNPADDED_BYTES = `{"i":,"pad":""}`.length;

/** Data for `ctx.emit` with `size` bytes as JSON. */
export function customData(i: number, size: number): { readonly i: number; readonly pad: string } {
  return { i, pad: PADDING.slice(0, Math.max(0, size - UNPADDED_BYTES - String(i).length)) };
}

/** A `custom` event as Heddle frames it, whose data has `size` bytes. */
export function customEvent(id: number, size: number): string {
  return `event: custom\ndata: ${JSON.stringify(customData(id, size))}\nid: ${id}\n\n`;
}
