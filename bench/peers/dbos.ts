import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE_ROOT } from "../../src/build/package-bundles.ts";
import { firstAnswer, freePort } from "../ports.ts";
import { installPackages } from "./install.ts";
import { Processes } from "../processes.ts";

const DEBIANS = "/usr/lib/postgresql";

/**
 * Whether this process is root. PostgreSQL refuses to run as root, so it then runs as the user that Debian's package
 * has created.
 */
const asRoot = process.getuid?.() === 0;
const command = (program: string, args: readonly string[]) =>
  asRoot
    ? {
        program: "setpriv",
        args: ["--reuid=postgres", "--regid=postgres", "--clear-groups", program, ...args],
      }
    : { program, args };

function postgresBinaries(): string {
  const newest = existsSync(DEBIANS) ? readdirSync(DEBIANS).sort((a, b) => Number(a) - Number(b)) : [];
  const version = newest.at(-1);
  if (version === undefined) throw new Error(`no PostgreSQL in ${DEBIANS}: apt install postgresql`);
  return join(DEBIANS, version, "bin");
}

/**
 * Starts DBOS in a process behind node:http, with a PostgreSQL server of its own that keeps its default settings. DBOS
 * keeps its own, except for the connection pool: see `dbos.mjs`.
 */
export async function startDbos(directory: string): Promise<Processes> {
  const folder = installPackages("dbos", { dependencies: { "@dbos-inc/dbos-sdk": "5.3.0" } });
  copyFileSync(join(PACKAGE_ROOT, "bench", "peers", "dbos.mjs"), join(folder, "app.mjs"));
  const binaries = postgresBinaries();
  const data = mkdtempSync(join(directory, "postgres-"));
  if (asRoot) {
    chmodSync(directory, 0o711);
    spawnSync("chown", ["postgres:postgres", data]);
  }
  const making = command(join(binaries, "initdb"), ["-D", data, "-U", "bench", "--auth=trust", "-E", "UTF8"]);
  const made = spawnSync(making.program, making.args, { encoding: "utf8", cwd: "/" });
  if (made.status !== 0) throw new Error(`initdb: ${made.error?.message ?? made.stderr}`);
  const [port, database] = [await freePort(), await freePort()];
  const server = new Processes(port);
  try {
    server.start({
      ...command(join(binaries, "postgres"), [
        "-D",
        data,
        "-p",
        String(database),
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "unix_socket_directories=",
      ]),
      cwd: "/",
      stop: "SIGINT",
    });
    server.start({
      program: process.execPath,
      args: [join(folder, "app.mjs"), String(port), `postgresql://bench@127.0.0.1:${database}/dbos`],
      cwd: folder,
      env: { NODE_ENV: "production" },
    });
    await firstAnswer(port, "/ok", () => server.ended());
  } catch (error) {
    await server.kill();
    throw error;
  }
  return server;
}
