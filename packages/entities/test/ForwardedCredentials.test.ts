import { describe, expect, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { takePresented } from "@tidegate/verification/PresentedSecrets"
import { sealPresented } from "@tidegate/storage/secrets/PresentedColumn"
import { parseSecretKeys, Secrets } from "@tidegate/storage/secrets/Secrets"
import { Batch } from "../src/dispatch/Batch.ts"
import { type DeliveryItem, type DeliveryPayload, newItem } from "../src/Destination/queue/DeliveryItem.ts"
import { CarriedHandover, Handover } from "../src/dispatch/Handover.ts"
import { withCredentials } from "../src/Destination/sending/ForwardedCredentials.ts"

const withKey = (text: string) =>
  Effect.runSync(Effect.provide(Secrets, Secrets.layer({ keys: Result.getOrThrow(parseSecretKeys(text)) })))
const secrets = withKey("k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
const otherKey = withKey("k2:b25lLWZhbmN5LWtleS10aGF0LWlzLTMyLWJ5dGVzISE=")

const secret = "glpat-aaaaaaaaaaaa"
const sent = { headers: { "x-gitlab-token": secret, "x-a": "1" }, query: `a=1&token=${secret}` }
const taken = takePresented({ headers: ["x-gitlab-token"], query: ["token"] }, sent)!

const requestId = "req_01m80t1tv5j5bqa2skwkmrm5dd"

const item = (change: Partial<DeliveryPayload> = {}): DeliveryItem =>
  newItem(
    { id: "evt_1", connectionId: "web_1", dueAt: 0, orderingKey: null },
    { teamId: "tm_1", sourceId: "src_1" },
    0,
    {
      requestId,
      dataId: null,
      method: "POST",
      path: "/",
      query: taken.query,
      headers: taken.headers,
      presented: sealPresented(secrets, { team_id: "tm_1", id: requestId }, taken.secrets),
      body: Buffer.from("{}"),
      verified: true,
      originalIp: null,
      ...change
    }
  )

const parts = (payload: DeliveryPayload | null) =>
  payload === null ? null : { headers: payload.headers, query: payload.query }

describe("Credentials of an event's sender", () => {
  it("Credentials are forwarded unchanged", () => {
    expect(parts(withCredentials(secrets, "forward", item()))).toStrictEqual(sent)
  })

  it("Credentials are omitted or stay masked without being decrypted", () => {
    expect(parts(withCredentials(otherKey, "omit", item()))).toStrictEqual({ headers: { "x-a": "1" }, query: "a=1" })
    expect(parts(withCredentials(otherKey, "mask", item()))).toStrictEqual({
      headers: taken.headers,
      query: taken.query
    })
  })

  it("An event with unreadable credentials is not delivered", () => {
    const elsewhere: DeliveryItem = { ...item(), teamId: "tm_2" }
    expect(withCredentials(otherKey, "forward", item())).toBeNull()
    expect(withCredentials(secrets, "forward", elsewhere)).toBeNull()
    expect(withCredentials(secrets, "forward", item({ requestId: "req_01m80t1tv5j5bqa2skwkmrm5de" }))).toBeNull()
    expect(withCredentials(secrets, "forward", item({ presented: "nonsense" }))).toBeNull()
  })

  it("Credentials that a transformation removed need not be decrypted", () => {
    const without = { headers: { "x-a": "1" }, query: "a=1" }
    expect(parts(withCredentials(otherKey, "forward", item(without)))).toStrictEqual(without)
  })

  it("A request without credentials stays unchanged, even with text that looks like a mask", () => {
    const payload = { presented: null, headers: { authorization: "[PRESENTED]" }, query: "a=[PRESENTED]" }
    for (const credentials of ["forward", "omit", "mask"] as const) {
      const plain = item(payload)
      expect(withCredentials(secrets, credentials, plain)).toBe(plain.payload)
    }
  })

  it("Credentials are encrypted in messages between processes", () => {
    const bytes = Schema.encodeSync(CarriedHandover)(new Handover(new Map([["des_1", new Batch([item()])]])))
    expect(Buffer.from(bytes).toString("latin1")).not.toContain(secret)
    const [arrived] = Schema.decodeSync(CarriedHandover)(bytes).batches.get("des_1")!.items
    expect(parts(withCredentials(secrets, "forward", arrived!))).toStrictEqual(sent)
  })
})
