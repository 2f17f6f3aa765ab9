import type { ClusterNode, ClusterView, Membership, RenewedView, ShardLease } from "../ports/membership.ts";
import { quoteName } from "./cluster-schema.ts";
import type { PostgresConnections, Row, NamedStatement } from "./postgres-connections.ts";
import { toUnavailableError } from "./postgres-error.ts";

/** The nodes of a cluster and their leases, in two tables of PostgreSQL. Leases end by PostgreSQL's clock. Each call is one statement. */
export class PostgresMembership implements Membership {
  readonly #connections: PostgresConnections;
  readonly #leaseMs: number;
  readonly #view: NamedStatement;
  readonly #renew: NamedStatement;
  readonly #take: NamedStatement;
  readonly #give: NamedStatement;
  readonly #drain: NamedStatement;
  readonly #leave: NamedStatement;

  /**
   * `connections`: MUST NOT be the connections of the log. A renewal that waits behind a slow append may come after the lease has ended.
   */
  constructor(connections: PostgresConnections, schemaName: string, leaseMs: number) {
    this.#connections = connections;
    this.#leaseMs = leaseMs;
    const schema = quoteName(schemaName);
    const until = (parameter: string): string =>
      `clock_timestamp() + ${parameter} * interval '1 millisecond'`;
    const nodes = `(SELECT json_agg(json_build_object('id', id, 'address', address, 'isDraining', is_draining)) FROM ${schema}.nodes
            WHERE lives_until > clock_timestamp()`;
    const owners = `(SELECT json_agg(json_build_object('shard', shard, 'epoch', epoch, 'node', owner)) FROM ${schema}.shards
            WHERE lease_until > clock_timestamp()`;
    this.#view = { name: "heddle-view", text: `SELECT ${nodes}) AS nodes, ${owners}) AS owners` };
    // In PostgreSQL, the SELECT at the end does not see the changes of the WITH clauses. So its lists leave out the changed rows, and
    // `renew` adds these rows.
    this.#renew = {
      name: "heddle-renew",
      text: `WITH known AS (
          INSERT INTO ${schema}.nodes (id, address, lives_until) VALUES ($1, $2, ${until("$3::float8")})
          ON CONFLICT (id) DO UPDATE SET address = excluded.address, lives_until = excluded.lives_until
          RETURNING is_draining
        ), kept AS (
          UPDATE ${schema}.shards AS s SET lease_until = ${until("$3::float8")}
          FROM unnest($4::int[], $5::bigint[]) AS l (shard, epoch)
          WHERE s.shard = l.shard AND s.epoch = l.epoch AND s.owner = $1
          RETURNING s.shard, s.epoch
        )
        SELECT
          ${nodes} AND id <> $1) AS nodes,
          ${owners} AND shard NOT IN (SELECT shard FROM kept)) AS owners,
          (SELECT json_agg(json_build_object('shard', shard, 'epoch', epoch)) FROM kept) AS kept,
          (SELECT is_draining FROM known) AS is_draining`,
    };
    // An epoch is a time in milliseconds, where it would be lower. A database that was restored from a backup, or a standby that was behind,
    // has forgotten epochs. If it gave one of them again, a node that has applied an entry of the forgotten epoch would take another
    // entry at the same position for its own, and go on with data that the log does not have.
    const epoch = "greatest(epoch + 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";
    this.#take = {
      name: "heddle-take",
      text: `UPDATE ${schema}.shards SET owner = $1, epoch = ${epoch}, lease_until = ${until("$3::float8")}
        WHERE shard = $2 AND (owner IS NULL OR owner = $1 OR lease_until <= clock_timestamp()) RETURNING epoch`,
    };
    this.#give = {
      name: "heddle-give",
      text: `UPDATE ${schema}.shards SET owner = NULL, lease_until = NULL WHERE owner = $1 AND shard = $2 AND epoch = $3`,
    };
    this.#drain = {
      name: "heddle-drain",
      text: `UPDATE ${schema}.nodes SET is_draining = $2 WHERE id = $1 AND lives_until > clock_timestamp() RETURNING 1`,
    };
    this.#leave = {
      name: "heddle-leave",
      text: `WITH gone AS (DELETE FROM ${schema}.nodes WHERE id = $1 OR lives_until < clock_timestamp() - interval '1 day')
        UPDATE ${schema}.shards SET owner = NULL, lease_until = NULL WHERE owner = $1`,
    };
  }

  async view(): Promise<ClusterView> {
    const [row] = await this.#run(this.#view, []);
    return viewOf(row);
  }

  async renew(node: ClusterNode, leases: readonly ShardLease[]): Promise<RenewedView> {
    const shards = leases.map(({ shard }) => shard);
    const epochs = leases.map(({ epoch }) => epoch);
    const [row] = await this.#run(this.#renew, [node.id, node.address, this.#leaseMs, shards, epochs]);
    const kept = ((row?.["kept"] ?? []) as ShardLease[]).toSorted(byShard);
    const own = kept.map((lease) => ({ ...lease, node: node.id }));
    const isDraining = row?.["is_draining"] === true;
    return { ...viewOf(row, [{ id: node.id, address: node.address, isDraining }], own), kept };
  }

  async take(node: string, shard: number): Promise<number | undefined> {
    const [row] = await this.#run(this.#take, [node, shard, this.#leaseMs]);
    return row === undefined ? undefined : Number(row["epoch"]);
  }

  async give(node: string, { shard, epoch }: ShardLease): Promise<void> {
    await this.#run(this.#give, [node, shard, epoch]);
  }

  async setDraining(node: string, isDraining: boolean): Promise<boolean> {
    return (await this.#run(this.#drain, [node, isDraining])).length > 0;
  }

  async leave(node: string): Promise<void> {
    await this.#run(this.#leave, [node]);
  }

  async #run(statement: NamedStatement, values: readonly unknown[]) {
    try {
      return await this.#connections.run(statement, values);
    } catch (error) {
      throw toUnavailableError(error);
    }
  }
}

/** Converts a result row to a view, and adds the given nodes and leases. In the row, an empty list is null. */
function viewOf(
  row: Row | undefined,
  nodes: ClusterView["nodes"] = [],
  leases: ClusterView["owners"] = [],
): ClusterView {
  const others = (row?.["nodes"] ?? []) as ClusterView["nodes"];
  const owners = (row?.["owners"] ?? []) as ClusterView["owners"];
  return {
    nodes: [...others, ...nodes].toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    owners: [...owners, ...leases].toSorted(byShard),
  };
}

const byShard = (a: ShardLease, b: ShardLease): number => a.shard - b.shard;
