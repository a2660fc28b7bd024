import { connect } from "node:net"
import type { Print } from "../Looker.ts"
import { sleeping } from "../Waiting.ts"

/** Interval of the check whether the local app is reachable: while it is, and while it is not. */
const healthyMs = 15_000
const downMs = 5_000

const isThere = (target: URL): Promise<boolean> =>
  new Promise((resolve) => {
    const port = target.port === "" ? (target.protocol === "https:" ? 443 : 80) : Number(target.port)
    const socket = connect({ host: target.hostname.replace(/^\[|\]$/g, ""), port, timeout: 2_000 })
    const over = (isOpen: boolean): void => {
      socket.destroy()
      resolve(isOpen)
    }
    socket.once("connect", () => over(true))
    socket.once("error", () => over(false))
    socket.once("timeout", () => over(false))
  })

/** Reports when the app becomes reachable or unreachable, until the signal aborts. */
export const watchApp = async (target: URL, print: Print, signal: AbortSignal): Promise<void> => {
  for (let before: boolean | null = null; !signal.aborted;) {
    const is = await isThere(target)
    if (is !== before) {
      if (!is)
        print(
          { type: "app", reachable: false },
          `nothing listens at ${target.href} yet: events fail with 502 until your app does`
        )
      else if (before !== null) print({ type: "app", reachable: true }, `the app at ${target.href} is reachable`)
    }
    before = is
    await sleeping(is ? healthyMs : downMs, signal)
  }
}
