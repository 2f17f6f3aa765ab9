/** The path, line and column of a frame of a stack. */
const LOCATION = /(?:file:\/\/)?([^\s()]+:\d+:\d+)(?=\)?$)/;
/** The number of path segments that are shown, counted from the end of the path. */
const SHOWN_PARTS = 3;

const isFrame = (line: string): boolean => /^\s+at /.test(line);
const isLibrary = (line: string): boolean =>
  /node_modules\/|\(?node:|<anonymous>\)?$|\(index \d+\)$/.test(line);

/** Shortens the path of a frame from the left, so that its line number is in sight. */
function shortFrame(line: string): string {
  return line.trim().replace(LOCATION, (_, path: string) => {
    const parts = path.split("/");
    return parts.length > SHOWN_PARTS ? `…/${parts.slice(-SHOWN_PARTS).join("/")}` : path;
  });
}

/** Shows where an error was thrown: the frames in the project's own files. Frames in libraries and Node are folded. */
export function ErrorStack({ stack }: { readonly stack: string }) {
  const lines = stack.split("\n");
  const hidden = lines.filter((line) => isFrame(line) && isLibrary(line)).length;
  const hasOwn = lines.some((line) => isFrame(line) && !isLibrary(line));
  return (
    <div class="stack" aria-label="Where it failed" role="group">
      <pre tabIndex={0}>
        {lines
          .filter((line) => !isFrame(line) || !isLibrary(line))
          .map((line, i) =>
            isFrame(line) ? (
              <strong key={i} title={line.trim()}>
                {`  ${shortFrame(line)}\n`}
              </strong>
            ) : (
              `${line}\n`
            ),
          )}
      </pre>
      {hidden > 0 && (
        <details open={!hasOwn}>
          <summary>Full stack trace ({hidden} library and Node frames)</summary>
          <pre tabIndex={0}>{stack}</pre>
        </details>
      )}
    </div>
  );
}
