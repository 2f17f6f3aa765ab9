import type { AssistantDefaults } from "../model/assistant.ts";
import { isObject, type JsonObject } from "../model/json.ts";

/** The environment variable with the settings of default assistants: a JSON object by graph name. */
export const DEFAULTS_VARIABLE = "LANGGRAPH_CONFIG";

/**
 * Reads {@link DEFAULTS_VARIABLE}: for each graph, the `config` and the `context` of its default assistant. Undefined if the variable is
 * not set or names no graph. If it is invalid, calls `refuse` with what is wrong; that message never contains a value, which may be a
 * secret.
 */
export function parseAssistantDefaults(
  text: string | undefined,
  refuse: (what: string) => never,
): AssistantDefaults | undefined {
  if (text === undefined || text.trim() === "") return undefined;
  const example = 'JSON such as { "agent": { "configurable": { "model": "small" }, "context": {} } }';
  const root = parsed(text);
  if (!isObject(root)) return refuse(`${DEFAULTS_VARIABLE} must be ${example}`);
  const all = Object.entries(root).map(([graph, given]) => {
    const at = `${DEFAULTS_VARIABLE}: ${JSON.stringify(graph.slice(0, 100))}`;
    if (!isObject(given)) return refuse(`${at} must be an object; it must be ${example}`);
    const { context = {}, ...config } = given;
    for (const [name, isValid, needed] of CHECKS) {
      const value = name === "context" ? context : config[name];
      if (value !== undefined && !isValid(value)) refuse(`${at}.${name} must be ${needed}`);
    }
    return [graph, { config, context: context as JsonObject }] as const;
  });
  return all.length === 0 ? undefined : Object.fromEntries(all);
}

const CHECKS: readonly (readonly [name: string, isValid: (value: unknown) => boolean, needed: string])[] = [
  ["context", isObject, "an object"],
  ["configurable", isObject, "an object"],
  ["metadata", isObject, "an object"],
  [
    "tags",
    (value) => Array.isArray(value) && value.every((tag) => typeof tag === "string"),
    "a list of texts",
  ],
  [
    "recursion_limit",
    (value) => Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= 100_000,
    "a whole number from 1 to 100000",
  ],
];

/** Parses JSON. Returns undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
