import type { ReplyHeaders } from "../ports/transport.ts";

/**
 * The methods of a uWebSockets.js response that Heddle uses. They MUST NOT be called after the response has ended or was aborted: each call
 * then throws or crashes the process.
 */
export interface UwsResponse {
  writeStatus(status: string): unknown;
  writeHeader(name: string, value: string): unknown;
  write(piece: Uint8Array | string): boolean;
  end(body?: Uint8Array | string, closeConnection?: boolean): unknown;
  endWithoutBody(): unknown;
  close(): unknown;
  cork(task: () => void): unknown;
  onAborted(listener: () => void): unknown;
  onData(listener: (piece: ArrayBuffer, last: boolean) => void): unknown;
  onWritable(listener: (offset: number) => boolean): unknown;
}

/** The methods of a uWebSockets.js request that Heddle uses. The request becomes invalid when the handler returns. */
export interface UwsRequest {
  getCaseSensitiveMethod(): string;
  getUrl(): string;
  getQuery(): string | undefined;
  forEach(take: (name: string, value: string) => void): void;
}

const STATUS: Readonly<Record<number, string>> = {
  101: "101 Switching Protocols",
  200: "200 OK",
  201: "201 Created",
  202: "202 Accepted",
  204: "204 No Content",
  304: "304 Not Modified",
  307: "307 Temporary Redirect",
  400: "400 Bad Request",
  401: "401 Unauthorized",
  403: "403 Forbidden",
  404: "404 Not Found",
  408: "408 Request Timeout",
  409: "409 Conflict",
  413: "413 Payload Too Large",
  415: "415 Unsupported Media Type",
  422: "422 Unprocessable Content",
  426: "426 Upgrade Required",
  429: "429 Too Many Requests",
  431: "431 Request Header Fields Too Large",
  500: "500 Internal Server Error",
  502: "502 Bad Gateway",
  503: "503 Service Unavailable",
};

const statusLine = (status: number): string => STATUS[status] ?? `${status} unknown`;

export function writeHead(raw: UwsResponse, status: number, headers: ReplyHeaders): void {
  raw.writeStatus(statusLine(status));
  for (const name in headers) {
    const value = headers[name];
    if (typeof value === "string") raw.writeHeader(name, value);
    else for (const one of value ?? []) raw.writeHeader(name, one);
  }
}
