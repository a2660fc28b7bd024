import { httpbis } from "http-message-signatures"
import { jwtVerify } from "jose"
import { createHash, generateKeyPairSync, verify } from "node:crypto"
import { expect } from "vitest"
import type { DestinationConfig } from "../support/Contract.ts"
import type { Gateway } from "../support/Gateway.ts"
import { it } from "../support/it.ts"
import { request, type RequestParts } from "../support/RawHttp.ts"
import type { Target } from "../support/Target.ts"

/** Deliveries that are signed one by one with a key of their destination, as their targets receive them. */

const keyPair = () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  return { key: privateKey.export({ type: "pkcs8", format: "pem" }), publicKey }
}

/** Sends one request, and returns the delivery and its destination. */
const delivered = async (
  gateway: Gateway,
  target: Target,
  destination: Omit<DestinationConfig, "url">,
  parts: Partial<RequestParts>
) => {
  const route = await gateway.route(target, { destination })
  const answer = await request(gateway.port, { path: `/e/${route.source.id}`, ...parts })
  expect(answer.status).toBe(200)
  const [delivery] = await target.next()
  return { delivery: delivery!, destination: route.destination }
}

it("HTTP_MESSAGE_SIGNATURE is verified by another implementation, and replaces what the sender signed", async ({
  gateway,
  target
}) => {
  const { key, publicKey } = keyPair()
  const components = ["@method", "@target-uri", "content-type", "content-digest", "x-gateway-event-id", "gateway-loop"]
  const auth = { key_id: "k1", algorithm: "ed25519", key, components }
  const { delivery, destination } = await delivered(
    gateway,
    target,
    { auth_type: "HTTP_MESSAGE_SIGNATURE", auth },
    {
      body: '{"order":"ü"}',
      headers: [
        ["Content-Type", "application/json"],
        ["Content-Digest", "sha-256=:forged:"],
        ["Signature-Input", 'forged=("@method");created=1'],
        ["Signature", "forged=:AAAA:"]
      ]
    }
  )
  const { headers, method, url } = delivery
  expect(headers["signature-input"]).toMatch(/^sig1=\("@method" "@target-uri" "content-type" "content-digest" /)
  const isValid = await httpbis.verifyMessage(
    {
      requiredFields: components,
      requiredParams: ["created", "nonce", "keyid", "alg"],
      // The machine's clock is no part of this test.
      tolerance: 3_600,
      keyLookup: () =>
        Promise.resolve({
          id: "k1",
          algs: ["ed25519"],
          verify: (data, signature) => Promise.resolve(verify(null, data, publicKey, signature))
        })
    },
    { method, url: `${target.origin}${url}`, headers: headers as Record<string, string> }
  )
  expect(isValid).toBe(true)
  const shown = await gateway.api("GET", `/destinations/${destination.id}`)
  expect(shown.config.auth).toMatchObject({ key_id: "k1", algorithm: "ed25519", components })
  expect(JSON.stringify(shown)).not.toContain(key.split("\n")[1])
})

it("SIGNED_JWT is a token for the body that the target received, and replaces the sender's own", async ({
  gateway,
  target
}) => {
  const { key, publicKey } = keyPair()
  target.reply = (response, { headers }) => void response.end(`you sent ${String(headers["authorization"])}`)
  const auth = { algorithm: "EdDSA", key, audience: "the target", body_hash_claim: "body_sha256" }
  const { delivery, destination } = await delivered(
    gateway,
    target,
    { auth_type: "SIGNED_JWT", auth },
    { body: "{}", headers: [["Authorization", "Bearer of-the-sender"]] }
  )
  const token = String(delivery.headers["authorization"]).replace(/^Bearer /, "")
  // The machine's clock is no part of this test.
  const { payload } = await jwtVerify(token, publicKey, { audience: "the target", clockTolerance: 3_600 })
  expect(payload["body_sha256"]).toBe(createHash("sha256").update(delivery.body).digest("hex"))
  const attempt = await gateway.eventually("the attempt", async () => {
    const { models } = await gateway.api("GET", `/attempts?destination_id=${destination.id}`)
    return models[0] ?? null
  })
  expect(attempt.body).toMatch(/^you sent Bearer \*{4}.{4}$/)
  const moved = await gateway.call("PATCH", `/destinations/${destination.id}`, {
    config: { url: "https://elsewhere.example.com/" }
  })
  expect([moved.status, JSON.stringify(moved.body)]).toEqual([400, expect.stringContaining("must be sent again")])
})

it("API_KEY_QUERY adds its key to the URL, and the key is in no answer and in no stored row", async ({
  gateway,
  target
}) => {
  const api_key = "k3y-of-the-target/ü"
  target.reply = (response, { url }) => void response.writeHead(500).end(`no such key: ${url}`)
  const { delivery, destination } = await delivered(
    gateway,
    target,
    { auth_type: "API_KEY_QUERY", auth: { query_key: "token", api_key } },
    { body: "{}" }
  )
  expect(new URL(delivery.url, target.origin).searchParams.get("token")).toBe(api_key)
  const attempt = await gateway.eventually("the attempt", async () => {
    const { models } = await gateway.api("GET", `/attempts?destination_id=${destination.id}`)
    return models[0] ?? null
  })
  expect(attempt.requested_url).toMatch(/\?token=\*{4}$/)
  const shown = [attempt, await gateway.api("GET", `/destinations/${destination.id}`)]
  const stored = [
    ...(await gateway.sql("select * from attempts where event_id = $1", [attempt.event_id])),
    ...(await gateway.sql("select * from destinations where id = $1", [destination.id]))
  ]
  expect(stored).toHaveLength(2)
  for (const text of [
    JSON.stringify(shown),
    JSON.stringify(stored, (_, value) => (value?.type === "Buffer" ? String(Buffer.from(value)) : value))
  ]) {
    expect(text).not.toContain(api_key)
    expect(text).not.toContain(encodeURIComponent(api_key))
  }
})
