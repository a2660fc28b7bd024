import { httpbis } from "http-message-signatures"
import { AwsV4Signer } from "aws4fetch"
import { jwtVerify } from "jose"
import { createHash, generateKeyPairSync, verify } from "node:crypto"
import { expect, onTestFinished } from "vitest"
import type { DestinationConfig } from "../support/Contract.ts"
import type { Gateway } from "../support/Gateway.ts"
import { it } from "../support/it.ts"
import { request, type RequestParts } from "../support/RawHttp.ts"
import { type Received, Target } from "../support/Target.ts"

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

/** The `authorization` that another implementation makes for a request that Amazon's service has received. */
const authorizationOf = async (
  { body, headers, method }: Pick<Received, "body" | "headers" | "method">,
  url: string,
  key: { readonly accessKeyId: string; readonly secretAccessKey: string; readonly sessionToken?: string },
  service: string
): Promise<string> => {
  const covered = ["content-type", "x-amz-content-sha256", "x-amz-target"]
  const made = await new AwsV4Signer({
    method,
    url,
    headers: covered.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
    body,
    ...key,
    region: "eu-central-1",
    service,
    datetime: String(headers["x-amz-date"]),
    allHeaders: true
  }).sign()
  return made.headers.get("authorization")!.replaceAll(/,\s*/g, ", ")
}

it("AWS_SIGV4 signs with the destination's own key, and no header of the sender's tells Amazon what to do", async ({
  gateway,
  target
}) => {
  const auth = {
    access_key_id: "AKIDEXAMPLE",
    secret_access_key: "s3cret-of-the-key",
    region: "eu-central-1",
    service: "s3"
  }
  const { delivery, destination } = await delivered(
    gateway,
    target,
    { auth_type: "AWS_SIGV4", auth },
    {
      body: '{"order":"ü"}',
      headers: [
        ["Content-Type", "application/json"],
        ["X-Amz-Copy-Source", "/secret/object"],
        ["Authorization", "AWS4-HMAC-SHA256 of-the-sender"]
      ]
    }
  )
  const { headers, url } = delivery
  const key = { accessKeyId: auth.access_key_id, secretAccessKey: auth.secret_access_key }
  expect(headers["authorization"]).toBe(await authorizationOf(delivery, target.origin + url, key, "s3"))
  expect(headers["x-amz-content-sha256"]).toBe(createHash("sha256").update(delivery.body).digest("hex"))
  expect([headers["x-amz-copy-source"], headers["x-gateway-event-id"]]).toEqual([undefined, expect.any(String)])
  const moved = await gateway.call("PATCH", `/destinations/${destination.id}`, {
    config: { url: "https://elsewhere.example.com/" }
  })
  expect([moved.status, JSON.stringify(moved.body)]).toEqual([400, expect.stringContaining("must be sent again")])
})

it("AWS_SIGV4 signs with the key of a role, which is asked for once and is shown nowhere", async ({
  gateway,
  target
}) => {
  const sts = await Target.start()
  onTestFinished(() => sts.close())
  const given = {
    accessKeyId: "ASIAOFTHEROLE",
    secretAccessKey: "s3cret+of/the-role",
    sessionToken: "t0ken/of+the-role=="
  }
  sts.reply = (response) =>
    void response.end(
      `<AssumeRoleResponse><AccessKeyId>${given.accessKeyId}</AccessKeyId><SecretAccessKey>${given.secretAccessKey}</SecretAccessKey><SessionToken>${given.sessionToken}</SessionToken></AssumeRoleResponse>`
    )
  target.reply = (response, { headers }) => void response.end(`you sent ${String(headers["x-amz-security-token"])}`)
  const auth = {
    access_key_id: "AKIDEXAMPLE",
    secret_access_key: "s3cret-of-the-key",
    region: "eu-central-1",
    service: "execute-api",
    role_arn: "arn:aws:iam::123456789012:role/gateway",
    external_id: "e-1",
    session_name: "orders",
    sts_endpoint: `${sts.origin}/`
  }
  const route = await gateway.route(target, { destination: { auth_type: "AWS_SIGV4", auth } })
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => request(gateway.port, { path: `/e/${route.source.id}`, body: "{}" }))
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
  for (const delivery of await target.next(20)) {
    const { headers, url } = delivery
    expect(headers["authorization"]).toBe(await authorizationOf(delivery, target.origin + url, given, "execute-api"))
  }
  expect(sts.received).toHaveLength(1)
  const [asking] = sts.received
  const form = Object.fromEntries(new URLSearchParams(String(asking!.body)))
  expect(form).toMatchObject({ RoleArn: auth.role_arn, ExternalId: "e-1", RoleSessionName: "orders" })
  const key = { accessKeyId: auth.access_key_id, secretAccessKey: auth.secret_access_key }
  expect(asking!.headers["authorization"]).toBe(await authorizationOf(asking!, auth.sts_endpoint, key, "sts"))

  const { id } = route.destination
  const models = await gateway.eventually("the attempts", async () => {
    const { models } = await gateway.api("GET", `/attempts?destination_id=${id}`)
    return models.length === 20 ? models : null
  })
  expect(new Set(models.map(({ body }) => body))).toEqual(new Set(["you sent ****le=="]))
  const stored = [
    ...(await gateway.sql("select * from attempts where destination_id = $1", [id])),
    ...(await gateway.sql("select * from destination_tokens where destination_id = $1", [id])),
    ...(await gateway.sql("select * from destinations where id = $1", [id]))
  ]
  expect(stored).toHaveLength(22)
  const shown = JSON.stringify([models, await gateway.api("GET", `/destinations/${id}`), stored], (_, value) =>
    value?.type === "Buffer" ? String(Buffer.from(value)) : value
  )
  for (const secret of [given.secretAccessKey, given.sessionToken, auth.secret_access_key]) {
    expect(shown).not.toContain(secret)
  }
})
