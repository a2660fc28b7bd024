import { type ReactNode, useState } from "react"
import { useMutation } from "@tanstack/react-query"
import { messageOf } from "../gateway.ts"
import { type Call, useMay } from "../may.ts"
import { useRefresh } from "../session.ts"

/**
 * A button that changes something at the gateway. With `asks`, a second click confirms it. What the page shows is read again
 * afterwards; a failure is shown beside the button. Who may not make its call is not offered it.
 */
export const Action = ({
  asks,
  call: name,
  children,
  disabled = false,
  done,
  primary = false,
  run
}: {
  /** The call that `run` makes; null: none that needs a right. */
  readonly call: Call | null
  readonly run: () => Promise<unknown>
  readonly asks?: string
  readonly done?: string
  readonly primary?: boolean
  readonly disabled?: boolean
  readonly children: ReactNode
}) => {
  const refresh = useRefresh()
  const may = useMay()
  const [asking, setAsking] = useState(false)
  const call = useMutation({ mutationFn: run, onSettled: () => refresh() })
  if (name !== null && !may(name)) return null
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
