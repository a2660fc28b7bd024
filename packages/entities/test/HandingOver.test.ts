import { describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, Option, Queue } from "effect"
import {
  type EntityAddress,
  MessageStorage,
  RunnerAddress,
  RunnerStorage,
  Sharding,
  ShardId,
  ShardingConfig
} from "effect/cluster"
import type { KeyRing } from "@tidegate/storage/secrets/Secrets"
import { Batch } from "../src/dispatch/Batch.ts"
import { type DeliveryItem, newItem } from "../src/Destination/queue/DeliveryItem.ts"
import { DestinationEntity } from "../src/Destination/DestinationProtocol.ts"
import { Handover } from "../src/dispatch/Handover.ts"
import { HandoverEntity } from "../src/dispatch/HandoverProtocol.ts"
import * as Owners from "../src/dispatch/Owners.ts"
import { Dispatcher } from "../src/dispatch/Dispatcher.ts"
import { eventMessages } from "../src/dispatch/EventMessages.ts"
import { idOn, shardOf, shardsPerGroup } from "../src/Shards.ts"
import * as ClusterWire from "../src/Wire/ClusterWire.ts"
import { freePort, newKey } from "./WireWorld.ts"

interface Given {
  readonly runner: string
  readonly destination: string
  readonly events: ReadonlyArray<string>
  readonly more: boolean
}

/** Destinations that tell what they are given. */
const destinations = (runner: string, given: Queue.Queue<Given>): Layer.Layer<never, never, Sharding.Sharding> => {
  const deliver = Effect.fnUntraced(function* ({
    address,
    payload
  }: {
    readonly address: EntityAddress.EntityAddress
    readonly payload: unknown
  }) {
    const { items, more } = (payload as { readonly batch: Batch<DeliveryItem> }).batch
    const events = items.map(({ eventId, payload }) => `${eventId} ${Buffer.from(payload.body).toString()}`)
    yield* Queue.offer(given, { runner, destination: address.entityId, events, more })
  })
  const handlers = Array.from(DestinationEntity.protocol.requests.keys(), (tag) => [
    tag,
    tag === "Deliver" ? deliver : () => Effect.die("not asked in this test")
  ])
  return DestinationEntity.toLayer(Object.fromEntries(handlers)) as Layer.Layer<never, never, Sharding.Sharding>
}

/** Takes hand-overs as the gateway does, and tells of which events each was. */
const taking = (handovers: Array<ReadonlyArray<string>>) =>
  HandoverEntity.toLayer(
    Effect.map(eventMessages, ({ take }) =>
      HandoverEntity.of({
        Take: ({ payload: { handover } }) =>
          Effect.suspend(() => {
            handovers.push(
              Array.from(handover.batches.values(), ({ items }) => items.map(({ eventId }) => eventId)).flat()
            )
            return take(handover.batches)
          })
      })
    ),
    { concurrency: "unbounded" }
  )

/** One list of runners, and nobody who contests what the list gives to each. */
const storageOf = (shared: RunnerStorage.RunnerStorage["Service"]): RunnerStorage.RunnerStorage["Service"] => ({
  ...shared,
  acquire: (_address, shards) => Effect.sync(() => Array.from(shards)),
  refresh: (_address, shards) => Effect.sync(() => Array.from(shards))
})

const runnerOf = Effect.fnUntraced(function* (
  runner: string,
  keys: KeyRing,
  storage: RunnerStorage.RunnerStorage["Service"],
  given: Queue.Queue<Given>
) {
  const handovers: Array<ReadonlyArray<string>> = []
  const address = { host: "127.0.0.1", port: yield* freePort }
  const runnerAddress = Option.some(RunnerAddress.make(address.host, address.port))
  const config = ShardingConfig.layer({
    runnerAddress,
    runnerListenAddress: runnerAddress,
    shardsPerGroup,
    simulateRemoteSerialization: false,
    refreshAssignmentsInterval: "50 millis",
    sendRetryInterval: "50 millis",
    entityTerminationTimeout: "1 second"
  })
  const context = yield* Layer.build(
    Layer.mergeAll(destinations(runner, given), taking(handovers), Dispatcher.layer).pipe(
      Layer.provideMerge(ClusterWire.layerRunner(address, keys)),
      Layer.provideMerge(Owners.layerWatching),
      Layer.provide([Layer.succeed(RunnerStorage.RunnerStorage, storageOf(storage)), MessageStorage.layerNoop, config])
    )
  )
  const sharding = Context.get(context, Sharding.Sharding)
  return {
    sharding,
    handovers,
    dispatcher: Context.get(context, Dispatcher),
    owners: Context.get(context, Owners.Owners),
    handover: yield* Effect.provide(HandoverEntity.client, context),
    holds: (id: string) => sharding.hasShardId(ShardId.make("default", shardOf(sharding, id)))
  }
})

const ids = Array.from({ length: 20 }, (_, index) => `des_${index}`)

const payload = {
  requestId: "req_1",
  dataId: null,
  method: "POST",
  path: "/",
  query: "",
  headers: {},
  presented: null,
  body: Buffer.from("shared"),
  verified: true,
  originalIp: null
}

const itemOf = (id: string): DeliveryItem =>
  newItem(
    { id: `evt_${id}`, connectionId: "web_1", dueAt: 2, orderingKey: null },
    { teamId: "tm_1", sourceId: "src_1" },
    1,
    payload
  )

const world = Effect.gen(function* () {
  const keys: KeyRing = [newKey("a")]
  const given = yield* Queue.unbounded<Given>()
  const storage = yield* RunnerStorage.makeMemory
  const one = yield* runnerOf("one", keys, storage, given)
  const two = yield* runnerOf("two", keys, storage, given)
  // Until each shard has one owner, whom both know.
  const turn = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 10)))
  const isSettled = () =>
    ids.every((id) => one.holds(id) !== two.holds(id)) &&
    new Set(ids.map((id) => one.owners.of(shardOf(one.sharding, id)))).size === 2
  while (!isSettled()) yield* turn
  return { one, two, given, away: ids.filter((id) => two.holds(id)), here: ids.filter((id) => one.holds(id)) }
})

describe("Handover of a commit", () => {
  it.live("A handover reaches the other runner as one complete message, and each local actor", () =>
    Effect.gen(function* () {
      const { away, given, here, one, two } = yield* world
      expect(away.length).toBeGreaterThan(1)
      expect(here.length).toBeGreaterThan(1)
      for (const id of ids) one.dispatcher.deliver(id, itemOf(id))
      const taken = yield* Queue.takeN(given, ids.length)
      expect(two.handovers).toStrictEqual([away.map((id) => `evt_${id}`)])
      expect(one.handovers).toStrictEqual([])
      const expected = ids.map((id) => ({
        runner: here.includes(id) ? "one" : "two",
        destination: id,
        events: [`evt_${id} shared`],
        more: false
      }))
      const byId = (a: Given, b: Given): number => a.destination.localeCompare(b.destination)
      expect(taken.toSorted(byId)).toStrictEqual(expected.toSorted(byId))
    }).pipe(Effect.scoped)
  )

  it.live("Events that come while a message is in progress go into the next one, and none is lost", () =>
    Effect.gen(function* () {
      const { away, given, one, two } = yield* world
      const to = away[0]!
      const events = ["a", "b", "c", "d", "e"]
      // A turn for each, but none in which an answer could be read.
      yield* Effect.promise(async () => {
        for (const event of events) {
          one.dispatcher.deliver(to, itemOf(event))
          await new Promise<void>((resolve) => queueMicrotask(resolve))
        }
      })
      const taken = yield* Queue.takeN(given, 2)
      expect(taken.map(({ events }) => events)).toStrictEqual([
        ["evt_a shared"],
        ["evt_b shared", "evt_c shared", "evt_d shared", "evt_e shared"]
      ])
      expect(two.handovers).toStrictEqual([["evt_a"], ["evt_b", "evt_c", "evt_d", "evt_e"]])
    }).pipe(Effect.scoped)
  )

  it.live("A runner without the destination makes the runner that has it read its rows", () =>
    Effect.gen(function* () {
      const { away, given, here, one } = yield* world
      const to = one.handover(idOn(one.sharding, shardOf(one.sharding, away[0]!)))
      const handover = new Handover(new Map([here[0]!, away[0]!].map((id) => [id, new Batch([itemOf(id)])])))
      yield* to.Take({ handover }, { discard: true })
      const taken = yield* Queue.takeN(given, 2)
      expect(taken).toContainEqual({
        runner: "two",
        destination: away[0],
        events: [`evt_${away[0]} shared`],
        more: false
      })
      expect(taken).toContainEqual({ runner: "one", destination: here[0], events: [], more: true })
      expect(yield* Queue.size(given)).toBe(0)
    }).pipe(Effect.scoped)
  )
})
