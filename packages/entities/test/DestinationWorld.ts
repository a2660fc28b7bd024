import { Cause, Clock, Context, Effect, Layer, Logger, Queue } from "effect"
import { MessageStorage, RunnerHealth, Runners, RunnerStorage, Sharding, ShardingConfig } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { Connector } from "@tidegate/connectors/Connector"
import { Egress, type Outbound } from "@tidegate/egress/Egress"
import type { Answer } from "../../egress/src/Exchange.ts"
import type { Rule } from "@tidegate/model/Rule"
import { Journal } from "@tidegate/storage/Journal"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { noServers } from "../../connectors/test/TestConnectors.ts"
import { Cancellations } from "../src/Cancellations.ts"
import { DeliveryRuntime } from "../src/Destination/sending/DeliveryRuntime.ts"
import * as DestinationBehaviour from "../src/Destination/DestinationBehaviour.ts"
import { DestinationEntity } from "../src/Destination/DestinationProtocol.ts"
import { Lease } from "../src/Lease.ts"
import { shardOf, shardsPerGroup } from "../src/Shards.ts"

export type Act = (outbound: Outbound) => Promise<Answer>

/** What the network does with the next deliveries; one that nothing is said about is answered 200. */
export class Acts extends Context.Service<Acts, Array<Act>>()("Acts") {}
/** Every delivery that reached the network. */
export class Calls extends Context.Service<Calls, Queue.Queue<Outbound>>()("Calls") {}

/** What a target answers; when, the network says. */
export const answer = (change: Partial<Answer> = {}): Answer => ({
  status: 200,
  headers: {},
  body: Buffer.alloc(0),
  bodyTruncated: false,
  errorCode: null,
  errorMessage: null,
  sentAt: 0,
  respondedAt: 0,
  ...change
})

const network = Layer.effectContext(
  Effect.gen(function* () {
    const acts: Array<Act> = []
    const calls = yield* Queue.unbounded<Outbound>()
    const clock = yield* Clock.Clock
    const deliver: Act = async (outbound) => {
      Queue.offerUnsafe(calls, outbound)
      const act = acts.shift() ?? (() => Promise.resolve(answer()))
      const sentAt = clock.currentTimeMillisUnsafe()
      const answered = await act(outbound)
      // By the tests' clock: a retry is due so long after the answer.
      return { ...answered, sentAt, respondedAt: clock.currentTimeMillisUnsafe() }
    }
    return Context.make(Acts, acts).pipe(
      Context.add(Calls, calls),
      Context.add(Egress, { deliver } as unknown as Egress["Service"])
    )
  })
)

export const logged: Array<{ readonly message: string; readonly cause: string }> = []
const logger = Logger.make(({ cause, message }) => {
  logged.push({ message: JSON.stringify(message), cause: Cause.pretty(cause) })
})

const runner = Sharding.layer.pipe(
  Layer.provide([Runners.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide([MessageStorage.layerNoop, ShardingConfig.layer({ shardsPerGroup })])
)

/** One runner, and destinations whose types are those that `connectorOf` knows. Whoever keeps its only permit keeps everybody from it. */
export const worldWith = (connectorOf: (type: string) => Connector | undefined, deliveries = 1) =>
  DestinationBehaviour.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        network,
        Lease.layerAlways,
        noServers,
        DeliveryRuntime.layer({ deliveries, windowBytes: 1e7, connectorOf }),
        Cancellations.layer,
        Journal.layer,
        runner
      )
    ),
    Layer.provideMerge(Logger.layer([logger])),
    Layer.provideMerge(ControlPlane.layer),
    Layer.provide(Layer.effectDiscard(TestClock.setTime(Date.now())))
  )

export const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

export const linear = (interval: number, count: number): Rule => ({
  type: "retry",
  strategy: "linear",
  interval,
  count
})

/** A connection to a destination of its own, of this type and config, or one that there is, with one event waiting. */
export const waiting = Effect.fnUntraced(function* (
  rules: ReadonlyArray<Rule> = [],
  destination?: { readonly type: string; readonly config: object },
  body?: string,
  known?: { readonly id: string; readonly source_id: string; readonly destination_id: string }
) {
  const sql = yield* SqlClient.SqlClient
  const sharding = yield* Sharding.Sharding
  const connection = known ?? (yield* ControlPlane.createConnection({ rules }))
  if (destination !== undefined) {
    const { config, type } = destination
    yield* sql`update destinations set type = ${type}, config = ${JSON.stringify({ ...config, auth_type: null })}
      where id = ${connection.destination_id}`
  }
  const createdAt = new Date((yield* Clock.Clock).currentTimeMillisUnsafe())
  const event = yield* ControlPlane.insertEvent(connection, body === undefined ? { createdAt } : { createdAt, body })
  yield* sql`update deliveries set shard = ${shardOf(sharding, connection.destination_id)} where event_id = ${event}`
  const actor = (yield* DestinationEntity.client)(connection.destination_id)
  return { event, connection, wake: actor.Wake(undefined, { discard: true }) }
})

/** Waits until the event has that many attempts recorded; all of them, and what they made of it. */
export const recorded = Effect.fnUntraced(function* (event: string, attempts: number) {
  const sql = yield* SqlClient.SqlClient
  for (;;) {
    // One statement: between two, another attempt may be recorded.
    const [row] = yield* sql<{ state: string; attempts: number; codes: ReadonlyArray<string | null> }>`
      select state, attempts, array(
        select error_code from attempts where event_id = events.id order by attempt_number
      ) as codes from events where id = ${event}`
    if (row!.attempts >= attempts) return { state: row!.state, codes: row!.codes }
    yield* turn
  }
})

export const released = Effect.gen(function* () {
  const { permits } = yield* DeliveryRuntime
  while (permits.taken > 0) yield* turn
})
