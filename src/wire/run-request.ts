import type { RunRequest } from "../service/kwargs.ts";
import { dropNulls, type RawBody } from "./body.ts";
import { runCreate } from "./schemas.ts";
import { refuseUnserved } from "./unserved.ts";

/** What a body asks for that is to start a run. @throws ServiceError `validation.failed` */
export function runRequest(body: RawBody): ReturnType<typeof runCreate.parse> & RunRequest {
  dropNulls(body["config"]);
  refuseUnserved(body, "run");
  return runCreate.parse(body) as ReturnType<typeof runCreate.parse> & RunRequest;
}
