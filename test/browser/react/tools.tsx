import type { Message } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { createRoot } from "react-dom/client";

declare global {
  interface Window {
    /** The kind of each event that the listener got, in order. */
    toolEvents: string[];
  }
}
window.toolEvents = [];

const query = new URLSearchParams(location.search);
/** The hook makes a client anew for each new object. */
const callerOptions = { maxRetries: 0 };

function Work() {
  const stream = useStream<{ messages: Message[] }>({
    apiUrl: String(query.get("api")),
    assistantId: "work",
    onToolEvent: ({ event }) => void window.toolEvents.push(event),
    callerOptions,
  });
  return (
    <main data-loading={stream.isLoading}>
      <p id="error">{stream.error === undefined ? "" : String(stream.error)}</p>
      <ol>
        {stream.toolProgress.map(({ toolCallId, name, state, data }) => (
          <li key={toolCallId ?? name}>{`${name} ${state} ${JSON.stringify(data)}`}</li>
        ))}
      </ol>
      <button onClick={() => void stream.submit({ messages: [{ type: "human", content: "hi" }] })}>
        start
      </button>
    </main>
  );
}

createRoot(document.body.appendChild(document.createElement("div"))).render(<Work />);
