import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { SignJWT } from "jose"
import { createHmac, createPrivateKey, createSecretKey, generateKeyPairSync, hash } from "node:crypto"
import type { KeyObject } from "node:crypto"
import { validateSourceAuth } from "@tidegate/verification/SourceAuth"
import { bytes, changed, checkOf, hasCheck, inbound, now, problemOf } from "./inbound.ts"

const body = '{"event": {"type": "user.create", "name": "größe"}}'
const digest = hash("sha256", bytes(body), "base64")
const secret = "a secret of FusionAuth, in base64 or not"

const spki = (key: KeyObject) => key.export({ type: "spki", format: "pem" })
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 })
const curve = (namedCurve: string) => generateKeyPairSync("ec", { namedCurve })
const [p256, p384, p521] = [curve("prime256v1"), curve("secp384r1"), curve("secp521r1")]

const token = (
  alg: string,
  key: KeyObject,
  claims: Readonly<Record<string, unknown>> = {},
  header: Readonly<Record<string, unknown>> = {}
): Promise<string> =>
  new SignJWT({ request_body_sha256: digest, ...claims }).setProtectedHeader({ ...header, alg, kid: "k" }).sign(key)

const verifyWith = (
  auth: Readonly<Record<string, string>>,
  jwt: string | ReadonlyArray<string> | undefined,
  text: string | Uint8Array = body
) => checkOf("FUSIONAUTH", auth)(inbound({ body: text, headers: { "x-fusionauth-signature-jwt": jwt } }))

const hmacKey = createSecretKey(secret, "utf8")
const hmac = { webhook_secret_key: secret }

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url")

describe("FUSIONAUTH signatures of jose", () => {
  for (const [alg, key, auth] of [
    ["HS256", hmacKey, hmac],
    ["HS384", hmacKey, hmac],
    ["HS512", hmacKey, hmac],
    ["RS256", rsa.privateKey, { public_key: spki(rsa.publicKey) }],
    ["RS384", rsa.privateKey, { public_key: spki(rsa.publicKey) }],
    ["RS512", rsa.privateKey, { public_key: spki(rsa.publicKey) }],
    ["ES256", p256.privateKey, { public_key: spki(p256.publicKey) }],
    ["ES384", p384.privateKey, { public_key: spki(p384.publicKey) }],
    ["ES512", p521.privateKey, { public_key: spki(p521.publicKey) }]
  ] as const) {
    it(`A FusionAuth token that jose signed with ${alg} is verified, and every change to it is refused`, async () => {
      const jwt = await token(alg, key)
      expect(verifyWith(auth, jwt)).toBe(true)
      expect(verifyWith(auth, jwt, changed(body))).toBe(false)
      expect(verifyWith(auth, jwt, JSON.stringify(JSON.parse(body)))).toBe(false)
      expect(verifyWith(auth, jwt, "")).toBe(false)
      const [header = "", claims = "", signature = ""] = jwt.split(".")
      expect(verifyWith(auth, `${header}.${claims}.${changed(signature)}`)).toBe(false)
      expect(verifyWith(auth, `${header}.${claims}.`)).toBe(false)
      expect(verifyWith(auth, `${header}.${claims}`)).toBe(false)
      expect(verifyWith(auth, `${jwt}.`)).toBe(false)
      expect(verifyWith(auth, `${jwt}=`)).toBe(false)
      expect(verifyWith(auth, ` ${jwt}`)).toBe(false)
      const other = encode({ request_body_sha256: hash("sha256", "{}", "base64") })
      expect(verifyWith(auth, `${header}.${other}.${signature}`, "{}")).toBe(false)
      for (const missing of [undefined, "", [jwt, jwt]]) expect(verifyWith(auth, missing)).toBe(false)
    })
  }

  it("A FusionAuth signature of another key of the same kind is refused", async () => {
    expect(verifyWith({ webhook_secret_key: `${secret}.` }, await token("HS256", hmacKey))).toBe(false)
    const foreign = generateKeyPairSync("rsa", { modulusLength: 2048 })
    expect(verifyWith({ public_key: spki(foreign.publicKey) }, await token("RS256", rsa.privateKey))).toBe(false)
    expect(verifyWith({ public_key: spki(curve("prime256v1").publicKey) }, await token("ES256", p256.privateKey))).toBe(
      false
    )
  })
})

describe("FUSIONAUTH algorithms", () => {
  const auths = [hmac, { public_key: spki(rsa.publicKey) }, { public_key: spki(p256.publicKey) }]

  it("A FusionAuth token with the algorithm `none` is refused", () => {
    for (const auth of auths) {
      for (const alg of ["none", "None", "NONE", "", null, undefined, ["HS256"], "__proto__"]) {
        const unsigned = `${encode({ alg })}.${encode({ request_body_sha256: digest })}`
        for (const signature of ["", "AA"]) expect(verifyWith(auth, `${unsigned}.${signature}`)).toBe(false)
      }
    }
  })

  it("A FusionAuth token with an HMAC made with the public key is refused", () => {
    for (const { publicKey } of [rsa, p256]) {
      const pem = spki(publicKey)
      const der = publicKey.export({ type: "spki", format: "der" })
      for (const public_key of [pem, der.toString("base64")]) {
        for (const key of [pem, pem.trim(), der, der.toString("base64")]) {
          const unsigned = `${encode({ alg: "HS256" })}.${encode({ request_body_sha256: digest })}`
          const signature = createHmac("sha256", key).update(unsigned).digest("base64url")
          expect(verifyWith({ public_key }, `${unsigned}.${signature}`)).toBe(false)
        }
      }
      expect(problemOf("FUSIONAUTH", "webhook_secret_key", pem)).not.toBeNull()
      expect(hasCheck("FUSIONAUTH", { webhook_secret_key: pem })).toBe(false)
    }
    expect(problemOf("FUSIONAUTH", "webhook_secret_key", secret)).toBeNull()
  })

  it("A FusionAuth token with an algorithm of another kind of key is refused", async () => {
    expect(verifyWith({ public_key: spki(rsa.publicKey) }, await token("PS256", rsa.privateKey))).toBe(false)
    expect(verifyWith({ public_key: spki(rsa.publicKey) }, await token("ES256", p256.privateKey))).toBe(false)
    expect(verifyWith({ public_key: spki(p384.publicKey) }, await token("ES256", p256.privateKey))).toBe(false)
    expect(verifyWith(hmac, await token("RS256", rsa.privateKey))).toBe(false)
  })

  it("A FusionAuth signature of an EC key has only one valid form", async () => {
    const jwt = await token("ES256", p256.privateKey)
    const [header = "", claims = "", signature = ""] = jwt.split(".")
    expect(Buffer.from(signature, "base64url").length).toBe(64)
    const zeros = Buffer.alloc(64).toString("base64url")
    expect(verifyWith({ public_key: spki(p256.publicKey) }, `${header}.${claims}.${zeros}`)).toBe(false)
  })

  it("A FusionAuth token with a critical header is refused, because no such extension is supported", async () => {
    const signed = async (header: Readonly<Record<string, unknown>>) => {
      const unsigned = `${encode({ alg: "HS256", ...header })}.${encode({ request_body_sha256: digest })}`
      return `${unsigned}.${createHmac("sha256", hmacKey).update(unsigned).digest("base64url")}`
    }
    expect(verifyWith(hmac, await signed({ typ: "JWT" }))).toBe(true)
    expect(verifyWith(hmac, await signed({ crit: ["b64"], b64: true }))).toBe(false)
    expect(verifyWith(hmac, await signed({ crit: [] }))).toBe(false)
  })

  it("FusionAuth settings accept exactly one key", () => {
    expect(hasCheck("FUSIONAUTH", {})).toBe(false)
    expect(hasCheck("FUSIONAUTH", { ...hmac, public_key: spki(rsa.publicKey) })).toBe(false)
    for (const auth of [{}, { ...hmac, public_key: spki(rsa.publicKey) }]) {
      expect(Result.isFailure(validateSourceAuth("FUSIONAUTH", "HMAC", auth))).toBe(true)
    }
    expect(Result.isSuccess(validateSourceAuth("FUSIONAUTH", "HMAC", hmac))).toBe(true)
    const privateKey = createPrivateKey(rsa.privateKey.export({ type: "pkcs8", format: "pem" }))
    for (const wrong of [
      "",
      "key",
      spki(generateKeyPairSync("ed25519").publicKey),
      spki(curve("secp256k1").publicKey),
      privateKey.export({ type: "pkcs8", format: "pem" })
    ]) {
      expect(problemOf("FUSIONAUTH", "public_key", wrong)).not.toBeNull()
      expect(hasCheck("FUSIONAUTH", { public_key: wrong })).toBe(false)
    }
  })
})

describe("FUSIONAUTH claims", () => {
  it("A FusionAuth token must contain the digest of the body in base64", async () => {
    for (const wrong of [
      undefined,
      null,
      "",
      1,
      [digest],
      hash("sha256", bytes(body), "hex"),
      hash("sha256", bytes(body), "base64url"),
      hash("sha256", "", "base64")
    ]) {
      expect(verifyWith(hmac, await token("HS256", hmacKey, { request_body_sha256: wrong }))).toBe(false)
    }
  })

  it("Times in a FusionAuth token are numbers and have a tolerance of five minutes", async () => {
    for (const [claims, expected] of [
      [{ exp: now - 300, nbf: now + 300, iat: now - 300 }, true],
      [{ exp: now + 1e6 }, true],
      [{ exp: now - 301 }, false],
      [{ nbf: now + 301 }, false],
      [{ iat: now - 301 }, false],
      [{ iat: now + 301 }, false]
    ] as const) {
      expect(verifyWith(hmac, await token("HS256", hmacKey, claims)), JSON.stringify(claims)).toBe(expected)
    }
    for (const name of ["exp", "nbf", "iat"]) {
      for (const value of [String(now), null, {}, true]) {
        const unsigned = `${encode({ alg: "HS256" })}.${encode({ request_body_sha256: digest, [name]: value })}`
        const jwt = `${unsigned}.${createHmac("sha256", hmacKey).update(unsigned).digest("base64url")}`
        expect(verifyWith(hmac, jwt), `${name} ${JSON.stringify(value)}`).toBe(false)
      }
    }
  })
})
