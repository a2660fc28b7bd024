import { now, sleep } from "../../support/Waiting.ts"
import { type Fault, holdMs, quiet, unimpededMs } from "../Fault.ts"

export const nothing: Fault = {
  name: "nothing",
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async () => {
    const at = now()
    await sleep(holdMs)
    return { recoverableAt: at, limitMs: unimpededMs, ...quiet }
  }
}
