import { expect, test } from "vitest";
import { SocketWriter } from "../../src/websocket/socket-writer.ts";
import { FakeSocket } from "../stream/peers.ts";

const frames = (...messages: string[]) => ({ messages, ids: messages.map((_, id) => id) });

test("the events of one chunk, and what else there is to say, go out together", () => {
  const socket = new FakeSocket();
  const outlet = new SocketWriter(socket);
  outlet.say("answer");
  expect(outlet.put(frames("a", "b", "c"))).toBe(true);
  expect(socket.messages).toEqual(["answer", "a", "b", "c"]);
  expect(socket.batches).toBe(1);
});

test("one event alone takes the short way", () => {
  const socket = new FakeSocket();
  const outlet = new SocketWriter(socket);
  expect(outlet.put(frames("a"))).toBe(true);
  expect(outlet.flush()).toBe(true);
  expect(socket.messages).toEqual(["a"]);
  expect(socket.batches).toBe(0);
});

test("a peer that keeps up no more gets the rest once it has drained", () => {
  const socket = new FakeSocket(2);
  const outlet = new SocketWriter(socket);
  expect(outlet.put(frames("a", "b", "c"))).toBe(false);
  expect(socket.messages).toEqual(["a", "b"]);
  socket.drain(9);
  expect(outlet.flush()).toBe(true);
  expect(socket.messages).toEqual(["a", "b", "c"]);
});

test("two messages with one id are both sent again, where only the first was taken", () => {
  const socket = new FakeSocket(2);
  const outlet = new SocketWriter(socket);
  const large = "x".repeat(200 * 1024);
  expect(outlet.put({ messages: ["a", "b", large], ids: [4, 7, 7] })).toBe(false);
  expect(socket.messages).toEqual(["a", "b"]);
  expect(outlet.shed()).toBe(4);
});

test("one that kept up with each message, and not with all of them, is waited for", () => {
  const socket = new FakeSocket();
  socket.together = (work) => {
    work();
    return false;
  };
  const outlet = new SocketWriter(socket);
  expect(outlet.put(frames("a", "b"))).toBe(false);
  expect(outlet.flush()).toBe(true);
  expect(socket.messages).toEqual(["a", "b"]);
});
