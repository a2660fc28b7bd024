import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { httpbis } from "http-message-signatures"
import {
  constants,
  createHash,
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  verify
} from "node:crypto"
import { compileOutboundAuth, validateOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import { contentDigest, type SignatureAlgorithm, signatureBase, signBase } from "../src/MessageSignature.ts"
import { readableKey } from "../src/SigningKeys.ts"

/** The examples of RFC 9421, appendix B, and what another implementation says to signatures that are made here. */

const created = 1_618_884_473

const request = {
  method: "POST",
  url: "https://example.com/foo?param=Value&Pet=dog",
  headers: [
    "Host",
    "example.com",
    "Date",
    "Tue, 20 Apr 2021 02:07:55 GMT",
    "Content-Type",
    "application/json",
    "Content-Digest",
    "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:",
    "Content-Length",
    "18"
  ]
}

const rsaPss = `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAr4tmm3r20Wd/PbqvP1s2
+QEtvpuRaV8Yq40gjUR8y2Rjxa6dpG2GXHbPfvMs8ct+Lh1GH45x28Rw3Ry53mm+
oAXjyQ86OnDkZ5N8lYbggD4O3w6M6pAvLkhk95AndTrifbIFPNU8PPMO7OyrFAHq
gDsznjPFmTOtCEcN2Z1FpWgchwuYLPL+Wokqltd11nqqzi+bJ9cvSKADYdUAAN5W
Utzdpiy6LbTgSxP7ociU4Tn0g5I6aDZJ7A8Lzo0KSyZYoA485mqcO0GVAdVw9lq4
aOT9v6d+nb4bnNkQVklLQ3fVAvJm+xdDOp9LCNCN48V2pnDOkFV6+U9nV5oyc6XI
2wIDAQAB
-----END PUBLIC KEY-----`

const p256 = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lf
w0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==
-----END PUBLIC KEY-----`

const ed25519 = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----`

const shared = "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="

const clientCert =
  ":MIIBqDCCAU6gAwIBAgIBBzAKBggqhkjOPQQDAjA6MRswGQYDVQQKDBJMZXQncyBBdXRoZW50aWNhdGUxGzAZBgNVBAMMEkxBIEludGVybWVkaWF0ZSBDQTAeFw0yMDAxMTQyMjU1MzNaFw0yMTAxMjMyMjU1MzNaMA0xCzAJBgNVBAMMAkJDMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8YnXXfaUgmnMtOXU/IncWalRhebrXmckC8vdgJ1p5Be5F/3YC8OthxM4+k1M6aEAEFcGzkJiNy6J84y7uzo9M6NyMHAwCQYDVR0TBAIwADAfBgNVHSMEGDAWgBRm3WjLa38lbEYCuiCPct0ZaSED2DAOBgNVHQ8BAf8EBAMCBsAwEwYDVR0lBAwwCgYIKwYBBQUHAwIwHQYDVR0RAQH/BBMwEYEPYmRjQGV4YW1wbGUuY29tMAoGCCqGSM49BAMCA0gAMEUCIBHda/r1vaL6G3VliL4/Di6YK0Q6bMjeSkC3dFCOOB8TAiEAx/kHSB4urmiZ0NX5r5XarmPk0wmuydBVoU4hBVZ1yhk=:"

const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 }

describe("Examples of RFC 9421", () => {
  it("Signatures by HMAC and Ed25519 are those of the examples B.2.5 and B.2.6, byte for byte", async () => {
    const hmac = signatureBase(request, ["date", "@authority", "content-type"], {
      created,
      keyid: "test-shared-secret"
    })
    expect(hmac.input).toBe('("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"')
    expect((await signBase("hmac-sha256", readableKey(shared, "secret"), hmac.base)).toString("base64")).toBe(
      "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8="
    )
    const names = ["date", "@method", "@path", "@authority", "content-type", "content-length"]
    const { base } = signatureBase(request, names, { created, keyid: "test-key-ed25519" })
    expect((await signBase("ed25519", readableKey(ed25519, "ed25519"), base)).toString("base64")).toBe(
      "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
    )
  })

  it.each([
    [
      "B.2.1",
      request,
      [],
      { created, keyid: "test-key-rsa-pss", nonce: "b3k2pp5k7z-50gnwp.yemd" },
      rsaPss,
      "d2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJMkA7ChG52eSkFxykJeNqsrWH5S+oxNFlD4dzVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE+O6c0mKZsfxVrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO5Nyt8C8ssinQ98Xw9Q=="
    ],
    [
      "B.2.3",
      request,
      ["date", "@method", "@path", "@query", "@authority", "content-type", "content-digest", "content-length"],
      { created, keyid: "test-key-rsa-pss" },
      rsaPss,
      "bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiMIRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb38K0fUxN0O0iC59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2HXXZzNBXmIkoQoLd7YfW91kE9o/CCoC1xMy7JA1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FUo5fTIztsDZKEgM4cUA=="
    ],
    [
      "B.3",
      {
        ...request,
        url: "https://service.internal.example/foo?param=Value&Pet=dog",
        headers: ["Client-Cert", clientCert]
      },
      ["@path", "@query", "@method", "@authority", "client-cert"],
      { created, keyid: "test-key-ecc-p256" },
      p256,
      "xVMHVpawaAC/0SbHrKRs9i8I3eOs5RtTMGCWXm/9nvZzoHsIg6Mce9315T6xoklyy0yzhD9ah4JHRwMLOgmizw=="
    ],
    [
      "B.4",
      {
        method: "GET",
        url: "https://example.org/demo?name1=Value1&Name2=value2",
        headers: ["Accept", "application/json", "Accept", "*/*"]
      },
      ["@method", "@path", "@authority", "accept"],
      { created, keyid: "test-key-ed25519" },
      ed25519,
      "ZT1kooQsEHpZ0I1IjCqtQppOmIqlJPeo7DHR3SoMn0s5JZ1eRGS0A+vyYP9t/LXlh5QMFFQ6cpLt2m0pmj3NDA=="
    ]
  ])(
    "Signature of the example %s is valid for what is signed here",
    (_, message, names, parameters, pem, signature) => {
      const key = createPublicKey(pem)
      const base = Buffer.from(signatureBase(message, names, parameters).base)
      const bytes = Buffer.from(signature, "base64")
      const options = pem === rsaPss ? { key, ...pss } : { key, dsaEncoding: "ieee-p1363" as const }
      const hash = pem === rsaPss ? "sha512" : pem === p256 ? "sha256" : null
      expect(verify(hash, base, options, bytes)).toBe(true)
      expect(verify(hash, Buffer.concat([base, Buffer.from(" ")]), options, bytes)).toBe(false)
    }
  )

  it("Digest of a body is that of RFC 9530, for a small body and for a large one", async () => {
    expect(await contentDigest(Buffer.from('{"hello": "world"}\n'))).toBe(
      "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"
    )
    const large = Buffer.alloc(1024 * 1024, "x")
    expect(await contentDigest(large)).toBe(`sha-256=:${createHash("sha256").update(large).digest("base64")}:`)
  })
})

const pem = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" })
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 })
const keys: ReadonlyArray<readonly [SignatureAlgorithm, string, KeyObject | null]> = [
  ["hmac-sha256", shared, null],
  ...(
    [
      ["ed25519", generateKeyPairSync("ed25519")],
      ["rsa-pss-sha512", rsa],
      ["rsa-pss-sha512", generateKeyPairSync("rsa-pss", { modulusLength: 2048 })],
      ["ecdsa-p256-sha256", generateKeyPairSync("ec", { namedCurve: "P-256" })]
    ] as const
  ).map(([algorithm, { privateKey, publicKey }]) => [algorithm, pem(privateKey), publicKey] as const)
]

const facts = { eventId: "evt_1", attemptNumber: 1, timestampSeconds: 1_700_000_000 }
const signed = {
  method: "PUT",
  url: "https://api.example.com:8443/a%20b/ü?q=1&q=2",
  headers: ["Content-Type", 'text/plain; a="é"', "x-b", " one ", "X-B", "two", "content-digest", "sha-256=:forged:"],
  body: Buffer.from("body")
}

const signOf = (auth: object) =>
  compileOutboundAuth(Result.getOrThrow(validateOutboundAuth("HTTP_MESSAGE_SIGNATURE", auth))).sign!

/** The headers of a signed request, by name. */
const sent = async (auth: object, message = signed, at = facts): Promise<Record<string, string>> => {
  const { headers } = await signOf(auth)(message, at)
  return Object.fromEntries(headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]!]] : [])))
}

const verifiers: Readonly<Record<SignatureAlgorithm, (key: KeyObject | null, data: Buffer, is: Buffer) => boolean>> = {
  "hmac-sha256": (_, data, is) => createHmac("sha256", Buffer.from(shared, "base64")).update(data).digest().equals(is),
  ed25519: (key, data, is) => verify(null, data, key!, is),
  "rsa-pss-sha512": (key, data, is) => verify("sha512", data, { key: key!, ...pss }, is),
  "ecdsa-p256-sha256": (key, data, is) => verify("sha256", data, { key: key!, dsaEncoding: "ieee-p1363" }, is)
}

describe("HTTP_MESSAGE_SIGNATURE", () => {
  it.each(keys)(
    "Signature by %s is accepted by another implementation, and a changed request is not",
    async (...row) => {
      const [algorithm, key, publicKey] = row
      const components = ["@method", "@target-uri", "@authority", "@query", "content-type", "x-b", "content-digest"]
      const tag = 'an "application"'
      const headers = await sent({ key_id: "k1", algorithm, key, components, expires_seconds: 60, tag })
      expect(headers["content-digest"]).toBe(await contentDigest(signed.body))
      const isAccepted = (change: object): Promise<boolean | null> =>
        httpbis.verifyMessage(
          {
            requiredParams: ["created", "expires", "nonce", "keyid", "alg", "tag"],
            requiredFields: components,
            // The library compares with its clock; the signature is of another time.
            notAfter: facts.timestampSeconds,
            tolerance: Number.MAX_SAFE_INTEGER / 1_000_000,
            keyLookup: ({ keyid }) =>
              Promise.resolve(
                keyid === "k1"
                  ? {
                      id: keyid,
                      algs: [algorithm],
                      verify: (data, is) => Promise.resolve(verifiers[algorithm](publicKey, latin1(data), is))
                    }
                  : null
              )
          },
          {
            method: signed.method,
            url: new URL(signed.url).href,
            headers: { "content-type": signed.headers[1]!, "x-b": ["one", "two"], ...headers },
            ...change
          }
        )
      expect(await isAccepted({})).toBe(true)
      const refused = (change: object) => isAccepted(change).catch(() => false)
      expect(await refused({ method: "POST" })).toBe(false)
      expect(await refused({ url: "https://api.example.com:8443/a%20b?q=1" })).toBe(false)
    }
  )

  it("Signature covers the usual components, has a nonce of its own for each attempt, and leaves out absent headers", async () => {
    const auth = { key_id: "k", algorithm: "hmac-sha256", key: shared }
    const bare = { ...signed, headers: [] }
    const first = await sent(auth, bare)
    expect(first["signature-input"]).toMatch(
      /^sig1=\("@method" "@target-uri" "content-digest"\);created=1700000000;keyid="k";alg="hmac-sha256";nonce="[\w-]{22}"$/
    )
    const again = await sent(auth, bare, { ...facts, attemptNumber: 2 })
    expect(again["signature-input"]).not.toBe(first["signature-input"])
    expect(again["signature"]).not.toBe(first["signature"])
    expect(Object.keys(await sent({ ...auth, components: ["@method"] }))).toEqual(["signature-input", "signature"])
  })

  const faults = (auth: object): ReadonlyArray<string> =>
    Result.match(validateOutboundAuth("HTTP_MESSAGE_SIGNATURE", auth), {
      onSuccess: () => [],
      onFailure: (errors) => errors.map(({ message, path }) => `${path} ${message}`)
    })

  it.each([
    ["hmac-sha256", "c2hvcnQ=", "base64 of at least 32 bytes"],
    ["hmac-sha256", "no base64 at all, but more than thirty-two bytes", "base64 of at least 32 bytes"],
    ["hmac-sha256", `whsec_${shared}`, "base64 of at least 32 bytes"],
    ["ed25519", pem(rsa.privateKey), "an Ed25519 private key"],
    ["ed25519", rsaPss, "an Ed25519 private key"],
    ["rsa-pss-sha512", ed25519, "an RSA private key of 2048 to 4096 bits"],
    ["rsa-pss-sha512", pem(generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey), "an RSA private key"],
    [
      "rsa-pss-sha512",
      pem(generateKeyPairSync("rsa-pss", { modulusLength: 2048, hashAlgorithm: "sha256" }).privateKey),
      "an RSA private key"
    ],
    ["ecdsa-p256-sha256", pem(generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey), "of the curve P-256"],
    [
      "ecdsa-p256-sha256",
      generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({
        type: "pkcs8",
        format: "pem",
        cipher: "aes-256-cbc",
        passphrase: "secret"
      }),
      "without a password"
    ]
  ])("Key for %s that cannot be used is refused when it is written: %#", (algorithm, key, message) => {
    const found = faults({ key_id: "k", algorithm, key })
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(/^config\.auth\.key must be /)
    expect(found[0]).toContain(message)
  })

  it("Settings out of their bounds are refused, and a key with escaped line breaks is accepted", () => {
    const auth = { key_id: "k", algorithm: "ed25519", key: ed25519 }
    expect(faults({ ...auth, key: ed25519.replaceAll("\n", "\\n") })).toEqual([])
    const many = Array.from({ length: 33 }, (_, i) => `x-${i}`)
    for (const components of [
      [],
      many,
      ["@status"],
      ["X-A"],
      ["@method", "@method"],
      ["host"],
      ["signature"],
      ["a b"]
    ]) {
      expect(faults({ ...auth, components })[0]).toMatch(/^config\.auth\.components must be 1 to 32 different names/)
    }
    expect(faults({ ...auth, components: "@method" })).toEqual(["config.auth.components must be a list of names"])
    for (const expires_seconds of [0, 1.5, 86_401, "60"]) {
      expect(faults({ ...auth, expires_seconds })[0]).toMatch(/^config\.auth\.expires_seconds must be a whole number/)
    }
    expect(faults({ ...auth, key_id: "é" })[0]).toMatch(/^config\.auth\.key_id must be at most 256 printable/)
    expect(faults({ ...auth, algorithm: "rsa-v1_5-sha256" })[0]).toMatch(/^config\.auth\.algorithm must be one of/)
  })
})

/** The library signs UTF-8; on the wire, and in what is signed here, a header is latin-1. */
const latin1 = (data: Buffer): Buffer => Buffer.from(data.toString("utf8"), "latin1")
