import {
  MISDIRECTED_STATUS,
  PeerLost,
  type PeerRequest,
  type PeerResponse,
  UNRESPONSIVE_MS,
} from "../../../src/ports/peers.ts";
import type { Machine, ProcessScheduler, Universe } from "./machine.ts";

/** The answer of a process to a request. */
export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** A process that other nodes can reach. */
export interface PeerProcess {
  readonly scheduler: ProcessScheduler;
  answerPeer(request: PeerRequest): Promise<Answer>;
  /** Registers a listener that is called at the end of the process. */
  onExit(listener: () => void): void;
}

/** The network between the nodes. */
export class PeerNetwork {
  /** The processes by their ports. */
  readonly processes = new Map<number, PeerProcess>();
  readonly #universe: Universe;
  readonly #cut = new Set<string>();
  #ports = 0;

  constructor(universe: Universe) {
    this.#universe = universe;
  }

  newPort(): number {
    return ++this.#ports;
  }

  /** Cuts two machines off from each other. Returns the function that ends this. */
  cut(one: Machine, other: Machine): () => void {
    const names = [pairOf(one, other), pairOf(other, one)];
    for (const name of names) this.#cut.add(name);
    return () => {
      for (const name of names) this.#cut.delete(name);
    };
  }

  /** Ends all cuts. */
  heal(): void {
    this.#cut.clear();
  }

  /** Sends a request. `onSent` gets a function that breaks the connection. @throws PeerLost */
  request(
    from: ProcessScheduler,
    port: number,
    request: PeerRequest,
    onSent: (breakOff: () => void) => void,
  ): Promise<PeerResponse> {
    const { scheduler } = this.#universe;
    return new Promise((resolve, reject) => {
      let isOver = false;
      const end = (settle: () => void): void =>
        from.run(() => {
          if (isOver) return;
          isOver = true;
          cancelTimeout();
          settle();
        });
      const lose = (wasSent: boolean, isUnresponsive = false): void =>
        end(() => reject(new PeerLost(wasSent, undefined, isUnresponsive)));
      const cancelTimeout = from.after(UNRESPONSIVE_MS, () => lose(true, true));
      onSent(() => lose(true));
      const later = (act: () => void): void => void scheduler.after(this.#delay(), act);
      later(() => {
        const to = this.processes.get(port);
        if (to === undefined) return later(() => lose(false));
        const isCut = (): boolean => this.#cut.has(pairOf(from.machine, to.scheduler.machine));
        if (isCut()) return;
        to.onExit(() => later(() => lose(true)));
        to.scheduler.run(
          () =>
            void to.answerPeer(request).then((answer) =>
              later(() => {
                if (isCut()) return;
                if (answer.status === MISDIRECTED_STATUS) lose(false);
                else end(() => resolve(responseOf(answer)));
              }),
            ),
        );
      });
    });
  }

  #delay(): number {
    const { random } = this.#universe;
    return random.chance(0.03) ? random.float() * 300 : 0.2 + random.float() * 2;
  }
}

const pairOf = (one: Machine, other: Machine): string => `${one.name} ${other.name}`;

const responseOf = ({ status, body }: Answer): PeerResponse => ({
  status,
  headers: {},
  length: Buffer.byteLength(body),
  read(reader) {
    reader.piece(Buffer.from(body));
    reader.end();
  },
  resume: () => undefined,
});
