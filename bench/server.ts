import type { IoCount } from "./proc.ts";
import type { ServerStats } from "./servers/report.ts";

/** A server under measurement: Heddle, a control or a peer, in one or several processes. */
export interface Server {
  readonly port: number;
  /** CPU seconds that all its running processes have used so far. */
  cpu(): number;
  io(): IoCount;
  stats(): Promise<ServerStats>;
  /** The same as `stats`, after a garbage collection if the server supports that. */
  collect(): Promise<ServerStats>;
  /** Stops the server in an orderly way. */
  stop(): Promise<void>;
  /** Kills the server, as in a crash: it cannot write any more data. */
  kill(): Promise<void>;
}
