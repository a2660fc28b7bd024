import { now } from "../../support/Waiting.ts"
import { type Fault, quiet, takeOverMs } from "../Fault.ts"

export const promotion: Fault = {
  name: "a synchronous standby is promoted",
  topology: "standby",
  ingressStaysUp: false,
  usesUpWorld: true,
  inflict: async ({ cluster }) => {
    await cluster.part("promote")()
    return { recoverableAt: now(), limitMs: takeOverMs, ...quiet }
  }
}
