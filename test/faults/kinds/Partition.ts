import { portsOf } from "../../support/Peers.ts"
import { now, sleep } from "../../support/Waiting.ts"
import { deliveringPorts, type Fault, takeOverMs } from "../Fault.ts"

/** The process goes on without its database. Others take over its work. It can finish deliveries that it has begun, but not record them. */
export const partition = (isSilent: boolean): Fault => ({
  name: isSilent
    ? "packets between runner-1 and PostgreSQL are lost for 6 s"
    : "runner-1 is refused by PostgreSQL for 6 s",
  topology: "link",
  ingressStaysUp: true,
  inflict: async (stage) => {
    const { cluster, target } = stage
    const link = cluster.part("link")
    const at = now()
    let ports = deliveringPorts(stage, ["runner-1"])
    if (isSilent) link.silence()
    else await link.cut()
    while (now() < at + 6_000) {
      await sleep(250)
      ports = ports === null ? null : ports.union(portsOf(cluster.pid("runner-1"), target.port) ?? new Set())
    }
    if (isSilent) link.speak()
    else await link.mend()
    return { recoverableAt: at, limitMs: takeOverMs, crashes: [{ at, ports }], disturbed: [] }
  }
})
