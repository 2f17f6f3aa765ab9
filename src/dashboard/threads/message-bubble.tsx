import { useState } from "preact/hooks";
import type { ChatMessage } from "../live/chat-messages.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { Markdown } from "../components/markdown.tsx";
import { JsonTree } from "../components/json-tree.tsx";

interface BubbleProps {
  readonly message: ChatMessage;
  /** The names of the called tools, by the id of the tool call. */
  readonly calls: ReadonlyMap<string, string>;
  readonly isComing?: boolean;
  readonly node?: string | undefined;
  readonly href?: string;
  /** Whether the page's address names this message. */
  readonly isWanted?: boolean;
  /** The position of the message in a virtual list, which draws only some of its rows. */
  readonly place?: {
    readonly index: number;
    /** The position in the whole conversation, beginning with 1. */
    readonly position: number;
    /** The number of messages in the whole conversation. */
    readonly count: number;
    /** The distance from the top of the list, in pixels. */
    readonly top: number;
    measure(row: Element | null): void;
  };
}

const WHO: { readonly [type: string]: string } = {
  human: "You",
  ai: "Assistant",
  system: "System",
  tool: "Tool",
  developer: "Developer",
};

/** The result of a tool is collapsed initially if it has more characters than this. */
const MAX_OPEN_CHARACTERS = 400;
/** The number of tool calls that are shown before the user asks for more. */
const MAX_CALLS = 50;

export function MessageBubble({
  message,
  calls,
  isComing = false,
  node,
  href,
  isWanted = false,
  place,
}: BubbleProps) {
  const [most, setMost] = useState(MAX_CALLS);
  const { type, name, text, toolCallId } = message;
  const tool = toolCallId === null ? null : (name ?? calls.get(toolCallId) ?? null);
  const who = name !== null && type !== "tool" ? name : (WHO[type] ?? type);
  return (
    <li
      ref={place?.measure ?? null}
      class={`bubble ${type} ${message.failed ? "failed" : ""}`}
      aria-current={isWanted ? "true" : undefined}
      {...(place !== undefined && {
        "data-index": place.index,
        "aria-setsize": place.count,
        "aria-posinset": place.position,
        style: { transform: `translateY(${place.top}px)` },
      })}
    >
      <div class="who">
        <strong>{tool === null ? who : `${who}: ${tool}`}</strong>
        {node !== undefined && <span class="dim"> {node}</span>}
        {message.usage !== null && (
          <span class="dim" title={JSON.stringify(message.usage)}>
            {" "}
            {String(message.usage["output_tokens"] ?? "?")} tokens
          </span>
        )}
        <span class="space" />
        {href !== undefined && (
          <a class="quiet" href={href} title="Link to this message" aria-label="Link to this message">
            #
          </a>
        )}
        {text !== "" && <CopyButton text={text} label="message" />}
      </div>
      {type === "tool" ? (
        <details open={text.length <= MAX_OPEN_CHARACTERS}>
          <summary>Result</summary>
          <div class="text">{text}</div>
        </details>
      ) : (
        (text !== "" || isComing) && (
          <div class={`said ${isComing ? "coming" : ""}`}>
            {type === "human" ? <div class="text">{text}</div> : <Markdown text={text} />}
          </div>
        )
      )}
      {message.calls.slice(0, most).map((call) => (
        <div class="call" key={call.id}>
          <span class="dim">Calls tool</span> <code>{call.name}</code>
          <JsonTree value={parsed(call.args)} open={1} />
        </div>
      ))}
      {message.calls.length > most && (
        <button type="button" class="quiet" onClick={() => setMost(most + 10 * MAX_CALLS)}>
          {message.calls.length - most} more calls…
        </button>
      )}
    </li>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
