import { expect, test } from "vitest";
import { listenErrorOf } from "../../src/transport/listen-error.ts";

const told = (code: string | undefined, port = 80, host = "127.0.0.1") =>
  listenErrorOf(
    host,
    port,
    code === undefined ? undefined : Object.assign(new Error("listen failed"), { code }),
  ).message;

test("a port that the user may not take says why, and ports below 1024 who may", () => {
  expect(told("EACCES", 80)).toBe(
    "Cannot listen at 127.0.0.1:80: this user may not use port 80; ports below 1024 are for root, or need the capability CAP_NET_BIND_SERVICE",
  );
  expect(told("EACCES", 8080)).toBe("Cannot listen at 127.0.0.1:8080: this user may not use port 8080");
});

test("a code without a text of its own shows the system's", () => {
  expect(told("EMFILE")).toBe("Cannot listen at 127.0.0.1:80: listen failed");
  expect(told(undefined, 80, "::1")).toBe("Cannot listen at [::1]:80: the port is taken, or not allowed");
});
