import type { ReactNode } from "react"
import { messageOf } from "../gateway.ts"

/** What a list or a page shows before, instead of, or without its rows. */

export const Loading = () => (
  <p className="empty" role="status">
    Loading…
  </p>
)

export const Failure = ({ error, retry }: { readonly error: unknown; readonly retry?: () => unknown }) => (
  <div className="notice bad" role="alert">
    <p>{messageOf(error)}</p>
    {retry === undefined ? null : (
      <button type="button" onClick={() => void retry()}>
        Try again
      </button>
    )}
  </div>
)

export const Empty = ({ children }: { readonly children: ReactNode }) => <div className="empty">{children}</div>
