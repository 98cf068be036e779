/** Shows a failed request as a toast, in the daemon's words; a 401 signs the page out. */
import { auth } from "../api/auth.svelte.ts";
import { ApiError } from "../api/client.ts";
import { toasts } from "./toasts.svelte.ts";

export function showError(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) auth.signedOut(error.message);
  else if (error instanceof ApiError) toasts.show(error.message, error.status === 409 ? "plain" : "red");
  else toasts.show("The daemon did not answer, so it is not known whether this happened. The page shows it when the daemon is back.", "red");
}
