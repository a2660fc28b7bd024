/** A status: its color says what to do (nothing, wait, look), and its text names the status. */
const tones: Readonly<Record<string, "good" | "bad" | "wait" | "">> = {
  accepted: "good",
  rejected: "bad",
  SUCCESSFUL: "good",
  FAILED: "bad",
  QUEUED: "wait",
  SCHEDULED: "wait",
  HOLD: "wait",
  succeeded: "good",
  completed: "good",
  failed: "bad",
  completed_with_errors: "bad",
  skipped: "",
  running: "wait",
  queued: "wait",
  PLANNED: "wait",
  RUNNING: "wait",
  COMPLETED: "good",
  enabled: "good",
  active: "good",
  paused: "wait",
  disabled: "wait",
  expired: "bad",
  revoked: "",
  error: "bad",
  fallback: "wait",
  expiring: "wait",
  connecting: "wait",
  requested: "wait",
  verifying: "wait",
  scheduled: "wait",
  sent: "good",
  open: "bad",
  acknowledged: "wait",
  searching: "wait",
  counting: "wait",
  planned: "wait",
  stopping: "wait",
  removing: "wait",
  checking: "wait",
  done: "good",
  added: "good",
  removed: "bad",
  changed: "wait"
}

export const toneOf = (status: string): string => tones[status] ?? ""

const words: Readonly<Record<string, string>> = { HOLD: "On hold", completed_with_errors: "Completed with errors" }

export const wordsOf = (status: string): string =>
  words[status] ?? status.charAt(0).toUpperCase() + status.slice(1).toLowerCase().replaceAll("_", " ")

export const Status = ({ of }: { readonly of: string }) => <span className={`badge ${toneOf(of)}`}>{wordsOf(of)}</span>
