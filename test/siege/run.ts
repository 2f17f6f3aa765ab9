/**
 * `npm run siege -- [--only NAME,...] [--small] [--transport uws|node]`: two tenants use one server. One tries to stall
 * it or exhaust its memory, the other measures its waits. Exits with 1 if a limit was exceeded.
 */
import { readOptions, refuse } from "../../bench/options.ts";
import { attacks } from "./attacks/index.ts";
import { besiege, type Outcome } from "./siege.ts";

const { only, small, transport } = readOptions({
  only: { type: "string" },
  small: { type: "boolean", default: false },
  transport: { type: "string" },
});
if (transport !== undefined && transport !== "uws" && transport !== "node") {
  refuse(`--transport "${transport}" is neither uws nor node`);
}
const names = only?.split(",");
for (const name of names ?? []) {
  if (!attacks.some((attack) => attack.name === name)) {
    refuse(`there is no "${name}"; there are: ${attacks.map((attack) => attack.name).join(", ")}`);
  }
}

const outcomes: Outcome[] = [];
for (const attack of attacks) {
  if (names !== undefined && !names.includes(attack.name)) continue;
  if (small && attack.small === undefined) continue;
  process.stderr.write(`${attack.name}...\n`);
  outcomes.push(await besiege(attack, small ? "small" : "full", transport));
}

const rows = outcomes.map(({ name, sent, waited, wait, grown, memory, breaches }) => [
  name,
  `${waited} ms (${wait})`,
  `${grown} MiB (${memory})`,
  breaches.length === 0 ? "holds" : "BREACHED",
  sent,
]);
const table = [["", "waited (bound)", "memory (bound)", "", "sent"], ...rows];
const widths = table[0]?.map((_, i) => Math.max(...table.map((row) => row[i]?.length ?? 0))) ?? [];
for (const row of table) {
  process.stdout.write(
    `${row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd()}\n`,
  );
}
for (const { name, breaches } of outcomes) {
  for (const breach of breaches) process.stdout.write(`\n${name}: ${breach}\n`);
}
process.exit(outcomes.some(({ breaches }) => breaches.length > 0) ? 1 : 0);
