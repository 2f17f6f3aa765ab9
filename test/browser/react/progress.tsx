import { useExtension, useStream } from "@langchain/react";
import { useState } from "react";
import { createRoot } from "react-dom/client";

declare global {
  interface Window {
    /** Each progress that was shown, in order. */
    shownProgress: number[];
    /** What the thread's own handle gave, read to its end. */
    readProgress: Progress[];
  }
}
window.shownProgress = [];
window.readProgress = [];

interface Progress {
  readonly done: number;
}

/** The hook makes a client anew for each new object. */
const callerOptions = { maxRetries: 0 };
const query = new URLSearchParams(location.search);

/** The thread stays in the address, so that a reload finds it again. */
function keep(thread: string): void {
  query.set("thread", thread);
  history.replaceState(null, "", `?${query}`);
}

function Work() {
  const [threadId, setThreadId] = useState(query.get("thread"));
  const stream = useStream<{ log: string[] }>({
    apiUrl: String(query.get("api")),
    assistantId: "work",
    threadId,
    transport: query.get("transport") === "websocket" ? "websocket" : "sse",
    onThreadId: (thread) => {
      keep(thread);
      setThreadId(thread);
    },
    callerOptions,
  });
  const progress = useExtension<Progress>(stream, "progress");
  if (progress !== undefined && window.shownProgress.at(-1) !== progress.done)
    window.shownProgress.push(progress.done);

  const start = async () => {
    await stream.submit({ log: [] });
    const handle = stream.getThread()?.extensions["progress"] as AsyncIterable<Progress> | undefined;
    if (handle !== undefined) for await (const one of handle) window.readProgress.push(one);
  };

  return (
    <main data-loading={stream.isLoading}>
      <p id="error">{stream.error === undefined ? "" : String(stream.error)}</p>
      <p id="progress">{progress?.done}</p>
      <p id="log">{stream.values.log?.join(" ")}</p>
      <button onClick={() => void start()}>start</button>
    </main>
  );
}

createRoot(document.body.appendChild(document.createElement("div"))).render(<Work />);
