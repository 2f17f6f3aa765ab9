/**
 * `npm run fuzz -- [--requests N] [--seed S] [--transport uws|node] [--path P]`: sends unusual requests, generated from
 * the server's own OpenAPI document, over both transports or the named one. Exits with 1 if an answer is wrong, and
 * prints the shortest sequence of requests that leads to it, with the seed and the path that replay it.
 */
import { numberOf, readOptions } from "../../bench/options.ts";
import { fuzzServer } from "./fuzz.ts";

const values = readOptions({
  requests: { type: "string", default: "10000" },
  seed: { type: "string" },
  transport: { type: "string" },
  path: { type: "string" },
});
const requests = numberOf("requests", values.requests, { least: 1 });
const seed =
  values.seed === undefined
    ? Math.floor(Math.random() * 2 ** 31)
    : numberOf("seed", values.seed, { least: 0 });
let failed = false;
for (const transport of ["uws", "node"] as const) {
  if (values.transport !== undefined && values.transport !== transport) continue;
  const began = performance.now();
  let told = 0;
  const { sent, statuses, finding } = await fuzzServer({
    requests,
    seed,
    transport,
    ...(values.path !== undefined && { path: values.path }),
    progress(sent) {
      if (sent < told + 1_000) return;
      told = sent;
      process.stderr.write(`${transport}: ${sent} requests\n`);
    },
    found: (finding) => process.stderr.write(`${transport}, seed ${seed}: ${finding}\nshrinking ...\n`),
  });
  const counts = [...statuses].toSorted(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`);
  process.stdout.write(
    `${transport}, seed ${seed}: ${sent} requests in ${Math.round((performance.now() - began) / 1000)} s, ` +
      `${finding === undefined ? 0 : 1} findings (${counts.join(", ")}; 0: left before its end)\n`,
  );
  if (finding !== undefined) process.stdout.write(`${finding}\n`);
  failed ||= finding !== undefined;
}
process.exit(failed ? 1 : 0);
