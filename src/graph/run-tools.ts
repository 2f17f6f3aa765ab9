import { plainError, ServiceError } from "../model/errors.ts";
import { isObject, toStorable } from "../model/json.ts";
import type { Ctx, Side } from "./node-context.ts";
import { isPause } from "./interrupts.ts";
import type { Message, MessageLiteral } from "./message.ts";
import { describe, issuesAt, type Schema } from "./standard-schema.ts";
import type { InvalidToolCall, ToolCall } from "./tool-call.ts";
import type { Tool } from "./tool.ts";

/** The answer to a tool call: a message for the state, which gets its id there. */
export interface ToolMessage extends MessageLiteral {
  readonly type: "tool";
  readonly content: Message["content"];
  readonly name: string | null;
  readonly tool_call_id: string;
  readonly artifact: unknown;
  readonly status: "success" | "error";
}

type Call = ToolCall | InvalidToolCall;

/** The calls of the last ai message that no tool message after it has answered. */
function waiting(from: Message | readonly Message[]): readonly Call[] {
  const list = "type" in from ? [from] : from;
  const last = list.findLastIndex((message) => message.type === "ai");
  const { tool_calls = [], invalid_tool_calls = [] } = list[last] ?? {};
  const answered = new Set(list.slice(last + 1).map((message) => message.tool_call_id));
  return [...tool_calls, ...invalid_tool_calls].filter((call) => call.id === null || !answered.has(call.id));
}

function answer(
  call: Call,
  status: ToolMessage["status"],
  content: ToolMessage["content"],
  artifact?: unknown,
) {
  const { id, name } = call;
  return { type: "tool", content, name, tool_call_id: id ?? "", artifact: artifact ?? {}, status } as const;
}

/** What a tool returned, as the content of its message. */
function success(call: Call, returned: unknown): ToolMessage {
  if (typeof returned === "string") return answer(call, "success", returned);
  if (returned === undefined) return answer(call, "success", "");
  const value = toStorable(returned, `the result of tool "${call.name}"`);
  if (isObject(value) && Object.keys(value).every((key) => key === "content" || key === "artifact")) {
    const { content, artifact } = value;
    const isContent = typeof content === "string" || (Array.isArray(content) && content.every(isObject));
    if (isContent) return answer(call, "success", content, artifact);
  }
  return answer(call, "success", JSON.stringify(value));
}

async function argsOf(schema: Schema, call: ToolCall): Promise<unknown> {
  const result = await schema["~standard"].validate(call.args);
  if (result.issues === undefined) return result.value;
  throw new TypeError(`The arguments are not right: ${describe(issuesAt("args", result.issues))}`);
}

async function callTool(tools: ReadonlyMap<string, Tool>, call: Call, ctx: Ctx): Promise<ToolMessage> {
  if (call.type === "invalid_tool_call") {
    return answer(call, "error", `Error: ${call.error ?? "The arguments cannot be read"}`);
  }
  const tool = tools.get(call.name);
  if (tool === undefined) {
    const known = [...tools.keys()].join(", ") || "none";
    return answer(call, "error", `Error: There is no tool "${call.name}"; the tools are: ${known}`);
  }
  try {
    const args = await argsOf(tool.schema, call);
    return success(call, await tool.run(args as never, ctx, call));
  } catch (thrown) {
    // A pause is no error; and a run that stops wants no answer for its model.
    if (isPause(thrown) || ctx.signal.aborted) throw thrown;
    const { error, message } = plainError(thrown);
    return answer(call, "error", `${error}: ${message}`);
  }
}

/**
 * Runs the tool calls of an ai message (of a list: of the last one, those that have no answer yet), all at once, and resolves
 * with their tool messages in the order of the calls. Arguments that the tool's schema refuses, an unknown tool and what a tool
 * throws become messages with `status: "error"`, for the model to read. A tool may call `ctx.interrupt`: the run pauses once
 * all others have ended, and those are not run again when it goes on.
 * @throws ServiceError `graph.invalid` when two tools have one name; what a tool throws when the run is being stopped
 */
export async function runTools<C>(
  tools: readonly Tool[],
  from: Message | readonly Message[],
  ctx: Ctx<C>,
): Promise<readonly ToolMessage[]> {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  if (byName.size < tools.length) throw new ServiceError("graph.invalid", "Two tools have the same name");
  const calls = waiting(from);
  if (calls.length === 0) return [];
  const sides = calls.map((call): Side => {
    const { id, name, args } = call;
    return { key: JSON.stringify([id, name, args]), run: (own) => callTool(byName, call, own) };
  });
  const all = ctx["~sides"] ?? ((list) => Promise.allSettled(list.map(({ run }) => run(ctx))));
  const settled = await all(sides);
  return settled.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return one.value as ToolMessage;
  });
}
