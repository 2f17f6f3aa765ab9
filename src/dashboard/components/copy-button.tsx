import { runAction, showNotice } from "../app/notices.ts";

interface CopyProps {
  readonly text: string | (() => string);
  readonly label: string;
  readonly shown?: string;
}

/** A button that copies a text to the clipboard. `label` says what the text is. */
export function CopyButton({ text, label, shown }: CopyProps) {
  const copy = () =>
    runAction(async () => {
      await copyToClipboard(typeof text === "string" ? text : text());
      showNotice(`Copied: ${label}.`);
    });
  return (
    <button
      type="button"
      class="copy quiet"
      title={`Copy ${label}`}
      aria-label={`Copy ${label}`}
      onClick={() => void copy()}
    >
      {shown ?? (
        <svg viewBox="0 0 16 16" width="13" height="13" aria-hidden="true" class="icon">
          <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
          <path d="M10.5 3.5v-1h-8v8h1" />
        </svg>
      )}
    </button>
  );
}

export async function copyToClipboard(text: string): Promise<void> {
  // `navigator.clipboard` does not exist on pages that another machine serves over plain HTTP.
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
