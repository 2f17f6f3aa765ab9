import { Dialog, type DialogProps } from "./dialogs.tsx";
import { LeaveConfirmation } from "./leave-confirmation.tsx";

/**
 * A modal dialog with a form. If `isEdited`, the user is asked before the dialog is closed and before the page is left.
 */
export function FormDialog({ children, ...dialog }: DialogProps & { readonly isEdited: boolean }) {
  return (
    <Dialog {...dialog}>
      <LeaveConfirmation isEdited={dialog.isEdited} />
      {children}
    </Dialog>
  );
}
