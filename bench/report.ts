import type { Machine } from "./machine.ts";
import { figures, type Figure, type Figures, type Goal, type Row } from "./rows/row.ts";
import { spread, type Spread, type Summary } from "./stats.ts";

export interface RowReport {
  readonly name: string;
  readonly what: string;
  readonly target?: string;
  readonly figures: { readonly [figure in Figure]?: Spread };
  /**
   * This row's figures divided by the control's. The keys are the control's name and the figure's title, separated by
   * a space.
   */
  readonly ratios: { readonly [name: string]: Ratio };
  /** The titles of the goals that the medians do not reach. Absent if the row has no goals or no figures. */
  readonly missed?: readonly string[];
  /** Why the row could not be measured; absent if it could. */
  readonly failure?: string;
}

export interface Ratio extends Spread {
  readonly figure: Figure;
  /**
   * The target: Heddle's goal divided by the other server's figure, taken when the target was set. Absent if there is
   * none.
   */
  readonly asked?: number;
}

export interface Report {
  readonly machine: Machine;
  /**
   * Milliseconds of an fdatasync before the first row and after the last one. A difference shows that neighbours used
   * the disk.
   */
  readonly fdatasync_ms: readonly [before: Summary, after: Summary];
  readonly rounds: number;
  readonly scale: number;
  readonly rows: readonly RowReport[];
  /** Heddle's rows compared with the official JavaScript server, if that was measured. */
  readonly peer: readonly PeerReport[];
  /** The version of the other Node, on which Heddle was measured in the same rounds. */
  readonly other_node?: string;
  /** Heddle's rows on this Node (`heddle`) compared with the other Node (`peer`). */
  readonly on_other_node: readonly PeerReport[];
}

export interface PeerReport {
  readonly name: string;
  readonly figures: readonly {
    readonly figure: Figure;
    readonly heddle: Spread;
    readonly peer: Spread;
    /** Heddle's figure divided by the peer's. */
    readonly ratio: Ratio;
  }[];
  readonly failure?: string;
}

/** The figures that are compared with the peer's, if both have them. */
const COMPARED = [
  "per_s",
  "p50_ms",
  "p99_ms",
  "first_p50_ms",
  "cpu_us",
  "ok_p99_ms",
  "cpu_100",
  "select_us",
  "lost",
  "stuck",
] as const satisfies Figure[];

/**
 * The median and spread of ratios, with their target. `theirs`: the figure of the control or peer when the target was
 * set; without it, there is no target.
 */
function ratioOf(
  { goals = [] }: Row,
  figure: Figure,
  theirs: number | undefined,
  values: readonly number[],
): Ratio {
  const goal = goals.find((one) => one.figure === figure && one.to === undefined);
  const ours = goal?.least ?? goal?.most;
  const asked = theirs === undefined || ours === undefined ? {} : { asked: ours / theirs };
  return { ...spread(values), figure, ...asked };
}

/** Whether a ratio reaches its target; undefined if the ratio has no target. */
export function isTargetMet({ figure, median, asked }: Ratio): boolean | undefined {
  if (asked === undefined) return undefined;
  return figure === "per_s" ? median >= asked : median <= asked;
}

/** Compares a row of Heddle with the same row of the peer, round by round. The peer may have fewer rounds. */
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
    const ratios = pairs.map(({ a, b }) => a / b);
    return [
      {
        figure,
        heddle: spread(pairs.map(({ a }) => a)),
        peer: spread(pairs.map(({ b }) => b)),
        ratio: ratioOf(row, figure, row.peer?.there?.[figure], ratios),
      },
    ];
  });
  return { name: row.name, figures: told, ...(failure === undefined ? {} : { failure }) };
}

/** A goal that is added to each row that has other goals, if `/ok` was requested during the row. */
const OK_LATENCY_GOAL: Goal = { figure: "ok_p99_ms", most: 50 };

const ratioName = (control: string, figure: Figure) => `${control} ${figures[figure].title}`;

/** Returns the title of a goal that the row does not reach, or an empty list if the row reaches it. */
function missedGoal(
  { figure, to, most = Number.POSITIVE_INFINITY, least = Number.NEGATIVE_INFINITY }: Goal,
  told: RowReport["figures"],
  ratios: RowReport["ratios"],
): string[] {
  const name = to === undefined ? figures[figure].title : `x ${ratioName(to, figure)}`;
  const value = (to === undefined ? told[figure] : ratios[name.slice(2)])?.median ?? Number.NaN;
  return value >= least && value <= most ? [] : [name];
}

/**
 * Summarises the rounds of a row as medians. Each ratio is computed within a round before the median is taken, because
 * a change of the machine's speed affects both figures of the same round.
 */
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
  const ratios: Record<string, Ratio> = {};
  for (const { row: control, figure, there } of row.against ?? []) {
    const theirs = of(control);
    const values = rounds.flatMap((round, i) => {
      const a = round[figure];
      const b = theirs[i]?.[figure];
      return a === undefined || b === undefined ? [] : [a / b];
    });
    if (values.length > 0) ratios[ratioName(control, figure)] = ratioOf(row, figure, there, values);
  }
  const goals = row.goals && [...row.goals, ...(told.ok_p99_ms === undefined ? [] : [OK_LATENCY_GOAL])];
  const missed = rounds.length === 0 ? undefined : goals?.flatMap((goal) => missedGoal(goal, told, ratios));
  return {
    name: row.name,
    what: row.what,
    ...(row.target === undefined ? {} : { target: row.target }),
    figures: told,
    ratios,
    ...(missed === undefined ? {} : { missed }),
    ...(failure === undefined ? {} : { failure }),
  };
}
