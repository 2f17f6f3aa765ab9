import { type ChartArrow, type ChartModel, nodeIndexesByPath } from "./chart-model.ts";

/**
 * The path of a run through its graph: for each superstep, the paths of the nodes in it. `__start__` and `__end__` are
 * nodes too.
 */
export type TakenPath = readonly (readonly string[])[];

/** A chart, with the indexes in `chart.arrows` of the arrows that runs have taken. */
export interface ChartWithTakenTransitions {
  readonly chart: ChartModel;
  readonly taken: ReadonlySet<number>;
  /**
   * The indexes of the states that a run has left. Their arrows that are not in `taken` were not taken, although they
   * could have been.
   */
  readonly left: ReadonlySet<number>;
}

/**
 * Finds the arrows that runs have taken. A transition that the graph does not declare is added to the chart as an
 * arrow.
 */
export function markTakenTransitions(
  chart: ChartModel,
  ways: readonly TakenPath[],
): ChartWithTakenTransitions {
  const indexes = nodeIndexesByPath(chart);
  const arrows: ChartArrow[] = [...chart.arrows];
  const taken = new Set<number>();
  const left = new Set<number>();
  const between = (from: number, to: number) =>
    arrows.findIndex((arrow) => arrow.from === from && arrow.to === to);
  const placed = (names: readonly string[]) =>
    [...new Set(names)].map((name) => indexes.get(name)).filter((index) => index !== undefined);
  for (const way of ways) {
    for (let i = 0; i + 1 < way.length; i++) {
      const [from, to] = [placed(way[i] ?? []), placed(way[i + 1] ?? [])];
      const strays: number[] = [];
      const declared = new Set<number>();
      for (const target of to) {
        const by = from.filter((source) => between(source, target) >= 0);
        for (const source of by) {
          taken.add(between(source, target));
          declared.add(source);
        }
        if (by.length === 0) strays.push(target);
      }
      for (const source of from) left.add(source);
      const undecided = from.filter((source) => !declared.has(source));
      for (const target of strays) {
        for (const source of undecided.length > 0 ? undecided : from) {
          taken.add(arrows.length);
          arrows.push({ from: source, to: target, labels: [], details: [], maybe: false });
        }
      }
    }
  }
  return { chart: arrows.length === chart.arrows.length ? chart : { ...chart, arrows }, taken, left };
}

/** Returns a text that identifies the arrows that `chart` has in addition to `declared`; empty if there are none. */
export const addedArrowsKey = (chart: ChartModel, declared: ChartModel): string =>
  chart.arrows
    .slice(declared.arrows.length)
    .map(({ from, to }) => `${from}>${to}`)
    .join(" ");
