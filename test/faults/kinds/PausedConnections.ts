import { now, sleep } from "../../support/Waiting.ts"
import { crash, type Fault, holdMs, startAgain, takeOverMs } from "../Fault.ts"

/** Events that came during the pause are delivered in their order, although the process that knew the order was killed. */
export const pauseAndKill: Fault = {
  name: `all connections paused for ${holdMs / 1000} s, SIGKILL runner-1 amid it`,
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async (stage) => {
    const { cluster, routes } = stage
    const all = routes.flatMap(({ connections }) => connections)
    const switchAll = (to: "pause" | "unpause") =>
      Promise.all(all.map(({ id }) => cluster.api("PUT", `/connections/${id}/${to}`)))
    await switchAll("pause")
    await sleep(holdMs / 2)
    const crashed = await crash(stage, "runner-1")
    await sleep(holdMs / 2)
    await switchAll("unpause")
    return {
      recoverableAt: now(),
      limitMs: takeOverMs,
      crashes: [crashed],
      disturbed: [],
      paused: true,
      mend: startAgain(cluster, "runner-1")
    }
  }
}
