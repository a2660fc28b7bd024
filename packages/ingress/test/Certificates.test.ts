import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Certificates } from "../src/Certificates.ts"
import { Egress } from "@tidegate/egress/Egress"
import type { Answer } from "../../egress/src/Exchange.ts"
import { makeGuard } from "../../egress/src/Guard.ts"
import { answer } from "./answers.ts"

const url = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem"
const pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

/** Certificates from a host that gives these answers, one after the other. */
const from = (...answers: ReadonlyArray<Answer>) => {
  const asked: Array<string> = []
  const egress = Layer.succeed(Egress, {
    deliver: (outbound) => {
      asked.push(outbound.url)
      return Promise.resolve(answers[asked.length - 1] ?? answer(500))
    },
    stream: () => expect.fail("certificates are not streamed"),
    guard: makeGuard({ allow: [] }),
    openOrigins: () => 0
  })
  return { asked, layer: Certificates.layer.pipe(Layer.provide(egress)) }
}

const rejects = (promise: Promise<void>) =>
  Effect.promise(() =>
    promise.then(
      () => false,
      () => true
    )
  )

describe("SNS certificates", () => {
  it.effect("Certificate is fetched once for concurrent requests and then cached", () => {
    const { asked, layer } = from(answer(200, pem))
    return Effect.gen(function* () {
      const certificates = yield* Certificates
      expect(certificates.get(url)).toBe(undefined)
      yield* Effect.promise(() => Promise.all([certificates.load(url), certificates.load(url)]))
      expect(certificates.get(url)).toBe(pem)
      expect(asked).toStrictEqual([url])
    }).pipe(Effect.provide(layer))
  })

  for (const [name, found] of [
    ["missing", answer(404, "no such key")],
    ["not a certificate", answer(200, "<html>")]
  ] as const) {
    it.effect(`Certificate URL is remembered as invalid when its content is ${name}`, () => {
      const { asked, layer } = from(found)
      return Effect.gen(function* () {
        const certificates = yield* Certificates
        yield* Effect.promise(() => certificates.load(url))
        expect(certificates.get(url)).toBe("")
        expect(asked.length).toBe(1)
      }).pipe(Effect.provide(layer))
    })
  }

  it.effect("Certificate host that cannot be reached or fails is asked again", () => {
    const { layer } = from(answer(null), answer(503), answer(200, pem))
    return Effect.gen(function* () {
      const certificates = yield* Certificates
      expect(yield* rejects(certificates.load(url))).toBe(true)
      expect(yield* rejects(certificates.load(url))).toBe(true)
      expect(certificates.get(url)).toBe(undefined)
      yield* Effect.promise(() => certificates.load(url))
      expect(certificates.get(url)).toBe(pem)
    }).pipe(Effect.provide(layer))
  })

  it.effect("Certificates of unknown URLs are fetched at a limited rate", () => {
    const { asked, layer } = from(...Array.from({ length: 100 }, () => answer(404)))
    return Effect.gen(function* () {
      const certificates = yield* Certificates
      let refused = 0
      for (let i = 0; i < 100; i++) if (yield* rejects(certificates.load(`${url}?${i}`))) refused++
      expect(refused).toBeGreaterThan(30)
      expect(asked.length).toBe(100 - refused)
    }).pipe(Effect.provide(layer))
  })
})
