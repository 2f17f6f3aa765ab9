import { expect, test } from "vitest";
import { parseAssistantDefaults } from "../../src/config/assistant-defaults.ts";

const refuse = (what: string): never => {
  throw new Error(what);
};
const read = (text: string | undefined) => parseAssistantDefaults(text, refuse);

test("an assistant's config is what is there, without its context", () => {
  const agent = { configurable: { model: "small" }, recursion_limit: 5, tags: ["a"], own: 1 };
  expect(read(JSON.stringify({ agent: { ...agent, context: { tone: "dry" } }, other: {} }))).toEqual({
    agent: { config: agent, context: { tone: "dry" } },
    other: { config: {}, context: {} },
  });
  expect([read(undefined), read(""), read(" "), read("{}")]).toEqual(Array(4).fill(undefined));
});

test.each([
  ["{ agent", "LANGGRAPH_CONFIG must be JSON such as"],
  ["[]", "LANGGRAPH_CONFIG must be JSON such as"],
  ['{"agent":"s3cret"}', 'LANGGRAPH_CONFIG: "agent" must be an object'],
  ['{"agent":{"context":"s3cret"}}', 'LANGGRAPH_CONFIG: "agent".context must be an object'],
  ['{"agent":{"configurable":["s3cret"]}}', 'LANGGRAPH_CONFIG: "agent".configurable must be an object'],
  ['{"agent":{"metadata":1}}', 'LANGGRAPH_CONFIG: "agent".metadata must be an object'],
  ['{"agent":{"tags":[1]}}', 'LANGGRAPH_CONFIG: "agent".tags must be a list of texts'],
  ['{"agent":{"recursion_limit":0}}', 'LANGGRAPH_CONFIG: "agent".recursion_limit must be a whole number'],
])("%s is refused by name, and its values are not shown", (text, message) => {
  expect(() => read(text)).toThrow(message);
  expect(() => read(text)).not.toThrow("s3cret");
});
