import { keyValueStoreContract } from "../../src/contracts/key-value-store-contract.ts";
import type { KeyValueStore } from "../../src/ports/key-value-store.ts";
import { runContract } from "./run-contract.ts";

/** A store under test, not yet open. */
interface MadeStore {
  readonly store: KeyValueStore;
  /** Frees what the store has used. The store is closed by then. */
  end?(): void | Promise<void>;
}

/** Runs the contract of key-value stores. `make` makes a store for each check. */
export function testKeyValueStore(name: string, make: () => MadeStore): void {
  runContract(`key-value store: ${name}`, keyValueStoreContract, async () => {
    const { store, end } = make();
    await store.open();
    return {
      harness: { store },
      async end() {
        await store.close();
        await end?.();
      },
    };
  });
}
