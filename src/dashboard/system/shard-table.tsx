import { Age } from "../components/age.tsx";
import { StatusBadge } from "../components/status-badge.tsx";
import { formatBytes, formatSeconds } from "./metric-series.ts";
import type { ShardRow } from "./shard-rows.ts";

/** A table of the server's shards, with the figures of each shard's process. */
export function ShardTable({ rows }: { readonly rows: readonly ShardRow[] }) {
  if (rows.length === 0) return null;
  const hasNodes = rows.some(({ node }) => node !== undefined);
  return (
    <section class="pad shards" aria-labelledby="shards-title">
      <h3 id="shards-title">Shards</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">Shard</th>
            {hasNodes && <th scope="col">Node</th>}
            <th scope="col">Uptime</th>
            <th scope="col">Running</th>
            <th scope="col">Queued</th>
            <th scope="col">Memory</th>
            <th scope="col">Event-loop lag</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ shard, node, figures }) => (
            <tr key={shard}>
              <th scope="row">{shard}</th>
              {hasNodes && <td class="node">{node ?? "–"}</td>}
              {figures === undefined ? (
                <td colSpan={5}>
                  <StatusBadge of="error" words="does not answer" small />
                </td>
              ) : (
                <>
                  <td>
                    <Age since={figures.since} />
                  </td>
                  <td>{figures.running.toLocaleString("en")}</td>
                  <td>{figures.queued.toLocaleString("en")}</td>
                  <td>{formatBytes(figures.memory)}</td>
                  <td>{figures.lag === null ? "–" : formatSeconds(figures.lag)}</td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
