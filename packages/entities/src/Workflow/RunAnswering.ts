import { Cause, Effect, Schedule } from "effect"
import type { CustomReply } from "@tidegate/rules/CustomResponse"
import type { Database } from "@tidegate/storage/Database"
import { query } from "@tidegate/storage/Transaction"
import { readRetryable } from "@tidegate/storage/workflows/RunRetry"
import { partsOf } from "@tidegate/storage/workflows/Runs"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { Workflow } from "@tidegate/workflows/Workflow"
import { Answering, answerIn } from "./RunAnswers.ts"
import { storedState } from "./RunRecord.ts"
import { WorkflowEntity } from "./WorkflowProtocol.ts"

/** The run and the step whose output is to answer a sender. */
export interface AnswerAsked {
  readonly team_id: string
  readonly run_id: string
  readonly step_id: string
  readonly timeout_ms: number
}

/** The answer of a run that has come to it before anybody waited here. Otherwise it never ends. */
const storedAnswer = Effect.fnUntraced(function* (
  workflowId: string,
  planOf: (version: number) => Effect.Effect<Workflow | null, unknown, Database>,
  { run_id, step_id, team_id }: AnswerAsked
) {
  const run = yield* query(readRetryable(team_id, workflowId, run_id))
  if (run === null) return null
  if (run.parts === 0) return yield* Effect.never
  const plan = yield* Effect.orElseSucceed(planOf(run.version), () => null)
  if (plan === null) return null
  const state = yield* inSlices(storedState(plan, yield* query(partsOf([run_id]))))
  const hasEnded = run.status === "succeeded" || run.status === "failed"
  const answer = answerIn(plan, state, step_id)
  return answer ?? (answer === null || hasEnded ? null : yield* Effect.never)
})

/** Waits for the output of a run's step, up to the limit. Null: there is none, or not in time. */
export const answerOf = Effect.fnUntraced(function* (
  workflowId: string,
  planOf: (version: number) => Effect.Effect<Workflow | null, unknown, Database>,
  asked: AnswerAsked
): Effect.fn.Return<CustomReply | null, never, Database> {
  const answers = yield* Answering
  // It waits before it reads what is stored: no commit can be missed in between.
  const stored = Effect.catch(storedAnswer(workflowId, planOf, asked), () => Effect.never)
  return yield* Effect.raceFirst(answers.of(asked.run_id, asked.step_id), stored).pipe(
    Effect.timeoutOrElse({ duration: asked.timeout_ms, orElse: () => Effect.succeed(null) })
  )
})

/** While a workflow moves to another process, its next owner is asked as soon as it has the shard. */
const again = Schedule.spaced("100 millis")

/** Asks the workflow's owner, wherever it is. Null: there is no answer, or not in time. */
export const askAnswer = Effect.map(
  WorkflowEntity.client,
  (client) =>
    (workflowId: string, asked: AnswerAsked): Effect.Effect<CustomReply | null> =>
      Effect.suspend(() => client(workflowId).Answer(asked)).pipe(
        Effect.catchCauseIf(Cause.hasInterruptsOnly, () => Effect.fail("interrupted" as const)),
        Effect.retry(again),
        Effect.timeoutOrElse({ duration: asked.timeout_ms, orElse: () => Effect.succeed(null) }),
        Effect.catchCause(() => Effect.succeed(null))
      )
)
