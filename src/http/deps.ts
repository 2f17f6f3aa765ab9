import type { Logger } from "../ports/logger.ts";
import type { Scheduler } from "../ports/scheduler.ts";
import type { Service } from "../service/service.ts";

export interface HttpDeps {
  readonly service: Service;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Heddle's own version, for `/info`. */
  readonly version: string;
}
