import { startPostgres } from "../../postgres/postgres-server.ts";
import { DATABASE_VARIABLE } from "./cluster-server.ts";

/** Starts the PostgreSQL of all tests of `npm run test:cluster`. Returns the function that stops it. */
export default async function startDatabase(): Promise<() => Promise<void>> {
  const server = await startPostgres({ max_connections: "400", synchronous_commit: "off" });
  process.env[DATABASE_VARIABLE] = server.url;
  return () => server.remove();
}
