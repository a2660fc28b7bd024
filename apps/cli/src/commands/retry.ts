import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { failureOf, usage } from "../Failure.ts"
import { call } from "../Gateway.ts"
import { Json, jsonLine, plain, say } from "../Output.ts"

const retried = (id: string) =>
  call(async (client, signal): Promise<{ readonly retry: string; readonly answer: unknown }> => {
    const options = { params: { path: { id } }, signal }
    if (id.startsWith("evt_")) {
      const answer = await client.post("/events/{id}/retry", options)
      return { answer, retry: answer.replay_event_id }
    }
    const answer = await client.post("/requests/{id}/retry", { ...options, body: {} })
    return { answer, retry: answer.replay_request_id }
  })

export const retry = Command.make(
  "retry",
  {
    ids: Argument.String("id").pipe(
      Argument.variadic({ min: 1, max: 1_000 }),
      Argument.withDescription(
        "Ids of events (evt_…, delivered again) or requests (req_…, routed again by the present rules)"
      )
    )
  },
  Effect.fn(function* ({ ids }) {
    const odd = ids.find((id) => !/^(evt|req)_/.test(id))
    if (odd !== undefined) return yield* usage(`${odd} is neither an event (evt_…) nor a request (req_…)`)
    const isJson = yield* Json
    const failures = yield* Effect.forEach(ids, (id) =>
      retried(id).pipe(
        Effect.flatMap(({ answer, retry }) => Console.log(isJson ? jsonLine(answer) : `${id}\t${retry}`)),
        Effect.as(null),
        // If one event cannot be retried, the others are retried all the same.
        Effect.catchTag("CliFailure", (failure) =>
          ids.length === 1 ? Effect.fail(failure) : Effect.as(say(plain(`${id}: ${failure.message}`)), failure)
        )
      )
    )
    const failed = failures.filter((failure) => failure !== null)
    return yield* failed.length === 0
      ? Effect.void
      : Effect.fail(failureOf(new Error(`${failed.length} of ${ids.length} were not retried`)))
  })
).pipe(Command.withDescription("Delivers events again, or replays requests, and prints the id of each retry"))
