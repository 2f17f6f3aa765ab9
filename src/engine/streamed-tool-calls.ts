import { md5Hex } from "../model/ids.ts";
import { toStorable, type JsonObject } from "../model/json.ts";
import { copiedObjectField } from "../graph/parse-state-fields.ts";
import { parseToolCall, type InvalidToolCall, type ToolCall, type ToolCalls } from "../graph/tool-call.ts";

/** A whole tool call, or the next piece of its arguments. */
export interface ToolCallPart {
  readonly name?: string | undefined;
  readonly args?: JsonObject | string | undefined;
  readonly id?: string | undefined;
  readonly index?: number | undefined;
}

interface StreamedCall {
  name: string;
  readonly id: string;
  /** The arguments as streamed JSON text. */
  text: string;
  /** The arguments, if they were given as a whole. They take precedence over the text. */
  args: JsonObject | undefined;
  dropped: boolean;
}

/** The most tool calls of a message, as a limit for a source that never ends. */
const MAX_CALLS = 1_024;

/** The tool calls of a message that is being streamed. */
export class StreamedToolCalls {
  readonly #message: string;
  readonly #list: StreamedCall[] = [];
  /** Positions in the list, by the index that the model's stream gives a call. */
  readonly #positions = new Map<number, number>();

  constructor(message: string) {
    this.#message = message;
  }

  /** Adds a part. Returns the chunk to send, and the whole call if its arguments were given as a whole. */
  add({ name, args = {}, id, index }: ToolCallPart): {
    readonly call: ToolCall | undefined;
    readonly chunk: JsonObject;
  } {
    const position = this.#positionOf(name, id, index);
    let call = this.#list[position];
    const isNew = call === undefined;
    if (call === undefined) {
      if (position >= MAX_CALLS) throw new RangeError(`A message holds at most ${MAX_CALLS} tool calls`);
      call = {
        name: "",
        id: id || `call_${md5Hex(`${this.#message}|${position}`)}`,
        text: "",
        args: undefined,
        dropped: false,
      };
      this.#list.push(call);
    }
    if (index !== undefined) this.#positions.set(index, position);
    const named = name !== undefined && call.name === "";
    if (named) call.name = String(name);
    let text: string;
    if (typeof args === "string") text = args;
    else {
      call.args = copiedObjectField(args, "toolCall.args");
      // If the arguments were already streamed, they are not sent again.
      text = call.text === "" ? JSON.stringify(call.args) : "";
    }
    call.text += text;
    const chunk = {
      name: named ? call.name : null,
      args: text,
      id: isNew ? call.id : null,
      index: position,
      type: "tool_call_chunk",
    };
    return { call: call.args === undefined ? undefined : wholeCall(call, call.args), chunk };
  }

  has(id: string): boolean {
    return this.#list.some((call) => call.id === id);
  }

  /** Leaves a call out of the message, because it has already been executed. */
  drop(id: string): void {
    const call = this.#list.find((one) => one.id === id);
    if (call !== undefined) call.dropped = true;
  }

  #positionOf(name: string | undefined, id: string | undefined, index: number | undefined): number {
    const next = this.#list.length;
    if (index !== undefined) {
      const position = this.#positions.get(index) ?? next;
      const call = this.#list[position];
      // Some servers give every call the index 0, so a call with a name and another id is a new one.
      const other =
        call !== undefined && name !== undefined && id !== undefined && id !== "" && id !== call.id;
      return other ? next : position;
    }
    if (id !== undefined && id !== "") {
      const position = this.#list.findIndex((call) => call.id === id);
      return position < 0 ? next : position;
    }
    return name === undefined ? Math.max(0, next - 1) : next;
  }

  finish(): ToolCalls {
    const tool_calls: ToolCall[] = [];
    const invalid_tool_calls: InvalidToolCall[] = [];
    for (const call of this.#list) {
      if (call.dropped) continue;
      const made =
        call.args === undefined ? parseToolCall(call.name, call.text, call.id) : wholeCall(call, call.args);
      if (made.type === "tool_call") tool_calls.push(made);
      else invalid_tool_calls.push(made);
    }
    return { tool_calls, invalid_tool_calls };
  }
}

function wholeCall({ name, id }: StreamedCall, args: JsonObject): ToolCall {
  return { name, args: toStorable(args, "args") as JsonObject, id, type: "tool_call" };
}
