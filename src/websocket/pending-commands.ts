import { ServiceError } from "../model/errors.ts";
import { objectOf, type RawBody } from "../schemas/body.ts";
import { invalidField } from "../schemas/error-responses.ts";

/** Commands of one socket that are not done yet, and their bytes. */
const MOST = 32;
const BYTES = 1024 * 1024;
/** Ids that are remembered: a command that is sent again is not done again. */
const IDS = 1024;
/** Characters of an id. */
const LONGEST = 200;

export type CommandId = string | number;

/** Does one command, and answers it once that is stored. */
type Do = (id: CommandId, body: RawBody) => Promise<void>;

/** Answers one that was not done; null: nobody knows which. */
type Refuse = (id: CommandId | null, cause: unknown) => void;

const busy = new ServiceError(
  "server.busy",
  `More than ${MOST} commands, or 1 MiB of them, are not done yet`,
);

/**
 * The commands of one socket, done one after the other in the order in which they came, so that a cancel finds the run that
 * was asked for before it. Each is answered exactly once, after it is stored.
 */
export class Commands {
  readonly #do: Do;
  readonly #refuse: Refuse;
  readonly #rest: () => void;
  readonly #ids = new Set<CommandId>();
  #waiting = 0;
  #bytes = 0;
  #last: Promise<void> = Promise.resolve();

  /** `rest` is called when none is left to do. */
  constructor(doIt: Do, refuse: Refuse, rest: () => void = () => undefined) {
    this.#do = doIt;
    this.#refuse = refuse;
    this.#rest = rest;
  }

  /** `ready`: nothing is done before, nor when it rejects. */
  take(message: Uint8Array | string, ready: Promise<void>): void {
    let id: CommandId | null = null;
    try {
      if (typeof message !== "string") throw invalidField("command", "must be a text message, as JSON");
      const body = objectOf(Buffer.from(message), "command");
      id = idOf(body["id"]);
      if (this.#ids.has(id)) return;
      const { length } = message;
      if (this.#waiting >= MOST || (this.#waiting > 0 && this.#bytes + length > BYTES)) throw busy;
      this.#remember(id);
      this.#line(id, body, length, ready);
    } catch (cause) {
      this.#refuse(id, cause);
    }
  }

  #line(id: CommandId, body: RawBody, length: number, ready: Promise<void>): void {
    this.#waiting++;
    this.#bytes += length;
    this.#last = this.#last
      .then(() => ready)
      .then(() => this.#try(id, body))
      // The thread was not found: the socket is closed for that.
      .catch(() => undefined)
      .then(() => {
        this.#waiting--;
        this.#bytes -= length;
        if (this.#waiting === 0) this.#rest();
      });
  }

  async #try(id: CommandId, body: RawBody): Promise<void> {
    try {
      await this.#do(id, body);
    } catch (cause) {
      this.#refuse(id, cause);
    }
  }

  #remember(id: CommandId): void {
    this.#ids.add(id);
    if (this.#ids.size <= IDS) return;
    for (const oldest of this.#ids) {
      this.#ids.delete(oldest);
      return;
    }
  }
}

/** @throws ServiceError `validation.failed` */
function idOf(id: unknown): CommandId {
  if (typeof id === "string" && id.length > 0 && id.length <= LONGEST) return id;
  if (typeof id === "number" && Number.isSafeInteger(id)) return id;
  throw invalidField("id", `must be a whole number, or a string of 1 to ${LONGEST} characters`);
}
