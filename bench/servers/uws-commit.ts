/**
 * Control: a bare uWebSockets server that stores each request in two synced batches, one after the other, before it
 * sends a constant response. This is what a durable one-node run would cost without a graph, an actor and the
 * protocol.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ClassicLevel } from "classic-level";
import { App, us_socket_local_port } from "uWebSockets.js";
import { CONSTANT_JSON } from "./bodies.ts";
import { GroupCommit } from "./group.ts";
import { ownStats, reportOver } from "./report.ts";

const directory = mkdtempSync(join(process.argv[2] ?? "/tmp", "uws-commit-"));
const db = new ClassicLevel<string, Buffer>(directory, { valueEncoding: "buffer" });
await db.open();
const group = new GroupCommit(db);
const record = Buffer.alloc(256, 1);
let serial = 0;

const app = App();
app.post("/*", (res) => {
  let aborted = false;
  res.onAborted(() => {
    aborted = true;
  });
  res.onData((_, last) => {
    if (!last) return;
    const key = (serial++).toString(36).padStart(8, "0");
    void group
      .commit(`${key}a`, record)
      .then(() => group.commit(`${key}b`, record))
      .then(() => {
        if (aborted) return;
        res.cork(() => {
          res.writeHeader("content-type", "application/json").end(CONSTANT_JSON);
        });
      });
  });
});
app.get("/*", (res) => {
  res.end("{}");
});
app.listen("127.0.0.1", 0, (socket) => {
  if (socket === false) throw new Error("cannot listen");
  reportOver(us_socket_local_port(socket), ownStats, async () => {
    await db.close();
    rmSync(directory, { recursive: true, force: true });
  });
});
