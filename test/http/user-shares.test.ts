import { expect, test } from "vitest";
import { createListSender } from "../../src/http/json-responses.ts";
import { RouteCall } from "../../src/http/route-call.ts";
import type { AuthUser } from "../../src/model/auth-user.ts";
import { ResponseMemoryBudget } from "../../src/stream/response-memory-budget.ts";
import { TimeBudget } from "../../src/ports/time-budget.ts";
import type { Service } from "../../src/service/service.ts";
import { Answer, THREAD, Timers } from "./support.ts";

const BIG = "x".repeat(1024 * 1024);

/** A response whose client reads nothing. */
class StalledAnswer extends Answer {
  override write(piece: Uint8Array | string): boolean {
    super.write(piece);
    return false;
  }
}

const user = (identity: string): AuthUser => ({
  identity,
  permissions: [],
  display_name: identity,
  is_authenticated: true,
});

test("a user who takes nothing of large responses holds up no other user of the same tenant", async () => {
  const timers = new Timers();
  const budget = new TimeBudget({ now: () => 0, mono: () => 0 }, timers);
  const memory = new ResponseMemoryBudget(timers, { tenant: BIG.length });
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const send = createListSender({ budget, memory, logger });
  const ask = (identity: string, answer: Answer) => {
    const path = `/threads/${THREAD}/history`;
    const request = { method: "GET", path, query: "" } as never;
    const client = {
      tenant: "default",
      user: user(identity),
      service: {} as Service,
      isKnown: true,
      id: "1",
      headers: {},
    };
    const call = new RouteCall(request, answer, client, [], [], budget);
    void send(call, [{ text: BIG }, { text: BIG }]);
    return answer;
  };
  const turns = async () => {
    for (let i = 0; i < 40; i++) {
      timers.advance(0);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  };
  for (let i = 0; i < 4; i++) ask("ann", new StalledAnswer());
  await turns();
  const same = ask("ann", new Answer());
  const other = ask("bob", new Answer());
  await turns();
  expect([same.ended, other.ended]).toEqual([false, true]);
});
