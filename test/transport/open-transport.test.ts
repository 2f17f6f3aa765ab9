import { describe, expect, test } from "vitest";
import { whyUwsDoesNotLoad } from "../../src/transport/open-transport.ts";

describe("why uWebSockets does not load", () => {
  const missing = new Error("Cannot find module '@uwsjs/linux-x64-24'");
  const old = new Error(
    "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by uws.node)",
  );

  test.each([
    [
      "no build is installed",
      new AggregateError([missing, missing]),
      /^no uWebSockets for Node v.* is installed$/,
    ],
    [
      "a build needs a newer system library",
      new AggregateError([missing, old]),
      /^uWebSockets for Node v.* needs glibc 2\.38 or later, which this system does not have$/,
    ],
  ])("%s", (_, cause, expected) => {
    expect(whyUwsDoesNotLoad(cause)).toMatch(expected);
  });
});
