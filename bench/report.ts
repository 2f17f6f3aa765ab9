import type { Machine } from "./machine.ts";
import { figures, type Figure, type Figures, type Row } from "./rows/row.ts";
import { spread, type Spread, type Summary } from "./stats.ts";

export interface RowReport {
  readonly name: string;
  readonly what: string;
  readonly target?: string;
  readonly figures: { readonly [figure in Figure]?: Spread };
  /** This row's figure divided by the control's, by `control figure`. */
  readonly ratios: { readonly [name: string]: Spread };
  /** Why there are no figures. */
  readonly failure?: string;
}

export interface Report {
  readonly machine: Machine;
  /** Before the first row and after the last: a neighbour's load shows here. */
  readonly fdatasync_ms: readonly [before: Summary, after: Summary];
  readonly rounds: number;
  readonly scale: number;
  readonly rows: readonly RowReport[];
  /** The rows that the official JavaScript server took too. */
  readonly peer: readonly PeerReport[];
}

export interface PeerReport {
  readonly name: string;
  readonly figures: readonly {
    readonly figure: Figure;
    readonly heddle: Spread;
    readonly peer: Spread;
    /** Heddle's figure divided by the peer's. */
    readonly ratio: Spread;
  }[];
  readonly failure?: string;
}

/** What is told of the peer, where the row has it. */
const COMPARED = [
  "per_s",
  "p50_ms",
  "p99_ms",
  "first_p50_ms",
  "cpu_us",
  "ok_p99_ms",
  "cpu_100",
  "cpu_500",
  "select_us",
  "lost",
  "stuck",
] as const satisfies Figure[];

/** A row of Heddle beside the same row of the peer. The peer may have had fewer rounds. */
export function reportPeer(
  row: Row,
  ours: readonly Figures[],
  theirs: readonly Figures[],
  failure: string | undefined,
): PeerReport {
  const told = COMPARED.flatMap((figure) => {
    const pairs = theirs.flatMap((round, i) => {
      const a = ours[i]?.[figure];
      const b = round[figure];
      return a === undefined || b === undefined ? [] : [{ a, b }];
    });
    if (pairs.length === 0) return [];
    return [
      {
        figure,
        heddle: spread(pairs.map(({ a }) => a)),
        peer: spread(pairs.map(({ b }) => b)),
        ratio: spread(pairs.map(({ a, b }) => a / b)),
      },
    ];
  });
  return { name: row.name, figures: told, ...(failure === undefined ? {} : { failure }) };
}

/** The rounds of a row as medians; ratios are taken within each round, then their median: both drift together. */
export function reportRow(
  row: Row,
  of: (name: string) => readonly Figures[],
  failure: string | undefined,
): RowReport {
  const rounds = of(row.name);
  const told: { [figure in Figure]?: Spread } = {};
  for (const figure of Object.keys(figures) as Figure[]) {
    const values = rounds.map((round) => round[figure]).filter((value) => value !== undefined);
    if (values.length > 0) told[figure] = spread(values);
  }
  const ratios: Record<string, Spread> = {};
  for (const { row: control, figure } of row.against ?? []) {
    const theirs = of(control);
    const values = rounds.flatMap((round, i) => {
      const a = round[figure];
      const b = theirs[i]?.[figure];
      return a === undefined || b === undefined ? [] : [a / b];
    });
    if (values.length > 0) ratios[`${control} ${figures[figure].title}`] = spread(values);
  }
  return {
    name: row.name,
    what: row.what,
    ...(row.target === undefined ? {} : { target: row.target }),
    figures: told,
    ratios,
    ...(failure === undefined ? {} : { failure }),
  };
}

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
] as const satisfies Figure[];

const table = (head: readonly string[], lines: readonly (readonly string[])[]) =>
  [head, head.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

export function markdown(report: Report): string {
  const { machine, fdatasync_ms: sync } = report;
  const others = Object.keys(figures).filter((f) => !(COLUMNS as readonly string[]).includes(f)) as Figure[];
  const parts = [
    `${machine.cores} cores of ${machine.processor}, ${machine.memory}, Linux ${machine.kernel}, ${machine.filesystem}, ` +
      `Node ${machine.node}; fdatasync of 4 KiB p50 ${number(sync[0].p50, 3)} / p99 ${number(sync[0].p99, 3)} ms before, ` +
      `${number(sync[1].p50, 3)} / ${number(sync[1].p99, 3)} ms after. Median of ${report.rounds} rounds, (lowest to highest)` +
      (report.scale === 1 ? "." : `; work scaled by ${report.scale}: not figures to be told.`),
    table(
      ["Row", ...COLUMNS.map((f) => figures[f].title), "against the control", "target"],
      report.rows.map((row) => [
        `\`${row.name}\``,
        ...COLUMNS.map((f) => cell(row.figures[f], figures[f].digits)),
        row.failure === undefined
          ? Object.entries(row.ratios)
              .map(([name, ratio]) => `${number(ratio.median, 2)} x ${name}`)
              .join("; ")
          : `no figures: ${row.failure.split("\n", 1)[0]}`,
        row.target ?? "",
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
    if (row.failure !== undefined) return [[`\`${row.name}\``, `no figures: ${row.failure}`, "", "", ""]];
    return row.figures.map(({ figure, heddle, peer, ratio }) => [
      `\`${row.name}\``,
      figures[figure].title,
      cell(heddle, figures[figure].digits),
      cell(peer, figures[figure].digits),
      number(ratio.median, ratio.median < 0.1 ? 4 : 2),
    ]);
  });
  if (compared.length > 0) parts.push(table(["Row", "figure", "Heddle", "peer", "Heddle : peer"], compared));
  parts.push(report.rows.map((row) => `- \`${row.name}\`: ${row.what}`).join("\n"));
  return `${parts.join("\n\n")}\n`;
}
