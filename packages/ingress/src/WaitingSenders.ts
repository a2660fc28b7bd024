import type { ServerResponse } from "node:http"
import { Context, Effect, Fiber, Layer } from "effect"
import type { Sharding } from "effect/cluster"
import { type AnswerAsked, askAnswer } from "@tidegate/entities/Workflow/RunAnswering"
import type { Reply } from "./Reply.ts"

/** Senders that wait for a workflow's answer: in one process, and of one team. Each is an open connection. */
const max = { process: 1_000, team: 200 }

/**
 * Senders whose request is stored and who wait for the output of a workflow's step. It takes memory and an open connection, but no
 * connection of the database.
 */
export class WaitingSenders extends Context.Service<
  WaitingSenders,
  {
    /**
     * `done` is called once: with the answer, or with null when there is none in time, or when too many senders wait already. Not
     * called for a sender that has disconnected.
     */
    readonly wait: (
      asked: AnswerAsked & { readonly workflowId: string },
      response: ServerResponse,
      done: (answer: Reply | null) => void
    ) => void
  }
>()("@tidegate/ingress/WaitingSenders") {
  static readonly layer: Layer.Layer<WaitingSenders, never, Sharding.Sharding> = Layer.effect(
    WaitingSenders,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const ask = yield* askAnswer
  const run = Effect.runForkWith(yield* Effect.context())
  const teams = new Map<string, number>()
  let all = 0

  const count = (team: string, by: number): void => {
    all += by
    const waiting = (teams.get(team) ?? 0) + by
    if (waiting === 0) teams.delete(team)
    else teams.set(team, waiting)
  }

  return WaitingSenders.of({
    wait: ({ workflowId, ...asked }, response, done) => {
      const { team_id } = asked
      if (response.destroyed) return
      if (all >= max.process || (teams.get(team_id) ?? 0) >= max.team) return done(null)
      count(team_id, 1)
      const waiting = run(
        Effect.ensuring(
          Effect.map(ask(workflowId, asked), done),
          Effect.sync(() => count(team_id, -1))
        )
      )
      response.once("close", () => void run(Fiber.interrupt(waiting)))
    }
  })
})
