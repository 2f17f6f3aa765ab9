/** Milliseconds on a clock that all processes of this machine share, and that is never adjusted. */
export const machineTime = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;
