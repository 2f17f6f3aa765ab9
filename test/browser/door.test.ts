import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { serve, type Server } from "../e2e/support/server.ts";
import { get, newThread } from "../e2e/support/wire.ts";
import { browser, EVIL, isMissing, pageOf, reboundPage } from "./chromium.ts";

/** The id of a thread that does not exist unless a page creates it. */
const MADE = "00000000-0000-4000-8000-00000000abcd";
/** The run is queued, so that none of several attempts is refused because of another. */
const INPUT =
  '{"assistant_id":"agent","multitask_strategy":"enqueue","input":{"messages":[{"role":"user","content":"hi"}]}}';

/**
 * The requests that a page can make to an address, as code for the browser: `read`, `start` and `socket`, each true or
 * false.
 */
const PAGE = `({
  async read(base, path) {
    try { return (await (await fetch(base + path)).text()).length > 0; } catch { return false; }
  },
  async status(base, path) {
    try { return (await fetch(base + path)).status; } catch { return 0; }
  },
  /** All ways in which a page can send something without a preflight. */
  async send(base, path, body) {
    const url = base + path;
    const tries = [
      fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body }),
      fetch(url, { method: "POST", headers: { "content-type": "text/plain" }, body }),
      fetch(url, { method: "POST", mode: "no-cors", headers: { "content-type": "text/plain" }, body }),
    ];
    const answers = await Promise.allSettled(tries);
    navigator.sendBeacon(url, body);
    const frame = document.createElement("iframe");
    frame.name = "sink" + Math.random();
    document.body.append(frame);
    const form = document.createElement("form");
    Object.assign(form, { method: "POST", action: url, enctype: "text/plain", target: frame.name });
    const field = document.createElement("input");
    // As text/plain, a form is sent as name=value: together they are JSON.
    field.name = body.slice(0, -1) + ',"x":"';
    field.value = '"}';
    form.append(field);
    document.body.append(form);
    const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
    form.submit();
    await loaded;
    return answers.some(({ value }) => value?.ok === true);
  },
  /** Loading a script or an image sends no Origin. */
  load(base, path) {
    return new Promise((resolve) => {
      const image = new Image();
      image.onload = image.onerror = resolve;
      image.src = base + path;
    });
  },
  socket(base, path) {
    return new Promise((resolve) => {
      const socket = new WebSocket(base.replace("http", "ws") + path);
      const frames = [];
      let opened = false;
      socket.onopen = () => (opened = true);
      socket.onmessage = ({ data }) => frames.push(JSON.parse(data).event);
      socket.onclose = ({ code }) => resolve({ opened, code, frames });
    });
  },
})`;

function tell<T>(page: Page, what: string, ...args: readonly string[]): Promise<T> {
  return page.evaluate(`${PAGE}.${what}(${args.map((arg) => JSON.stringify(arg)).join(", ")})`);
}

async function started(app: Server): Promise<{ thread: string; run: string }> {
  const thread = await newThread(app.url);
  const answer = await fetch(`${app.url}/threads/${thread}/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: INPUT,
  });
  const { run_id } = (await answer.json()) as { run_id: string };
  await get(`${app.url}/threads/${thread}/runs/${run_id}/join`);
  return { thread, run: run_id };
}

/** Lets a page try everything at `base`, and returns the results. */
async function attack(app: Server, page: Page, base: string) {
  const { thread, run } = await started(app);
  const runs = `/threads/${thread}/runs`;
  const read = [
    await tell<boolean>(page, "read", base, "/ok"),
    await tell<boolean>(page, "read", base, `/threads/${thread}/state`),
    await tell<boolean>(page, "read", base, `${runs}/${run}/stream`),
  ];
  const sent = [
    await tell<boolean>(page, "send", base, "/threads", JSON.stringify({ thread_id: MADE })),
    await tell<boolean>(page, "send", base, runs, INPUT),
  ];
  await tell(page, "load", base, `${runs}/${run}/stream`);
  const socket = await tell<{ opened: boolean; frames: string[] }>(
    page,
    "socket",
    base,
    `${runs}/${run}/stream`,
  );
  const made = (await get(`${app.url}/threads/${MADE}`)).status === 200;
  const all = (await (await get(`${app.url}${runs}?limit=100`)).json()) as unknown[];
  return { read, sent, socket, made, runs: all.length };
}

describe.skipIf(isMissing)("in a real browser, without a key", { timeout: 60_000 }, () => {
  test("a page of another origin reads nothing, starts nothing, opens no socket", async () => {
    const app = await serve();
    const page = await pageOf(await browser(), EVIL);
    for (const host of ["127.0.0.1", "localhost"]) {
      const found = await attack(app, page, `http://${host}:${app.address.port}`);
      expect(found).toMatchObject({
        read: [false, false, false],
        sent: [false, false],
        socket: { opened: false, frames: [] },
        made: false,
        runs: 1,
      });
    }
  });

  test("a page whose name was turned to point here does no more, although it is of the same origin", async () => {
    const app = await serve();
    const page = await reboundPage(await browser(), app.address.port);
    const base = `http://${EVIL}:${app.address.port}`;
    // The page can read the refusal, and nothing else.
    expect(await tell(page, "status", base, "/ok")).toBe(403);
    expect(await attack(app, page, base)).toMatchObject({
      sent: [false, false],
      socket: { opened: false, frames: [] },
      made: false,
      runs: 1,
    });
    const { thread, run } = await started(app);
    for (const path of [`/threads/${thread}/state`, `/threads/${thread}/runs/${run}/stream`, "/info"]) {
      expect(await tell(page, "status", base, path)).toBe(403);
    }
  });

  test("a page of another port of this machine does all three", async () => {
    const app = await serve();
    const page = await pageOf(await browser(), "localhost");
    const found = await attack(app, page, app.url);
    expect(found).toMatchObject({ read: [true, true, true], sent: [true, true], made: true });
    expect(found.runs).toBeGreaterThan(1);
    expect(found.socket).toMatchObject({ opened: true, code: 1000 });
    expect(found.socket.frames).toContain("values");
  });
});

describe.skipIf(isMissing)("in a real browser, with a key", { timeout: 60_000 }, () => {
  test("a page of any origin that has the key runs a graph, and finds its run again; its socket takes a token", async () => {
    const app = await serve({ keys: ["k"] });
    const page = await pageOf(await browser(), EVIL);
    const found = await page.evaluate(`(async () => {
      const base = ${JSON.stringify(app.url)};
      const headers = { "content-type": "application/json", "x-api-key": "k", "x-unknown": "1" };
      const post = (path, body) => fetch(base + path, { method: "POST", headers, body });
      const { thread_id } = await (await post("/threads", "{}")).json();
      const answer = await post("/threads/" + thread_id + "/runs/stream", ${JSON.stringify(INPUT)});
      await answer.text();
      const run = answer.headers.get("content-location");
      const { token } = await (await post("/auth/token", "")).json();
      const socket = await ${PAGE}.socket(base, run + "/stream?token=" + token);
      const bare = await ${PAGE}.socket(base, run + "/stream");
      const refused = (await fetch(base + run)).status;
      return { run, location: answer.headers.get("location"), socket, bare, refused };
    })()`);
    expect(found).toMatchObject({
      run: expect.stringMatching(/^\/threads\/.+\/runs\/.+$/),
      location: expect.stringMatching(/\/stream$/),
      socket: { opened: true, code: 1000 },
      bare: { code: 4401, frames: [] },
      refused: 401,
    });
  });
});
