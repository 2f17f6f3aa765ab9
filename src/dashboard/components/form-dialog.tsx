import { Dialog, type DialogProps } from "./dialogs.tsx";
import { LeaveConfirmation } from "./leave-confirmation.tsx";

/** A modal dialog with a form. If `isEdited`, it asks before it is closed, and before the page is left. */
export function FormDialog({ children, ...dialog }: DialogProps & { readonly isEdited: boolean }) {
  return (
    <Dialog {...dialog}>
      <LeaveConfirmation isEdited={dialog.isEdited} />
      {children}
    </Dialog>
  );
}
