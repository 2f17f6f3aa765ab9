import {
  linkSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { ServiceError } from "../model/errors.ts";

/**
 * Directories that this process has open. The one state that the module may keep: the operating system's lock, too,
 * belongs to the process, and a second open of a LevelDB drops it without a word, whoever opens. Worker threads, which
 * have a set of their own, meet the lock file.
 */
const held = new Set<string>();

/** Who holds a lock. Which process it is needs more than its number, since numbers come again. */
interface Holder {
  readonly pid: number;
  /** When the process started, in ticks since the boot; empty where the system does not say. */
  readonly start: string;
  readonly boot: string;
  /** The namespace that its number is from: a container's. */
  readonly space: string;
  /** The lock file itself: a copy of a data directory holds a lock that locks nothing. */
  readonly ino: number;
  /** This one lock and no other. */
  readonly id: string;
}

export interface DirectoryLock {
  release(): void;
}

/**
 * Locks a directory that exists for this process, and within it for one caller. The lock of a process that is dead is
 * taken over.
 * @throws ServiceError `storage.locked` naming the directory and the process that has it
 */
export function lockDirectory(directory: string): DirectoryLock {
  const path = realpathSync(directory);
  if (held.has(path)) throw locked(path, process.pid);
  const file = join(path, "heddle.lock");
  held.add(path);
  try {
    const own = acquire(path, file);
    let released = false;
    return {
      release: () => {
        if (released) return;
        released = true;
        if (read(file)?.id === own) rmSync(file, { force: true });
        held.delete(path);
      },
    };
  } catch (error) {
    held.delete(path);
    throw error;
  }
}

/** Makes `file` ours, and returns the lock's id. */
function acquire(directory: string, file: string): string {
  // Its name is unique, and what is in it appears under the lock's name all at once.
  const room = mkdtempSync(join(directory, "lock-"));
  try {
    const id = basename(room);
    const draft = join(room, "lock");
    writeFileSync(draft, "");
    const ino = statSync(draft).ino;
    writeFileSync(draft, JSON.stringify({ ...identity(), ino, id } satisfies Holder), { flush: true });
    while (!take(directory, file, draft));
    return id;
  } finally {
    rmSync(room, { recursive: true, force: true });
  }
}

/** One try. False: it changed hands meanwhile, look again. */
function take(directory: string, file: string, draft: string): boolean {
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
  const holder = read(file);
  if (holder === undefined) return false;
  if (isAlive(holder, file)) throw locked(directory, holder.pid);
  // Only one may replace this very lock: two that saw it dead would else each take it, one from the other.
  const claim = `${file}.${holder.id}`;
  acquire(directory, claim);
  try {
    if (read(file)?.id !== holder.id) return false;
    renameSync(draft, file);
    return true;
  } finally {
    unlinkSync(claim);
  }
}

/** Undefined: there is no such file any more. */
function read(file: string): Holder | undefined {
  let text;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
  const nobody: Holder = { pid: 0, start: "", boot: "", space: "", ino: 0, id: "unreadable" };
  try {
    const found = JSON.parse(text) as Partial<Holder> | null;
    // Its id becomes part of a file's name.
    return typeof found?.id === "string" && /^lock-\w+$/.test(found.id) ? { ...nobody, ...found } : nobody;
  } catch {
    return nobody;
  }
}

function isAlive(holder: Holder, file: string): boolean {
  if (!Number.isInteger(holder.pid) || holder.pid <= 0) return false;
  const own = identity();
  if (holder.boot !== own.boot) return false;
  // A number from another container says nothing here; LevelDB's own lock still stands between the two.
  if (holder.space !== own.space) return false;
  if (statSync(file, { throwIfNoEntry: false })?.ino !== holder.ino) return false;
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    // EPERM: it is there, and someone else's.
    if (hasCode(error, "ESRCH")) return false;
  }
  const start = startOf(holder.pid);
  return start === undefined ? holder.start === "" : start === holder.start;
}

function identity(): Omit<Holder, "ino" | "id"> {
  return {
    pid: process.pid,
    start: startOf(process.pid) ?? "",
    boot: machineBoot(),
    space: attempt(() => readlinkSync("/proc/self/ns/pid")) ?? "",
  };
}

/** Names the machine's boot; empty where the system does not say. */
export function machineBoot(): string {
  return attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()) ?? "";
}

/** When a process started; undefined where it is dead, or the system does not say. */
function startOf(pid: number): string | undefined {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  if (stat === undefined) return undefined;
  // The name, in brackets, may hold anything; the state and the rest follow the last bracket.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A killed process whose parent has not looked yet still has its number.
  return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
}

function attempt<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return (error as { code?: unknown }).code === code;
}

function locked(directory: string, pid: number): ServiceError {
  const who = pid === process.pid ? `this process (${pid}) already` : `process ${pid}`;
  return new ServiceError(
    "storage.locked",
    `The data directory ${directory} is open in ${who}; stop it first, or choose another directory`,
  );
}
