import { testKeyValueStore } from "../contracts/key-value-store.ts";
import { SimulatedClock } from "./clock.ts";
import { Disk } from "./disk.ts";
import { SimulatedRandom } from "./random.ts";
import { SimulatedScheduler } from "./scheduler.ts";

/** A mounted disk, and its scheduler, whose time advances by itself. */
function mounted() {
  const clock = new SimulatedClock(0);
  const scheduler = new SimulatedScheduler(clock);
  const random = new SimulatedRandom(1);
  const store = new Disk(random, null).mount(scheduler);
  let isRunning = true;
  const run = (): void => {
    if (!scheduler.step()) clock.advance(1);
    if (isRunning) setImmediate(run);
  };
  run();
  return { store, end: () => void (isRunning = false) };
}

testKeyValueStore("simulated disk", mounted);
