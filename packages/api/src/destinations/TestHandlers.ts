import { Duration, Effect, Fiber } from "effect"
import { SenderDomains } from "@tidegate/connectors/SenderDomains"
import { RateLimiter } from "@tidegate/coordination/limits/RateLimiter"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import { maxControlBody } from "@tidegate/model/BodyLimits"
import { prefixes } from "@tidegate/model/Ids"
import { destinationTestBody } from "@tidegate/resources/DestinationTest"
import { permitsByKey } from "@tidegate/runtime/FairSemaphore"
import { Destinations } from "@tidegate/storage/control/Destinations"
import { CurrentTeam } from "../contract/Authorization.ts"
import { refuse, retryIn } from "../Credentials.ts"
import { askOwner, ownersOf, reader, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { perMinute } from "../RateLimit.ts"
import { mayWrite } from "../SenderDomains.ts"

/** Nobody may scan a network with it: the way out refuses private addresses, and these limits hold for each team. */
const made = perMinute("destination_tests", 30)
const atOnce = { permits: 64, perKey: 4, maxWaiting: 0 }
/** Longer than the longest time-out of a destination, and than a wait for its token. */
const deadline = Duration.seconds(90)

/** The handler of `testEndpoint`. */
export const testHandler = Effect.gen(function* () {
  const { fresh, owner } = ownersOf(prefixes.destination, "destination", yield* DestinationEntity.client)
  const destinations = yield* Destinations
  const limiter = yield* RateLimiter
  const own = yield* SenderDomains
  const reading = yield* reader
  const places = permitsByKey(atOnce)

  return Effect.fnUntraced(function* ({ request }: WithBody) {
    const { caller, id: team_id } = yield* CurrentTeam
    const input = yield* Effect.fromResult(destinationTestBody.judge(yield* readJsonObject(request, maxControlBody)))
    const { destination: written, destination_id: id } = input
    const { allowed, limit, retryMs } = yield* limiter.take(made, team_id)
    if (!allowed) {
      yield* refuse(retryIn(retryMs), `a team may make at most ${limit} test deliveries a minute`)
    }
    // The actor of a destination is not asked by another team.
    const actor = id === null ? yield* fresh : yield* Effect.tap(owner(id), reading(destinations.get(team_id, id)))
    yield* mayWrite(own, caller, written, id === null ? null : reading(destinations.get(team_id, id)))
    // A delivery goes on when its caller hangs up, and so does its place.
    const tested = yield* Effect.forkDetach(
      places.within(team_id)(
        askOwner(actor.Test({ team_id, input }), deadline),
        refuse(1, `a team may make at most ${atOnce.perKey} test deliveries at the same time`)
      )
    )
    return yield* Fiber.join(tested)
  })
})
