import { Context, Deferred, Effect } from "effect"
import type { CustomReply } from "@tidegate/rules/CustomResponse"
import { stepAnswer } from "@tidegate/rules/StepAnswer"
import type { RunState } from "@tidegate/workflows/RunState"
import type { Workflow } from "@tidegate/workflows/Workflow"

/**
 * Senders that wait for the output of a run's step. They wait in the process that carries the run on, and only in its memory: a
 * process that dies, or loses the run, is asked again elsewhere.
 */

interface Waiting {
  readonly stepId: string
  readonly answer: Deferred.Deferred<CustomReply | null>
}

/** What a step of this state answers. Undefined: it has not ended yet. Null: it gives no answer. */
export const answerIn = (
  { plan }: Pick<Workflow, "plan">,
  { finishedAt, steps }: Pick<RunState, "finishedAt" | "steps">,
  stepId: string
): CustomReply | null | undefined => {
  const state = steps[plan.findIndex(({ step }) => step.id === stepId)]
  if (state === undefined) return null
  if (state.status === "succeeded") return stepAnswer(state.output)
  return state.status === "failed" || state.status === "skipped" || finishedAt !== null ? null : undefined
}

export class RunAnswers {
  readonly #waiting = new Map<string, Waiting>()

  /** Waits for the answer of a run; the caller ends the wait. A later call for the same run takes the place of an earlier one. */
  readonly of = (runId: string, stepId: string): Effect.Effect<CustomReply | null> =>
    Effect.suspend(() => {
      const waiting = { stepId, answer: Deferred.makeUnsafe<CustomReply | null>() }
      this.#waiting.set(runId, waiting)
      return Effect.ensuring(
        Deferred.await(waiting.answer),
        Effect.sync(() => void (this.#waiting.get(runId) === waiting && this.#waiting.delete(runId)))
      )
    })

  /** The run has come to this state, which is stored. */
  moved(runId: string, workflow: Workflow, state: RunState): void {
    const waiting = this.#waiting.get(runId)
    if (waiting === undefined) return
    const answer = answerIn(workflow, state, waiting.stepId)
    if (answer !== undefined) Deferred.doneUnsafe(waiting.answer, Effect.succeed(answer))
  }
}

/** The senders that wait in this process. */
export const Answering = Context.Reference<RunAnswers>("@tidegate/entities/Workflow/RunAnswers", {
  defaultValue: () => new RunAnswers()
})
