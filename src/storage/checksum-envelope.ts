import { packValue, unpackValue } from "../codec/value-encoding.ts";
import { ServiceError } from "../model/errors.ts";
import type { ThreadKey } from "../model/thread.ts";
import { crc32From } from "./crc32.ts";

/**
 * Bytes of the envelope in front of each value: the value's length and its CRC-32, each with 32 bits, little-endian.
 * They show whether the value is complete, because LevelDB may return less than was written.
 */
const ENVELOPE_BYTES = 8;
const NOT_DECODABLE = "it cannot be decoded";

/** Encodes a value with its envelope. */
export function encodeWithChecksum(value: unknown): Buffer {
  const bytes = packValue(value, ENVELOPE_BYTES);
  bytes.writeUInt32LE(bytes.length - ENVELOPE_BYTES, 0);
  bytes.writeUInt32LE(crc32From(bytes, ENVELOPE_BYTES), 4);
  return bytes;
}

export const storedChecksum = (bytes: Buffer): number => bytes.readUInt32LE(4);

/** Describes what is wrong with stored bytes; undefined if they are intact. */
export function envelopeFlaw(bytes: Buffer): string | undefined {
  if (bytes.length < ENVELOPE_BYTES) return "its envelope is cut short";
  const length = bytes.readUInt32LE(0);
  if (length !== bytes.length - ENVELOPE_BYTES)
    return `it has ${bytes.length - ENVELOPE_BYTES} bytes in place of ${length}`;
  if (crc32From(bytes, ENVELOPE_BYTES) !== storedChecksum(bytes)) return "its checksum is wrong";
  return undefined;
}

/** Describes what is wrong with bytes that {@link decodeWithChecksum} has refused. */
export function decodingFlaw(bytes: Buffer): string {
  return envelopeFlaw(bytes) ?? NOT_DECODABLE;
}

/**
 * Decodes a value that {@link encodeWithChecksum} wrote. `what` names the value in errors, such as `run 0199...`.
 * @throws ServiceError `journal.damaged`
 */
export function decodeWithChecksum(bytes: Buffer, key: ThreadKey, what: string): unknown {
  const found = envelopeFlaw(bytes);
  if (found !== undefined) throw damagedError(key, `${what}: ${found}`);
  try {
    return unpackValue(bytes, ENVELOPE_BYTES);
  } catch (cause) {
    throw damagedError(key, `${what}: ${NOT_DECODABLE}`, cause);
  }
}

export function damagedError(key: ThreadKey, what: string, cause?: unknown): ServiceError {
  const owner = key.thread === "" ? `The catalog of tenant ${key.tenant}` : `Thread ${key.thread}`;
  return new ServiceError("journal.damaged", `${owner} is damaged: ${what}`, { cause });
}
