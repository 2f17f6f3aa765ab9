/** The MessagePack extension type of a text that has only ASCII characters, and at least {@link LONG_ASCII_TEXT} of them. */
export const ASCII_TEXT_TYPE = 0x4b;

/**
 * From this number of characters on, a text of ASCII characters is stored as {@link ASCII_TEXT_TYPE}. Decoding 1 MiB of such a text takes
 * 0.1 ms, because Node keeps a text of this size outside V8's heap. Decoding it from a MessagePack string took 4 to 8 ms.
 */
export const LONG_ASCII_TEXT = 1024 * 1024;

export const readAsciiText = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
