import type { ReactNode } from "react"

/** Things that need attention, each with the one action that helps. */
export const Entries = ({ children, label }: { readonly label: string; readonly children: ReactNode }) => (
  <ul className="entries plain" aria-label={label}>
    {children}
  </ul>
)

/** `wait`: it may recover by itself. `bad`: it does not. */
export const Entry = ({
  action,
  children,
  tone
}: {
  readonly tone: "bad" | "wait"
  readonly action: ReactNode
  readonly children: ReactNode
}) => (
  <li>
    <span className={`dot ${tone}`} />
    <span>{children}</span>
    <span className="entry-action">{action}</span>
  </li>
)
