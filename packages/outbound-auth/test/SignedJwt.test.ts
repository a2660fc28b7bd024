import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { decodeProtectedHeader, type JWTPayload, jwtVerify } from "jose"
import { createHash, createSecretKey, generateKeyPairSync, type KeyObject } from "node:crypto"
import { compileOutboundAuth, validateOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"

const shared = Buffer.alloc(32, "k").toString("base64")
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 })
const pairs = {
  RS256: rsa,
  PS256: rsa,
  ES256: generateKeyPairSync("ec", { namedCurve: "P-256" }),
  EdDSA: generateKeyPairSync("ed25519")
}
const pem = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" })

const request = { method: "POST", url: "https://api.example.com/", headers: [], body: Buffer.from('{"a":1}') }
const facts = { eventId: "evt_1", attemptNumber: 1, timestampSeconds: 1_700_000_000 }

const checked = (auth: object) => validateOutboundAuth("SIGNED_JWT", auth)
const sent = async (auth: object, at = facts) =>
  (await compileOutboundAuth(Result.getOrThrow(checked(auth))).sign!(request, at)).headers
const faults = (auth: object): ReadonlyArray<string> =>
  Result.match(checked(auth), {
    onSuccess: () => [],
    onFailure: (errors) => errors.map(({ message, path }) => `${path} ${message}`)
  })

/** The claims of a token that is valid at the time of the attempt. */
const claimsOf = async (token: string, key: KeyObject, algorithm: string): Promise<JWTPayload> => {
  const options = { algorithms: [algorithm], currentDate: new Date(facts.timestampSeconds * 1_000) }
  return (await jwtVerify(token, key, options)).payload
}

describe("SIGNED_JWT", () => {
  it.each([
    ...Object.entries(pairs).map(([algorithm, pair]) => [algorithm, pem(pair.privateKey), pair.publicKey] as const),
    ["HS256", shared, createSecretKey(shared, "base64")] as const
  ])("Token by %s is valid, and has the claims that are set and a hash of the body", async (...row) => {
    const [algorithm, key, publicKey] = row
    const auth = {
      algorithm,
      key,
      key_id: "k1",
      issuer: "gateway",
      subject: "orders",
      audience: "https://api.example.com"
    }
    const [name, value = "", ...more] = await sent({ ...auth, lifetime_seconds: 60, body_hash_claim: "body_sha256" })
    expect([name, more]).toEqual(["authorization", []])
    const token = value.replace(/^Bearer /, "")
    expect(decodeProtectedHeader(token)).toEqual({ alg: algorithm, typ: "JWT", kid: "k1" })
    expect(await claimsOf(token, publicKey, algorithm)).toEqual({
      iss: "gateway",
      sub: "orders",
      aud: "https://api.example.com",
      iat: facts.timestampSeconds,
      exp: facts.timestampSeconds + 60,
      jti: expect.stringMatching(/^[\w-]{22}$/),
      body_sha256: createHash("sha256").update(request.body).digest("hex")
    })
  })

  it("Token has a jti of its own for each attempt, no claims that are not set, and goes into the header that is set", async () => {
    const auth = { algorithm: "HS256", key: shared, header_name: "X-Token" }
    const key = createSecretKey(shared, "base64")
    const [name, first = ""] = await sent(auth)
    const [, second = ""] = await sent(auth, { ...facts, attemptNumber: 2 })
    expect(name).toBe("x-token")
    const [one, two] = [await claimsOf(first, key, "HS256"), await claimsOf(second, key, "HS256")]
    expect(Object.keys(one)).toEqual(["iat", "exp", "jti"])
    expect(one.exp! - one.iat!).toBe(300)
    expect(one.jti).not.toBe(two.jti)
  })

  it("Wrong keys and settings out of their bounds are refused when they are written", () => {
    const auth = { algorithm: "HS256", key: shared }
    expect(faults(auth)).toEqual([])
    expect(faults({ ...auth, algorithm: "ES256" })).toEqual([
      "config.auth.key must be a private key of the curve P-256, in PEM without a password"
    ])
    expect(faults({ ...auth, algorithm: "RS256", key: pem(pairs.ES256.privateKey) })).toHaveLength(1)
    expect(faults({ ...auth, key: "c2hvcnQ=" })).toEqual(["config.auth.key must be base64 of at least 32 bytes"])
    for (const lifetime_seconds of [0, 3_601, 1.5, "60"]) {
      expect(faults({ ...auth, lifetime_seconds })).toEqual([
        "config.auth.lifetime_seconds must be a whole number from 1 to 3600"
      ])
    }
    for (const header_name of ["host", "x-gateway-event-id", "a b"])
      expect(faults({ ...auth, header_name })).toHaveLength(1)
    for (const body_hash_claim of ["exp", "jti", "__proto__", "a b"]) {
      expect(faults({ ...auth, body_hash_claim })[0]).toMatch(/^config\.auth\.body_hash_claim must /)
    }
    expect(faults({ ...auth, algorithm: "none" })[0]).toMatch(/^config\.auth\.algorithm must be one of/)
  })

  it("Disabled token is not sent, and its settings may be incomplete", () => {
    expect(compileOutboundAuth(Result.getOrThrow(checked({ issuer: "gateway", disabled: true })))).toEqual({
      headers: {},
      signs: false
    })
  })
})
