import { sleep } from "../../support/Waiting.ts"
import { type Fault, quiet, takeOverMs } from "../Fault.ts"

export const diskFull: Fault = {
  name: "the disk of PostgreSQL full for 4 s",
  topology: "disk",
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    const disk = cluster.part("disk")
    disk.fill()
    await sleep(4_000)
    disk.relieve()
    return { recoverableAt: await cluster.postgres.back(), limitMs: takeOverMs, ...quiet }
  }
}
