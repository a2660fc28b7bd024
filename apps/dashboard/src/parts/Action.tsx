import { type ReactNode, useState } from "react"
import { useMutation } from "@tanstack/react-query"
import { messageOf } from "../gateway.ts"
import { type Call, useMay } from "../may.ts"
import { useRefresh } from "../session.ts"
import { useSay } from "./Said.tsx"

/**
 * A button that changes something at the gateway. With `asks`, a second click confirms it. What the page shows is read again
 * afterwards. The button may be gone then, so the page says what was done; a failure is shown beside the button. Who may not make its
 * call is not offered it.
 */
export const Action = ({
  asks,
  call: name,
  children,
  disabled = false,
  done,
  isInRow = false,
  primary = false,
  run
}: {
  /** The call that `run` makes; null: none that needs a right. */
  readonly call: Call | null
  readonly run: () => Promise<unknown>
  readonly asks?: string
  /** What the page says when it was done. */
  readonly done?: string
  /** A row has no space for a failure: the page says it. */
  readonly isInRow?: boolean
  readonly primary?: boolean
  readonly disabled?: boolean
  readonly children: ReactNode
}) => {
  const refresh = useRefresh()
  const may = useMay()
  const [asking, setAsking] = useState(false)
  const say = useSay()
  const call = useMutation({
    mutationFn: run,
    onSuccess: () => {
      if (done !== undefined) say({ text: done, tone: "good" })
    },
    onError: (error) => {
      if (isInRow) say({ text: messageOf(error), tone: "bad" })
    },
    onSettled: () => refresh()
  })
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
      {call.isError && !isInRow ? (
        <span role="alert" className="badge bad">
          {messageOf(call.error)}
        </span>
      ) : null}
    </>
  )
}
