import type { IoCount } from "./proc.ts";
import type { ServerStats } from "./servers/report.ts";

/** A server under measurement: Heddle, a control or a peer, in processes of its own. */
export interface Server {
  readonly port: number;
  /** CPU seconds that all its processes have used so far. */
  cpu(): number;
  io(): IoCount;
  stats(): Promise<ServerStats>;
  /** The same after a garbage collection, where the server can be asked for one. */
  collect(): Promise<ServerStats>;
  /** Ends it as its users would. */
  stop(): Promise<void>;
  /** Ends it as a crash would: nothing is written any more. */
  kill(): Promise<void>;
}
