import { Result } from "effect"
import { parentPort } from "node:worker_threads"
import { cpuMillis } from "@tidegate/runtime/EventLoopBudget"
import { readJson } from "@tidegate/json/JsonText"
import { runToEnd } from "@tidegate/runtime/Resumable"
import { compile, type Failure, type Outcome, run } from "@tidegate/formatter/Formatter"
import { testOperation, type TestAnswer, type TestFailure, type TestInvalid } from "@tidegate/formatter/OperationTest"
import type { Answer, Order, StepResult, StepTask, TestResult, TestTask } from "@tidegate/formatter/Task"

/** The thread of the worker pool. It runs one task at a time, from beginning to end. Its clock is the CPU time of the thread. */

const stepOf = ({ anchor, config, inputs, seed, timezone }: StepTask): StepResult =>
  Result.flatMap(compile(config), (step) => run(step, inputs, { anchor, timezone, seed, clock: cpuMillis }))

const trialOf = ({ body, now, versions }: TestTask): TestResult =>
  runToEnd(testOperation(body, { clock: cpuMillis, now, versions }))

const answerOf = (
  id: number,
  result: Result.Result<Outcome | TestAnswer, Failure | TestInvalid | TestFailure>
): Answer =>
  Result.isSuccess(result)
    ? { id, kind: "made", value: result.success }
    : { id, kind: "refused", failure: result.failure }

parentPort!.on("message", (text: string) => {
  const { id, task } = readJson(text) as Order
  const answer = (): Answer => {
    try {
      return answerOf(id, task.kind === "step" ? stepOf(task) : trialOf(task))
    } catch (cause) {
      return { id, kind: "broken", message: cause instanceof Error ? cause.name : "an unknown error" }
    }
  }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, and no window
  parentPort!.postMessage(JSON.stringify(answer()))
})
