/** Milliseconds by a clock that all processes of this machine share, and that nobody sets. */
export const machineTime = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;
