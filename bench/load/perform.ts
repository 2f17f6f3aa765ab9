import { summarize } from "../stats.ts";
import { Connection } from "./connection.ts";
import type { Job, JobResult } from "./job.ts";
import { EventCounter, TextReceiver } from "./receivers.ts";

/** Encodes the request for each path once. Returns the bytes of the requests, in the order of the paths. */
function encode(job: Job): Buffer[] {
  const body = job.body ?? "";
  const common =
    `host: ${job.host}:${job.port}\r\n` +
    (job.method === "POST"
      ? `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`
      : "") +
    Object.entries(job.headers ?? {})
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join("");
  return job.paths.map((path) => Buffer.from(`${job.method} ${path} HTTP/1.1\r\n${common}\r\n${body}`));
}

/** Opens the job's connections, 64 at a time, so that the server's listen queue does not overflow. */
async function openAll(job: Job): Promise<Connection[]> {
  const buffer = Connection.buffer();
  const all: Connection[] = [];
  while (all.length < job.connections) {
    const count = Math.min(64, job.connections - all.length);
    all.push(
      ...(await Promise.all(
        Array.from({ length: count }, () => Connection.open(job.host, job.port, buffer)),
      )),
    );
  }
  return all;
}

/** The connections of the last job with {@link Job.partitioned}, and where they lead. */
let kept: { readonly key: string; readonly connections: readonly Connection[] } | undefined;

async function connectionsOf(job: Job): Promise<readonly Connection[]> {
  if (job.partitioned !== true) return openAll(job);
  const key = `${job.host}:${job.port} ${job.connections}`;
  if (kept?.key !== key) {
    for (const connection of kept?.connections ?? []) connection.close();
    kept = { key, connections: await openAll(job) };
  }
  return kept.connections;
}

export async function perform(job: Job): Promise<JobResult> {
  const requests = encode(job);
  const connections = await connectionsOf(job);
  const latencies: number[] = [];
  const firsts: number[] = [];
  const collected: string[] = [];
  const mark = job.collect === undefined ? undefined : new RegExp(`"${job.collect}": ?"([^"]*)"`);
  let sent = 0;
  let ended = 0;
  let failures = 0;
  let failure: string | null = null;
  let events = 0;
  let bytes = 0;
  let alive = connections.length;

  const cpu = process.cpuUsage();
  const start = performance.now();
  const until = start + (job.seconds ?? Number.POSITIVE_INFINITY) * 1000;
  let total = job.total;
  await new Promise<void>((resolve) => {
    if (total <= 0) resolve();
    const settle = (reason: string | undefined) => {
      if (reason !== undefined) {
        failures++;
        failure ??= reason;
      }
      if (++ended >= total) resolve();
    };

    const drive = (connection: Connection, index: number) => {
      const own = requests[index % requests.length] as Buffer;
      let began = 0;
      /** The number of the connection's next request, if the job is partitioned. */
      let position = index;
      const next = () => {
        if (performance.now() > until) {
          total = Math.min(total, sent);
          if (ended >= total) resolve();
        }
        if (sent >= total || position >= total) return;
        const number = job.partitioned === true ? position : sent;
        const request = job.sticky === true ? own : (requests[number % requests.length] as Buffer);
        sent++;
        if (job.partitioned === true) position += connections.length;
        began = performance.now();
        connection.send(request, receiver);
      };
      const finish = (lost: string | undefined, wrong: string | undefined) => {
        latencies.push(performance.now() - began);
        settle(lost ?? wrong);
        if (lost === undefined) next();
        else if (job.partitioned === true) {
          for (; position < total; position += connections.length) settle("its connection is lost");
        }
        // A lost connection is not replaced: the remaining requests use the other connections. If none is left, they
        // count as failed.
        else if (--alive === 0) while (sent++ < total) settle("no connection is left");
      };
      const text = new TextReceiver((lost) => {
        bytes += text.text.length;
        const good = text.status >= 200 && text.status < 300 && !text.text.includes('"__error__"');
        if (good && mark !== undefined) {
          const value = mark.exec(text.text)?.[1] ?? "";
          if (job.partitioned === true) collected[position - connections.length] = value;
          else collected.push(value);
        }
        finish(lost, good ? undefined : `${text.status} ${text.text.slice(0, 300)}`);
      });
      const counter = new EventCounter((lost) => {
        events += counter.events;
        bytes += counter.bytes;
        if (counter.events > 0) firsts.push(counter.firstEvent - began);
        finish(
          lost,
          counter.status === 200 && !counter.failed
            ? undefined
            : `${counter.status}${counter.failed ? " error event" : ""}`,
        );
      });
      const receiver = job.answer === "text" ? text : counter;
      next();
    };
    for (const [index, connection] of connections.entries()) drive(connection, index);
  });
  const seconds = (performance.now() - start) / 1000;
  const used = process.cpuUsage(cpu);
  if (job.partitioned !== true) for (const connection of connections) connection.close();
  return {
    requests: ended,
    failures,
    failure,
    seconds,
    latency: summarize(latencies),
    first: firsts.length === 0 ? null : summarize(firsts),
    events,
    bytes,
    collected,
    cpu: (used.user + used.system) / 1e6,
  };
}
