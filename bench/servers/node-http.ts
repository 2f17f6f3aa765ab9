/** Control: a bare node:http server that reads the body and sends a constant response. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { CONSTANT_JSON } from "./bodies.ts";
import { ownStats, reportOver } from "./report.ts";

const length = String(Buffer.byteLength(CONSTANT_JSON));
const server = createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    response.writeHead(200, { "content-type": "application/json", "content-length": length });
    response.end(CONSTANT_JSON);
  });
});
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => {
  reportOver((server.address() as AddressInfo).port, ownStats, () => undefined);
});
