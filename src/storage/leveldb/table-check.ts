import {
  readBlockEntries,
  type BlockHandle,
  readBlockHandle,
  hasValidChecksum,
  hasValidChecksumInSteps,
  TABLE_MAGIC,
  firstAndLastKeyOf,
  readBlock,
} from "./block.ts";
import { FormatError, ByteReader, userKey } from "./byte-reader.ts";
import { type DataBlock, findBlocks, lostKeyRanges, type TableBounds } from "./salvage.ts";

/** A range of keys, including both ends. Some of the keys may be lost. */
export interface KeyRange {
  readonly from: string;
  readonly to: string;
}

export interface TableDamage {
  readonly what: string;
  /** The keys that may be lost; undefined when no key is lost, but lookups may go wrong. */
  readonly range: KeyRange | undefined;
  /** Set for a damaged data block: the position of its type byte. */
  readonly kindAt?: number;
  /** For a table that has lost its index: the data blocks that can still be read. */
  readonly blocks?: readonly DataBlock[];
}

export const WHOLE_KEY_RANGE: KeyRange = { from: "", to: "~" };

const FOOTER = 48;

/**
 * Finds the damage of a table: wrong checksums of blocks, an unreadable footer or index, and a size or key range that differs from the
 * manifest. (For the format, see LevelDB's `table_format.md`.) LevelDB does not check the checksums when it reads, so a flipped bit could
 * hide a key and reveal an older value. Yields undefined after each MiB, and after each block, so that the caller can let other work run.
 * @param bounds the table's key range in the manifest, if known
 * @param size the table's bytes in the manifest
 */
export function* checkTable(
  bytes: Buffer,
  bounds: TableBounds | undefined,
  size = bytes.length,
): Generator<TableDamage | undefined> {
  let blocks: (readonly [last: string, handle: BlockHandle])[];
  let filters: readonly BlockHandle[];
  try {
    const footer = bytes.subarray(Math.max(0, bytes.length - FOOTER));
    if (footer.length < FOOTER || !footer.subarray(-8).equals(TABLE_MAGIC))
      throw new FormatError("its end is no table's");
    const reader = new ByteReader(footer);
    const meta = readBlockHandle(reader);
    const index = readBlockHandle(reader);
    blocks = readBlockEntries(readBlock(bytes, index)).map(([key, value]) => [
      userKey(key),
      readBlockHandle(new ByteReader(value)),
    ]);
    filters = filtersOf(bytes, meta);
  } catch (error) {
    const what = error instanceof FormatError ? error.message : String(error);
    yield* salvage(bytes, bounds, size, bytes.length === size ? what : sizeIs(bytes, size));
    return;
  }
  if (bytes.length !== size) {
    // A table with correct checksums but the wrong size is not the table that the manifest lists.
    yield { what: sizeIs(bytes, size), range: bounds ?? WHOLE_KEY_RANGE };
    return;
  }
  let { from } = bounds ?? WHOLE_KEY_RANGE;
  const damaged = new Set<BlockHandle>();
  for (const [to, handle] of blocks) {
    if (!(yield* hasValidChecksumInSteps(bytes, handle))) {
      damaged.add(handle);
      yield {
        what: `the block at ${handle.offset} has a wrong checksum`,
        range: { from, to },
        kindAt: handle.offset + handle.size,
      };
    }
    from = to;
  }
  for (const handle of filters) {
    if (!hasValidChecksum(bytes, handle)) yield { what: "its filter has a wrong checksum", range: undefined };
  }
  const other = boundsOf(bytes, blocks, damaged);
  if (bounds !== undefined && other !== undefined && (other.from !== bounds.from || other.to !== bounds.to)) {
    yield { what: "it is not the table that belongs here", range: bounds };
  }
}

function sizeIs(bytes: Buffer, size: number): string {
  return `it has ${bytes.length} bytes in place of ${size}`;
}

/**
 * Reports what a table without an index has lost: the key ranges before, between and after the blocks that can be found. Without `bounds`,
 * this is the whole key range.
 */
function* salvage(
  bytes: Buffer,
  bounds: TableBounds | undefined,
  size: number,
  what: string,
): Generator<TableDamage | undefined> {
  if (bounds === undefined) return yield { what, range: WHOLE_KEY_RANGE };
  const found = yield* findBlocks(bytes, bounds);
  // If the size is wrong and the first block is missing, nothing proves that the found blocks belong to this table.
  const blocks = bytes.length === size || found[0]?.offset === 0 ? found : [];
  const [first, ...others] = lostKeyRanges(blocks, bounds);
  yield { what, range: first, blocks };
  for (const range of others) yield { what: `${what}; another block is lost`, range };
}

/** The first and last key of a table whose blocks have been checked; undefined when they cannot be read. */
function boundsOf(
  bytes: Buffer,
  blocks: readonly (readonly [string, BlockHandle])[],
  damaged: ReadonlySet<BlockHandle>,
): KeyRange | undefined {
  const [first, last] = [blocks[0]?.[1], blocks.at(-1)?.[1]];
  try {
    if (first === undefined || last === undefined || damaged.has(first) || damaged.has(last))
      return undefined;
    const [from] = firstAndLastKeyOf(bytes, first);
    const [, to] = firstAndLastKeyOf(bytes, last);
    return { from: userKey(from), to: userKey(to) };
  } catch {
    return undefined;
  }
}

/** The filter blocks and their index. Damage in them loses no key, but lookups may go wrong. */
function filtersOf(bytes: Buffer, meta: BlockHandle): readonly BlockHandle[] {
  try {
    return [
      meta,
      ...readBlockEntries(readBlock(bytes, meta)).map(([, value]) => readBlockHandle(new ByteReader(value))),
    ];
  } catch {
    return [meta];
  }
}
