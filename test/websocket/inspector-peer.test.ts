import { describe, expect, test } from "vitest";
import { InspectorPeer } from "../../src/websocket/inspector/inspector-peer.ts";
import { FakeSocket } from "../stream/peers.ts";
import { HeldScheduler } from "../stream/support.ts";

function watching(room?: number) {
  const socket = new FakeSocket(room);
  const scheduler = new HeldScheduler();
  return { socket, scheduler, watcher: new InspectorPeer(socket, scheduler) };
}

describe("a peer that watches", () => {
  test("gets what it can take, the rest when it has drained, in order", () => {
    const { socket, watcher, scheduler } = watching(2);
    for (const text of ["a", "b", "c", "d"]) watcher.send(text);
    watcher.send(() => "e");
    expect(socket.messages).toEqual([]);
    scheduler.turn();
    expect(socket.messages).toEqual(["a", "b"]);
    expect(scheduler.timers).toBe(1);
    socket.drain(9);
    expect(socket.messages).toEqual(["a", "b", "c", "d", "e"]);
    expect(scheduler.timers).toBe(0);
  });

  test("gets what comes in one turn at once, unless that is much", () => {
    const { socket, watcher, scheduler } = watching();
    for (const text of ["a", "b", "c"]) watcher.send(text);
    scheduler.turn();
    expect(socket.messages).toEqual(["a", "b", "c"]);
    expect(socket.batches).toBe(1);
    watcher.send("d");
    scheduler.turn();
    expect(socket.messages).toEqual(["a", "b", "c", "d"]);
    watcher.send("x".repeat(10_000));
    expect(socket.messages).toHaveLength(4);
    watcher.send("y".repeat(10_000));
    expect(socket.messages).toHaveLength(6);
    scheduler.turn();
    expect(socket.batches).toBe(3);
  });

  test("is sent nothing more once it has left", () => {
    const { socket, watcher, scheduler } = watching();
    watcher.send("a");
    watcher.gone();
    scheduler.turn();
    expect(socket.messages).toEqual([]);
  });

  test("is cut off with a reason when it takes nothing for ten seconds", async () => {
    const { socket, watcher, scheduler } = watching(1);
    watcher.send("a");
    scheduler.turn();
    await scheduler.pass(9_999);
    expect(socket.closed).toBeUndefined();
    await scheduler.pass(1);
    expect(socket.closed).toEqual([1013, expect.stringContaining("connect again")]);
    watcher.send("b");
    expect(socket.messages).toEqual(["a"]);
  });

  test("is cut off when more than a mebibyte waits for it", () => {
    const { socket, watcher, scheduler } = watching(1);
    const piece = "x".repeat(64 * 1024);
    for (let i = 0; i < 17; i++) watcher.send(piece);
    expect(socket.closed).toBeUndefined();
    watcher.send(piece);
    expect(socket.closed?.[0]).toBe(1013);
    expect(scheduler.timers).toBe(0);
  });
});
