import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { TestRunner } from "effect/cluster"
import { TestClock } from "effect/testing"
import { sign } from "node:crypto"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { BinIngress } from "../src/BinIngress.ts"
import { ReceivingSteps } from "../src/callbacks/ReceivingSteps.ts"
import { WaitingSenders } from "../src/WaitingSenders.ts"
import { CalledSubscriptions } from "../src/channels/CalledSubscriptions.ts"
import { Certificates } from "../src/Certificates.ts"
import { HandshakeSteps } from "../src/HandshakeSteps.ts"
import { Dispatcher } from "@tidegate/entities/dispatch/Dispatcher"
import { ingressPath } from "@tidegate/model/Ingress"
import { IngressHandler } from "@tidegate/ingress/IngressHandler"
import { ProxyUpstream } from "../src/ProxyUpstream.ts"
import { acknowledgementOf } from "../src/Reply.ts"
import type { SourceSnapshot } from "../src/SourceSnapshot.ts"
import { SourceSnapshots } from "../src/SourceSnapshots.ts"
import { wireServer } from "@tidegate/ingress/wire/WireServer"
import { Egress } from "@tidegate/egress/Egress"
import type { Answer } from "../../egress/src/Exchange.ts"
import { makeGuard } from "../../egress/src/Guard.ts"
import { compileRules } from "@tidegate/rules/RuleSet"
import { compileSourceAuth } from "@tidegate/verification/SourceAuth"
import { Journal } from "@tidegate/storage/Journal"
import type { RequestRecord } from "@tidegate/storage/journal/RequestRecord"
import { ProxyExchanges } from "@tidegate/storage/delivery/ProxyExchanges"
import { answer } from "./answers.ts"

/** A subscription of AWS SNS at the real ingress, with mocks of the hosts of AWS and of the database. */

/** When the certificates of the fixtures are in force. */
const now = Date.UTC(2030, 0, 1)

const fixture = (name: string): string =>
  readFileSync(new URL(`../../verification/test/fixtures/code/${name}`, import.meta.url), "utf8")
const [pem, key] = [fixture("sns.pem"), fixture("signer.key.pem")]

const sourceId = "src_01m806ppr596q14677ar0t5g6v"
const topic = "arn:aws:sns:eu-west-1:123456789012:topic"
const certificateUrl = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem"
const subscribeUrl = `https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${topic}&Token=2336412f37`

const notification = {
  Type: "Notification",
  MessageId: "m-1",
  TopicArn: topic,
  Message: "line one\nline two größe",
  Timestamp: "2030-01-01T00:00:00.000Z"
}
const confirmation = {
  ...notification,
  Type: "SubscriptionConfirmation",
  Token: "2336412f37",
  SubscribeURL: subscribeUrl
}

type Message = Readonly<Record<string, string>>

/** The field lists of https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html. */
const signed = (message: Message): Message => {
  const names =
    message["Type"] === "Notification"
      ? ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
      : ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
  const text = names.flatMap((name) => (name in message ? [`${name}\n${message[name]}\n`] : [])).join("")
  return {
    ...message,
    SignatureVersion: "2",
    Signature: sign("sha256", Buffer.from(text), key).toString("base64"),
    SigningCertURL: certificateUrl
  }
}

const healthy: Record<string, Answer> = { [certificateUrl]: answer(200, pem), [subscribeUrl]: answer(200) }

interface World {
  /** What AWS answers by URL; what is not here cannot be reached. */
  aws: Record<string, Answer>
  database: "committed" | "unavailable"
  /** Everything that happened, in order: fetched URLs, and `stored`. */
  readonly log: Array<string>
  readonly records: Array<RequestRecord>
  /** Destinations that were notified of deliveries. */
  readonly told: Array<string>
}

const rules = Result.getOrThrow(compileRules([]))

const snapshotOf = (certificates: Certificates["Service"]): SourceSnapshot => ({
  id: sourceId,
  slug: null,
  teamId: "tm_1",
  version: 1,
  origin: "https://hooks.example",
  disabled: false,
  limit: null,
  bin: null,
  allowedMethods: ["POST"],
  verifier: compileSourceAuth({ type: "AWS_SNS", auth_type: "HMAC", auth: {} }, certificates.get),
  seal: () => "",
  reply: { customResponse: null, acknowledgement: acknowledgementOf("AWS_SNS", false) },
  proxy: null,
  routes: [
    {
      connectionId: "web_1",
      destinationId: "des_1",
      destinationShard: 1,
      connectionShard: 1,
      isTunnel: false,
      rules,
      ordering: null
    },
    {
      connectionId: "web_2",
      destinationId: "des_2",
      destinationShard: 1,
      connectionShard: 1,
      isTunnel: false,
      rules,
      ordering: null
    }
  ],
  workflows: [],
  answer: null
})

const notHere = (): never => expect.fail("nothing here has a use for it")

const doorOf = (world: World) => {
  const egress = Layer.succeed(Egress, {
    deliver: ({ url }) => {
      world.log.push(url)
      return Promise.resolve(world.aws[url] ?? answer(null))
    },
    stream: notHere,
    guard: makeGuard({ allow: [] }),
    openOrigins: () => 0
  })
  const journal = Layer.succeed(Journal, {
    record: notHere,
    mark: notHere,
    commitRouting: notHere,
    stats: notHere,
    isFull: () => false,
    isSlow: () => false,
    forwardBy: notHere,
    accept: (record, done) => {
      if (world.database === "committed") {
        world.log.push("stored")
        world.records.push(record)
      }
      done(world.database, "now")
    }
  })
  const snapshots = Layer.effect(
    SourceSnapshots,
    Effect.map(Certificates, (certificates) => {
      const snapshot = snapshotOf(certificates)
      return SourceSnapshots.of({ get: () => snapshot, load: () => Promise.resolve(snapshot) })
    })
  )
  const dispatcher = Layer.succeed(Dispatcher, {
    deliver: (destinationId) => void world.told.push(destinationId),
    route: notHere,
    wake: notHere,
    run: notHere,
    arrive: notHere,
    channel: notHere
  })
  const proxy = Layer.mergeAll(
    Layer.succeed(ProxyUpstream, { forward: notHere }),
    Layer.succeed(ProxyExchanges, { write: notHere, stats: notHere }),
    Layer.succeed(BinIngress, { store: notHere }),
    Layer.succeed(CalledSubscriptions, { get: notHere, load: notHere, store: notHere, refuse: notHere }),
    Layer.succeed(WaitingSenders, { wait: notHere }),
    Layer.succeed(ReceivingSteps, { receive: notHere })
  )
  return IngressHandler.layer.pipe(
    Layer.provide([journal, snapshots, dispatcher, HandshakeSteps.layer, proxy]),
    Layer.provide(Certificates.layer),
    Layer.provide([egress, TestRunner.layer])
  )
}

interface Told {
  readonly status: number
  readonly retryAfter: string | null
  readonly body: string
}

/** An ingress with its own mocks, and how to post to it. */
const open = Effect.gen(function* () {
  yield* TestClock.setTime(now)
  const world: World = { aws: { ...healthy }, database: "committed", log: [], records: [], told: [] }
  const { handle } = yield* Effect.map(Layer.build(doorOf(world)), (context) =>
    IngressHandler.pipe(Effect.provide(context))
  ).pipe(Effect.flatten)
  const server = wireServer({ prefixes: [ingressPath], host: null, handle })
  yield* Effect.acquireRelease(
    Effect.promise(() => once(server.listen({ port: 0, host: "127.0.0.1" }), "listening")),
    () =>
      Effect.callback<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  )
  const { port } = server.address() as AddressInfo
  const post = (message: Message): Effect.Effect<Told> =>
    Effect.promise(async () => {
      const response = await fetch(`http://127.0.0.1:${port}/e/${sourceId}`, {
        method: "POST",
        headers: { "content-type": "text/plain; charset=UTF-8", "x-amz-sns-message-type": message["Type"]! },
        body: JSON.stringify(message)
      })
      return { status: response.status, retryAfter: response.headers.get("retry-after"), body: await response.text() }
    })
  return { world, post }
})

const codeOf = ({ body }: Told): string => JSON.parse(body).code

describe("AWS SNS subscription", () => {
  it.effect("SNS subscription is verified, confirmed, stored and answered, and every connection ignores it", () =>
    Effect.gen(function* () {
      const { post, world } = yield* open
      const told = yield* post(signed(confirmation))
      expect([told.status, told.body]).toStrictEqual([200, ""])
      expect(world.log).toStrictEqual([certificateUrl, subscribeUrl, "stored"])
      const [record] = world.records
      expect(record).toMatchObject({
        status: "accepted",
        verified: true,
        rejectionCause: null,
        events: [],
        pending: []
      })
      expect(record!.ignored.map(({ cause, connectionId, meta }) => [connectionId, cause, meta])).toStrictEqual([
        ["web_1", "HANDSHAKE", '["SubscriptionConfirmation"]'],
        ["web_2", "HANDSHAKE", '["SubscriptionConfirmation"]']
      ])
      expect(world.told).toStrictEqual([])
    })
  )

  it.effect("SNS notifications are verified by the cached certificate and routed", () =>
    Effect.gen(function* () {
      const { post, world } = yield* open
      yield* post(signed(confirmation))
      world.aws = {}
      const told = yield* post(signed(notification))
      expect(told.status).toBe(200)
      expect(world.log).toStrictEqual([certificateUrl, subscribeUrl, "stored", "stored"])
      expect(world.records[1]).toMatchObject({ status: "accepted", verified: true, ignored: [] })
      expect(world.told).toStrictEqual(["des_1", "des_2"])
      const forged = yield* post({ ...signed(notification), Message: "forged" })
      expect([forged.status, codeOf(forged)]).toStrictEqual([401, "SOURCE_AUTH_FAILED"])
      expect(world.records[2]).toMatchObject({
        status: "rejected",
        verified: false,
        rejectionCause: "SOURCE_AUTH_FAILED"
      })
      expect(world.told).toStrictEqual(["des_1", "des_2"])
    })
  )

  it.effect("Forged SNS subscription is not confirmed", () =>
    Effect.gen(function* () {
      const { post, world } = yield* open
      const told = yield* post({ ...signed(confirmation), Message: "another text" })
      expect([told.status, codeOf(told)]).toStrictEqual([401, "SOURCE_AUTH_FAILED"])
      expect(world.log).toStrictEqual([certificateUrl, "stored"])
      expect(world.records[0]).toMatchObject({ status: "rejected", rejectionCause: "SOURCE_AUTH_FAILED", ignored: [] })
    })
  )

  for (const [name, message] of [
    ["of another site", { ...confirmation, SubscribeURL: "http://169.254.169.254/latest/meta-data/" }],
    ["on another host of AWS", { ...confirmation, SubscribeURL: subscribeUrl.replace("sns.", "sqs.") }],
    ["for another topic", { ...confirmation, SubscribeURL: subscribeUrl.replace(":topic", ":other") }],
    ["of another operation", { ...confirmation, SubscribeURL: subscribeUrl.replace("ConfirmS", "Uns") }]
  ] as const) {
    it.effect(`SNS subscription with a confirmation URL ${name} is rejected and nothing is fetched`, () =>
      Effect.gen(function* () {
        const { post, world } = yield* open
        expect((yield* post(signed(message))).status).toBe(401)
        expect(world.log).toStrictEqual(["stored"])
        expect(world.records[0]).toMatchObject({ status: "rejected", rejectionCause: "SOURCE_AUTH_FAILED" })
      })
    )
  }

  it.effect("SNS certificate on another host is not fetched", () =>
    Effect.gen(function* () {
      const { post, world } = yield* open
      const SigningCertURL = "https://sns.eu-west-1.amazonaws.com.evil.test/SimpleNotificationService-1.pem"
      expect((yield* post({ ...signed(confirmation), SigningCertURL })).status).toBe(401)
      expect(world.log).toStrictEqual(["stored"])
    })
  )

  it.effect("SNS subscription is rejected when its certificate URL returns no certificate", () =>
    Effect.gen(function* () {
      const { post, world } = yield* open
      world.aws[certificateUrl] = answer(403, "<Error>AccessDenied</Error>")
      expect((yield* post(signed(confirmation))).status).toBe(401)
      expect(world.log).toStrictEqual([certificateUrl, "stored"])
    })
  )
})

describe("SNS subscription during an outage", () => {
  const troubles: ReadonlyArray<
    readonly [name: string, begin: (world: World) => void, fetched: ReadonlyArray<string>]
  > = [
    ["no certificate", (world) => delete world.aws[certificateUrl], [certificateUrl]],
    ["a fault of the certificate's host", (world) => (world.aws[certificateUrl] = answer(500)), [certificateUrl]],
    ["no confirmation", (world) => delete world.aws[subscribeUrl], [certificateUrl, subscribeUrl]],
    ["a fault of the confirmation", (world) => (world.aws[subscribeUrl] = answer(500)), [certificateUrl, subscribeUrl]],
    ["no database", (world) => (world.database = "unavailable"), [certificateUrl, subscribeUrl]]
  ]
  for (const [name, begin, fetched] of troubles) {
    it.effect(`SNS subscription is answered 503, not stored, and accepted after the outage: ${name}`, () =>
      Effect.gen(function* () {
        const { post, world } = yield* open
        begin(world)
        const told = yield* post(signed(confirmation))
        expect([told.status, codeOf(told), told.retryAfter]).toStrictEqual([503, "QUEUE_UNAVAILABLE", "1"])
        expect(world.log).toStrictEqual(fetched)
        expect(world.records).toStrictEqual([])

        world.aws = { ...healthy }
        world.database = "committed"
        expect((yield* post(signed(confirmation))).status).toBe(200)
        expect(world.log.slice(-2)).toStrictEqual([subscribeUrl, "stored"])
      })
    )
  }

  it.effect("Concurrent SNS notifications fetch a shared certificate once", () =>
    Effect.gen(function* () {
      const { post, world } = yield* open
      const answers = yield* Effect.all(
        Array.from({ length: 20 }, () => post(signed(notification))),
        { concurrency: "unbounded" }
      )
      expect(answers.map(({ status }) => status)).toStrictEqual(answers.map(() => 200))
      expect(world.log.filter((what) => what === certificateUrl).length).toBe(1)
      expect(world.records.length).toBe(20)
    })
  )
})
