import * as fc from "fast-check";
import { WebSocket } from "ws";
import type { Operation } from "./api.ts";
import { Finding, type Session } from "./session.ts";
import { anything, KnownId, Members, print, RawJson, valueFor } from "./values.ts";

/** Messages over one of a thread's sockets. */
export interface Talk {
  readonly path: "stream" | "stream/events";
  readonly thread: KnownId;
  readonly messages: readonly unknown[];
}

const ids = fc.oneof(fc.nat(1_000), anything);

export function talkFor(operations: readonly Operation[]): fc.Arbitrary<Talk> {
  const bodyOf = (path: string) =>
    operations.find((one) => one.path === path && one.method === "POST")?.body ?? {};
  const run = valueFor(bodyOf("/threads/{thread_id}/runs"));
  const command = valueFor(bodyOf("/threads/{thread_id}/commands"));
  const subscription = valueFor(bodyOf("/threads/{thread_id}/stream/events"));
  const withMembers = (body: fc.Arbitrary<unknown>, name: string, kinds: readonly string[]) =>
    fc
      .tuple(body, ids, fc.constantFrom(...kinds))
      .map(([value, id, kind]) =>
        value instanceof Members ? new Members([...value.entries, ["id", id], [name, kind]]) : value,
      );
  const params = fc
    .tuple(
      fc.oneof(run, subscription, anything),
      ids,
      fc.constantFrom(
        "run.start",
        "input.respond",
        "state.get",
        "state.fork",
        "state.listCheckpoints",
        "subscription.subscribe",
        "subscription.unsubscribe",
        "nope",
      ),
    )
    .map(
      ([inner, id, method]) =>
        new Members([
          ["id", id],
          ["method", method],
          ["params", inner],
        ]),
    );
  const raw = fc.constantFrom("", "{", "null", "[]", '{"id":1e400}').map((text) => new RawJson(text));
  return fc.record({
    path: fc.constantFrom("stream" as const, "stream/events" as const),
    thread: fc.nat(7).map((index) => new KnownId("thread", index)),
    messages: fc.array(
      fc.oneof(withMembers(run, "type", ["run", "resume", "cancel", "nope"]), command, params, raw, anything),
      {
        minLength: 1,
        maxLength: 4,
      },
    ),
  });
}

/** Milliseconds of silence after which no answer is expected: the message may not be a command. */
const QUIET = 40;
/** Milliseconds after which a socket is closed, however much it still sends. */
const LONGEST_TALK = 2_000;
/** Milliseconds: the limit for a socket to open or to be refused. */
const LONGEST_OPENING = 20_000;

export async function speak(url: string, session: Session, { path, thread, messages }: Talk): Promise<void> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/threads/${session.idOf(thread)}/${path}`);
  const sent = messages.map((message) => print(message, session.idOf));
  const told = `socket ${path}\n${sent.join("\n").slice(0, 3_000)}`;
  let last = performance.now();
  let fault: string | undefined;
  let closed = false;
  socket.on("message", (data) => {
    last = performance.now();
    const answer = JSON.parse(String(data)) as { type?: string; status?: number; error?: string };
    if ((answer.status ?? 0) >= 500 || answer.error === "unknown_error") fault = String(data);
  });
  socket.on("close", (code) => {
    closed = true;
    if (code === 1011) fault = `closed with ${code}`;
  });
  socket.on("error", () => (closed = true));
  const timer = setTimeout(() => {
    fault = `the socket neither opened nor was refused within ${LONGEST_OPENING} ms`;
    socket.terminate();
  }, LONGEST_OPENING);
  await new Promise((resolve) => socket.once("open", resolve).once("close", resolve).once("error", resolve));
  clearTimeout(timer);
  for (const text of sent) if (!closed) socket.send(text);
  const began = performance.now();
  last = began;
  while (!closed && performance.now() - last < QUIET && performance.now() - began < LONGEST_TALK)
    await new Promise((resolve) => setTimeout(resolve, 10));
  socket.terminate();
  if (fault !== undefined) throw new Finding(`${fault.slice(0, 1_000)}\n${told}`);
  session.quiet(told);
}
