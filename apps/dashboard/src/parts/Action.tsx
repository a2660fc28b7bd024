import { type ReactNode, useState } from "react"
import { useMutation } from "@tanstack/react-query"
import { messageOf } from "../gateway.ts"
import { useRefresh, useRole } from "../session.ts"

/**
 * A button that changes something at the gateway. With `asks`, a second click confirms it. What the page shows is read again
 * afterwards; a failure is shown beside the button. A key that can only read is not offered it, unless it is `forAnybody`.
 */
export const Action = ({
  asks,
  children,
  disabled = false,
  done,
  forAnybody = false,
  primary = false,
  run
}: {
  readonly run: () => Promise<unknown>
  readonly asks?: string
  readonly done?: string
  readonly primary?: boolean
  readonly disabled?: boolean
  /** Whether the call needs no right in the team. */
  readonly forAnybody?: boolean
  readonly children: ReactNode
}) => {
  const refresh = useRefresh()
  const { mayChange } = useRole()
  const [asking, setAsking] = useState(false)
  const call = useMutation({ mutationFn: run, onSettled: () => refresh() })
  if (!mayChange && !forAnybody) return null
  const act = () => {
    if (asks !== undefined && !asking) return setAsking(true)
    setAsking(false)
    call.mutate()
  }
  return (
    <>
      <button
        type="button"
        className={primary || asking ? "primary" : ""}
        disabled={disabled || call.isPending}
        onBlur={() => setAsking(false)}
        onClick={act}
      >
        {asking ? asks : children}
      </button>
      {call.isError ? (
        <span role="alert" className="badge bad">
          {messageOf(call.error)}
        </span>
      ) : null}
      {call.isSuccess && done !== undefined ? (
        <span role="status" className="badge good">
          {done}
        </span>
      ) : null}
    </>
  )
}
