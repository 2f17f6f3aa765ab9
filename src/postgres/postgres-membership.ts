import type { ClusterNode, ClusterView, Membership, ShardLease } from "../ports/membership.ts";
import { quoteName } from "./cluster-schema.ts";
import type { PostgresConnections, Statement } from "./connections.ts";
import { unavailableDatabase } from "./postgres-error.ts";

/** Nodes and leases in two tables of PostgreSQL. Leases end by PostgreSQL's clock. Each call is one statement. */
export class PostgresMembership implements Membership {
  readonly #connections: PostgresConnections;
  readonly #leaseMs: number;
  readonly #renew: Statement;
  readonly #take: Statement;
  readonly #give: Statement;
  readonly #leave: Statement;

  /** `connections`: MUST NOT be the connections of the log: a slow append could make a lease end. */
  constructor(connections: PostgresConnections, schemaName: string, leaseMs: number) {
    this.#connections = connections;
    this.#leaseMs = leaseMs;
    const schema = quoteName(schemaName);
    const until = (parameter: string): string =>
      `clock_timestamp() + ${parameter} * interval '1 millisecond'`;
    // A statement reads tables as they were before it. So the node and the leases that it renews are excluded here, and
    // added to the result.
    this.#renew = {
      name: "heddle-renew",
      text: `WITH known AS (
          INSERT INTO ${schema}.nodes (id, address, lives_until) VALUES ($1, $2, ${until("$3::float8")})
          ON CONFLICT (id) DO UPDATE SET address = excluded.address, lives_until = excluded.lives_until
        ), kept AS (
          UPDATE ${schema}.shards AS s SET lease_until = ${until("$3::float8")}
          FROM unnest($4::int[], $5::bigint[]) AS l (shard, epoch)
          WHERE s.shard = l.shard AND s.epoch = l.epoch AND s.owner = $1
          RETURNING s.shard, s.epoch
        )
        SELECT
          (SELECT json_agg(json_build_object('id', id, 'address', address)) FROM ${schema}.nodes
            WHERE id <> $1 AND lives_until > clock_timestamp()) AS nodes,
          (SELECT json_agg(json_build_object('shard', shard, 'epoch', epoch, 'node', owner)) FROM ${schema}.shards
            WHERE lease_until > clock_timestamp() AND shard NOT IN (SELECT shard FROM kept)) AS owners,
          (SELECT json_agg(json_build_object('shard', shard, 'epoch', epoch)) FROM kept) AS kept`,
    };
    this.#take = {
      name: "heddle-take",
      text: `UPDATE ${schema}.shards SET owner = $1, epoch = epoch + 1, lease_until = ${until("$3::float8")}
        WHERE shard = $2 AND (owner IS NULL OR owner = $1 OR lease_until <= clock_timestamp()) RETURNING epoch`,
    };
    this.#give = {
      name: "heddle-give",
      text: `UPDATE ${schema}.shards SET owner = NULL, lease_until = NULL WHERE owner = $1 AND shard = $2 AND epoch = $3`,
    };
    this.#leave = {
      name: "heddle-leave",
      text: `WITH gone AS (DELETE FROM ${schema}.nodes WHERE id = $1 OR lives_until < clock_timestamp() - interval '1 day')
        UPDATE ${schema}.shards SET owner = NULL, lease_until = NULL WHERE owner = $1`,
    };
  }

  async renew(node: ClusterNode, leases: readonly ShardLease[]): Promise<ClusterView> {
    const shards = leases.map(({ shard }) => shard);
    const epochs = leases.map(({ epoch }) => epoch);
    const [row] = await this.#run(this.#renew, [node.id, node.address, this.#leaseMs, shards, epochs]);
    // PostgreSQL returns null instead of an empty list.
    const others = (row?.["nodes"] ?? []) as ClusterNode[];
    const owners = (row?.["owners"] ?? []) as ClusterView["owners"];
    const kept = ((row?.["kept"] ?? []) as ShardLease[]).toSorted(byShard);
    return {
      nodes: [...others, { id: node.id, address: node.address }].toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      owners: [...owners, ...kept.map((lease) => ({ ...lease, node: node.id }))].toSorted(byShard),
      kept,
    };
  }

  async take(node: string, shard: number): Promise<number | undefined> {
    const [row] = await this.#run(this.#take, [node, shard, this.#leaseMs]);
    return row === undefined ? undefined : Number(row["epoch"]);
  }

  async give(node: string, { shard, epoch }: ShardLease): Promise<void> {
    await this.#run(this.#give, [node, shard, epoch]);
  }

  async leave(node: string): Promise<void> {
    await this.#run(this.#leave, [node]);
  }

  async #run(statement: Statement, values: readonly unknown[]) {
    try {
      return await this.#connections.run(statement, values);
    } catch (error) {
      throw unavailableDatabase(error);
    }
  }
}

const byShard = (a: ShardLease, b: ShardLease): number => a.shard - b.shard;
