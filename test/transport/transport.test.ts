import { expect, test } from "vitest";
import { openTransport } from "../../src/transport/open.ts";
import { transportContract } from "../contracts/transport.ts";

const uws = await openTransport();
transportContract("node", await openTransport("node"));
// Where uWebSockets has no binary, the fallback is all there is to test.
if (uws.kind === "uws") transportContract("uws", uws);

test("the choice says which and why", async () => {
  expect((await openTransport("node")).why).toBe("asked for");
  expect(uws.why).not.toBe("");
});
