import { expect, test } from "vitest";
import { banner, type StartedServer } from "../../src/cli/banner.ts";
import { applyStyleFor, leaveUnstyled } from "../../src/platform/terminal.ts";

const started: StartedServer = {
  version: "1.2.3",
  url: "http://127.0.0.1:2024/api",
  graphs: ["agent", "b"],
  data: "/p/.heddle",
  disabled: [],
  allowsStudio: true,
  access: "this machine only, without a key",
  notes: [],
};

test("the banner says where everything is, and what is served to whom", () => {
  expect(banner(started, leaveUnstyled)).toBe(`
Heddle 1.2.3 listens on http://127.0.0.1:2024/api

  Dashboard         http://127.0.0.1:2024/api/
  API reference     http://127.0.0.1:2024/api/docs
  Inspector         http://127.0.0.1:2024/api/inspector
  LangGraph Studio  https://smith.langchain.com/studio?baseUrl=http%3A%2F%2F127.0.0.1%3A2024%2Fapi
  Agent Chat        https://agentchat.vercel.app/?apiUrl=http%3A%2F%2F127.0.0.1%3A2024%2Fapi&assistantId=agent
  Graphs            agent, b
  Data              /p/.heddle
  Access            this machine only, without a key

`);
});

test("it names no page that is not served, and no tool that is not let in", () => {
  const shown = banner({ ...started, disabled: ["ui", "meta"], allowsStudio: false }, leaveUnstyled);
  expect(shown).not.toMatch(/Dashboard|API reference|Inspector|Studio|Agent Chat/);
});

test("what is unusual stands at its end", () => {
  const shown = banner({ ...started, notes: ["Port 2024 is taken", "There is no key"] }, leaveUnstyled);
  expect(shown).toMatch(/\n\n {2}! Port 2024 is taken\n {2}! There is no key\n\n$/);
});

test("of many graphs it names the first ones, and how many more there are", () => {
  const graphs = Array.from({ length: 30 }, (_, i) => `g${i}`);
  expect(banner({ ...started, graphs }, leaveUnstyled)).toMatch(/Graphs +g0, .* g11 and 18 more\n/);
});

test("control characters of names are escaped", () => {
  const shown = banner(
    { ...started, graphs: ["a\u001b[2J"], data: "/p\u0007", access: "all that reach \u009b" },
    leaveUnstyled,
  );
  expect(shown.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
});

test("in colours it says the same", () => {
  const coloured = banner(started, applyStyleFor({ isTTY: true }, {}));
  expect(coloured).toContain("\u001b[36mhttp://127.0.0.1:2024/api/docs\u001b[39m");
  // oxlint-disable-next-line no-control-regex -- removes colour codes
  expect(coloured.replaceAll(/\u001b\[\d+m/g, "")).toBe(banner(started, leaveUnstyled));
});
