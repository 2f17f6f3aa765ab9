import { expect, test } from "vitest";
import { echo, url, type Rig } from "../transport/rig.ts";
import { parse } from "../transport/wire.ts";

const inner = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
const length = (value: string | number) => `Content-Length: ${value}\r\n`;
const post = (fields: string, body: string) => `POST / HTTP/1.1\r\nHost: x\r\n${fields}\r\n${body}`;
const chunked = "Transfer-Encoding: chunked\r\n";
const cases: readonly (readonly [string, string])[] = [
  ["two Content-Lengths, the first of them 0", post(length(0) + length(inner.length), inner)],
  ["two Content-Lengths, the second of them 0", post(length(inner.length) + length(0), inner)],
  ["two equal Content-Lengths", post(length(3) + length(3), "abc")],
  ["two Content-Lengths far apart", post(length(0) + "a: b\r\n".repeat(20) + length(inner.length), inner)],
  [
    "two Content-Lengths of a GET",
    `GET / HTTP/1.1\r\nHost: x\r\n${length(0)}${length(inner.length)}\r\n${inner}`,
  ],
  ["a list of Content-Lengths", post(length("3, 3"), "abc")],
  ["an empty Content-Length", post(length(""), inner)],
  ["a negative Content-Length", post(length(-1), "abc")],
  ["a Content-Length with a sign", post(length("+3"), "abc")],
  ["a hexadecimal Content-Length", post(length("0x3"), "abc")],
  ["an enormous Content-Length", post(length("9".repeat(30)), "abc")],
  ["Content-Length with Transfer-Encoding", post(length(5) + chunked, `0\r\n\r\n${inner}`)],
  ["Transfer-Encoding with Content-Length", post(chunked + length(5), `0\r\n\r\n${inner}`)],
  ["an unknown Transfer-Encoding", post("Transfer-Encoding: identity\r\n", inner)],
  ["two Transfer-Encodings", post(`${chunked}Transfer-Encoding: identity\r\n`, `0\r\n\r\n${inner}`)],
  ["a space before the colon", post("Content-Length : 3\r\n", `abc${inner}`)],
  ["a folded header", `GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c: d\r\n\r\n`],
  ["no Host", "GET / HTTP/1.1\r\nA: b\r\n\r\n"],
  ["an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"],
  ["a Host of spaces", "GET / HTTP/1.1\r\nHost:  \r\n\r\n"],
  ["two Hosts, one of them empty", "GET / HTTP/1.1\r\nHost: x\r\nHost:\r\n\r\n"],
  ["two Hosts", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"],
  ["a chunk with a negative size", post(chunked, `-3\r\nabc\r\n0\r\n\r\n${inner}`)],
  ["a chunk that is too large to count", post(chunked, `${"f".repeat(20)}\r\nabc\r\n`)],
  ["an absolute target", "GET http://evil.test/ HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["NUL in a header", "GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n"],
  ["a head of 64 KiB", `GET / HTTP/1.1\r\nHost: x\r\nA: ${"a".repeat(65_536)}\r\n\r\n`],
  ["no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"],
];
export function framingContract({ serve, dial }: Rig): void {
  test.each(cases)("%s: refused and closed, nothing is served", async (_, bytes) => {
    const served: string[] = [];
    const transport = await serve((request, reply) => {
      // A body that cannot be read gets no answer: only answered requests count as served.
      request.body().then(
        () => {
          served.push(request.path);
          reply.send(200, {}, "served");
        },
        () => undefined,
      );
    });
    const one = await dial(transport);
    const answer = await one.send(bytes).rest();
    expect(served).toEqual([]);
    expect(answer.startsWith("HTTP/1.1 4") || answer.startsWith("HTTP/1.1 505") || answer === "").toBe(true);
    expect(answer.split("HTTP/1.1 ").length).toBeLessThanOrEqual(2);
  });

  test("the refusal says why, where nothing follows the request", async () => {
    const transport = await serve(echo);
    const one = await dial(transport);
    const answer = await one.send(post(length(0) + length(0), "")).rest();
    expect(parse(answer).status).toBe(400);
  });

  test.each([
    ["headers of 17 KiB", `A: ${"a".repeat(17 * 1024)}\r\n`],
    ["headers of 17 KiB in many", `a: ${"b".repeat(340)}\r\n`.repeat(50)],
  ])("%s are refused with what is wrong, in JSON", async (_, fields) => {
    const transport = await serve(echo);
    const one = await dial(transport);
    const answer = parse(await one.send(`GET / HTTP/1.1\r\nHost: x\r\n${fields}\r\n`).rest());
    expect(answer.status).toBe(431);
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(JSON.parse(answer.body)).toEqual({ detail: expect.stringContaining("headers are longer than") });
  });

  test("as many headers as are allowed are taken; more are refused, none is left out", async () => {
    const transport = await serve(echo);
    const ask = async (count: number) => {
      const one = await dial(transport);
      const fields = "a: b\r\n".repeat(count - 2);
      const end = "Connection: close\r\n";
      return parse(
        await one
          .send(`GET / HTTP/1.1\r\nHost: x\r\n${fields}${end}\r\n`)
          .until((text) => /[}>]$/.test(text)),
      );
    };
    expect((await ask(95)).status).toBe(200);
    expect((await ask(101)).status).toBe(431);
    expect((await ask(2500)).status).toBe(431);
  });

  test("odd bytes in target and headers never break the server", async () => {
    const transport = await serve(echo);
    let seed = 42;
    const byte = () => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return String.fromCharCode(seed % 256);
    };
    for (let i = 0; i < 300; i++) {
      const odd = Array.from({ length: 1 + (i % 12) }, byte).join("");
      const one = await dial(transport);
      const text =
        i % 2 === 0
          ? `GET /${odd} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
          : `GET / HTTP/1.1\r\nHost: x\r\nX-Test: ${odd}\r\nConnection: close\r\n\r\n`;
      one.send(text);
      one.socket.end();
      const answer = await one.rest();
      expect(answer).toMatch(/^$|^HTTP\/1\.1 (200|4\d\d|505)/);
    }
    expect((await fetch(url(transport))).status).toBe(200);
  });
}
