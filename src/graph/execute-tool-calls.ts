import { toPlainError, ServiceError } from "../model/errors.ts";
import { isObject, toStorable, type JsonObject } from "../model/json.ts";
import type { Ctx, ParallelFunction } from "./node-context.ts";
import { isPause } from "./interrupts.ts";
import type { Message, MessageLiteral } from "./message.ts";
import { describeFieldErrors, toFieldErrors, type Schema } from "./standard-schema.ts";
import type { InvalidToolCall, ToolCall } from "./tool-call.ts";
import type { Tool } from "./tool.ts";

/** The result of a tool call, as a message for the state. It gets its id when it is written to the state. */
export interface ToolMessage extends MessageLiteral {
  readonly type: "tool";
  readonly content: Message["content"];
  readonly name: string | null;
  readonly tool_call_id: string;
  readonly artifact: unknown;
  readonly status: "success" | "error";
}

type Call = ToolCall | InvalidToolCall;

/** The tool calls of the last AI message that no later tool message answers. */
function unansweredCalls(from: Message | readonly Message[]): readonly Call[] {
  const list = "type" in from ? [from] : from;
  const last = list.findLastIndex((message) => message.type === "ai");
  const { tool_calls = [], invalid_tool_calls = [] } = list[last] ?? {};
  const answered = new Set(list.slice(last + 1).map((message) => message.tool_call_id));
  return [...tool_calls, ...invalid_tool_calls].filter((call) => call.id === null || !answered.has(call.id));
}

function toolMessage(
  call: Call,
  status: ToolMessage["status"],
  content: ToolMessage["content"],
  artifact?: unknown,
) {
  const { id, name } = call;
  return { type: "tool", content, name, tool_call_id: id ?? "", artifact: artifact ?? {}, status } as const;
}

/** Makes the tool message for a tool's return value. */
function resultMessage(call: Call, returned: unknown): ToolMessage {
  if (typeof returned === "string") return toolMessage(call, "success", returned);
  if (returned === undefined) return toolMessage(call, "success", "");
  const value = toStorable(returned, `the result of tool "${call.name}"`);
  if (isObject(value) && Object.keys(value).every((key) => key === "content" || key === "artifact")) {
    const { content, artifact } = value;
    const isContent = typeof content === "string" || (Array.isArray(content) && content.every(isObject));
    if (isContent) return toolMessage(call, "success", content, artifact);
  }
  return toolMessage(call, "success", JSON.stringify(value));
}

async function argsOf(schema: Schema, call: ToolCall): Promise<unknown> {
  const result = await schema["~standard"].validate(call.args);
  if (result.issues === undefined) return result.value;
  throw new TypeError(
    `The arguments are not right: ${describeFieldErrors(toFieldErrors("args", result.issues))}`,
  );
}

async function callTool(tools: ReadonlyMap<string, Tool>, call: Call, ctx: Ctx): Promise<ToolMessage> {
  if (call.type === "invalid_tool_call") {
    return toolMessage(call, "error", `Error: ${call.error ?? "The arguments cannot be read"}`);
  }
  const tool = tools.get(call.name);
  if (tool === undefined) {
    const known = [...tools.keys()].join(", ") || "none";
    return toolMessage(call, "error", `Error: There is no tool "${call.name}"; the tools are: ${known}`);
  }
  // The events have the form of LangGraph's.
  const report = (event: string, data: JsonObject) => {
    const site = { ...(call.id !== null && { toolCallId: call.id }), name: call.name };
    ctx["~reportTool"]?.({ event, ...site, ...data });
  };
  let hasStarted = false;
  try {
    const args = await argsOf(tool.schema, call);
    report("on_tool_start", { input: JSON.stringify(call.args) });
    hasStarted = true;
    const returned = tool.run(args as never, ctx, call);
    const result = isAsyncGenerator(returned)
      ? await resultOf(returned, (data) => report("on_tool_event", { data }))
      : await returned;
    const message = resultMessage(call, result);
    report("on_tool_end", { output: message });
    return message;
  } catch (thrown) {
    // Throws the error again: a pause is no error of the tool, and a run that is being stopped needs no tool
    // message.
    if (isPause(thrown) || ctx.signal.aborted) throw thrown;
    const { error, message } = toPlainError(thrown);
    if (hasStarted) report("on_tool_error", { error: { name: error, message } });
    return toolMessage(call, "error", `${error}: ${message}`);
  }
}

const isAsyncGenerator = (value: unknown): value is AsyncGenerator =>
  typeof value === "object" &&
  value !== null &&
  Symbol.asyncIterator in value &&
  "next" in value &&
  "return" in value;

/** Runs a generator to its end, and resolves with what it returns. `progress` is called with each value that it yields. */
async function resultOf(generator: AsyncGenerator, progress: (value: unknown) => void): Promise<unknown> {
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- a generator yields one value after the other
    const { done, value } = await generator.next();
    if (done === true) return value;
    try {
      progress(value);
    } catch (thrown) {
      // Ends the generator, so that it can clean up.
      // oxlint-disable-next-line no-await-in-loop -- the loop ends here
      await generator.return(undefined);
      throw thrown;
    }
  }
}

/**
 * Runs the unanswered tool calls of an AI message in parallel. If `from` is a list, its last AI message is used. Resolves with the tool
 * messages in the order of the calls. If the tool's schema refuses the arguments, the tool is unknown, or the tool throws, the
 * message has `status: "error"`, for the model to read. A tool may call `ctx.interrupt`: then the run pauses when all other
 * tools have ended; these do not run again when the run resumes.
 * @throws ServiceError `graph.invalid` if two tools have the same name; errors of a tool while the run is being stopped
 */
export async function runTools<C>(
  tools: readonly Tool[],
  from: Message | readonly Message[],
  ctx: Ctx<C>,
): Promise<readonly ToolMessage[]> {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  if (byName.size < tools.length) throw new ServiceError("graph.invalid", "Two tools have the same name");
  const calls = unansweredCalls(from);
  if (calls.length === 0) return [];
  const bodies = calls.map((call): ParallelFunction => {
    const { id, name, args } = call;
    return { key: JSON.stringify([id, name, args]), run: (own) => callTool(byName, call, own) };
  });
  const all = ctx["~parallel"] ?? ((list) => Promise.allSettled(list.map(({ run }) => run(ctx))));
  const settled = await all(bodies);
  return settled.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return one.value as ToolMessage;
  });
}
