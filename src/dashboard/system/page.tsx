import { useEffect, useState } from "preact/hooks";
import { reasonOf } from "../app/session.ts";
import { Failure } from "../parts/empty.tsx";
import { lasting } from "../parts/status.tsx";
import { type Look, lookAround } from "./look.ts";

const EVERY = 2_000;

/** How the server is, as far as it tells. */
export function SystemPage() {
  const [look, setLook] = useState<Look | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const run = async () => {
      try {
        const seen = await lookAround();
        if (isOver) return;
        setLook(seen);
        setError(null);
      } catch (cause) {
        if (!isOver) setError(reasonOf(cause));
      }
      if (!isOver) timer = setTimeout(() => void run(), EVERY);
    };
    void run();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, []);
  return (
    <article class="page system">
      <header class="head">
        <div class="which">
          <h2>System</h2>
          {look !== null && (
            <p class="dim">
              Heddle {look.version} over {look.transport}; answers in {lasting(look.latency)}
            </p>
          )}
        </div>
      </header>
      {error !== null && <Failure text={error} />}
      <div class="pad tiles">
        {(look?.tiles ?? []).map(({ title, value, note, bad }) => (
          <div class={`card tile ${bad === true ? "bad" : ""}`} key={title}>
            <span class="dim">{title}</span>
            <strong>{value}</strong>
            {note !== undefined && <span class="dim">{note}</span>}
          </div>
        ))}
      </div>
    </article>
  );
}
