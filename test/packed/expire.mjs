/** Runs the guide's machine in a server whose clock is put forward by three days: it has expired then. */
import { createApp } from "heddle";

const DAYS = 24 * 60 * 60 * 1_000;
/** Milliseconds: shorter timers run in real time. */
const LONG = 20_000;

let ahead = 0;
const timers = new Set();
const clock = { now: () => Date.now() + ahead, mono: () => performance.now() + ahead };
const scheduler = {
  soon: (task) => void setImmediate(() => task()),
  after(ms, task) {
    if (ms < LONG) {
      const timer = setTimeout(() => task(), ms);
      return () => clearTimeout(timer);
    }
    const timer = { due: clock.mono() + ms, task };
    timers.add(timer);
    return () => void timers.delete(timer);
  },
};

const app = await createApp({ config: "heddle.json", clock, scheduler });
const ask = async (path, body) => {
  const init = body && {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  const answer = await fetch(app.url + path, init);
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
};
const { thread_id } = await ask("/threads", {});
await ask(`/threads/${thread_id}/runs/wait`, { assistant_id: "payment", input: { amount: 5 } });
const stateNow = async () => (await ask(`/threads/${thread_id}/state`)).values["__state__"];
const states = [await stateNow()];
ahead = 3 * DAYS;
for (const timer of timers) {
  if (timer.due > clock.mono()) continue;
  timers.delete(timer);
  timer.task();
}
const deadline = performance.now() + 10_000;
while ((await stateNow()) === states[0] && performance.now() < deadline)
  await new Promise((resolve) => setTimeout(resolve, 20));
states.push(await stateNow());
await app.close();
if (states.join() !== "reviewing,expired") throw new Error(`its states were ${states.join()}`);
process.stdout.write("the guide's machine, when three days have passed: it has expired\n");
