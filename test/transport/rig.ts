import { afterEach } from "vitest";
import type {
  Handlers,
  HttpRequest,
  TransportOpener,
  Reply,
  Transport,
  TransportOptions,
} from "../../src/ports/transport.ts";
import type { Scheduler } from "../../src/ports/scheduler.ts";
import { Wire } from "./wire.ts";

export const MAX_BODY = 64 * 1024;
export const JSON_TYPE = { "content-type": "application/json" };

export const scheduler: Scheduler = {
  soon: (task) => void setImmediate(task),
  after(ms, task) {
    const timer = setTimeout(task, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** A promise that resolves on request. */
export function signal(): { readonly promise: Promise<void>; readonly fire: () => void } {
  const made: { fire?: () => void } = {};
  const promise = new Promise<void>((resolve) => {
    made.fire = resolve;
  });
  return { promise, fire: () => made.fire?.() };
}

export const refuseUpgrades: Handlers["upgrade"] = () => ({
  kind: "refuse",
  status: 404,
  headers: {},
  body: "",
});

export const url = ({ address }: Transport, path = "/") => `http://127.0.0.1:${address.port}${path}`;

/** Responds with the request that it got. */
export function echo(request: HttpRequest, reply: Reply): void {
  void request.body().then(
    (body) =>
      reply.send(
        200,
        JSON_TYPE,
        JSON.stringify({
          method: request.method,
          path: request.path,
          query: request.query,
          header: request.header("x-test") ?? null,
          length: body.length,
          text: Buffer.from(body.subarray(0, 64)).toString("latin1"),
        }),
      ),
    (cause: { code: string }) => reply.send(413, JSON_TYPE, JSON.stringify({ code: cause.code })),
  );
}

export interface Rig {
  serve(
    request: Handlers["request"],
    upgrade?: Handlers["upgrade"],
    more?: Partial<TransportOptions>,
  ): Promise<Transport>;
  dial(transport: Transport): Promise<Wire>;
}

/** Opens servers and connections, and closes them after each test. */
export function rig(open: TransportOpener): Rig {
  const opened: Transport[] = [];
  const wires: Wire[] = [];
  afterEach(async () => {
    for (const wire of wires.splice(0)) wire.destroy();
    for (const transport of opened.splice(0)) await transport.close();
  });
  return {
    async serve(request, upgrade = refuseUpgrades, more = {}) {
      const options = { host: "127.0.0.1", port: 0, maxBody: MAX_BODY, scheduler, ...more };
      const transport = await open({ request, upgrade }, options);
      opened.push(transport);
      return transport;
    },
    async dial(transport) {
      const wire = await Wire.open(transport.address.port);
      wires.push(wire);
      return wire;
    },
  };
}
