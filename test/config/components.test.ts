import { afterAll, beforeAll, expect, test } from "vitest";
import { build, Running } from "./process.ts";
import { Home, saying } from "./project.ts";

const home = new Home();
beforeAll(build, 180_000);
afterAll(() => home.remove());

test("the built server bundles a graph's components", async () => {
  const config = home.project("components", {
    "package.json": { type: "module" },
    "ui.tsx": "export default { card: () => null };",
    "a.mjs": `import { graph, list } from "heddle"; export default ${saying('"one"')};`,
    "heddle.json": { graphs: { a: "./a.mjs" }, ui: { a: "./ui.tsx" } },
  });
  const server = await Running.start(["--config", config, "--data", home.data("components")]);
  const response = await fetch(`${server.url}/ui/a`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "card" }),
  });
  expect(response.status).toBe(200);
  expect(await response.text()).toContain('<script src="');
});
