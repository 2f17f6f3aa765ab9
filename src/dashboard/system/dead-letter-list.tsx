import { useState } from "preact/hooks";
import { deleteWebhookDelivery, listWebhookDeliveries, retryWebhookDelivery } from "../api/client.ts";
import type { WebhookDeliveryRow } from "../api/records.ts";
import { hrefOf } from "../app/page-location.ts";
import { runAction, showNotice } from "../app/notices.ts";
import { ActionButton } from "../components/action-button.tsx";
import { ConfirmDialog } from "../components/dialogs.tsx";
import { ErrorAlert } from "../components/empty-state.tsx";
import { useResource } from "../components/use-resource.ts";
import { Age } from "../components/age.tsx";
import { idSuffix } from "../components/one-line-text.ts";

/**
 * The undelivered webhooks (dead letters), with buttons to retry or delete them. `count`: their number; when it
 * changes, they are loaded again.
 */
export function DeadLetterList({ count }: { readonly count: number }) {
  const { value = [], error, reload } = useResource(() => listWebhookDeliveries("dead", 100), [count]);
  const [deleting, setDeleting] = useState<WebhookDeliveryRow | null>(null);
  const act = (work: () => Promise<unknown>, said: string) =>
    runAction(async () => {
      await work();
      showNotice(said);
      reload();
    });
  if (error !== null) return <ErrorAlert text={error} onRetry={reload} />;
  if (value.length === 0) return null;
  return (
    <section class="letters pad" aria-labelledby="letters-title">
      <h3 id="letters-title">Undelivered webhooks (dead letters)</h3>
      <ul>
        {value.map((delivery) => (
          <li class="card" key={delivery.id}>
            <div class="what">
              <code>{delivery.url}</code>
              <p class="dim">
                <a href={hrefOf(["threads", delivery.thread_id, "runs", delivery.run_id])}>
                  run {idSuffix(delivery.run_id)}
                </a>
                , ended <Age since={delivery.created_at} isAgo />;{" "}
                {delivery.attempts === 1 ? "1 attempt" : `${delivery.attempts} attempts`}
              </p>
              <p class="bad">{reasonOf(delivery)}</p>
            </div>
            <div class="bar">
              <ActionButton
                onAct={() => act(() => retryWebhookDelivery(delivery.id), "Sending the webhook again.")}
              >
                Send again
              </ActionButton>
              <button type="button" class="quiet" onClick={() => setDeleting(delivery)}>
                Delete
              </button>
            </div>
          </li>
        ))}
      </ul>
      {deleting !== null && (
        <ConfirmDialog
          title="Delete this delivery?"
          text={`The webhook to ${deleting.url} will not be sent.`}
          yes="Delete"
          onYes={() => void act(() => deleteWebhookDelivery(deleting.id), "Delivery deleted.")}
          onClose={() => setDeleting(null)}
        />
      )}
    </section>
  );
}

const reasonOf = ({ last_status, last_error }: WebhookDeliveryRow): string =>
  last_error ?? (last_status === null ? "No answer" : `Status ${last_status}`);
