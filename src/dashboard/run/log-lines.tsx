import type { LogLine } from "../live/trace.ts";
import { CopyButton } from "../components/copy-button.tsx";
import { JsonTree } from "../components/json-tree.tsx";
import { ErrorStack } from "./error-stack.tsx";
import { formatDuration } from "../components/duration.ts";

interface LogLinesProps {
  readonly lines: readonly LogLine[];
  /**
   * When the task began, in epoch milliseconds. The times of the lines are shown relative to it. If null, no times are
   * shown.
   */
  readonly begunAt: number | null;
}

/** The log lines of a task, and the stack trace of its error. */
export function LogLines({ lines, begunAt }: LogLinesProps) {
  return (
    <section aria-label="Log">
      <h4>
        Log <CopyButton text={() => lines.map(textOf).join("\n")} label="log" />
      </h4>
      <ol class="log">
        {lines.map((line, i) => (
          <li key={i} class={line.level}>
            <time class="dim" dateTime={line.timestamp} title={new Date(line.timestamp).toLocaleString()}>
              {begunAt === null
                ? ""
                : `+${formatDuration(Math.max(0, Date.parse(line.timestamp) - begunAt))}`}
            </time>
            <span class="level">{line.level}</span>
            <span class="what">{line.message}</span>
            {line.fields !== undefined && <JsonTree value={line.fields} open={0} />}
            {line.stack !== undefined && <ErrorStack stack={line.stack} />}
          </li>
        ))}
      </ol>
    </section>
  );
}

const textOf = ({ timestamp, level, message, fields, stack }: LogLine): string =>
  [timestamp, level, message, fields === undefined ? "" : JSON.stringify(fields), stack ?? ""]
    .filter((part) => part !== "")
    .join(" ");
