import type { Pool, PoolClient } from "pg";
import { ServiceError } from "../model/errors.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import { toPostgresFailure } from "./postgres-error.ts";

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`, with parameters of the package `pg`, such as `sslmode`. */
  readonly url: string;
  /** The largest number of connections that are open at once. Default: 4. */
  readonly connections?: number;
  /**
   * Whether statements are prepared once for each connection. Default: true. False is needed behind poolers in transaction mode that do not
   * keep prepared statements, such as PgBouncer before 1.21 or with `max_prepared_statements = 0`.
   */
  readonly prepared?: boolean;
  /**
   * Milliseconds after which a connection that does not answer is closed. Default: 5000. A statement with large values or a large result
   * gets more time, in proportion to the bytes.
   */
  readonly timeoutMs?: number;
}

export interface PostgresDeps {
  readonly scheduler: Scheduler;
}

/** An SQL statement, and the name under which it is prepared. */
export interface NamedStatement {
  readonly name: string;
  readonly text: string;
}

export type Row = { readonly [column: string]: unknown };

/** Returns a Buffer on the same memory, because `pg` sends any other Uint8Array as text. */
export const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

const CONNECTIONS = 4;
const TIMEOUT_MS = 5_000;
/** The lowest expected speed of a connection: 2 MiB per second. */
const MIN_BYTES_PER_MS = 2_048;
/** Milliseconds after which an unused connection is closed. */
const IDLE_MS = 60_000;

/**
 * Connections to a PostgreSQL database. Each call of {@link run} or {@link runScript} is one transaction. Apart from prepared statements, it
 * relies on nothing that an earlier call has left in its session, so a pooler may run each call in a different session.
 */
export class PostgresConnections {
  readonly #pool: Pool;
  readonly #scheduler: Scheduler;
  readonly #isPrepared: boolean;
  readonly #timeoutMs: number;
  /** `host:port`, for error messages. */
  readonly #address: string;

  private constructor(pool: Pool, address: string, options: PostgresOptions, { scheduler }: PostgresDeps) {
    this.#pool = pool;
    this.#address = address;
    this.#scheduler = scheduler;
    this.#isPrepared = options.prepared ?? true;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    // An `error` event without a listener would end the process. The pool emits it for unused connections, and each connection for itself.
    // Nothing else has to be done: a broken connection is replaced when a statement needs one.
    pool.on("error", () => undefined);
    pool.on("connect", (client) => client.on("error", () => undefined));
  }

  /** Creates a pool of connections, which are opened when they are needed. @throws ServiceError `config.invalid` if the URL is not valid */
  static async create(options: PostgresOptions, deps: PostgresDeps): Promise<PostgresConnections> {
    // `pg` is loaded only by servers that use PostgreSQL.
    const { default: pg } = await import("pg");
    const config = {
      connectionString: options.url,
      max: options.connections ?? CONNECTIONS,
      connectionTimeoutMillis: options.timeoutMs ?? TIMEOUT_MS,
      idleTimeoutMillis: IDLE_MS,
      keepAlive: true,
      allowExitOnIdle: true,
      application_name: "heddle",
    };
    try {
      const { host, port } = new pg.Client(config);
      return new PostgresConnections(new pg.Pool(config), `${host}:${port}`, options, deps);
    } catch (cause) {
      throw new ServiceError(
        "config.invalid",
        "The address of the PostgreSQL database is no valid URL: in a user name or password, write %23 for #, %2F for / and %40 for @",
        {
          cause,
        },
      );
    }
  }

  /**
   * Runs a statement, and resolves with the rows. `bytes`: the size of the values or of the result, if it may be large.
   * @throws ServiceError with the codes in `postgres-error.ts`; its cause has the SQLSTATE
   */
  async run({ name, text }: NamedStatement, values: readonly unknown[], bytes = 0): Promise<readonly Row[]> {
    const query = { text, values: [...values], ...(this.#isPrepared ? { name } : {}) };
    return this.#use(bytes, async (client) => (await client.query<Row>(query)).rows);
  }

  /** Runs several statements without values as one transaction. Resolves with the rows of the last statement. */
  async runScript(text: string): Promise<readonly Row[]> {
    return this.#use(0, async (client) => {
      const results: unknown = await client.query<Row>(text);
      const last = (Array.isArray(results) ? results.at(-1) : results) as { readonly rows: readonly Row[] };
      return last.rows;
    });
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #use<R>(bytes: number, use: (client: PoolClient) => Promise<R>): Promise<R> {
    let client: PoolClient | undefined;
    try {
      client = await this.#pool.connect();
      const result = await this.#answer(use(client), this.#timeoutMs + bytes / MIN_BYTES_PER_MS);
      client.release();
      return result;
    } catch (cause) {
      const error = toPostgresFailure(cause, this.#address);
      // Closes the connection, unless the database has only refused the statement.
      client?.release(!error.isConnectionUsable);
      throw error.serviceError;
    }
  }

  /** Rejects if the database does not answer within `ms` milliseconds. */
  #answer<R>(result: Promise<R>, ms: number): Promise<R> {
    return new Promise((resolve, reject) => {
      const cancel = this.#scheduler.after(
        ms,
        () => reject(new Error(`no answer within ${Math.round(ms)} ms`)),
        true,
      );
      result.then(resolve, reject).finally(cancel);
    });
  }
}
