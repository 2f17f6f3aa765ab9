import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemScheduler } from "../../src/platform/scheduler.ts";
import type { KeyValueStore } from "../../src/ports/key-value-store.ts";
import { noFailpoints } from "../../src/ports/failpoints.ts";
import {
  openStorage,
  type Storage,
  type StorageDeps,
  type StorageOptions,
} from "../../src/storage/open-storage.ts";
import { MemoryKeyValueStore } from "../../src/storage/memory-key-value-store.ts";
import { DelayedKeyValueStore } from "./delayed-key-value-store.ts";
import type { Harness } from "../contracts/harness.ts";

export const deps: StorageDeps = {
  scheduler: {
    soon: (task) => void setImmediate(task),
    after: (ms, task) => {
      const timer = setTimeout(task, ms).unref();
      return () => clearTimeout(timer);
    },
  },
  clock: { now: () => 0, mono: () => 0 },
  failpoints: noFailpoints,
  logger: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
};

/** Timers fire when the test fires them; turns run by themselves. */
export class Timers {
  readonly pauses: number[] = [];
  #tasks = new Set<() => void>();
  #set: (() => void)[] = [];

  readonly soon = systemScheduler.soon;

  readonly after = (ms: number, task: () => void): (() => void) => {
    this.pauses.push(ms);
    this.#tasks.add(task);
    const told = this.#set;
    this.#set = [];
    for (const tell of told) tell();
    return () => this.#tasks.delete(task);
  };

  /** Waits for a timer if none is set, and fires it. */
  async fire(): Promise<void> {
    if (this.#tasks.size === 0) await new Promise<void>((resolve) => this.#set.push(resolve));
    const tasks = [...this.#tasks];
    this.#tasks.clear();
    for (const task of tasks) task();
  }

  get waiting(): number {
    return this.#tasks.size;
  }
}

/** Runs everything that is ready. */
export async function turns(count = 5): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

export function temporary(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "heddle-storage-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

async function harness(options: StorageOptions, end: () => void): Promise<Harness> {
  let storage: Storage = await openStorage(options, deps);
  return {
    get journal() {
      return storage.journal;
    },
    get catalog() {
      return storage.catalog;
    },
    get crons() {
      return storage.crons;
    },
    get outbox() {
      return storage.outbox;
    },
    bytes: () => storage.stats().bytes,
    reopen: async () => {
      await storage.close();
      storage = await openStorage(options, deps);
    },
    close: async () => {
      await storage.close();
      end();
    },
  };
}

export function onLevel(): Promise<Harness> {
  const directory = temporary();
  return harness({ kind: "level", directory: directory.path }, directory.remove);
}

/** A storage over this store. When it is opened again, it finds the same data. `end` frees what the store has used. */
export function overStore(store: KeyValueStore, end: () => void = () => {}): Promise<Harness> {
  return harness({ kind: "key-value", store }, end);
}

export function inMemory(): Promise<Harness> {
  return overStore(new MemoryKeyValueStore());
}

/** A store whose reads take turns, as over a network. */
export function delayed(): Promise<Harness> {
  return overStore(new DelayedKeyValueStore());
}
