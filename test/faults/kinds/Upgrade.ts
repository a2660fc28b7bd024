import { now } from "../../support/Waiting.ts"
import { type Fault, quiet, restartMs } from "../Fault.ts"

export const upgrade: Fault = {
  name: "rolling upgrade from the previous version",
  topology: "previous",
  ingressStaysUp: false,
  usesUpWorld: true,
  inflict: async ({ cluster }) => {
    const at = now()
    for (const name of ["runner-1", "runner-2", "edge"] as const) await cluster.update(name)
    return { recoverableAt: at, limitMs: restartMs, ...quiet }
  }
}
