import { copyFileSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { PACKAGE_ROOT } from "../../src/build/package-bundles.ts";
import { firstAnswer, freePort } from "../ports.ts";
import { installPackages } from "./install.ts";
import { Processes } from "../processes.ts";

/**
 * Starts Restate's server and a process with a virtual object. The object's handler `one` journals one step, `three`
 * journals three.
 */
export async function startRestate(directory: string): Promise<Processes> {
  const folder = installPackages("restate", {
    dependencies: { "@restatedev/restate-server": "1.7.12", "@restatedev/restate-sdk": "1.17.2" },
  });
  copyFileSync(join(PACKAGE_ROOT, "bench", "peers", "restate.mjs"), join(folder, "service.mjs"));
  const [port, admin, node, service] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const server = new Processes(port);
  try {
    server.start({
      program: join(folder, "node_modules", ".bin", "restate-server"),
      args: ["--base-dir", mkdtempSync(join(directory, "restate-")), "--node-name", "bench"],
      cwd: folder,
      env: {
        RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${port}`,
        RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
        RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
        RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${node}`,
        RESTATE_LISTEN_MODE: "tcp",
        RESTATE_LOG_FILTER: "error",
        RESTATE_DISABLE_TELEMETRY: "true",
        DO_NOT_TRACK: "1",
      },
    });
    server.start({
      program: process.execPath,
      args: [join(folder, "service.mjs"), String(service)],
      cwd: folder,
      env: { NODE_ENV: "production", RESTATE_LOGGING: "ERROR" },
    });
    await firstAnswer(admin, "/health", () => server.ended());
    await firstAnswer(port, "/restate/health", () => server.ended());
    const known = await fetch(`http://127.0.0.1:${admin}/deployments`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ uri: `http://127.0.0.1:${service}` }),
    });
    if (!known.ok) throw new Error(`Restate did not take the service: ${await known.text()}`);
  } catch (error) {
    await server.kill();
    throw error;
  }
  return server;
}
