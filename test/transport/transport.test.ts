import type * as Uws from "uWebSockets.js";
import { expect, test } from "vitest";
import { openTransport } from "../../src/transport/open-transport.ts";
import { transportContract } from "../contracts/transport.ts";
import { describeOverEachTransport } from "./each.ts";
import { echo, refuseUpgrades, scheduler } from "./rig.ts";

const uws = await openTransport();
const node = await openTransport("node");
describeOverEachTransport("the contract", (kind) => transportContract(kind, kind === "uws" ? uws : node));

test.runIf(uws.kind === "uws").each(["any", "a given"])(
  "uws: %s port is its own, also when somebody would share it",
  async (which) => {
    const raw = (await import(uws.why)) as typeof Uws;
    const options = { host: "127.0.0.1", maxBody: 1, scheduler };
    const handlers = { request: echo, upgrade: refuseUpgrades };
    const any = await uws(handlers, { ...options, port: 0 });
    const { port } = any.address;
    if (which === "a given") await any.close();
    const server = which === "any" ? any : await uws(handlers, { ...options, port });
    const other = raw.App();
    // Without saying that it is to be alone there, it shares the port with all who do.
    expect(await new Promise((resolve) => other.listen("127.0.0.1", port, resolve))).toBe(false);
    await server.close();
  },
);

test("the choice says which and why", async () => {
  expect((await openTransport("node")).why).toBe("asked for");
  expect(uws.why).not.toBe("");
});
