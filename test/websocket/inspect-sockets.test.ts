import { expect, test } from "vitest";
import { InspectorFeeds } from "../../src/websocket/inspector/inspect-sockets.ts";
import type { InspectScope } from "../../src/ports/inspector.ts";
import type { Socket } from "../../src/ports/transport.ts";
import type { ServerInspection } from "../../src/service/actor-inspection.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import { silentLogger } from "../../src/platform/log.ts";

/** A socket whose client does nothing. */
class Peer implements Socket {
  closed: readonly [number, string] | undefined;
  leave: () => void = () => undefined;
  send(): boolean {
    return true;
  }
  together(work: () => void): boolean {
    work();
    return true;
  }
  onDrain(): void {}
  onMessage(): void {}
  onClose(listener: () => void): void {
    this.leave = listener;
  }
  close(code: number, reason: string): void {
    this.closed = [code, reason];
    this.leave();
  }
}

function watchers(): {
  readonly feeds: InspectorFeeds;
  readonly open: (tenant: string, user?: string) => Peer;
} {
  // The actors of a thread report after all this has been decided.
  const inspection = {
    scopeOf: (scope: InspectScope) => scope,
    storedActors: () => new Promise(() => undefined),
  } as unknown as ServerInspection;
  const feeds = new InspectorFeeds({
    inspection,
    clock: systemClock,
    scheduler: systemScheduler,
    logger: silentLogger,
    values: false,
  });
  return {
    feeds,
    open(tenant, user) {
      const peer = new Peer();
      const budgetOwner = user === undefined ? tenant : `${tenant} ${user}`;
      feeds.open(peer, { tenant, budgetOwner, inspection }, "thread_id=00000000-0000-4000-8000-000000000000");
      return peer;
    },
  };
}

test("all that one tenant may have to watch take nothing from another one", () => {
  const { feeds, open } = watchers();
  const peers = Array.from({ length: 256 }, () => open("hostile"));
  expect(peers.filter(({ closed }) => closed !== undefined)).toEqual([]);
  expect(open("hostile").closed).toEqual([1013, "256 watch already; try again later"]);
  expect(open("other").closed).toBeUndefined();
  expect(feeds.watching).toBe(257);
  peers[0]?.leave();
  expect(open("hostile").closed).toBeUndefined();
  expect(open("hostile").closed).toEqual([1013, "256 watch already; try again later"]);
  expect(feeds.watching).toBe(257);
});

test("what one user has to watch takes nothing from other users of the tenant, or from its keys", () => {
  const { open } = watchers();
  for (let i = 0; i < 256; i++) open("shared", "hostile");
  expect(open("shared", "hostile").closed).toEqual([1013, "256 watch already; try again later"]);
  expect(open("shared", "other").closed).toBeUndefined();
  expect(open("shared").closed).toBeUndefined();
});

test("all tenants together have a bound", () => {
  const { open } = watchers();
  for (let tenant = 0; tenant < 16; tenant++) for (let i = 0; i < 256; i++) open(`tenant-${tenant}`);
  expect(open("another").closed).toEqual([1013, "Too many watch already; try again later"]);
});
