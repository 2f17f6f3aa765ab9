import { useState } from "preact/hooks";
import { createRun, getThread } from "../api/client.ts";
import type { Run } from "../api/records.ts";
import { navigate } from "../app/page-location.ts";
import { showNotice } from "../app/notices.ts";
import { useOneAtATime } from "../components/use-one-at-a-time.ts";
import { createdRunNotice } from "../live/repeat-obstacle.ts";
import type { TraceCheckpoint } from "../live/trace.ts";
import { type StateFormChange, StateForm, storeStateChange } from "../threads/state-editor.tsx";
import type { ReplayOrigin } from "./timeline-rows.ts";

interface ReplayProps {
  readonly run: Run;
  /** The checkpoint from which the superstep starts. */
  readonly from: TraceCheckpoint;
  /** The number of the superstep, as shown to the user ({@link createStepNumbering}). */
  readonly number: number;
}

/**
 * A button with a dialog, which runs a superstep and all later ones again on a new branch, from the original or a
 * changed state.
 */
export function ReplayForm({ run, from, number }: ReplayProps) {
  const [isOpen, setOpen] = useState(false);
  const { thread_id: thread, assistant_id } = run;
  const replay = useOneAtATime(async (change: StateFormChange): Promise<void> => {
    const isSame = Object.keys(change.update).length === 0 && change.asNode === "";
    const checkpoint_id = isSame ? from.checkpoint : await storeStateChange(thread, from.checkpoint, change);
    const metadata = { replay: { run: run.run_id, step: number } satisfies ReplayOrigin };
    const request = { assistant_id, input: null, checkpoint_id, metadata };
    const { status } = await getThread(thread);
    const { run_id } = await createRun(thread, { ...request, multitask_strategy: "enqueue" });
    showNotice(createdRunNotice(status === "busy", "replay"));
    setOpen(false);
    navigate(["threads", thread, "runs", run_id]);
  });
  return (
    <p>
      <button
        type="button"
        title="Replays this superstep and all later ones on a new branch. You can change the starting state."
        onClick={() => setOpen(true)}
      >
        Replay from here…
      </button>
      {isOpen && (
        <StateForm
          title={`Replay from superstep ${number}: ${from.next.join(", ")}`}
          hint="The superstep starts from this state; change it or leave it unchanged. The thread continues on a new branch and keeps the previous one."
          values={from.values}
          checkpoint={from.checkpoint}
          assistant={assistant_id}
          submit="Replay"
          onSubmit={replay}
          onClose={() => setOpen(false)}
        />
      )}
    </p>
  );
}
