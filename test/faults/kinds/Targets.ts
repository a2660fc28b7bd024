import { now, sleep } from "../../support/Waiting.ts"
import { crash, type Fault, holdMs, startAgain, takeOverMs, unimpededMs } from "../Fault.ts"
import type { Behaviour } from "../Target.ts"

const wrongs: Record<Behaviour, string> = {
  answer: "answer",
  fail: "fail",
  hang: "hang",
  reset: "reset",
  half: "send half an answer",
  endless: "never end their answer"
}

/** Some of the destinations misbehave; the others must not notice. */
export const badTarget = (behaviour: Behaviour): Fault => ({
  name: `targets that ${wrongs[behaviour]} for ${holdMs / 1000} s`,
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async ({ target }) => {
    const at = now()
    const disturbed = ["plain-1", "steady-1", "flaky-4", "paced-1"]
    for (const key of disturbed) target.behave(key, behaviour)
    await sleep(holdMs)
    return {
      recoverableAt: at,
      limitMs: unimpededMs,
      crashes: [],
      disturbed,
      mend: () => {
        target.heal()
        return Promise.resolve({})
      }
    }
  }
})

/** Everything fails with retries piling up, and then a runner dies. */
export const killWhileFailing: Fault = {
  name: "SIGKILL runner-2 while all targets fail",
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async (stage) => {
    const { cluster, target } = stage
    const failing = ["steady-1", "steady-2", "steady-3", "flaky-1", "flaky-2", "flaky-3", "flaky-4", "delayed-1"]
    for (const key of failing) target.behave(key, "fail")
    await sleep(2_500)
    const crashed = await crash(stage, "runner-2")
    await sleep(1_000)
    target.heal()
    return {
      recoverableAt: crashed.at,
      limitMs: takeOverMs,
      crashes: [crashed],
      disturbed: [],
      mend: startAgain(cluster, "runner-2")
    }
  }
}
