import { useState } from "preact/hooks";
import { listStoreNamespaces } from "../api/client.ts";
import { hrefOf } from "../app/page-location.ts";
import { ErrorAlert, Loading } from "../components/empty-state.tsx";
import { useResource } from "../components/use-resource.ts";

/** The number of namespaces of a level that are shown initially, and that each click on "Show more" adds. */
const NAMESPACES_PER_STEP = 100;

interface TreeProps {
  /** The namespace that contains the namespaces of this level; empty for the top level. */
  readonly prefix: readonly string[];
  readonly chosen: readonly string[];
  /** Changes when this page has changed the store, so that the namespaces are read again. */
  readonly version: number;
}

/** One level of the store's namespaces. The level below a namespace is read when the user opens it. */
export function NamespaceTree({ prefix, chosen, version }: TreeProps) {
  const [limit, setLimit] = useState(NAMESPACES_PER_STEP);
  const { value, error, reload } = useResource(
    () => listStoreNamespaces(prefix, limit + 1),
    [prefix.join("."), limit, version],
  );
  if (value === undefined) return error === null ? <Loading /> : <ErrorAlert text={error} onRetry={reload} />;
  return (
    <ul class="tree">
      {value.slice(0, limit).map((namespace) => (
        <Branch key={namespace.join(".")} namespace={namespace} chosen={chosen} version={version} />
      ))}
      {value.length > limit && (
        <li>
          <button type="button" class="quiet" onClick={() => setLimit(limit + NAMESPACES_PER_STEP)}>
            Show more
          </button>
        </li>
      )}
      {value.length === 0 && prefix.length > 0 && <li class="dim">No namespaces below</li>}
    </ul>
  );
}

interface BranchProps {
  readonly namespace: readonly string[];
  readonly chosen: readonly string[];
  readonly version: number;
}

function Branch({ namespace, chosen, version }: BranchProps) {
  const isWithin = chosen.length > namespace.length && namespace.every((label, i) => chosen[i] === label);
  const [wanted, setOpen] = useState<boolean | null>(null);
  const isOpen = wanted ?? isWithin;
  const label = namespace.at(-1);
  return (
    <li>
      <div class="label">
        <button
          type="button"
          class="quiet"
          aria-expanded={isOpen}
          aria-label={`Namespaces below ${label}`}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? "▾" : "▸"}
        </button>
        <a
          href={hrefOf(["store"], { ns: namespace.join(".") })}
          aria-current={namespace.join(".") === chosen.join(".") ? "true" : undefined}
        >
          {label}
        </a>
      </div>
      {isOpen && <NamespaceTree prefix={namespace} chosen={chosen} version={version} />}
    </li>
  );
}
