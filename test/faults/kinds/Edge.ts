import { now } from "../../support/Waiting.ts"
import { type Fault, quiet, unimpededMs } from "../Fault.ts"

export const killEdge: Fault = {
  name: "SIGKILL edge",
  topology: "cluster",
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    await cluster.kill("edge")
    await cluster.startAll()
    return { recoverableAt: now(), limitMs: unimpededMs, ...quiet }
  }
}
