import { expect, test } from "vitest";
import type { ByteStream } from "../../src/ports/transport.ts";
import { echo, JSON_TYPE, MAX_BODY, signal, url, type Rig } from "../transport/rig.ts";
import { parse } from "../transport/wire.ts";

export function requestContract({ serve, dial }: Rig): void {
  test.each(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])("%s", async (method) => {
    const transport = await serve(echo);
    const answer = await fetch(url(transport, "/a%20b/c?x=%20&y"), {
      method,
      headers: { "X-Test": "v" },
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(await answer.json()).toMatchObject({
      method,
      path: "/a%20b/c",
      query: "x=%20&y",
      header: "v",
      length: 0,
    });
  });

  test("HEAD: the head of the answer with its length, and no body", async () => {
    const transport = await serve((_, reply) => reply.send(200, JSON_TYPE, "12345"));
    const one = await dial(transport);
    one.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    const head = parse(await one.until((text) => text.includes("\r\n\r\n")));
    expect(head.headers.get("content-length")).toBe("5");
    expect(head.body).toBe("");
    one.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    expect((await one.rest()).endsWith("\r\n\r\n12345")).toBe(true);
  });

  test.each([
    [200, "OK"],
    [307, "Temporary Redirect"],
    [409, "Conflict"],
    [415, "Unsupported Media Type"],
    [502, "Bad Gateway"],
  ])("%i has the reason phrase of HTTP", async (status, phrase) => {
    const transport = await serve((_, reply) => reply.send(status, {}, "x"));
    const answer = await fetch(url(transport, "/"));
    expect([answer.status, answer.statusText]).toEqual([status, phrase]);
  });

  test("headers and query can be read after an await", async () => {
    const transport = await serve((request, reply) => {
      setImmediate(() => reply.send(200, {}, `${request.query} ${request.header("x-test")}`));
    });
    const answer = await fetch(url(transport, "/?a=1"), { headers: { "x-test": "later" } });
    expect(await answer.text()).toBe("a=1 later");
  });

  // Java's HTTP client asks for HTTP/2 with every first request. RFC 9110, section 7.8: a server may ignore that.
  test.each([
    ["without a body", "GET / HTTP/1.1\r\n", "\r\n", 0],
    ["with a body", "POST / HTTP/1.1\r\n", "Content-Length: 3\r\n\r\nabc", 3],
  ])("an upgrade to something other than a WebSocket is ignored, %s", async (_, line, rest, length) => {
    const transport = await serve(echo);
    const one = await dial(transport);
    const asks =
      "Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
    one.send(`${line}${asks}${rest}`);
    const answer = parse(await one.until((text) => text.includes("}")));
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toMatchObject({ length });
    // The connection stays open for the next request.
    one.send("GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(await one.until((text) => text.includes("/next") || one.closed)).toContain('"path":"/next"');
  });

  test("a body in chunks comes whole", async () => {
    const transport = await serve(echo);
    const one = await dial(transport);
    one.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    one.send("4\r\ndefg\r\n0\r\n\r\n");
    const answer = parse(await one.until((text) => text.includes("}")));
    expect(JSON.parse(answer.body)).toMatchObject({ length: 7, text: "abcdefg" });
  });

  test("a body that comes before it is asked for is kept", async () => {
    const transport = await serve((request, reply) => {
      setTimeout(() => echo(request, reply), 20);
    });
    const answer = await fetch(url(transport), { method: "POST", body: "early" });
    expect(await answer.json()).toMatchObject({ text: "early" });
  });

  test("a body exactly at the limit is taken", async () => {
    const transport = await serve(echo);
    const answer = await fetch(url(transport), { method: "POST", body: "a".repeat(MAX_BODY) });
    expect(await answer.json()).toMatchObject({ length: MAX_BODY });
  });

  test("a body announced above the limit is refused at once", async () => {
    const transport = await serve(echo);
    const one = await dial(transport);
    one.send(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${MAX_BODY + 1}\r\n\r\n`);
    const answer = parse(await one.until((text) => text.endsWith("}")));
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.body)).toEqual({ code: "body.too_large" });
  });

  test.each([
    ["with its length", `Content-Length: ${400 * MAX_BODY}\r\n\r\n`, "a".repeat(400 * MAX_BODY)],
    [
      "in chunks",
      "Transfer-Encoding: chunked\r\n\r\n",
      `${MAX_BODY.toString(16)}\r\n${"a".repeat(MAX_BODY)}\r\n`.repeat(400) + "0\r\n\r\n",
    ],
  ])("a client that sends all of a body far above the limit %s still reads why", async (_, head, body) => {
    const served: string[] = [];
    const transport = await serve((request, reply) => {
      served.push(request.path);
      echo(request, reply);
    });
    const one = await dial(transport);
    one.send(`POST /large HTTP/1.1\r\nHost: x\r\n${head}${body}GET /next HTTP/1.1\r\nHost: x\r\n\r\n`);
    const text = await one.until((got) => got.includes('"path":"/next"'));
    expect(parse(text.slice(0, text.indexOf("}") + 1))).toMatchObject({ status: 413 });
    expect(served).toEqual(["/large", "/next"]);
  });

  test("a chunked body that grows above the limit is refused", async () => {
    const transport = await serve(echo);
    const one = await dial(transport);
    one.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    one.send(`${(MAX_BODY + 1).toString(16)}\r\n${"a".repeat(MAX_BODY + 1)}\r\n`);
    expect(parse(await one.until((text) => text.endsWith("}"))).status).toBe(413);
  });

  test("a peer that leaves in the middle of its body: the body fails, the abort is told", async () => {
    const told: string[] = [];
    const [aborted, failed, arrived] = [signal(), signal(), signal()];
    const transport = await serve((request, reply) => {
      reply.onAbort(() => {
        told.push("abort");
        aborted.fire();
      });
      request.body().catch((cause: { code: string }) => {
        told.push(cause.code);
        failed.fire();
      });
      arrived.fire();
    });
    const one = await dial(transport);
    one.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
    await arrived.promise;
    one.destroy();
    await Promise.all([aborted.promise, failed.promise]);
    expect(told.sort()).toEqual(["abort", "body.malformed"]);
  });

  test("a peer that ends its half of the connection has gone: the abort is told, and the connection is closed", async () => {
    const [aborted, arrived] = [signal(), signal()];
    const transport = await serve((_, reply) => {
      reply.onAbort(() => aborted.fire());
      arrived.fire();
    });
    const one = await dial(transport);
    one.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await arrived.promise;
    one.socket.end();
    await aborted.promise;
    expect(await one.until(() => false)).toBe("");
  });

  test("many requests on one connection, in order", async () => {
    const transport = await serve(echo);
    const one = await dial(transport);
    for (let i = 0; i < 20; i++) {
      one.send(`POST /${i} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`);
      await one.until((text) => text.includes(`"path":"/${i}"`));
    }
    expect(one.text.split("HTTP/1.1 200").length).toBe(21);
  });

  test("pipelined requests are answered in order, or the connection is closed", async () => {
    const transport = await serve((request, reply) => {
      // The first one is slower.
      setTimeout(() => reply.send(200, {}, `<${request.path}>`), request.path === "/1" ? 30 : 0);
    });
    const one = await dial(transport);
    one.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
    const text = await one.until((got) => got.includes("</2>"));
    const seen = [...text.matchAll(/<(\/\d)>/g)].map((match) => match[1]);
    expect([["/1", "/2"], []]).toContainEqual(seen);
  });

  test.each([
    ["with a body", "POST", 503, "{}"],
    ["without one", "DELETE", 204, undefined],
    ["to HEAD", "HEAD", 200, "{}"],
  ])(
    "drain: an answer %s says that it is the last of its connection, on old connections and on new ones",
    async (_, method, status, body) => {
      const transport = await serve((__, reply) => reply.send(status, JSON_TYPE, body));
      const old = await dial(transport);
      const request = `${method} / HTTP/1.1\r\nHost: x\r\n\r\n`;
      old.send(request);
      const before = await old.until((text) => text.includes("\r\n\r\n"));
      expect(parse(before).headers.get("connection")).not.toBe("close");
      transport.startDraining();
      for (const wire of [old, await dial(transport)]) {
        const from = wire.text.length;
        wire.send(request);
        const text = (await wire.until((all) => all.slice(from).includes("\r\n\r\n"))).slice(from);
        expect(parse(text)).toMatchObject({ status, body: method === "POST" ? "{}" : "" });
        expect(text.match(/connection: close/gi)).toHaveLength(1);
        // Where an answer has no body, uWebSockets leaves it to the client to close the connection.
        if (method === "POST") await wire.rest();
      }
    },
  );

  test("without listening, a new connection is refused; an open one is served, and its stream goes on", async () => {
    let stream: ByteStream | undefined;
    const transport = await serve((request, reply) => {
      if (request.path === "/stream") stream = reply.open(200, JSON_TYPE, "begun ");
      else reply.send(200, JSON_TYPE, "{}");
    });
    const [idle, streaming] = [await dial(transport), await dial(transport)];
    const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
    idle.send(request("/"));
    await idle.until((text) => text.includes("{}"));
    streaming.send(request("/stream"));
    await streaming.until((text) => text.includes("begun "));
    transport.stopListening();
    await expect(dial(transport)).rejects.toThrow("ECONNREFUSED");
    const from = idle.text.length;
    idle.send(request("/"));
    await idle.until((text) => text.slice(from).includes("{}"));
    stream?.end("ended");
    await streaming.until((text) => text.includes("ended"));
    await transport.close();
  });

  test("drain: a client that is still sending its request body gets the response, and may send another request", async () => {
    const transport = await serve((_, reply) => reply.send(503, JSON_TYPE, "{}"));
    transport.startDraining();
    const one = await dial(transport);
    one.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\nabc");
    await one.until((text) => text.includes("{}"));
    for (let i = 0; i < 9; i++) one.send("x".repeat(6_000));
    one.send("y".repeat(60_000 - 3 - 9 * 6_000));
    one.send("GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(await one.rest()).toMatch(/^HTTP\/1.1 503 .*HTTP\/1.1 503 /s);
  });

  test("an empty answer: 204 without a length, 202 with length 0", async () => {
    const transport = await serve((request, reply) => reply.send(Number(request.path.slice(1)), {}));
    const one = await dial(transport);
    one.send("GET /204 HTTP/1.1\r\nHost: x\r\n\r\n");
    const first = parse(await one.until((text) => text.endsWith("\r\n\r\n")));
    expect([first.status, first.headers.get("content-length")]).toEqual([204, undefined]);
    const two = await dial(transport);
    two.send("GET /202 HTTP/1.1\r\nHost: x\r\n\r\n");
    const second = parse(await two.until((text) => text.endsWith("\r\n\r\n")));
    expect([second.status, second.headers.get("content-length")]).toEqual([202, "0"]);
  });
}
