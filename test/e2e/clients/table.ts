import { describe, expect, test } from "vitest";
import type { AppOptions } from "../../../src/app.ts";
import { type Client, lines } from "../support/clients.ts";
import { serve } from "../support/server.ts";
import { methodsOf, recorded } from "./recorder.ts";

/** A client of the SDK version under test, and the real server that it is connected to. */
export interface Asked {
  readonly client: Client;
  readonly url: string;
}

/** What a call does, as a sentence and a test. The test fails if it never makes that call. */
export type Proof = readonly [says: string, shows: (asked: Asked) => Promise<void>];

/** A call that no route serves, and why. It is made nevertheless, so that the row fails once it is served. */
export interface Unserved {
  readonly unserved: string;
  readonly ask: (asked: Asked) => Promise<unknown>;
}

/** Each call of one part of the client, with the test that makes it. */
export type Table = Readonly<Record<string, Proof | Unserved>>;

const isProof = (row: Proof | Unserved): row is Proof => !("unserved" in row);

const refused = ({ unserved, ask }: Unserved): Proof => [
  `is not served: ${unserved}`,
  async (asked) => {
    await expect(ask(asked)).rejects.toMatchObject({ status: 404 });
  },
];

/** Nothing listens here: the calls of this client are only listed, none is made. */
const NOWHERE = "http://127.0.0.1:1";

/** Runs the table over both SDK versions, and fails with the calls that the table lacks. */
export function proves(part: string, table: Table, options: () => AppOptions = () => ({})): void {
  describe.each(lines)(`client.${part} of %s`, (_, connect) => {
    const methods = methodsOf(connect(NOWHERE), part);

    test("has a test for each of its calls", () => {
      expect(methods.length).toBeGreaterThan(0);
      expect(methods.filter((method) => !Object.hasOwn(table, method))).toEqual([]);
    });

    for (const method of methods.filter((name) => Object.hasOwn(table, name))) {
      const row = table[method] as Proof | Unserved;
      const [says, shows] = isProof(row) ? row : refused(row);
      test(`${method} ${says}`, async () => {
        const { url } = await serve(options());
        const { client, called } = recorded(connect(url));
        await shows({ client, url });
        expect(called.has(`${part}.${method}`)).toBe(isProof(row));
      });
    }
  });

  test(`client.${part}: the table names no call that neither line has`, () => {
    const known = new Set(lines.flatMap(([, connect]) => methodsOf(connect(NOWHERE), part)));
    expect(Object.keys(table).filter((method) => !known.has(method))).toEqual([]);
  });
}
