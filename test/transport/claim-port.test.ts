import { expect, test } from "vitest";
import { claimPort } from "../../src/transport/claim-port.ts";

test.runIf(process.platform === "linux")(
  "a port that a server has claimed is taken for others before anything listens on it",
  async () => {
    const port = await claimPort("127.0.0.1", 0);
    await expect(claimPort("127.0.0.1", port)).rejects.toThrow(
      `Cannot listen at 127.0.0.1:${port}: port ${port} is taken`,
    );
    expect(await claimPort("127.0.0.1", 0)).not.toBe(port);
  },
);
