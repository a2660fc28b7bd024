import { expect, it } from "vitest"
import { providerOf } from "@tidegate/verification/Providers"
import { signerOf, signingSecretOf } from "@tidegate/verification/Signing"
import { compileSourceAuth } from "@tidegate/verification/SourceAuth"
import { randomBytes } from "node:crypto"
import { catalog, momentAt, requestOf, samplesOf } from "../src/samples/Catalog.ts"

/** The samples of providers: what is sent, and that the provider's source accepts it. */

const secret = "c2VjcmV0LXRoYXQtaXMtYmFzZTY0LWFuZC1sb25n"
const url = "https://hooks.example.com/e/src_1"
const at = Date.UTC(2026, 0, 2)

const all = catalog.flatMap((of) => of.samples.map((sample) => [of.type, sample.event, of, sample] as const))

it.each(all)("Sample %s %s is verified when it is signed, and differs each time", (type, _, of, sample) => {
  const provider = providerOf(type)!
  const source = { type, auth_type: provider.authType, auth: {} }
  const verifying = { ...source, auth: { [signingSecretOf(source)!]: secret } }
  const sent = requestOf(of, sample, momentAt(at, randomBytes))
  const request = { ...sent, url, nowSeconds: at / 1000, id: "msg_1" }
  const signed = signerOf(verifying)!(request)!
  const arrived = { ...request, query: "", body: signed.body, headers: { ...sent.headers, ...signed.headers } }
  expect(compileSourceAuth(verifying).verify(arrived)).toBe("verified")
  expect(compileSourceAuth(verifying).verify({ ...arrived, headers: sent.headers })).toBe("failed")
  const again = requestOf(of, sample, momentAt(at + 60_000, randomBytes))
  expect([again.body, again.headers]).not.toEqual([sent.body, sent.headers])
})

it("Samples have each event of a provider once, and each provider once", () => {
  const names = all.map(([type, event]) => `${type} ${event}`)
  expect(names).toEqual([...new Set(names)])
  expect(samplesOf("STRIPE")?.samples.map(({ event }) => event)).toContain("payment_intent.succeeded")
  expect(new Set(catalog.map(({ type }) => type)).size).toBe(catalog.length)
})

it("A sample of a provider that posts forms is a form of texts", () => {
  const of = samplesOf("TWILIO")!
  const { body, headers } = requestOf(of, of.samples[0]!, momentAt(at, randomBytes))
  expect(headers["content-type"]).toBe("application/x-www-form-urlencoded")
  expect(new URLSearchParams(body.toString()).get("Body")).toBe("Hello & welcome")
})
