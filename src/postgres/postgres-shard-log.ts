import {
  fencedAppendError,
  type LogEntry,
  type LogExtent,
  type ShardLog,
  trimmedLogError,
} from "../ports/shard-log.ts";
import { quoteName } from "./cluster-schema.ts";
import { asBuffer, type PostgresConnections, type NamedStatement } from "./postgres-connections.ts";
import { sqlStateOf, toUnavailableError } from "./postgres-error.ts";

/** The SQLSTATE of an insert with a key that already exists. */
const UNIQUE_VIOLATION = "23505";
/** The largest number of entries that one read returns. */
const MAX_READ_ENTRIES = 1_000;
/**
 * The largest number of entries, and of bytes of batches, that one statement deletes. A statement deletes at least one entry, however large
 * the entry is.
 */
const MAX_TRIM_ENTRIES = 500;
const MAX_TRIM_BYTES = 8 * 1024 * 1024;
/**
 * The value of `bytes` with which {@link PostgresConnections.run} waits for about two minutes. Measuring a log of many gigabytes takes
 * long.
 */
const MEASURING_BYTES = 256 * 1024 * 1024;

/**
 * The log of all shards in one table of PostgreSQL. The table's primary key refuses a second entry at a position, and the statement that
 * appends refuses an epoch that is not the shard's current one.
 */
export class PostgresShardLog implements ShardLog {
  readonly #connections: PostgresConnections;
  readonly #append: NamedStatement;
  readonly #read: NamedStatement;
  readonly #last: NamedStatement;
  readonly #extent: NamedStatement;
  readonly #trim: NamedStatement;

  constructor(connections: PostgresConnections, schemaName: string) {
    this.#connections = connections;
    const schema = quoteName(schemaName);
    const last = `coalesce((SELECT max(seq) FROM ${schema}.log WHERE shard = $1), 0)`;
    this.#append = {
      name: "heddle-append",
      text: `INSERT INTO ${schema}.log (shard, seq, epoch, batch)
        SELECT $1::int, $2::bigint, $3::bigint, $4::bytea FROM ${schema}.shards
        WHERE shard = $1 AND epoch = $3 AND trimmed_below <= $2
          AND ($2 = 1 OR EXISTS (SELECT FROM ${schema}.log WHERE shard = $1 AND seq = $2 - 1))
        RETURNING 1`,
    };
    // The subquery adds up the lengths of batches to find how many entries fit. PostgreSQL knows the length of a large value without
    // reading the value (TOAST).
    this.#read = {
      name: "heddle-read",
      text: `SELECT s.trimmed_below, e.seq, e.epoch, e.batch FROM ${schema}.shards AS s LEFT JOIN (
          SELECT seq, epoch, batch, sum(octet_length(batch)) OVER (ORDER BY seq) AS bytes
          FROM (SELECT * FROM ${schema}.log WHERE shard = $1 AND seq >= $2 ORDER BY seq LIMIT ${MAX_READ_ENTRIES}) AS next
        ) AS e ON e.bytes <= $3 OR e.seq = $2
        WHERE s.shard = $1 ORDER BY e.seq`,
    };
    this.#last = { name: "heddle-last", text: `SELECT ${last} AS last` };
    this.#extent = {
      name: "heddle-extent",
      text: `SELECT min(seq) AS first, ${last} AS last, coalesce(sum(octet_length(batch)), 0) AS bytes
        FROM ${schema}.log WHERE shard = $1 AND seq >= $2`,
    };
    this.#trim = {
      name: "heddle-trim",
      text: `WITH step AS (
          UPDATE ${schema}.shards AS s SET trimmed_below = n.below
          FROM (SELECT trimmed_below AS since, least($2::bigint, ${last}, (
              SELECT max(seq) + 1 FROM (
                SELECT seq, sum(octet_length(batch)) OVER (ORDER BY seq) AS bytes
                FROM (SELECT * FROM ${schema}.log WHERE shard = $1 AND seq >= trimmed_below ORDER BY seq LIMIT ${MAX_TRIM_ENTRIES}) AS oldest
              ) AS e WHERE e.bytes <= ${MAX_TRIM_BYTES} OR e.seq = trimmed_below
            )) AS below
            FROM ${schema}.shards WHERE shard = $1) AS n
          WHERE shard = $1 AND trimmed_below = n.since AND n.below > n.since
          RETURNING n.since, n.below
        ), deleted AS (
          DELETE FROM ${schema}.log USING step WHERE shard = $1 AND seq >= step.since AND seq < step.below
        )
        SELECT FROM step`,
    };
  }

  async append(shard: number, seq: number, epoch: number, batch: Uint8Array): Promise<void> {
    let stored: readonly unknown[];
    try {
      stored = await this.#connections.run(this.#append, [shard, seq, epoch, asBuffer(batch)], batch.length);
    } catch (error) {
      if (sqlStateOf(error) === UNIQUE_VIOLATION) throw fencedAppendError(shard, seq, epoch, error);
      throw toUnavailableError(error);
    }
    if (stored.length === 0) throw fencedAppendError(shard, seq, epoch);
  }

  async read(shard: number, from: number, limitBytes: number): Promise<readonly LogEntry[]> {
    const rows = await this.#run(this.#read, [shard, from, limitBytes], limitBytes);
    if (from < Number(rows[0]?.["trimmed_below"])) throw trimmedLogError(shard, from);
    return rows.flatMap(({ seq, epoch, batch }) =>
      seq === null ? [] : [{ seq: Number(seq), epoch: Number(epoch), batch: batch as Buffer }],
    );
  }

  async last(shard: number): Promise<number> {
    const [row] = await this.#run(this.#last, [shard]);
    return Number(row?.["last"]);
  }

  async extent(shard: number, from: number): Promise<LogExtent> {
    const [row] = await this.#run(this.#extent, [shard, from], MEASURING_BYTES);
    const last = Number(row?.["last"]);
    const first = row?.["first"];
    return { first: first === null ? last + 1 : Number(first), last, bytes: Number(row?.["bytes"]) };
  }

  async trim(shard: number, below: number): Promise<void> {
    while ((await this.#run(this.#trim, [shard, below])).length > 0);
  }

  async #run(statement: NamedStatement, values: readonly unknown[], bytes = 0) {
    try {
      return await this.#connections.run(statement, values, bytes);
    } catch (error) {
      throw toUnavailableError(error);
    }
  }
}
