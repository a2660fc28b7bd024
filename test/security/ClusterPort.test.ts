import { createSecretKey, randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import { describe, expect } from "vitest"
import { type Duration, Effect, Exit, Layer, Option } from "effect"
import { MessageStorage, Runner, RunnerAddress, RunnerStorage, type Sharding, ShardingConfig } from "effect/cluster"
import { shardsPerGroup } from "@tidegate/entities/Shards"
import { SourceEntity } from "@tidegate/entities/Source/SourceProtocol"
import * as ClusterWire from "../../packages/entities/src/Wire/ClusterWire.ts"
import type { PeerAddress } from "../../packages/entities/src/Wire/PeerKeys.ts"
import { newId } from "@tidegate/model/Ids"
import type { KeyRing, SecretKey } from "@tidegate/storage/secrets/Secrets"
import { demoTeam } from "@tidegate/storage/teams/Teams"
import { impostor, plain, proven, tap, withKey } from "../../packages/entities/test/WireWorld.ts"
import { it as gatewayIt } from "../support/it.ts"
import { waitUntil } from "../support/Waiting.ts"

const bytes = randomBytes(32)
const key = (of: Buffer): SecretKey => ({ id: "a", fingerprint: "a", key: createSecretKey(of) })
const ours = key(bytes)
const theirs = key(randomBytes(32))

const config = {
  runnerAddress: Option.none(),
  runnerListenAddress: Option.none(),
  shardsPerGroup,
  simulateRemoteSerialization: false,
  sendRetryInterval: "50 millis"
} as const

type Stores = RunnerStorage.RunnerStorage | MessageStorage.MessageStorage | ShardingConfig.ShardingConfig
type Client = Layer.Layer<Sharding.Sharding, unknown, Stores>

/** A cluster client as the library has it: it knows an address and nothing else. */
const withoutKey: Client = NodeClusterSocket.layer({ storage: "byo", clientOnly: true, shardingConfig: config })
const keyed = (ring: KeyRing): Client => ClusterWire.layerClient(ring)

/** What the source's actor at `address` answers to a client of this kind. Who is not let in gets no answer, so it is for the test to end. */
const command = <A>(
  client: Client,
  { host, port }: PeerAddress,
  send: (source: ReturnType<Effect.Success<typeof SourceEntity.client>>) => Effect.Effect<A, unknown>,
  within: Duration.Input = "60 seconds"
) =>
  Effect.gen(function* () {
    const storage = yield* RunnerStorage.makeMemory
    yield* storage.register(
      Runner.make({ address: RunnerAddress.make(host, port), groups: ["default"], weight: 1 }),
      true
    )
    const stores = Layer.mergeAll(
      Layer.succeed(RunnerStorage.RunnerStorage, storage),
      MessageStorage.layerNoop,
      ShardingConfig.layer(config)
    )
    const context = yield* Layer.build(Layer.provide(client, stores))
    const source = yield* Effect.provide(SourceEntity.client, context)
    return yield* send(source(newId("src_", Date.now()))).pipe(Effect.timeout(within), Effect.exit)
  }).pipe(Effect.scoped, Effect.runPromise)

const create = (name: string) => (source: ReturnType<Effect.Success<typeof SourceEntity.client>>) =>
  source.Create({ team_id: demoTeam, input: { name } })

const it = gatewayIt
  .extend("settings", { scope: "file" }, { TIDEGATE_SECRET_KEYS: `a:${bytes.toString("base64")}` })
  .extend("port", { scope: "file" }, async ({ gateway }): Promise<PeerAddress> => {
    const [runner] = await gateway.sql("select address from cluster_runners")
    const [host, number] = (runner.address as string).split(":")
    return { host: host!, port: Number(number) }
  })
  .extend(
    "names",
    ({ gateway }) =>
      async () =>
        (await gateway.sql("select name from sources order by name")).map(({ name }) => name)
  )
  /** A request still goes all the way. */
  .extend("works", ({ gateway, target }) => async () => {
    const { source } = await gateway.route(target)
    const answer = await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: "{}" })
    expect(answer.status).toBe(200)
    await target.next()
  })

describe("Cluster port", () => {
  it("The cluster port accepts commands from a peer with the key", async ({ names, port }) => {
    expect(Exit.isSuccess(await command(keyed([ours]), port, create("by-a-peer")))).toBe(true)
    expect(await names()).toContain("by-a-peer")
  })

  for (const [who, client, reason] of [
    ["a cluster client without a key", withoutKey, "ERR_SSL"],
    ["a client with another key", keyed([theirs]), "ERR_SSL_BINDER_DOES_NOT_VERIFY"]
  ] as const) {
    it(`The cluster port refuses commands from ${who}`, async ({ gateway, port, works }) => {
      await gateway.settled()
      const before = await gateway.state()
      expect(Exit.isFailure(await command(client, port, create("forged"), "3 seconds"))).toBe(true)
      await waitUntil("the refusal is logged", async () => {
        if ((await gateway.logged()).includes(reason)) return true
        // On a busy machine it may not have come as far as to be refused.
        await command(client, port, create("forged"), "3 seconds")
        return false
      })
      expect(await gateway.state()).toEqual(before)
      await works()
    })
  }

  it("The cluster port refuses a replayed connection and replayed messages", ({ gateway, names, port, works }) =>
    Effect.gen(function* () {
      // The command in the clear, as only somebody with the key gets to see it.
      const ear = yield* impostor([ours])
      yield* Effect.forkScoped(Effect.promise(() => command(keyed([ours]), ear.address, create("played-again"))))
      yield* Effect.promise(() => waitUntil("the command comes", () => ear.sent().length > 0))
      const line = yield* tap(port)
      const peer = yield* Effect.promise(() => proven(ours, port, line.address))
      peer.socket.write(ear.sent())
      yield* Effect.promise(async () => {
        await waitUntil("it is carried out", async () => (await names()).includes("played-again"))
        const [{ id }] = await gateway.sql("select id from sources where name = 'played-again' and deleted_at is null")
        peer.socket.destroy()
        await gateway.sql("update sources set name = 'played-once' where id = $1", [id])
        for (const words of [line.sent(), ear.sent()]) {
          const again = plain(port)
          again.socket.write(words)
          await again.closed
        }
        expect(await names()).not.toContain("played-again")
        await works()
      })
    }).pipe(Effect.scoped, Effect.runPromise))

  it("The cluster port immediately closes a connection that does not use TLS", async ({ port, works }) => {
    for (const words of ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\n", "\0".repeat(64), randomBytes(512)]) {
      // Who says nothing is given his time; this one is not.
      const silent = plain(port)
      let isOver = false
      void silent.closed.then(() => (isOver = true))
      const stranger = plain(port)
      stranger.socket.end(words)
      await stranger.closed
      expect(isOver).toBe(false)
      silent.socket.destroy()
      expect(stranger.received().length).toBeLessThan(16)
    }
    await works()
  })

  it("The cluster port closes silent and slow connections within 5 seconds", async ({ port }) => {
    const began = performance.now()
    const silent = plain(port)
    const slow = plain(port)
    // The beginning of a handshake of 500 bytes that never ends.
    const hello = Buffer.concat([Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]), Buffer.alloc(489)])
    let at = 0
    const dripping = setInterval(() => slow.socket.write(hello.subarray(at, ++at)), 100)
    await Promise.all([silent.closed, slow.closed])
    clearInterval(dripping)
    // The next of its bytes would have come for 50 s.
    expect(performance.now() - began).toBeLessThan(30_000)
    expect(at).toBeGreaterThan(20)
  })

  it("The cluster port serves its peers during a flood without growing memory or filling the log", async ({
    gateway,
    port,
    works
  }) => {
    const memory = async () =>
      Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${gateway.pid}/status`, "utf8"))![1]) / 1024
    const before = { memory: await memory(), lines: (await gateway.logged()).split("\n").length }
    let attempts = 0
    const over = new AbortController()
    const floods = Array.from({ length: 8 }, async (_, index) => {
      while (!over.signal.aborted) {
        attempts++
        if (index % 2 === 0) await withKey({ identity: "x", psk: randomBytes(32) }, port).catch(() => {})
        else {
          const stranger = plain(port)
          // Some leave their connections open.
          if (index % 4 === 1) stranger.socket.end("GET / HTTP/1.1\r\n\r\n")
          await Promise.race([stranger.closed, sleep(5)])
        }
      }
    })
    let answered = 0
    const until = performance.now() + 8_000
    try {
      const isEnough = (): boolean => performance.now() >= until && attempts > 300
      while (!isEnough()) {
        // A process of its own each time: it has to come in first.
        const exit = await command(keyed([ours]), port, create(`through-the-flood-${answered}`))
        expect(Exit.isSuccess(exit), `after ${answered} that came through`).toBe(true)
        answered++
      }
    } finally {
      over.abort()
      await Promise.all(floods)
    }
    const grown = (await memory()) - before.memory
    const lines = (await gateway.logged()).split("\n").length - before.lines
    expect(attempts).toBeGreaterThan(300)
    expect(grown).toBeLessThan(150)
    expect(lines).toBeLessThan(20)
    await works()
  })
})
