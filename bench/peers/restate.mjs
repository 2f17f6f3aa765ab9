/**
 * A Restate virtual object, whose keys correspond to Heddle's threads, with handlers of one and of three journaled
 * steps.
 */
import * as restate from "@restatedev/restate-sdk";

// The SDK uses `Promise.withResolvers`, which Node 20 does not have.
Promise.withResolvers ??= function () {
  const made = {};
  made.promise = new this((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
};

const steps = (count) => async (ctx) => {
  let value = 0;
  for (let i = 0; i < count; i++) value += await ctx.run(`step ${i}`, () => 1);
  ctx.set("value", value);
  return { value };
};

await restate.serve({
  port: Number(process.argv[2]),
  services: [restate.object({ name: "steps", handlers: { one: steps(1), three: steps(3) } })],
});
