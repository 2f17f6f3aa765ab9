import { isTargetMet, type PeerReport, type Report, type RowReport } from "./report.ts";
import { figures, type Figure } from "./rows/row.ts";
import type { Spread } from "./stats.ts";

function number(value: number, digits: number): string {
  if (!Number.isFinite(value)) return "-";
  return digits === 0 ? Math.round(value).toLocaleString("en-US") : value.toFixed(digits);
}

function cell(value: Spread | undefined, digits: number): string {
  if (value === undefined) return "";
  const median = number(value.median, digits);
  if (value.low === value.high) return median;
  return `${median} (${number(value.low, digits)} to ${number(value.high, digits)})`;
}

const COLUMNS = [
  "per_s",
  "p50_ms",
  "p99_ms",
  "cpu_us",
  "load_us",
  "synced",
  "ok_p99_ms",
  "stolen",
  "memory_ns",
] as const satisfies Figure[];

/** The figures of the peer that are printed in the row's line of the main table. A separate table has the others. */
const PEER_FIGURES: ReadonlySet<Figure> = new Set([
  "per_s",
  "p50_ms",
  "first_p50_ms",
  "cpu_us",
  "cpu_100",
  "select_us",
  "lost",
  "stuck",
]);

/** Heddle's figures divided by the peer's, each with the peer's figure and the target ratio in brackets. */
function peerCell(peer: PeerReport | undefined): string {
  if (peer === undefined) return "";
  if (peer.failure !== undefined) return "no figures";
  return peer.figures
    .filter(({ figure, ratio }) => PEER_FIGURES.has(figure) || ratio.asked !== undefined)
    .map(({ figure, ratio, peer: theirs }) => {
      const { title, digits } = figures[figure];
      const wanted = ratio.asked === undefined ? "" : `; asked: ${quotient(ratio.asked)} x`;
      return `${quotient(ratio.median)} x ${title} (${number(theirs.median, digits)}${wanted})`;
    })
    .join("; ");
}

/** The figures of the other Node version that are printed in the row's line of the main table. */
const OTHER_NODE_FIGURES: ReadonlySet<Figure> = new Set(["per_s", "p50_ms", "first_p50_ms", "cpu_us"]);

/** Heddle's figures on the other Node version, each with its ratio to the figure on the Node that runs the bench. */
function otherNodeCell(row: PeerReport | undefined): string {
  if (row === undefined) return "";
  if (row.failure !== undefined) return "no figures";
  return row.figures
    .filter(({ figure }) => OTHER_NODE_FIGURES.has(figure))
    .map(({ figure, peer, ratio }) => {
      const { title, digits } = figures[figure];
      return `${number(peer.median, digits)} ${title} (${quotient(1 / ratio.median)} x)`;
    })
    .join("; ");
}

/** Heddle's figures divided by those of the controls, each with its target ratio. */
function controlsCell({ ratios }: RowReport): string {
  return Object.entries(ratios)
    .map(([name, { median, asked }]) => {
      const wanted = asked === undefined ? "" : ` (asked: ${number(asked, 2)} x)`;
      return `${number(median, 2)} x ${name}${wanted}`;
    })
    .join("; ");
}

const verdict = (missed: readonly string[]) => (missed.length === 0 ? "yes" : `no: ${missed.join(", ")}`);

/**
 * Whether the ratios to controls and to the peer reach their targets. Unlike absolute figures, ratios hardly depend on
 * the speed of the machine.
 */
function metAsRatios({ ratios }: RowReport, peer: PeerReport | undefined): string {
  const controls = Object.entries(ratios).map(([name, ratio]) => ({ name, ratio }));
  const peers = (peer?.figures ?? []).map(({ figure, ratio }) => ({
    name: `peer ${figures[figure].title}`,
    ratio,
  }));
  const all = [...controls, ...peers].filter(({ ratio }) => ratio.asked !== undefined);
  if (all.length === 0) return "";
  return verdict(all.filter(({ ratio }) => !isTargetMet(ratio)).map(({ name }) => name));
}

const quotient = (value: number) => number(value, value > 0 && value < 0.1 ? 4 : 2);

const table = (head: readonly string[], lines: readonly (readonly string[])[]) =>
  [head, head.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

export function markdown(report: Report): string {
  const { machine, fdatasync_ms: sync } = report;
  const others = Object.keys(figures).filter((f) => !(COLUMNS as readonly string[]).includes(f)) as Figure[];
  const onOther = new Map(report.on_other_node.map((row) => [row.name, row]));
  const peers = new Map(report.peer.map((row) => [row.name, row]));
  const parts = [
    `${machine.cores} cores of ${machine.processor}, ${machine.memory}, Linux ${machine.kernel}, ${machine.filesystem}, ` +
      `Node ${machine.node}; fdatasync of 4 KiB p50 ${number(sync[0].p50, 3)} / p99 ${number(sync[0].p99, 3)} ms before, ` +
      `${number(sync[1].p50, 3)} / ${number(sync[1].p99, 3)} ms after. Median of ${report.rounds} rounds, (lowest to highest)` +
      (report.scale === 1 ? "." : `; work scaled by ${report.scale}: not figures to be told.`),
    table(
      [
        "Row",
        ...COLUMNS.map((f) => figures[f].title),
        "against the control",
        "against the peer",
        ...(report.other_node === undefined ? [] : [`on Node ${report.other_node}`]),
        "target",
        "met",
        "met as ratios",
      ],
      report.rows.map((row) => [
        `\`${row.name}\``,
        ...COLUMNS.map((f) => cell(row.figures[f], figures[f].digits)),
        row.failure === undefined ? controlsCell(row) : `no figures: ${row.failure.split("\n", 1)[0]}`,
        peerCell(peers.get(row.name)),
        ...(report.other_node === undefined ? [] : [otherNodeCell(onOther.get(row.name))]),
        row.target ?? "",
        row.missed === undefined ? "" : verdict(row.missed),
        metAsRatios(row, peers.get(row.name)),
      ]),
    ),
  ];
  const further = report.rows.flatMap((row) =>
    others.flatMap((f) => {
      const value = row.figures[f];
      return value === undefined
        ? []
        : [[`\`${row.name}\``, figures[f].title, cell(value, figures[f].digits)]];
    }),
  );
  if (further.length > 0) parts.push(table(["Row", "figure", "value"], further));
  const compared = report.peer.flatMap((row) => {
    if (row.failure !== undefined) return [[`\`${row.name}\``, `no figures: ${row.failure}`, "", "", "", ""]];
    return row.figures.map(({ figure, heddle, peer, ratio }) => [
      `\`${row.name}\``,
      figures[figure].title,
      cell(heddle, figures[figure].digits),
      cell(peer, figures[figure].digits),
      quotient(ratio.median),
      ratio.asked === undefined ? "" : quotient(ratio.asked),
    ]);
  });
  if (compared.length > 0)
    parts.push(table(["Row", "figure", "Heddle", "peer", "Heddle : peer", "asked"], compared));
  parts.push(report.rows.map((row) => `- \`${row.name}\`: ${row.what}`).join("\n"));
  return `${parts.join("\n\n")}\n`;
}
