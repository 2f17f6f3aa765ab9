import type { Message } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { useState } from "react";
import { createRoot } from "react-dom/client";

declare global {
  interface Window {
    /** Every text of the last message that was shown, in order. */
    shown: string[];
  }
}
window.shown = [];

type State = { messages: Message[] };
type Types = { InterruptType: { question: string } };

const query = new URLSearchParams(location.search);
const apiUrl = String(query.get("api"));

/** Stores the thread in the address, so that a reload finds it again. */
function keep(thread: string): void {
  query.set("thread", thread);
  history.replaceState(null, "", `?${query}`);
}

function Chat() {
  const [threadId, setThreadId] = useState(query.get("thread"));
  const [text, setText] = useState("");
  const chat = useStream<State, Types>({
    apiUrl,
    assistantId: "chat",
    threadId,
    onThreadId: (thread) => {
      keep(thread);
      setThreadId(thread);
    },
    reconnectOnMount: true,
    // Branches are found in the loaded history: the hook's default of 10 states is soon too few.
    fetchStateHistory: { limit: 100 },
    callerOptions: { maxRetries: 0 },
  });
  const { messages, interrupt } = chat;
  const last = String(messages.at(-1)?.content ?? "");
  if (window.shown.at(-1) !== last) window.shown.push(last);

  const said = () => {
    setText("");
    return { type: "human" as const, content: text };
  };
  /** Edits a message: creates a branch beside it. */
  const edit = (message: Message) => {
    const checkpoint = chat.getMessagesMetadata(message)?.firstSeenState?.parent_checkpoint ?? null;
    void chat.submit({ messages: [said()] }, { checkpoint });
  };
  /** Regenerates an answer. */
  const again = (message: Message) => {
    const checkpoint = chat.getMessagesMetadata(message)?.firstSeenState?.parent_checkpoint ?? null;
    void chat.submit(undefined, { checkpoint });
  };

  /** A new message continues the branch that is shown: by itself, the hook would show the newest branch again. */
  const send = () => {
    const head = chat.branch === "" ? undefined : chat.history.at(-1)?.checkpoint;
    void chat.submit({ messages: [said()] }, head === undefined ? {} : { checkpoint: head });
  };

  return (
    <main data-loading={chat.isLoading} data-thread-loading={chat.isThreadLoading}>
      <p id="error">{chat.error === undefined ? "" : String(chat.error)}</p>
      <ol>
        {messages.map((message) => {
          const meta = chat.getMessagesMetadata(message);
          const options = meta?.branchOptions ?? [];
          const at = options.indexOf(meta?.branch ?? "");
          return (
            <li key={message.id} data-type={message.type}>
              <span>{String(message.content)}</span>
              {options.length > 1 && (
                <nav>
                  <button onClick={() => chat.setBranch(options[at - 1] ?? "")}>previous</button>
                  <b>{`${at + 1}/${options.length}`}</b>
                  <button onClick={() => chat.setBranch(options[at + 1] ?? "")}>next</button>
                </nav>
              )}
              {message.type === "human" ? (
                <button onClick={() => edit(message)}>edit</button>
              ) : (
                <button onClick={() => again(message)}>again</button>
              )}
            </li>
          );
        })}
      </ol>
      {interrupt !== undefined && (
        <aside>
          <q>{Array.isArray(interrupt) ? "" : interrupt.value?.question}</q>
          <button onClick={() => void chat.submit(undefined, { command: { resume: { ok: true } } })}>
            yes
          </button>
        </aside>
      )}
      <input id="text" value={text} onChange={(event) => setText(event.target.value)} />
      <button id="send" onClick={send}>
        send
      </button>
      <button id="stop" onClick={() => void chat.stop()}>
        stop
      </button>
    </main>
  );
}

createRoot(document.body.appendChild(document.createElement("div"))).render(<Chat />);
