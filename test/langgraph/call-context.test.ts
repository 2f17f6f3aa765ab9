import { expect, test } from "vitest";
import {
  type CallReceiver,
  type InterceptedCall,
  NodeCallContext,
} from "../../src/langgraph/intercepted-call.ts";

/** Runs each call at once, and records its name and the task that made it. */
function receiver(noted: unknown[]): CallReceiver {
  return {
    called(call: InterceptedCall) {
      noted.push([call.name, call.within]);
      void call.start({ signal: undefined, places: undefined });
    },
  };
}

const callOf = (name: string, run: () => Promise<unknown>) => ({
  name,
  config: { metadata: { langgraph_checkpoint_ns: `${name}:task-${name}` } },
  run,
});

test("each engine gets the calls of its own nodes, also where its run was started by a node of another engine", async () => {
  const [first, second] = [new NodeCallContext(), new NodeCallContext()];
  const ofFirst: unknown[] = [];
  const ofSecond: unknown[] = [];
  const nothing = async () => undefined;
  const calls = (context: NodeCallContext, name: string, run: () => Promise<unknown> = nothing) =>
    context.intercept(callOf(name, run) as never);

  // Outside of a run, a node is called without interception.
  await calls(first, "alone");
  await first.run(receiver(ofFirst), async () => {
    await calls(second, "foreign");
    await calls(first, "a", async () => {
      await calls(first, "b");
      await second.run(receiver(ofSecond), async () => {
        await calls(second, "c", () => calls(second, "d"));
        await calls(first, "e");
        await second.run(receiver(ofSecond), () => calls(first, "f"));
      });
      await calls(second, "foreign");
    });
  });
  expect(ofFirst).toEqual([
    ["a", null],
    ["b", "task-a"],
    ["e", "task-a"],
    ["f", "task-a"],
  ]);
  expect(ofSecond).toEqual([
    ["c", null],
    ["d", "task-c"],
  ]);
});
