import { deletedSnapshotError, type ShardSnapshot, type ShardSnapshots } from "../ports/shard-snapshots.ts";
import { quoteName } from "./cluster-schema.ts";
import { asBuffer, type PostgresConnections, type NamedStatement } from "./postgres-connections.ts";
import { toUnavailableError } from "./postgres-error.ts";

/** The largest number of parts that one statement deletes. */
const MAX_PRUNED_PARTS = 16;

/** Snapshots in two tables of PostgreSQL. A snapshot is complete when the number of its parts is stored, which happens after the parts. */
export class PostgresShardSnapshots implements ShardSnapshots {
  readonly #connections: PostgresConnections;
  readonly #begin: NamedStatement;
  readonly #putPart: NamedStatement;
  readonly #complete: NamedStatement;
  readonly #giveUp: NamedStatement;
  readonly #list: NamedStatement;
  readonly #readPart: NamedStatement;
  readonly #prune: NamedStatement;
  readonly #pruneParts: NamedStatement;

  /** `connections`: MUST NOT be the connections of the log, because appends would wait behind the large parts of snapshots. */
  constructor(connections: PostgresConnections, schemaName: string) {
    this.#connections = connections;
    const schema = quoteName(schemaName);
    const complete = `FROM ${schema}.snapshots WHERE shard = $1 AND parts IS NOT NULL ORDER BY seq DESC, id`;
    const milliseconds = "(extract(epoch FROM made_at) * 1000)::bigint";
    this.#begin = {
      name: "heddle-begin-snapshot",
      text: `WITH given_up AS (DELETE FROM ${schema}.snapshots WHERE shard = $1 AND parts IS NULL AND seq < $2)
        INSERT INTO ${schema}.snapshots (shard, seq) VALUES ($1, $2) RETURNING id`,
    };
    this.#putPart = {
      name: "heddle-put-part",
      text: `INSERT INTO ${schema}.snapshot_parts (snapshot, part, bytes)
        SELECT $1::uuid, $2::int, $3::bytea FROM ${schema}.snapshots WHERE id = $1 RETURNING 1`,
    };
    this.#complete = {
      name: "heddle-complete-snapshot",
      text: `UPDATE ${schema}.snapshots SET parts = $2, bytes = $3, made_at = clock_timestamp() WHERE id = $1
        RETURNING ${milliseconds} AS made_at`,
    };
    this.#giveUp = {
      name: "heddle-give-up-snapshot",
      text: `DELETE FROM ${schema}.snapshots WHERE id = $1`,
    };
    this.#list = {
      name: "heddle-list-snapshots",
      text: `SELECT id, seq, parts, bytes, ${milliseconds} AS made_at ${complete}`,
    };
    this.#readPart = {
      name: "heddle-read-part",
      text: `SELECT bytes FROM ${schema}.snapshot_parts WHERE snapshot = $1 AND part = $2`,
    };
    this.#prune = {
      name: "heddle-prune-snapshots",
      text: `DELETE FROM ${schema}.snapshots WHERE shard = $1 AND CASE
          WHEN parts IS NULL THEN seq < (SELECT max(seq) FROM ${schema}.snapshots WHERE shard = $1 AND parts IS NOT NULL)
          ELSE id NOT IN (SELECT id ${complete} LIMIT $2)
        END`,
    };
    this.#pruneParts = {
      name: "heddle-prune-parts",
      text: `DELETE FROM ${schema}.snapshot_parts WHERE (snapshot, part) IN (
          SELECT snapshot, part FROM ${schema}.snapshot_parts AS p
          WHERE NOT EXISTS (SELECT FROM ${schema}.snapshots WHERE id = p.snapshot) LIMIT ${MAX_PRUNED_PARTS}
        ) RETURNING 1`,
    };
  }

  async put(shard: number, seq: number, parts: AsyncIterable<Uint8Array>): Promise<ShardSnapshot> {
    const [begun] = await this.#run(this.#begin, [shard, seq]);
    const id = begun?.["id"] as string;
    try {
      await this.#deleteOrphans();
      let count = 0;
      let bytes = 0;
      for await (const part of parts) {
        const stored = await this.#run(this.#putPart, [id, count, asBuffer(part)], part.length);
        if (stored.length === 0) throw deletedSnapshotError(shard, seq, count);
        count++;
        bytes += part.length;
      }
      const [completed] = await this.#run(this.#complete, [id, count, bytes]);
      if (completed === undefined) throw deletedSnapshotError(shard, seq, count);
      return { id, shard, seq, parts: count, bytes, madeAt: Number(completed["made_at"]) };
    } catch (error) {
      await this.#run(this.#giveUp, [id])
        .then(() => this.#deleteOrphans())
        // Parts that could not be deleted are deleted when the next snapshot is stored.
        .catch(() => undefined);
      throw error;
    }
  }

  async list(shard: number): Promise<readonly ShardSnapshot[]> {
    const rows = await this.#run(this.#list, [shard]);
    return rows.map((row) => ({
      id: row["id"] as string,
      shard,
      seq: Number(row["seq"]),
      parts: Number(row["parts"]),
      bytes: Number(row["bytes"]),
      madeAt: Number(row["made_at"]),
    }));
  }

  async *read({ id, shard, seq, parts, bytes }: ShardSnapshot): AsyncGenerator<Uint8Array> {
    for (let part = 0; part < parts; part++) {
      const [row] = await this.#run(this.#readPart, [id, part], bytes / parts);
      if (row === undefined) throw deletedSnapshotError(shard, seq, part);
      yield row["bytes"] as Buffer;
    }
  }

  async prune(shard: number, keep: number): Promise<void> {
    await this.#run(this.#prune, [shard, keep]);
    await this.#deleteOrphans();
  }

  /** Deletes the parts of snapshots that no longer exist. */
  async #deleteOrphans(): Promise<void> {
    while ((await this.#run(this.#pruneParts, [])).length > 0);
  }

  async #run(statement: NamedStatement, values: readonly unknown[], bytes = 0) {
    try {
      return await this.#connections.run(statement, values, bytes);
    } catch (error) {
      throw toUnavailableError(error);
    }
  }
}
