/** Bodies of the control servers' responses, created like those of Heddle. */

/** A JSON body about as long as that of Heddle's response to a one-node run. */
export const CONSTANT_JSON = JSON.stringify({ value: 1, text: "x".repeat(160) });

/**
 * Made from a buffer, so that V8 stores it as one flat string, like a text from the network. V8 would store the result
 * of `repeat` as a tree, and have to flatten it for each event.
 */
const PADDING = Buffer.alloc(64 * 1024, "x").toString("latin1");
/** The number of bytes of {@link customData} as JSON, without its number and padding. */
const UNPADDED_BYTES = `{"i":,"pad":""}`.length;

/** Returns data for `ctx.emit`, of `size` bytes as JSON. */
export function customData(i: number, size: number): { readonly i: number; readonly pad: string } {
  return { i, pad: PADDING.slice(0, Math.max(0, size - UNPADDED_BYTES - String(i).length)) };
}

/** Returns a `custom` event as Heddle writes it to a stream. Its data have `size` bytes. */
export function customEvent(id: number, size: number): string {
  return `event: custom\ndata: ${JSON.stringify(customData(id, size))}\nid: ${id}\n\n`;
}
