import { writeFileSync } from "node:fs";
import { loadMachineFile } from "../graph-loader/load-machine-file.ts";
import { proveClaim } from "../machines/prove-claim.ts";
import { systemScheduler } from "../platform/scheduler.ts";
import type { Invocation } from "./command-line.ts";

type Asked = Extract<Invocation, { command: "prove" }>;

const EXIT_CODES = { proved: 0, refuted: 1, undecided: 2 } as const;

/**
 * Decides a claim about a machine and prints the result. If the command names a file for a drawing, also draws the machine into it.
 * @returns the exit code
 * @throws ServiceError `config.invalid` if the machine cannot be loaded, or the claim is not understood
 */
export async function prove(
  { machine: text, claim, draw }: Asked,
  directory: string,
  say: (line: string) => void,
): Promise<number> {
  const options = { scheduler: systemScheduler };
  const { file, machine } = await loadMachineFile(text, directory, options);
  const { result, lines, chart } = proveClaim(machine, claim, [file]);
  for (const line of lines) say(line);
  if (draw !== undefined) writeFileSync(draw, chart);
  return EXIT_CODES[result];
}
