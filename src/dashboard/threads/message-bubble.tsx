import { useState } from "preact/hooks";
import type { ChatMessage } from "../live/chat-messages.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { Markdown } from "../components/markdown.tsx";
import { JsonTree } from "../components/json-tree.tsx";

interface BubbleProps {
  readonly message: ChatMessage;
  /** The names of called tools, by call id. */
  readonly calls: ReadonlyMap<string, string>;
  readonly isComing?: boolean;
  readonly node?: string | undefined;
  /** The address of the message. */
  readonly href?: string;
  /** Whether the page was opened by the address of this message. */
  readonly isWanted?: boolean;
  /** The position of the message in a list of which only a part is drawn. */
  readonly place?: {
    readonly index: number;
    readonly count: number;
    /** Pixels from the top of the list. */
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

/** A tool's answer with more characters than this is collapsed until the user opens it. */
const LONG = 400;
/** The number of tool calls shown before the user asks for more. */
const CALLS = 50;

export function MessageBubble({
  message,
  calls,
  isComing = false,
  node,
  href,
  isWanted = false,
  place,
}: BubbleProps) {
  const [most, setMost] = useState(CALLS);
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
        "aria-posinset": place.index + 1,
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
        <details open={text.length <= LONG}>
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
        <button type="button" class="quiet" onClick={() => setMost(most + 10 * CALLS)}>
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
