import { expect, test } from "vitest";
import type { ByteStream, Reply } from "../../src/ports/transport.ts";
import { signal, url, type Rig } from "../transport/rig.ts";
import { parse, Wire } from "../transport/wire.ts";

/** Serves one stream and returns it, with a peer that has requested it. */
async function streaming({ serve, dial }: Rig) {
  const opened = signal();
  const given: { stream: ByteStream; reply: Reply }[] = [];
  const transport = await serve((_, reply) => {
    setImmediate(() => {
      const stream = reply.open(200, { "content-type": "text/event-stream" }, "first");
      given.push({ stream, reply });
      opened.fire();
    });
  });
  const one = await dial(transport);
  one.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  await opened.promise;
  const [made] = given;
  if (made === undefined) throw new Error("no stream was opened");
  return { one, transport, ...made };
}

const piece = (n: number) => `<${String(n).padStart(8, "0")}${"x".repeat(40_000)}>`;

export function streamContract(rig: Rig): void {
  const { serve, dial } = rig;

  test("head and first piece come at once, further pieces as they are written, then the end", async () => {
    const { one, stream } = await streaming(rig);
    const head = parse(await one.until((text) => text.includes("first")));
    expect(head.headers.get("content-type")).toBe("text/event-stream");
    expect(stream.write("second")).toBe(true);
    await one.until((text) => text.includes("second"));
    stream.write(Buffer.from("thi"));
    stream.end("rd");
    const text = await one.until((got) => got.includes("0\r\n\r\n"));
    expect(parse(text).body).toBe("firstsecondthird");
    expect(one.closed).toBe(false);
  });

  test("a stream that is closed breaks off: the peer sees no end, and no abort is told", async () => {
    const { one, stream, reply } = await streaming(rig);
    let aborts = 0;
    reply.onAbort(() => aborts++);
    await one.until((text) => text.includes("first"));
    stream.close();
    expect(await one.rest()).not.toContain("0\r\n\r\n");
    await new Promise((resolve) => setImmediate(resolve));
    expect(aborts).toBe(0);
    stream.write("late");
    stream.end();
    stream.close();
  });

  test("a peer that goes away is told once; what is written after goes nowhere", async () => {
    const { one, stream, reply } = await streaming(rig);
    let aborts = 0;
    const aborted = signal();
    reply.onAbort(() => {
      aborts++;
      aborted.fire();
    });
    one.destroy();
    await aborted.promise;
    expect(reply.aborted).toBe(true);
    stream.write("late");
    stream.end();
    stream.close();
    expect(aborts).toBe(1);
  });

  test("no abort is told after an answer in good order", async () => {
    let aborts = 0;
    const transport = await serve((_, reply) => {
      reply.onAbort(() => aborts++);
      reply.send(200, {}, "done");
    });
    const one = await dial(transport);
    one.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await one.until((text) => text.includes("done"));
    one.destroy();
    await fetch(url(transport)).then((answer) => answer.text());
    expect(aborts).toBe(0);
  });

  test("a peer that does not read: write says so, drain tells, and every byte comes in order", async () => {
    const { one, stream } = await streaming(rig);
    await one.until((text) => text.includes("first"));
    one.socket.pause();
    const PIECES = 400;
    let written = 0;
    let blocked = 0;
    const done = signal();
    const pump = () => {
      while (written < PIECES) {
        if (!stream.write(piece(written++))) {
          blocked++;
          return;
        }
      }
      done.fire();
    };
    stream.onDrain(pump);
    pump();
    // The peer has read nothing: most of it must not have been written yet.
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(written).toBeLessThan(PIECES);
    one.socket.resume();
    await done.promise;
    expect(blocked).toBeGreaterThan(0);
    stream.end("<end>");
    const { body } = parse(await one.untilEnd("0\r\n\r\n"));
    const expected = ["first", ...Array.from({ length: PIECES }, (_, n) => piece(n))].join("");
    expect(body.length).toBe(expected.length + 5);
    expect(body === `${expected}<end>`).toBe(true);
  });

  test("after one great piece and nothing more, a slow peer still gets all of it", async () => {
    const { one, stream } = await streaming(rig);
    await one.until((text) => text.includes("first"));
    one.socket.pause();
    let drains = 0;
    stream.onDrain(() => drains++);
    expect(stream.write("y".repeat(16_000_000))).toBe(false);
    await new Promise((resolve) => setTimeout(resolve, 50));
    one.socket.resume();
    await one.untilBytes(16_000_000);
    expect(drains).toBeGreaterThan(0);
    stream.end("<end>");
    const text = await one.untilEnd("0\r\n\r\n");
    expect(parse(text).body.length).toBe(5 + 16_000_000 + 5);
  });

  test("who goes on writing to a peer that takes nothing has the connection cut", async () => {
    const { one, stream, transport } = await streaming(rig);
    await one.until((text) => text.includes("first"));
    one.socket.pause();
    for (let i = 0; i < 400; i++) stream.write("z".repeat(65_536));
    expect(stream.write("z")).toBe(false);
    one.socket.resume();
    const text = await one.rest();
    expect(text).not.toContain("\r\n0\r\n\r\n");
    expect((await fetch(url(transport), { method: "HEAD" })).status).toBe(200);
  });

  test("while draining, streams go on and new connections are served; close cuts streams and refuses new connections", async () => {
    const { one, stream, transport } = await streaming(rig);
    await one.until((text) => text.includes("first"));
    transport.startDraining();
    stream.write("second");
    await one.until((text) => text.includes("second"));
    expect((await fetch(url(transport), { method: "HEAD" })).status).toBe(200);
    await transport.close();
    expect(await one.rest()).not.toContain("\r\n0\r\n\r\n");
    await expect(Wire.open(transport.address.port)).rejects.toThrow("ECONNREFUSED");
  });
}
