import { expect, test } from "vitest";
import { SubscriptionFeed } from "../../src/websocket/subscriptions.ts";
import type { ThreadProtocol } from "../../src/service/thread-protocol.ts";

const KEY = { tenant: "t", thread: "00000000-0000-4000-8000-000000000000" };

/** A feed, and the position from which it subscribes to a thread. */
function aFeed() {
  const asked: Parameters<ThreadProtocol["follow"]>[1][] = [];
  const follow: ThreadProtocol["follow"] = async (_, start) => {
    asked.push(start);
    return {
      cursor: 7,
      next: () => "wait",
      onReady: () => undefined,
      rest: () => undefined,
      rewind: () => undefined,
      close: () => undefined,
    } as Partial<Awaited<ReturnType<ThreadProtocol["follow"]>>> as Awaited<
      ReturnType<ThreadProtocol["follow"]>
    >;
  };
  return { feed: new SubscriptionFeed({ follow } as Partial<ThreadProtocol> as ThreadProtocol, KEY), asked };
}

const channels = { channels: ["values"] };

test("who has taken its subscription back before it began has nothing read, and may subscribe again", async () => {
  const { feed, asked } = aFeed();
  const id = feed.subscribe(channels);
  expect(feed.unsubscribe({ subscription_id: id })).toBe(true);
  await feed.start();
  expect(asked).toEqual([]);
  expect(feed.reader.next()).toBe("wait");
  feed.subscribe({ ...channels, since: 3 });
  await feed.start();
  expect(asked).toEqual([{ isNew: false, after: [3] }]);
});

test("the others go on where they were when one is taken back before it began", async () => {
  const { feed, asked } = aFeed();
  feed.subscribe(channels);
  await feed.start();
  feed.unsubscribe({ subscription_id: feed.subscribe({ ...channels, since: 1 }) });
  await feed.start();
  expect(asked).toEqual([
    { isNew: true, after: [] },
    { isNew: false, after: [7] },
  ]);
});

test("the namespaces of all subscriptions of a socket have a bound; those of one that ended do not count", async () => {
  const { feed } = aFeed();
  const wide = { ...channels, namespaces: Array.from({ length: 1000 }, (_, i) => [`n${i}`]) };
  const first = feed.subscribe(wide);
  feed.subscribe(wide);
  await feed.start();
  expect(() => feed.subscribe(wide)).toThrow("2048 namespaces");
  feed.subscribe(channels);
  feed.unsubscribe({ subscription_id: first });
  feed.subscribe(wide);
});
