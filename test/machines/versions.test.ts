import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import type * as XState from "xstate";
import { directory, serve } from "../e2e/support/server.ts";

const modules = join(import.meta.dirname, "../../node_modules");

/** Writes a project that has another version of XState, and a machine. */
async function projectWith(version: string): Promise<string> {
  const home = await directory();
  await mkdir(join(home, "node_modules"));
  await symlink(join(modules, version), join(home, "node_modules/xstate"));
  await writeFile(
    join(home, "light.ts"),
    'import { createMachine } from "xstate";\n' +
      'export default createMachine({ initial: "red", states: { red: { on: { GO: "green" } }, green: {} } });\n',
  );
  const config = join(home, "heddle.json");
  await writeFile(config, JSON.stringify({ graphs: { light: "./light.ts:default" } }));
  return config;
}

test("a machine of XState 6 is refused when it is loaded, and the error says why", async () => {
  await expect(serve({ config: await projectWith("xstate-6") })).rejects.toThrow(
    /it is a machine of XState 6, and only those of XState 5 are supported: npm install xstate@5/,
  );
});

test("a machine of the oldest version that is supported is loaded", async () => {
  const { url } = await serve({ config: await projectWith("xstate-5.19") });
  const drawn = await fetch(`${url}/assistants/light/graph`);
  expect(drawn.status).toBe(200);
});

/** Names that are not of XState's interface, as the driver reads and replaces them. */
describe.each(["xstate", "xstate-5.19"])("the actors of %s", (name) => {
  test("have the inner parts that the driver needs", async () => {
    const { createActor, createMachine, fromPromise, setup } = (await import(
      /* @vite-ignore */ name
    )) as typeof XState;
    const child = createMachine({});
    const machine = setup({ actors: { child, work: fromPromise(async () => 1) } }).createMachine({
      id: "m",
      initial: "on",
      invoke: [
        { id: "child", src: "child", onSnapshot: {} },
        { id: "work", src: "work" },
      ],
      states: { on: { on: { GO: {} } } },
    });
    const created: unknown[] = [];
    const actor = createActor(machine, {
      inspect: ({ type, actorRef }) => void (type === "@xstate.actor" && created.push(actorRef)),
    });
    const scope = {
      actionExecutor: expect.any(Function) as unknown,
      defer: expect.any(Function) as unknown,
      stopChild: expect.any(Function) as unknown,
      emit: expect.any(Function) as unknown,
    };
    const snapshot = { status: "active", _nodes: [machine.root, machine.root.states["on"]] };
    expect(actor).toMatchObject({ _parent: undefined, _actorScope: scope, _snapshot: snapshot });
    const { child: inner, work } = actor.getSnapshot().children;
    expect(created).toEqual([actor, inner, work]);
    expect(inner).toMatchObject({ src: "child", _syncSnapshot: true, _actorScope: scope });
    expect(inner).toHaveProperty("_parent", actor);
    expect(work).toMatchObject({ src: "work", _snapshot: { status: "active" }, options: {} });
    expect(machine).toHaveProperty("idMap");
    expect(machine).toHaveProperty("implementations.actors.child", child);
  });
});

// The other tests of the driver, with this version in place of the installed one.
describe("with xstate-5.19:", async () => {
  vi.doMock("xstate", () => import("xstate-5.19"));
  vi.resetModules();
  await import("./scxml.test.ts");
  await import("./xstate5-driver.test.ts");
  vi.doUnmock("xstate");
  vi.resetModules();
});
