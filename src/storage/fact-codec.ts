import type { Fact } from "../model/run-event.ts";
import { json } from "../model/json-text.ts";
import { seal } from "./envelope.ts";

/** Custom events of one namespace that follow one another: the JSON text of their data, a line for each. */
interface Lines {
  readonly t: "lines";
  readonly ns: string;
  readonly text: string;
}

/** A custom event as format 3 has it. */
interface Older {
  readonly t: "custom";
  readonly ns: string;
  readonly data: unknown;
}

/** What most runs' logs begin with, sealed once: an attempt, the first, has started. */
const START = { t: "start", attempt: 1 } as const satisfies Fact;
const FIRST_START: Buffer = seal([START]);

/** The facts of a chunk as they are stored. */
export function sealFacts(facts: readonly Fact[]): Buffer {
  const [first] = facts;
  const isStart = facts.length === 1 && first?.t === "start" && first.attempt === START.attempt;
  return isStart ? FIRST_START : seal(folded(facts));
}

/** A burst of events becomes one string: packed one by one, they cost a quarter of all that it costs to send them. */
function folded(facts: readonly Fact[]): readonly (Fact | Lines)[] {
  const stored: (Fact | Lines)[] = [];
  for (let i = 0; i < facts.length; i++) {
    const fact = facts[i] as Fact;
    if (fact.t !== "custom") {
      stored.push(fact);
      continue;
    }
    const { ns } = fact;
    const lines = [fact.json];
    for (let next = facts[i + 1]; next?.t === "custom" && next.ns === ns; next = facts[i + 1]) {
      lines.push(next.json);
      i++;
    }
    stored.push({ t: "lines", ns, text: lines.join("\n") });
  }
  return stored;
}

/** The facts that {@link sealFacts} was given, by what its bytes hold. */
export function factsOf(stored: unknown): Fact[] {
  const facts: Fact[] = [];
  for (const one of stored as readonly (Fact | Lines | Older)[]) {
    if (one.t === "lines") {
      for (const line of one.text.split("\n")) facts.push({ t: "custom", ns: one.ns, json: line });
    } else if (one.t === "custom" && "data" in one) {
      facts.push({ t: "custom", ns: one.ns, json: json(one.data) });
    } else facts.push(one as Fact);
  }
  return facts;
}
