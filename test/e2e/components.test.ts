import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { lines } from "./support/clients.ts";
import { directory, serve } from "./support/server.ts";
import { get, post } from "./support/wire.ts";

interface UiClient {
  getComponent(assistant: string, name: string): Promise<string>;
}

const CARD = `import "./card.css";
import { useState } from "react";
import { shade } from "./shade.ts";
const Card = (props: { city: string }) => { const [open] = useState(true); return <b title={shade(open)}>{props.city}</b>; };
export default { card: Card };`;

/** A project whose graph `agent` has UI components. */
async function project(ui: object = { agent: "./ui.tsx", "an-other": "./ui.tsx" }, more: object = {}) {
  const home = await directory();
  await Promise.all([
    writeFile(join(home, "ui.tsx"), CARD),
    writeFile(join(home, "card.css"), "b { color: teal }"),
    writeFile(join(home, "shade.ts"), "export const shade = (open: boolean) => (open ? 'light' : 'dark');"),
    writeFile(join(home, "langgraph.json"), JSON.stringify({ graphs: {}, ui, ...more })),
  ]);
  return home;
}

/** What a page makes of a bundle: the test does not run the tags, but their script and its call. */
function shown(script: string, call: string, place: string): unknown {
  const responses: unknown[] = [];
  const children: unknown[] = [];
  const react = { useState: (value: unknown) => [value] };
  const jsx = (type: unknown, props: object) => ({ type, props });
  const modules: { [name: string]: object } = { react, "react/jsx-runtime": { jsx } };
  const page: { [name: string | symbol]: unknown } = {
    document: {
      createElement: (tag: string) => ({ tag }),
      getElementById: (id: string) =>
        id === place ? { shadowRoot: { appendChild: (child: unknown) => children.push(child) } } : null,
    },
    [Symbol.for("LGUI_EXT_STORE")]: { respond: (...told: unknown[]) => responses.push(told) },
    [Symbol.for("LGUI_REQUIRE")]: (name: string) => modules[name],
  };
  runInNewContext(`${script}\n${call.replace("{{shadowRootId}}", place)}`, page);
  const [[at, component, target]] = responses as [[string, (props: object) => unknown, unknown]];
  expect([at, target]).toEqual([place, children[0]]);
  return component?.({ city: "Lisbon" });
}

test.each(lines)(
  "a component is loaded as %s asks for it, with its styles, over React of the page",
  async (_, connect) => {
    const { url, complaints } = await serve({ config: join(await project(), "langgraph.json") });
    const client = connect(url);
    const ui = client["~ui"] as unknown as UiClient;
    const html = await ui.getComponent("agent", "card");
    const [, style = "", script = "", call = ""] =
      /^<link rel="stylesheet" href="([^"]+)" \/>\n<script src="([^"]+)" onload='([^']+)'><\/script>$/.exec(
        html,
      ) ?? [];
    expect(new URL(style).origin).toBe(url);
    expect(call).toBe('__LGUI_agent.render("card", "{{shadowRootId}}")');
    const [css, js] = await Promise.all([get(style), get(script)]);
    expect(css.headers.get("content-type")).toBe("text/css; charset=utf-8");
    expect(await css.text()).toContain("color:teal");
    expect(js.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(shown(await js.text(), call, "shadow-1")).toEqual({
      type: "b",
      props: { title: "light", children: "Lisbon" },
    });
    // The client names the assistant that its stream belongs to.
    const [assistant] = await client.assistants.search({ graphId: "agent" });
    expect(await ui.getComponent(assistant?.assistant_id ?? "", "card")).toBe(html);
    expect(await ui.getComponent("an-other", "card")).toContain("__LGUI_an_other.render(");
    expect(complaints).toEqual([]);
  },
);

test("what a file is made of may change", async () => {
  const home = await project();
  const { url } = await serve({ config: join(home, "langgraph.json") });
  const bundle = async () => (await get(`${url}/ui/agent/entrypoint.js`)).text();
  expect(await bundle()).toContain("light");
  await writeFile(join(home, "shade.ts"), "export const shade = () => 'bright as day';");
  expect(await bundle()).toContain("bright as day");
});

test("packages that the page shares are not bundled", async () => {
  const home = await project(undefined, { ui_config: { shared: ["charts"] } });
  await writeFile(join(home, "ui.tsx"), `import { bar } from "charts"; export default { card: () => bar };`);
  const { url } = await serve({ config: join(home, "langgraph.json") });
  const script = await (await get(`${url}/ui/agent/entrypoint.js`)).text();
  expect(script).toContain('Symbol.for("LGUI_REQUIRE")]("charts")');
});

test("a key is asked of who wants a component, and not of script tags", async () => {
  const { url } = await serve({ config: join(await project(), "langgraph.json"), keys: ["k"] });
  expect((await post(`${url}/ui/agent`, { name: "card" })).status).toBe(401);
  expect((await get(`${url}/ui/agent/entrypoint.js`)).status).toBe(200);
});

test("hostile names stay texts, and bad requests are told", async () => {
  const { url } = await serve({ config: join(await project(), "langgraph.json") });
  const odd = await (await post(`${url}/ui/agent`, { name: `'><script>alert("x")` })).text();
  expect(odd).toContain(`render("&#39;&gt;&lt;script&gt;alert(\\"x\\")", "{{shadowRootId}}")`);
  for (const [path, body, status] of [
    ["agent", {}, 422],
    ["agent", { name: 5 }, 422],
    ["agent", { name: "x".repeat(300) }, 422],
    ["nobody", { name: "card" }, 404],
    ["__proto__", { name: "card" }, 404],
    ["00000000-0000-4000-8000-000000000000", { name: "card" }, 404],
  ] as const) {
    const answer = await post(`${url}/ui/${path}`, body);
    expect([answer.status, await answer.json()]).toEqual([
      status,
      expect.objectContaining({ detail: expect.any(String) }),
    ]);
  }
  expect((await get(`${url}/ui/agent/langgraph.json`)).status).toBe(404);
  expect((await get(`${url}/ui/agent/..%2Fcard.css`)).status).toBe(404);
});

test("a file that cannot be bundled is told to who asks and in the log, and the next try bundles it", async () => {
  const home = await project();
  await writeFile(join(home, "ui.tsx"), "export default {");
  const { url, complaints } = await serve({ config: join(home, "langgraph.json") });
  const failed = await post(`${url}/ui/agent`, { name: "card" });
  expect([failed.status, await failed.json()]).toMatchObject([500, { detail: expect.any(String) }]);
  expect(complaints.join()).toContain("ui.tsx");
  await writeFile(join(home, "ui.tsx"), CARD);
  expect((await post(`${url}/ui/agent`, { name: "card" })).status).toBe(200);
});

test("without components there is no such place; a wrong configuration is refused", async () => {
  const { url } = await serve();
  expect((await post(`${url}/ui/agent`, { name: "card" })).status).toBe(404);
  const wrong = async (ui: object, more?: object) =>
    serve({ config: join(await project(ui, more), "langgraph.json") });
  await expect(wrong({ agent: 5 })).rejects.toThrow(/ui\.agent must name a file/);
  await expect(wrong({ agent: "./ui.tsx" }, { ui_config: { shared: "x" } })).rejects.toThrow(
    /ui_config\.shared/,
  );
});
