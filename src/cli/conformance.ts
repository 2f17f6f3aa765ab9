import { chapters } from "../conformance/chapters.ts";
import { connect, loadSdk, type RecordedConnection } from "../conformance/connect-sdk.ts";
import { reportLines } from "../conformance/report.ts";
import { runChapters } from "../conformance/run-chapters.ts";
import { ServiceError } from "../model/errors.ts";
import { withAbortTimeout } from "./with-abort-timeout.ts";
import type { Invocation } from "./command-line.ts";

type Asked = Extract<Invocation, { command: "conformance" }>;

/** Milliseconds for the server's first response, for which the server may have to load its graphs. */
const ANSWER_TIMEOUT_MS = 30_000;

/**
 * Checks a server against the API of the LangGraph Platform, and prints which checks hold and which differ.
 * @param progress called with a line for each check as it ends, and with an empty line before the results
 * @param timeout milliseconds for the server's first response
 * @returns the number of checks that differ
 * @throws ServiceError `config.invalid` if a chapter is unknown or the SDK is not installed; `server.address` if no server with the graphs
 * of the conformance project responds
 */
export async function checkConformance(
  { url, key, chapters: names, json }: Asked,
  say: (line: string) => void,
  progress: (line: string) => void = () => undefined,
  timeout = ANSWER_TIMEOUT_MS,
): Promise<number> {
  const unknown = names.find((name) => !chapters.some((chapter) => chapter.name === name));
  if (unknown !== undefined) {
    const known = chapters.map(({ name }) => name).join(", ");
    throw new ServiceError("config.invalid", `There is no chapter "${unknown}"; there are: ${known}`);
  }
  const sdk = await loadSdk();
  await checkProject(connect(sdk, url, key), timeout);
  const selected = names.length === 0 ? chapters : chapters.filter(({ name }) => names.includes(name));
  const results = await runChapters(
    selected,
    () => connect(sdk, url, key),
    ({ chapter, title, holds }) => progress(`${holds ? "holds" : "differs"}: ${chapter}: ${title}`),
  );
  progress("");
  if (json) say(JSON.stringify({ url, results }, null, 2));
  else for (const line of reportLines(results)) say(line);
  return results.filter(({ holds }) => !holds).length;
}

/**
 * Checks that the server responds, and that it serves the graphs of the conformance project.
 * @throws ServiceError `server.address` if it does not
 */
async function checkProject({ http, recorded }: RecordedConnection, timeout: number): Promise<void> {
  const search = { graph_id: "steps", limit: 1 };
  const answer = await withAbortTimeout((signal) => {
    signal.addEventListener("abort", () => recorded.stop(signal.reason as Error));
    return http.send("POST", "/assistants/search", search);
  }, timeout).catch((cause: unknown) => {
    const { code } = ((cause as Error).cause ?? {}) as { readonly code?: string };
    throw new ServiceError("server.address", `No server answers: ${code ?? (cause as Error).message}`, {
      cause,
    });
  });
  if (answer.status === 200 && Array.isArray(answer.body) && answer.body.length > 0) return;
  const answered = `POST /assistants/search: ${answer.status} ${JSON.stringify(answer.body)}`;
  const hint = "serve test/conformance/langgraph.json there; --key is the server's key, if it has one";
  throw new ServiceError(
    "server.address",
    `The server does not serve the graph "steps" (${answered}): ${hint}`,
  );
}
