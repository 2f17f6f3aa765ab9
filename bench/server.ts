import type { IoCount } from "./proc.ts";
import type { ServerStats } from "./servers/report.ts";

/** A server under measurement: Heddle, a control or a peer, in one or several processes. */
export interface Server {
  readonly port: number;
  /** CPU seconds that all its processes have used so far. */
  cpu(): number;
  io(): IoCount;
  stats(): Promise<ServerStats>;
  /** The same after a garbage collection, if the server supports that. */
  collect(): Promise<ServerStats>;
  /** Stops it as its users would. */
  stop(): Promise<void>;
  /** Kills it, as in a crash: nothing more is written. */
  kill(): Promise<void>;
}
