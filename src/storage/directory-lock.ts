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
import { directoryError } from "./make-directory.ts";
import { ServiceError } from "../model/errors.ts";

/**
 * The directories that this process has open. The list is global, because the lock of the operating system belongs to the whole process:
 * opening the same LevelDB database a second time would silently drop that lock. Each worker thread has its own list, but the lock file
 * prevents a second opening there.
 */
const heldPaths = new Set<string>();

/** The process that holds a lock. A process id alone does not identify it, because ids are reused. */
interface Holder {
  readonly pid: number;
  /** The start time of the process, in ticks since the boot of the machine; empty if the operating system does not tell. */
  readonly start: string;
  readonly boot: string;
  /** The process id namespace of the process. Each container has its own namespace, in which its process ids are valid. */
  readonly space: string;
  /**
   * The inode number of the lock file. The lock file in a copy of the data directory has another inode number, so the copied lock does not
   * count.
   */
  readonly ino: number;
  /** Identifies this lock. */
  readonly id: string;
}

export interface DirectoryLock {
  release(): void;
}

/**
 * Locks an existing directory for this process, and for one caller in this process. Replaces the lock of a dead process.
 * @throws ServiceError `storage.locked`, naming the directory and the process that holds the lock; `storage.unavailable` when the directory
 * is not writable
 */
export function lockDirectory(directory: string): DirectoryLock {
  const path = realpathSync(directory);
  if (heldPaths.has(path)) throw locked(path, process.pid);
  const file = join(path, "heddle.lock");
  heldPaths.add(path);
  try {
    const own = acquire(path, file);
    let released = false;
    return {
      release: () => {
        if (released) return;
        released = true;
        if (read(file)?.id === own) rmSync(file, { force: true });
        heldPaths.delete(path);
      },
    };
  } catch (error) {
    heldPaths.delete(path);
    throw error instanceof ServiceError
      ? error
      : directoryError(`The directory ${path} cannot be written to`, error);
  }
}

/** Acquires the lock `file`, and returns the lock's id. */
function acquire(directory: string, file: string): string {
  // The lock file is written in a unique directory, and then linked to its real name. So a lock file is complete as soon as it exists.
  const temporaryFolder = mkdtempSync(join(directory, "lock-"));
  try {
    const id = basename(temporaryFolder);
    const draft = join(temporaryFolder, "lock");
    writeFileSync(draft, "");
    const ino = statSync(draft).ino;
    writeFileSync(draft, JSON.stringify({ ...identity(), ino, id } satisfies Holder), { flush: true });
    while (!take(directory, file, draft));
    return id;
  } finally {
    rmSync(temporaryFolder, { recursive: true, force: true });
  }
}

/** Makes one attempt to take the lock. Returns false if the holder changed during the attempt. */
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
  // The lock of a dead process is replaced under a second lock, `claim`. Without `claim`, another process could remove the lock that this
  // one has just taken.
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

/** Reads a lock file; undefined when it does not exist any more. */
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
    // The id is checked, because it becomes part of a file name.
    return typeof found?.id === "string" && /^lock-\w+$/.test(found.id) ? { ...nobody, ...found } : nobody;
  } catch {
    return nobody;
  }
}

function isAlive(holder: Holder, file: string): boolean {
  if (!Number.isInteger(holder.pid) || holder.pid <= 0) return false;
  const own = identity();
  if (holder.boot !== own.boot) return false;
  // A process id of another container means nothing here, so a lock of such a process does not count. LevelDB's own lock still protects the
  // database.
  if (holder.space !== own.space) return false;
  if (statSync(file, { throwIfNoEntry: false })?.ino !== holder.ino) return false;
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    // With ESRCH, the process does not exist. With EPERM, it exists and belongs to another user.
    if (hasCode(error, "ESRCH")) return false;
  }
  const start = startOf(holder.pid);
  return start === undefined ? holder.start === "" : start === holder.start;
}

function identity(): Omit<Holder, "ino" | "id"> {
  return {
    pid: process.pid,
    start: startOf(process.pid) ?? "",
    boot: hostBootId(),
    space: attempt(() => readlinkSync("/proc/self/ns/pid")) ?? "",
  };
}

/** The id of the machine's current boot; empty when the system has none. */
export function hostBootId(): string {
  return attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()) ?? "";
}

/** When a process started, in ticks since the boot; undefined when the process is dead, or the system does not say. */
function startOf(pid: number): string | undefined {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  if (stat === undefined) return undefined;
  // The process name in parentheses may contain any characters. The state and the other fields follow the last parenthesis.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie counts as dead: only its parent still has to read its exit status.
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
