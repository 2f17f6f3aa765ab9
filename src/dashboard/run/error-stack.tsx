/** Matches the path, line and column in a frame of a stack trace. */
const LOCATION = /(?:file:\/\/)?([^\s()]+:\d+:\d+)(?=\)?$)/;
/** The number of segments at the end of a path that are shown. */
const MAX_PATH_SEGMENTS = 3;

const isFrame = (line: string): boolean => /^\s+at /.test(line);
const isLibrary = (line: string): boolean =>
  /node_modules\/|\(?node:|<anonymous>\)?$|\(index \d+\)$/.test(line);

/** Shortens the path in a frame at its beginning, so that the line number can be seen. */
function shortFrame(line: string): string {
  return line.trim().replace(LOCATION, (_, path: string) => {
    const parts = path.split("/");
    return parts.length > MAX_PATH_SEGMENTS ? `…/${parts.slice(-MAX_PATH_SEGMENTS).join("/")}` : path;
  });
}

/** Shows a stack trace, with only the frames in the project's own files. The complete trace can be opened. */
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
