import { useState } from "preact/hooks";
import { cancelRun } from "../api/client.ts";
import type { Thread } from "../api/records.ts";
import { navigate, hrefOf } from "../app/page-location.ts";
import { runAction, showNotice } from "../app/notices.ts";
import { threadStatusText } from "../live/status-texts.ts";
import type { ThreadSubscription } from "../live/thread-subscription.ts";
import { ActionButton } from "../components/action-button.tsx";
import { ConfirmDialog } from "../components/dialogs.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { JoinedTexts } from "../components/joined-texts.tsx";
import { Age } from "../components/age.tsx";
import { StatusBadge } from "../components/status-badge.tsx";
import { toOneLine } from "../components/one-line-text.ts";
import { ownMetadata, EditThreadDialog } from "./edit-thread-dialog.tsx";
import { threadTitle } from "./thread-title.ts";

/** The header of a thread's page: the thread's title, status and actions. */
export function ThreadHeader({
  watch,
  record,
}: {
  readonly watch: ThreadSubscription;
  readonly record: Thread;
}) {
  const [isEditing, setEditing] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const { thread_id: id, status, metadata, created_at } = record;
  const { graph_id: graph = "no runs yet" } = metadata;
  const title = threadTitle(record);
  const others = Object.entries(ownMetadata(metadata));
  const { active, queue, queued } = watch;
  const stoppable = active ?? queue[0];
  const cancel = () =>
    runAction(async () => {
      if (stoppable !== undefined) await cancelRun(id, stoppable.run_id, "interrupt");
      watch.refresh();
    });
  const remove = () =>
    runAction(async () => {
      await watch.delete();
      showNotice("Thread deleted.");
      navigate([]);
    });
  return (
    <header class="head">
      <a class="back" href={hrefOf([])} aria-label="All threads">
        ←
      </a>
      <div class="which">
        <h2>
          <span class="title" title={title}>
            {title}
          </span>{" "}
          <StatusBadge of={status} words={threadStatusText(record)} />
          <ConnectionStatus watch={watch} />
        </h2>
        <p class="dim">
          <code>{id}</code> <CopyButton text={id} label="thread ID" /> · created{" "}
          <Age since={created_at} isAgo />
          {title !== graph && ` · ${String(graph)}`}
          {queued > 0 && ` · ${queued} queued`}
        </p>
        {others.length > 0 && (
          <p class="dim metadata">
            <JoinedTexts texts={others.map(([name, value]) => `${name}=${toOneLine(value, 60)}`)} />
          </p>
        )}
      </div>
      <div class="actions">
        {stoppable !== undefined && (
          // The key keeps a second press of Enter from cancelling the run that starts next.
          <ActionButton key={stoppable.run_id} class="danger" onAct={cancel}>
            Cancel run
          </ActionButton>
        )}
        <button type="button" class="quiet" title="Edit title and metadata" onClick={() => setEditing(true)}>
          Details
        </button>
        <a class="button quiet" href={`inspector?thread_id=${id}`} title="Statecharts of the thread's actors">
          Inspector
        </a>
        <button type="button" class="quiet" onClick={() => setDeleting(true)}>
          Delete
        </button>
      </div>
      {isEditing && (
        <EditThreadDialog
          thread={record}
          onChanged={() => watch.refresh()}
          onClose={() => setEditing(false)}
        />
      )}
      {isDeleting && (
        <ConfirmDialog
          title="Delete the thread?"
          text="This permanently deletes its state, its runs and its history. A run in progress is stopped."
          yes="Delete"
          onYes={() => void remove()}
          onClose={() => setDeleting(false)}
        />
      )}
    </header>
  );
}

const WORDS = {
  connecting: "connecting…",
  open: "live",
  broken: "connection lost, trying again…",
  ended: "ended",
  refused: "live updates refused",
} as const;

export function ConnectionStatus({ watch }: { readonly watch: ThreadSubscription }) {
  const state = watch.stream.state.value;
  return (
    <span class={`live ${state}`} role="status" title={watch.stream.reason}>
      {WORDS[state]}
    </span>
  );
}
