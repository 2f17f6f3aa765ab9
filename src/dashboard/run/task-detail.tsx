import { TASK_STATUS_TEXTS } from "../live/status-texts.ts";
import type { Task, Trace } from "../live/trace.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { JsonDiff } from "../components/json-diff.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { formatDuration } from "../components/duration.ts";
import { StatusBadge } from "../components/status-badge.tsx";
import type { Run } from "../api/records.ts";
import { ReplayForm } from "./replay-form.tsx";
import { LogLines } from "./log-lines.tsx";
import { retriesText } from "./run-totals.tsx";

interface DetailProps {
  readonly trace: Trace;
  readonly run: Run;
  /** The task to show; null to show the whole superstep. */
  readonly task: Task | null;
  /** The number of the superstep in the API. */
  readonly step: number;
  readonly numberOf: (step: number) => number;
  readonly onClose: () => void;
}

/** The input and output of a task, or what a superstep changed. */
export function TaskDetail({ trace, run, task, step, numberOf, onClose }: DetailProps) {
  // A subgraph counts its own supersteps, whose numbers are not converted.
  const number = task === null || task.ns === "" ? numberOf(step) : step;
  const states = trace.stepsOf(task?.ns ?? "");
  const from = states.findLast((state) => state.step < step);
  const before = from?.values;
  const after = states.find((state) => state.step === step)?.values;
  const messages = (task?.messages ?? [])
    .map((id) => trace.messages.get(id))
    .filter((one) => one !== undefined);
  return (
    <aside class="detail" aria-label={task === null ? `Superstep ${number}` : `Task ${task.name}`}>
      <div class="bar">
        <h3 class="space">
          {task === null ? `Superstep ${number}` : task.name}{" "}
          {task !== null && <StatusBadge of={task.status} words={TASK_STATUS_TEXTS[task.status]} />}
        </h3>
        <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </div>
      {from !== undefined && from.ns === "" && <ReplayForm run={run} from={from} number={number} />}
      {task === null && number !== step && (
        <p class="dim">API step number: {step} (counts all runs and state updates of the thread).</p>
      )}
      {task !== null && (
        <>
          <p class="dim">
            superstep {number}
            {task.begunAt !== null &&
              task.endedAt !== null &&
              ` · ${formatDuration(task.endedAt - task.begunAt)}`}
            {task.tries > 1 && ` · ${retriesText(task)}`}
            {task.ns !== "" && ` · in ${task.ns.replaceAll(/:[^|]+/g, "").replaceAll("|", " › ")}`}
          </p>
          {task.error !== null && (
            <p class="failure" role="alert">
              {task.error}
            </p>
          )}
          {task.error !== null && task.lines.every(({ stack }) => stack === undefined) && (
            <p class="hint">
              See the server log for the stack trace. Set <code>streams.stacks</code> to show it here.
            </p>
          )}
          {task.lines.length > 0 && <LogLines lines={task.lines} begunAt={task.begunAt} />}
          {task.interrupts.length > 0 && (
            <Part title="Question" value={task.interrupts.map(({ value }) => value)} />
          )}
          {messages.length > 0 && (
            <section>
              <h4>
                Messages <CopyButton text={messages.map(({ text }) => text).join("\n")} label="messages" />
              </h4>
              {messages.map((message) => (
                <div class="text tokens" key={message.id}>
                  {message.type === "tool" && <span class="dim">Result of the tool {message.name}: </span>}
                  {message.text}
                  {message.calls.map((call) => (
                    <code key={call.id}>
                      {call.name}({call.args})
                    </code>
                  ))}
                  {task.status === "running" && <span class="cursor" aria-hidden="true" />}
                </div>
              ))}
            </section>
          )}
          <Part title="Output" value={task.status === "done" ? task.result : undefined} />
        </>
      )}
      <section>
        <h4>State changes of the superstep</h4>
        {after === undefined ? (
          <p class="dim">The superstep has not stored a checkpoint.</p>
        ) : (
          <JsonDiff before={before ?? {}} after={after} />
        )}
      </section>
      {task !== null && <Part title="Input" value={task.input} />}
      {task === null && after !== undefined && <Part title="State afterwards" value={after} />}
    </aside>
  );
}

function Part({ title, value }: { readonly title: string; readonly value: unknown }) {
  if (value === undefined) return null;
  return (
    <section>
      <h4>
        {title} <CopyButton text={() => JSON.stringify(value, null, 2)} label={title.toLowerCase()} />
      </h4>
      <JsonTree value={value} open={2} />
    </section>
  );
}
