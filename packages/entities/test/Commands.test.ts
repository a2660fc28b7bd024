import { expect, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Redacted, Ref, Result, type Schema } from "effect"
import { Entity, TestRunner } from "effect/cluster"
import { SqlClient } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { newId, type Prefix, prefixes } from "@tidegate/model/Ids"
import * as Connection from "@tidegate/resources/Connection"
import type { Body } from "@tidegate/resources/Resource"
import * as Source from "@tidegate/resources/Source"
import { Sandbox } from "@tidegate/sandbox/Sandbox"
import { Destinations } from "@tidegate/storage/control/Destinations"
import { Sources } from "@tidegate/storage/control/Sources"
import { Transformations } from "@tidegate/storage/control/Transformations"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { Cancellations } from "../src/Cancellations.ts"
import * as ConnectionBehaviour from "../src/Connection/ConnectionBehaviour.ts"
import { ConnectionEntity } from "../src/Connection/ConnectionProtocol.ts"
import { actorOf } from "../src/Actor.ts"
import { DestinationEntity } from "../src/Destination/DestinationProtocol.ts"
import * as SourceBehaviour from "../src/Source/SourceBehaviour.ts"
import { destination } from "@tidegate/resources/Destination"
import type { Members } from "@tidegate/resources/Input"
import { SourceEntity } from "../src/Source/SourceProtocol.ts"
import { noTunnel } from "./NoTunnel.ts"

const { insertEvent, otherTeam, team: team_id, unique } = ControlPlane

interface Reload {
  readonly id: string
  /** Its connections that were open in SQL when it was told. */
  readonly open: ReadonlyArray<string>
}

/** What the destinations were told since it was last asked. */
class Reloads extends Context.Service<
  Reloads,
  { readonly add: (reload: Reload) => Effect.Effect<void>; readonly take: Effect.Effect<ReadonlyArray<Reload>> }
>()("Reloads") {
  static readonly layer = Layer.effect(
    Reloads,
    Effect.map(Ref.make<ReadonlyArray<Reload>>([]), (told) => ({
      add: (reload) => Ref.update(told, (all) => [...all, reload]),
      take: Ref.getAndSet(told, [])
    }))
  )
}

/** What a connection does on `Wake`: the test's, once it has set it. */
class Work extends Context.Service<Work, Ref.Ref<(connectionId: string) => Effect.Effect<void>>>()("Work") {
  static readonly layer = Layer.effect(
    Work,
    Ref.make<(connectionId: string) => Effect.Effect<void>>(() => Effect.void)
  )
}

const unused = () => Effect.die("not part of this suite")

/** Destinations with their commands, that deliver nothing and note what they are told. */
const destinationsThatListen = DestinationEntity.toLayer(
  Effect.gen(function* () {
    const { entityId: id } = yield* Entity.CurrentAddress
    const sql = yield* SqlClient.SqlClient
    const reloads = yield* Reloads
    const cancellations = yield* Cancellations
    return DestinationEntity.of({
      ...(yield* actorOf(destination, yield* Destinations, {
        settle: ({ cancelled }) => Effect.forEach(cancelled, cancellations.request, { discard: true })
      })),
      RetryEvent: unused,
      StartConsent: unused,
      EndConsent: unused,
      Deliver: unused,
      Wake: unused,
      Reread: () => Effect.void,
      Reload: () =>
        sql<{ id: string }>`
          select id from connections where destination_id = ${id}
            and disabled_at is null and paused_at is null and deleted_at is null order by id`.pipe(
          Effect.orDie,
          Effect.flatMap((rows) => reloads.add({ id, open: rows.map((row) => row.id) }))
        ),
      ...noTunnel
    })
  })
)

const connections = ConnectionBehaviour.layerWith((id) => ({
  offer: unused,
  wake: () => {},
  work: Effect.flatMap(Work, (work) => Effect.flatMap(Ref.get(work), (run) => run(id))),
  close: () => {}
}))

/** Takes everything for code that compiles, except an open brace. */
const sandbox = Layer.succeed(Sandbox, {
  run: unused,
  start: () => () => {},
  check: (code) => Effect.succeed(code === "{" ? { line: 1, message: "unexpected end" } : null),
  pids: () => []
})

const entities = Layer.mergeAll(SourceBehaviour.layer, connections, destinationsThatListen, Transformations.layer).pipe(
  Layer.provide(sandbox),
  Layer.provideMerge(TestRunner.layer),
  Layer.provideMerge(Layer.mergeAll(Cancellations.layer, Reloads.layer, Work.layer)),
  Layer.provideMerge(ControlPlane.layer)
)

const fresh = (prefix: Prefix): string => newId(prefix, Date.now())
const url = "https://target.test/hook"

/** What the API makes of a body before it is sent. */
const judged = <Message extends Schema.Codec<unknown>>(body: Body<Message>, written: Members) =>
  Effect.fromResult(body.judge(written, { id: null, now: new Date(), ingress: { baseUrl: ControlPlane.ingress } }))

const sourceClient = Effect.map(SourceEntity.client, (client) => (id: string) => client(id))
const connectionClient = Effect.map(ConnectionEntity.client, (client) => (id: string) => client(id))

const createSource = Effect.fnUntraced(function* (input: Members = {}) {
  const client = yield* sourceClient
  const whole = yield* judged(Source.source.write, { name: unique("source"), ...input })
  return yield* client(fresh(prefixes.source)).Create({ team_id, input: whole })
})
/** The actor of a destination, and a body that it is written with, as the API has judged it. */
const destinationActor = (id: string) => Effect.map(DestinationEntity.client, (client) => client(id))
const bodyOf = (input: Members, id: string | null) =>
  Effect.fromResult(destination.write.judge(input, { id, now: new Date(), ingress: { baseUrl: "http://in.test/e" } }))

const createDestination = Effect.gen(function* () {
  const input = yield* bodyOf({ name: unique("destination"), url }, null)
  return yield* (yield* destinationActor(fresh(prefixes.destination))).Create({ team_id, input })
})
const createConnection = Effect.fnUntraced(function* (input: Members = {}) {
  const client = yield* connectionClient
  const source_id = input["source_id"] ?? (yield* createSource()).id
  const destination_id = input["destination_id"] ?? (yield* createDestination).id
  const whole = yield* judged(Connection.connection.write, {
    name: unique("connection"),
    ...input,
    source_id,
    destination_id
  })
  return yield* client(fresh(prefixes.connection)).Create({ team_id, input: whole })
})

const codeOf = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E | GatewayError, R>) =>
  Effect.map(Effect.flip(effect), (error) => ("code" in error ? error.code : error._tag))

/** Looks again until it is so; the suite's time limit is the only other end. */
const until = <E, R>(condition: Effect.Effect<boolean, E, R>) =>
  Effect.repeat(
    Effect.tap(condition, () => Effect.yieldNow),
    { until: (met) => met }
  )

layer(entities, { excludeTestServices: true })("Commands of resources", (it) => {
  it.effect("A source is created, changed, disabled, enabled and deleted by commands", () =>
    Effect.gen(function* () {
      const source = yield* createSource({ description: "a source" })
      const owner = (yield* sourceClient)(source.id)
      expect(source.url).toBe(`${ControlPlane.ingress}/${source.id}`)
      const updated = yield* owner.Update({ team_id, input: { config: { allowed_http_methods: ["PUT"] } } })
      expect(updated.config.allowed_http_methods).toStrictEqual(["PUT"])
      expect(updated.description).toBe("a source")
      const disabled = yield* owner.Disable({ team_id })
      expect(disabled.status).toBe("disabled")
      expect(yield* owner.Disable({ team_id })).toStrictEqual(disabled)
      expect((yield* owner.Enable({ team_id })).disabled_at).toBe(null)
      expect(yield* codeOf(owner.Update({ team_id, input: { name: "" } }))).toBe("VALIDATION_ERROR")
      expect(yield* codeOf(owner.Disable({ team_id: otherTeam }))).toBe("NOT_FOUND")
      expect(yield* owner.Delete({ team_id })).toStrictEqual({ id: source.id })
      expect(yield* codeOf(owner.Delete({ team_id }))).toBe("NOT_FOUND")
    })
  )

  it.effect("A record that is written back with its masks keeps its secrets", () =>
    Effect.gen(function* () {
      const source = yield* createSource({ auth_type: "API_KEY", auth: { api_key: "the-secret-key" } })
      const owner = (yield* sourceClient)(source.id)
      const back = yield* owner.Update({ team_id, input: { ...source, description: "written back" } })
      expect(back.config).toStrictEqual(source.config)
      const sources = yield* Sources
      yield* sources.update(team_id, source.id, (stored) => {
        expect(stored.auth["api_key"]).toBe("the-secret-key")
        return Result.succeed({ ...stored, auth: "unchanged" as const })
      })
      const connection = yield* createConnection({ source_id: source.id })
      const again = (yield* connectionClient)(connection.id)
      const { updated_at, ...rest } = connection
      const written = yield* again.Update({
        team_id,
        input: yield* judged(Connection.connection.patch, { ...connection })
      })
      expect({ ...written, updated_at }).toStrictEqual({ ...rest, updated_at })
    })
  )

  it.effect("The destinations of a source know what is stored before the source's change returns", () =>
    Effect.gen(function* () {
      const { take } = yield* Reloads
      const source = yield* createSource()
      const owner = (yield* sourceClient)(source.id)
      const first = yield* createConnection({ source_id: source.id })
      const second = yield* createConnection({ source_id: source.id })
      yield* take
      const told = Effect.map(take, (reloads) => new Map(reloads.map(({ id, open }) => [id, open])))
      const off = new Map([first, second].map((connection) => [connection.destination_id, [] as ReadonlyArray<string>]))
      const on = new Map(
        [first, second].map((connection) => [connection.destination_id, [connection.id] as ReadonlyArray<string>])
      )
      yield* owner.Disable({ team_id })
      expect(yield* told).toStrictEqual(off)
      // Repeated because the first answer was lost: told again, in case they were not.
      yield* owner.Disable({ team_id })
      expect(yield* told).toStrictEqual(off)
      yield* owner.Enable({ team_id })
      expect(yield* told).toStrictEqual(on)
      yield* owner.Update({ team_id, input: { name: unique("renamed") } })
      expect(yield* told).toStrictEqual(on)
      yield* owner.Delete({ team_id })
      expect(yield* told).toStrictEqual(off)
    })
  )

  it.effect("A connection is created, changed, paused, disabled, enabled and deleted by commands", () =>
    Effect.gen(function* () {
      const { take } = yield* Reloads
      const connection = yield* createConnection({ rules: [{ type: "delay", delay: 5 }] })
      const owner = (yield* connectionClient)(connection.id)
      const { destination_id: id } = connection
      const told = (open: ReadonlyArray<string>) =>
        Effect.map(take, (reloads) => expect(reloads).toStrictEqual([{ id, open }]))
      // Its destination asks for it, when it has the first event of it.
      expect(yield* take).toStrictEqual([])
      const paused = yield* owner.Pause({ team_id })
      expect(paused.paused_at).toBeTypeOf("string")
      yield* told([])
      expect(yield* owner.Pause({ team_id })).toStrictEqual(paused)
      yield* told([])
      expect((yield* owner.Unpause({ team_id })).paused_at).toBe(null)
      yield* told([connection.id])
      expect((yield* owner.Unpause({ team_id })).paused_at).toBe(null)
      yield* told([connection.id])
      const disabled = yield* owner.Disable({ team_id })
      yield* told([])
      expect(yield* owner.Disable({ team_id })).toStrictEqual(disabled)
      yield* told([])
      expect(yield* codeOf(owner.Pause({ team_id }))).toBe("CONNECTION_DISABLED")
      expect((yield* owner.Enable({ team_id })).disabled_at).toBe(null)
      yield* told([connection.id])
      const elsewhere = yield* createDestination
      yield* owner.Update({ team_id, input: { destination_id: elsewhere.id } })
      const reloads = yield* take
      expect(new Set(reloads.map((reload) => reload.id))).toStrictEqual(new Set([id, elsewhere.id]))
      expect(yield* codeOf(judged(Connection.connection.patch, { rules: [{ type: "fax" }] }))).toBe("RULE_INVALID")
      expect(yield* codeOf(owner.Update({ team_id: otherTeam, input: {} }))).toBe("NOT_FOUND")
      expect(yield* owner.Delete({ team_id })).toStrictEqual({ id: connection.id })
      expect(yield* take).toStrictEqual([{ id: elsewhere.id, open: [] }])
      expect(yield* codeOf(owner.Pause({ team_id }))).toBe("NOT_FOUND")
    })
  )

  it.effect("A transformation inside a rule is stored and linked together with the connection, or not at all", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const name = unique("transformation")
      const stored = sql<{ id: string; code: string }>`
        select id, code from transformations where name = ${name} and deleted_at is null`
      const inline = (code: string) => [{ type: "transform", transformation: { name, code } }]

      expect(yield* codeOf(createConnection({ rules: inline("{") }))).toBe("TRANSFORMATION_INVALID")
      expect(yield* codeOf(createConnection({ rules: inline("1"), source_id: "src_none" }))).toBe("NOT_FOUND")
      expect(yield* stored).toStrictEqual([])

      const first = yield* createConnection({ rules: inline("1") })
      const [made] = yield* stored
      expect(first.rules).toStrictEqual([{ type: "transform", transformation_id: made!.id }])
      const second = yield* createConnection({ rules: [{ type: "delay", delay: 1 }] })
      const owner = (yield* connectionClient)(second.id)
      const changed = yield* owner.Update({
        team_id,
        input: yield* judged(Connection.connection.patch, { rules: inline("2") })
      })
      expect(changed.rules).toStrictEqual(first.rules)
      expect(yield* stored).toStrictEqual([{ id: made!.id, code: "2" }])
    })
  )

  it.effect("A transformation that a rule links must exist and cannot be deleted meanwhile", () =>
    Effect.gen(function* () {
      const transformations = yield* Transformations
      const id = fresh(prefixes.transformation)
      const rules = [{ type: "transform", transformation_id: id }]
      expect(yield* codeOf(createConnection({ rules }))).toBe("NOT_FOUND")
      yield* transformations.create(otherTeam, id, {
        name: unique("transformation"),
        code: "1",
        env: {},
        isolation: null
      })
      expect(yield* codeOf(createConnection({ rules }))).toBe("NOT_FOUND")
      const own = fresh(prefixes.transformation)
      yield* transformations.create(team_id, own, {
        name: unique("transformation"),
        code: "1",
        env: {},
        isolation: null
      })
      const connection = yield* createConnection({ rules: [{ type: "transform", transformation_id: own }] })
      expect(yield* codeOf(transformations.delete(team_id, own))).toBe("RESOURCE_IN_USE")
      yield* (yield* connectionClient)(connection.id).Delete({ team_id })
      yield* transformations.delete(team_id, own)
    })
  )

  it.effect("A source stores the secret that its provider announces, once", () =>
    Effect.gen(function* () {
      const source = yield* createSource({ type: "ASANA", config: { auth_type: "HMAC", auth: {} } })
      const owner = (yield* sourceClient)(source.id)
      const remember = (secret: string) => owner.RememberSecret({ team_id, secret: Redacted.make(secret) })
      expect((yield* remember("first-secret")).config.auth).toStrictEqual({ webhook_secret_key: "****cret" })
      expect((yield* remember("first-secret")).config.auth["webhook_secret_key"]).toBe("****cret")
      expect(yield* codeOf(remember("other-secret"))).toBe("SOURCE_AUTH_FAILED")
    })
  )

  it.effect("A destination is created, changed, replaced, disabled, enabled and deleted by commands", () =>
    Effect.gen(function* () {
      const { id, ...created } = yield* createDestination
      const input = { rate_limit: 5, auth_type: "CUSTOM_HEADER", auth: { header_name: "x-key", value: "secret-value" } }
      const actor = yield* destinationActor(id)
      const update = (input: Members) => Effect.flatMap(bodyOf(input, id), (input) => actor.Update({ team_id, input }))
      const replace = (team_id: string, input: Members) =>
        Effect.flatMap(bodyOf(input, id), (input) => actor.Replace({ team_id, input }))
      const updated = yield* update(input)
      expect(updated.config).toStrictEqual({
        ...created.config,
        ...input,
        auth: { header_name: "x-key", value: "****alue" }
      })
      const replaced = yield* replace(team_id, { name: updated.name, config: { url } })
      expect(replaced.config).toStrictEqual(created.config)
      const disabled = yield* actor.Disable({ team_id })
      expect(disabled.disabled_at).toBeTypeOf("string")
      expect(yield* actor.Disable({ team_id })).toStrictEqual(disabled)
      expect((yield* actor.Enable({ team_id })).disabled_at).toBe(null)
      expect(yield* codeOf(update({ type: "NONE" }))).toBe("VALIDATION_ERROR")
      expect(yield* codeOf(replace(otherTeam, { name: "a", url }))).toBe("NOT_FOUND")
      expect(yield* actor.Delete({ team_id })).toStrictEqual({ id })
      expect(yield* codeOf(actor.Enable({ team_id }))).toBe("NOT_FOUND")
    })
  )

  it.effect("Events that a disable or delete cancels are stored as cancelled in the background", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const cancelled = (id: string) =>
        Effect.map(sql`select 1 from events where id = ${id} and state = 'CANCELLED'`, (rows) => rows.length === 1)
      const bySource = yield* createConnection()
      const byItself = yield* createConnection()
      const byDestination = yield* createConnection()
      const events = yield* Effect.forEach([bySource, byItself, byDestination], (connection) => insertEvent(connection))
      yield* (yield* sourceClient)(bySource.source_id).Disable({ team_id })
      yield* (yield* connectionClient)(byItself.id).Delete({ team_id })
      yield* (yield* destinationActor(byDestination.destination_id)).Disable({ team_id })
      yield* Effect.forEach(events, (id) => until(cancelled(id)))
      const left = yield* sql`select 1 from deliveries where event_id = any(${events})`
      expect(left.length).toBe(0)
    })
  )

  it.effect("A connection works once at a time, works again if woken meanwhile, and accepts commands", () =>
    Effect.gen(function* () {
      const connection = yield* createConnection()
      const owner = (yield* connectionClient)(connection.id)
      const started = yield* Deferred.make<void>()
      const finish = yield* Deferred.make<void>()
      let running = 0
      const runs: Array<number> = []
      yield* Ref.set(yield* Work, (id) =>
        Effect.gen(function* () {
          expect(id).toBe(connection.id)
          runs.push(++running)
          yield* Deferred.succeed(started, undefined)
          yield* Deferred.await(finish)
          running--
        })
      )
      const first = yield* Effect.forkChild(owner.Wake())
      yield* Deferred.await(started)
      yield* owner.Wake()
      yield* owner.Wake()
      expect((yield* owner.Pause({ team_id })).paused_at).toBeTypeOf("string")
      expect(runs).toStrictEqual([1])
      yield* Deferred.succeed(finish, undefined)
      yield* Fiber.join(first)
      expect(runs).toStrictEqual([1, 1])
      yield* owner.Wake()
      expect(runs).toStrictEqual([1, 1, 1])
    })
  )

  it.effect("Concurrent upserts with the same name all succeed on one source", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const client = yield* sourceClient
      const name = unique("upserted")
      const upsert = Effect.fnUntraced(function* (description: string) {
        const input = { name, description }
        const found = yield* sources.findByName(team_id, name)
        if (found !== null) return yield* client(found).Update({ team_id, input })
        return yield* client(fresh(prefixes.source))
          .Create({ team_id, input })
          .pipe(
            Effect.catchTag("GatewayError", ({ code, data }) => {
              expect(code).toBe("RESOURCE_ALREADY_EXISTS")
              return client((data as { readonly id: string }).id).Update({ team_id, input })
            })
          )
      })
      const all = yield* Effect.forEach(["a", "b", "c", "d", "e"], upsert, { concurrency: "unbounded" })
      expect(new Set(all.map(({ id }) => id)).size).toBe(1)
      expect(all.map(({ description }) => description)).toStrictEqual(["a", "b", "c", "d", "e"])
    })
  )
})
