import { type AddressInfo, createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { readAddress, writeAddress } from "../../src/cli/address-file.ts";
import { showInspector as command } from "../../src/cli/show-inspector.ts";
import { parseCommandLine } from "../../src/cli/command-line.ts";
import { silentLogger } from "../../src/platform/log.ts";
import { inspect, refused } from "../e2e/support/inspected.ts";
import { directory, serve } from "../e2e/support/server.ts";
import { build, heddleBeside } from "./process.ts";

const THREAD = "00000000-0000-4000-8000-00000000abcd";

/** The output of the command. */
async function printed(args: readonly string[], mount = ""): Promise<string[]> {
  const lines: string[] = [];
  const asked = parseCommandLine([...args], { HEDDLE_MOUNT_PREFIX: mount });
  if (asked.command !== "inspect") throw new Error(asked.command);
  await command(asked, {}, (line) => lines.push(line)).catch((cause: unknown) => {
    expect(lines).toEqual([]);
    throw cause;
  });
  return lines;
}

describe("heddle inspect", () => {
  test("prints where the page is", async () => {
    const { address } = await serve({ mount: "/api", keys: ["k"] });
    const page = `http://127.0.0.1:${address.port}/api/inspector?thread_id=${THREAD}`;
    expect(await printed(["inspect", THREAD, "--port", `${address.port}`], "/api")).toEqual([page]);
    expect(parseCommandLine(["inspect", THREAD], { HEDDLE_MOUNT_PREFIX: "/api" })).toMatchObject({
      url: "http://127.0.0.1:2024/api",
    });
    expect(parseCommandLine(["inspect", "--port", "7"], {})).toMatchObject({ url: "http://127.0.0.1:7" });
  });

  test("of the server on the data directory, where no address is asked for: its port may be any", async () => {
    const { url, address } = await serve();
    const data = await directory();
    const remove = writeAddress(data, url, silentLogger);
    expect(await printed(["inspect", "--data", data])).toEqual([`${url}/inspector`]);
    await expect(printed(["inspect", "--data", data, "--port", "1"])).rejects.toThrow("127.0.0.1:1 ");
    expect(parseCommandLine(["inspect"], { PORT: `${address.port}` })).not.toHaveProperty("data");
    writeAddress(data, "http://127.0.0.1:1", silentLogger);
    remove();
    expect(readAddress(data)).toBe("http://127.0.0.1:1");
  });

  test("prints nothing where no server is, and says how to name another address", async () => {
    const { address, close } = await serve();
    await close(0);
    await expect(printed(["inspect", "--port", `${address.port}`])).rejects.toMatchObject({
      code: "server.address",
      message: `No server answers at http://127.0.0.1:${address.port} (ECONNREFUSED): start one with heddle dev; where one runs already, --port and --host name its address`,
    });
  });

  test("says so where something listens that closes each connection", async () => {
    await build();
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    expect(await heddleBeside(["inspect", "--port", `${port}`])).toEqual({
      status: 1,
      stdout: "",
      stderr: expect.stringMatching(
        new RegExp(`^heddle: No server answers at http://127.0.0.1:${port} \\(.+\\): start one with`),
      ) as string,
    });
  }, 120_000);

  test("prints nothing where something else answers, or the paths have a prefix", async () => {
    const { address } = await serve({ mount: "/api" });
    await expect(printed(["inspect", "--port", `${address.port}`])).rejects.toMatchObject({
      code: "server.address",
      message: expect.stringContaining("is not Heddle (404)") as string,
    });
  });

  test("refuses what is no thread's id, and what is no port", async () => {
    const asked = { command: "inspect", url: "http://x", thread: "nope", relay: undefined } as const;
    await expect(command(asked, {}, () => undefined)).rejects.toThrow(/"nope"/);
    expect(parseCommandLine(["inspect", "--relay", "x"], {})).toMatchObject({ command: "refused" });
    expect(parseCommandLine(["start", "--relay", "1"], {})).toMatchObject({ command: "refused" });
  });

  test("--relay serves the feed to the vendor's receiver, also to one who joins late; pages from elsewhere get none", async () => {
    const app = await serve({ keys: ["k"] });
    const lines: string[] = [];
    const asked = { command: "inspect", url: app.url, thread: undefined, relay: 0 } as const;
    const relay = await command(asked, { HEDDLE_API_KEYS: "k,acme:a" }, (line) => lines.push(line));
    onTestFinished(() => relay?.close());
    const at = /ws:\/\/(localhost:\d+)/.exec(lines[1] ?? "")?.[1] ?? "";
    const headers = { "x-api-key": "k", "content-type": "application/json" };
    const post = async (path: string, body: object) =>
      (await (
        await fetch(app.url + path, { method: "POST", headers, body: JSON.stringify(body) })
      ).json()) as {
        readonly thread_id: string;
      };
    const seen = inspect(`http://${at}`);
    const { thread_id: thread } = await post("/threads", {});
    await post(`/threads/${thread}/runs/wait`, { assistant_id: "approval", input: {} });
    // A viewer that connects later gets the actors that live.
    const late = inspect(`http://${at}`);
    await late.until(({ sessionId, snapshot }) => sessionId === thread && snapshot?.value === "interrupted");
    await post(`/threads/${thread}/runs/wait`, {
      assistant_id: "approval",
      command: { resume: { ok: true } },
    });
    for (const one of [seen, late]) {
      await one.until(({ sessionId, snapshot }) => sessionId === thread && snapshot?.value === "success");
    }
    expect(await refused(`http://${at}`, "", "https://evil.test")).toMatchObject({ code: 401 });
    expect(await (await fetch(`http://${at}/`)).text()).toContain(`${app.url}/inspector`);
    await relay?.close();
  });
});
