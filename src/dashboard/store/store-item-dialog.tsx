import { useRef, useState } from "preact/hooks";
import { deleteStoreItem, getStoreItem, putStoreItem } from "../api/client.ts";
import { isJsonRecord, type StoreItem } from "../api/records.ts";
import { showNotice } from "../app/notices.ts";
import { ConfirmDialog } from "../components/dialogs.tsx";
import { FormDialog } from "../components/form-dialog.tsx";
import { FormFooter } from "../components/form-footer.tsx";
import { JsonField } from "../components/json-field.tsx";
import { NumberField } from "../components/number-field.tsx";
import { Age } from "../components/age.tsx";
import { useSubmit } from "../components/use-submit.ts";

interface StoreItemDialogProps {
  /** The item to edit; null to create one. */
  readonly item: StoreItem | null;
  readonly namespace: readonly string[];
  /** Called with the namespace of an item that was stored, or with null after an item was deleted. */
  readonly onChanged: (namespace: readonly string[] | null) => void;
  readonly onClose: () => void;
}

/**
 * Shown if an item from the list cannot be read: it was deleted, or the project's access rules change the namespace in
 * the request.
 */
const NO_ITEM = "Item not found. It was deleted, or your access rules map it to another namespace.";

const CHANGED_ITEM = "The item was changed by somebody else while you were editing. Open it again.";

/** A dialog to create, edit or delete an item of the store. */
export function StoreItemDialog({ item, namespace, onChanged, onClose }: StoreItemDialogProps) {
  const [labels, setLabels] = useState((item?.namespace ?? namespace).join("."));
  const [key, setKey] = useState(item?.key ?? "");
  const [value, setValue] = useState<unknown>(item?.value);
  /** Why the text of the value is invalid; null if it is valid or empty. */
  const [valueFault, setValueFault] = useState<string | null>(null);
  const [ttl, setTtl] = useState(item?.ttl);
  /** Why the text of the expiry time is not a number; null if it is a number or empty. */
  const [unread, setUnread] = useState<string | null>(null);
  const ttlFault = unread ?? (ttl !== undefined && ttl <= 0 ? "must be more than 0" : null);
  const form = useRef<HTMLFormElement>(null);
  const [isEdited, setEdited] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const submit = useSubmit();
  const save = () =>
    submit.start(async () => {
      if (valueFault !== null) throw new Error(valueFault);
      if (!isJsonRecord(value)) throw new Error("The value must be an object, as JSON.");
      const place = { namespace: labels.split("."), key };
      const before = await getStoreItem(place);
      if (item === null && before !== null)
        throw new Error("An item with this key already exists. Open it to change it.");
      if (item !== null && before === null) throw new Error(NO_ITEM);
      if (item !== null && before?.updated_at !== item.updated_at) throw new Error(CHANGED_ITEM);
      await putStoreItem({ ...place, value, ...ttlOf(ttl, item) });
      showNotice(item === null ? "Item created." : "Item saved.");
      onChanged(place.namespace);
      onClose();
    });
  const remove = (gone: StoreItem) =>
    submit.start(async () => {
      // Checked first, because the server also accepts the deletion of an item that does not exist.
      const now = await getStoreItem(gone);
      if (now === null) throw new Error(NO_ITEM);
      if (now.updated_at !== gone.updated_at) throw new Error(CHANGED_ITEM);
      await deleteStoreItem(gone);
      showNotice("Item deleted.");
      onChanged(null);
      onClose();
    });
  return (
    <FormDialog
      title={item === null ? "Create item" : "Item"}
      wide
      isEdited={isEdited && !submit.isSending}
      onClose={onClose}
    >
      <form
        ref={form}
        onInput={() => setEdited(true)}
        onSubmit={(event) => {
          event.preventDefault();
          if (ttlFault === null) save();
          else form.current?.querySelector<HTMLElement>("#item-ttl")?.focus();
        }}
      >
        <div class="fields">
          <Text
            label="Namespace (parts separated by periods)"
            value={labels}
            isFixed={item !== null}
            onChange={setLabels}
          />
          <Text label="Key" value={key} isFixed={item !== null} onChange={setKey} />
          <div class="field">
            <label for="item-value">Value</label>
            <JsonField
              id="item-value"
              value={item?.value}
              rows={6}
              placeholder={'{"text": "likes tea"}'}
              isStrict
              onChange={setValue}
              onWrong={setValueFault}
            />
          </div>
          <div class="field">
            <label for="item-ttl">Expires after (minutes)</label>
            <NumberField
              id="item-ttl"
              value={ttl}
              placeholder={item === null ? "the server's default" : "never"}
              onChange={setTtl}
              onUnread={setUnread}
              aria-invalid={ttlFault !== null}
              {...(ttlFault !== null && { "aria-describedby": "item-ttl-wrong" })}
            />
            {ttlFault !== null && (
              <p class="hint bad" role="alert" id="item-ttl-wrong">
                {ttlFault}
              </p>
            )}
            {item !== null && (
              <p class="hint">
                {item.expires_at === undefined
                  ? "It does not expire."
                  : `It expires on ${new Date(item.expires_at).toLocaleString()}.`}{" "}
                Saving restarts the expiry time. Leave empty for no expiry. Changed{" "}
                <Age since={item.updated_at} isAgo />, created <Age since={item.created_at} isAgo />.
              </p>
            )}
          </div>
        </div>
        <FormFooter submit={submit} words={item === null ? "Create" : "Save"} onCancel={onClose}>
          {item !== null && (
            <button type="button" class="danger" onClick={() => setDeleting(true)}>
              Delete
            </button>
          )}
          <span class="space" />
        </FormFooter>
      </form>
      {isDeleting && item !== null && (
        <ConfirmDialog
          title="Delete the item?"
          text={`This permanently deletes “${item.key}”.`}
          yes="Delete"
          onYes={() => remove(item)}
          onClose={() => setDeleting(false)}
        />
      )}
    </FormDialog>
  );
}

function ttlOf(ttl: number | undefined, item: StoreItem | null): { readonly ttl?: number | null } {
  if (ttl !== undefined) return { ttl };
  // If the user enters no number, a new item gets the server's default lifetime, and an existing item no longer
  // expires.
  return item === null ? {} : { ttl: null };
}

interface TextProps {
  readonly label: string;
  readonly value: string;
  readonly isFixed: boolean;
  readonly onChange: (value: string) => void;
}

function Text({ label, value, isFixed, onChange }: TextProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        required
        readOnly={isFixed}
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </label>
  );
}
