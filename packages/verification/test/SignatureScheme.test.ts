import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { createHmac } from "node:crypto"
import { algorithms, compileScheme, encodings } from "@tidegate/verification/SignatureScheme"
import type { Headers, SignatureScheme } from "@tidegate/verification/SignatureScheme"
import { Webhook } from "standardwebhooks"

const now = 1_700_000_000

const plain: SignatureScheme = {
  header: "x-signature",
  separator: null,
  prefix: "",
  algorithm: "sha256",
  encoding: "hex",
  content: "{body}",
  timestamp: null,
  secret: "utf8"
}

const check = (scheme: SignatureScheme, secret: string, headers: Headers, body: string | Uint8Array, at = now) => {
  const compiled = compileScheme(scheme, secret)
  expect(compiled).not.toBeNull()
  return compiled!({
    method: "POST",
    url: "https://in.test/e/src_1",
    headers,
    body: typeof body === "string" ? Buffer.from(body, "utf8") : body,
    nowSeconds: at
  })
}

// RFC 4231, test cases 1 to 4, 6 and 7.
const vectors = [
  {
    key: Buffer.alloc(20, 0x0b),
    data: Buffer.from("Hi There"),
    sha256: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
    sha512:
      "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"
  },
  {
    key: Buffer.from("Jefe"),
    data: Buffer.from("what do ya want for nothing?"),
    sha256: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    sha512:
      "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
  },
  {
    key: Buffer.alloc(20, 0xaa),
    data: Buffer.alloc(50, 0xdd),
    sha256: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
    sha512:
      "fa73b0089d56a284efb0f0756c890be9b1b5dbdd8ee81a3655f83e33b2279d39bf3e848279a722c806b485a47e67c807b946a337bee8942674278859e13292fb"
  },
  {
    key: Buffer.from(Array.from({ length: 25 }, (_, index) => index + 1)),
    data: Buffer.alloc(50, 0xcd),
    sha256: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
    sha512:
      "b0ba465637458c6990e5a8c5f61d4af7e576d97ff94b872de76f8050361ee3dba91ca5c11aa25eb4d679275cc5788063a5f19741120c4f2de2adebeb10a298dd"
  },
  {
    key: Buffer.alloc(131, 0xaa),
    data: Buffer.from("Test Using Larger Than Block-Size Key - Hash Key First"),
    sha256: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    sha512:
      "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f3526b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598"
  },
  {
    key: Buffer.alloc(131, 0xaa),
    data: Buffer.from(
      "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm."
    ),
    sha256: "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
    sha512:
      "e37b6a775dc87dbaa4dfa9f96e5e3ffddebd71f8867289865df5a32d20cdc944b6022cac3c4982b10d5eeb55c3e4de15134676fb6de0446065c97440fa8c6a58"
  }
]

describe("RFC 4231", () => {
  for (const [index, { data, key, sha256, sha512 }] of vectors.entries()) {
    it(`RFC 4231 test vector ${index + 1} is verified, and its truncated signature is refused`, () => {
      const secret = `whsec_${key.toString("base64")}`
      for (const [algorithm, signature] of [["sha256", sha256] as const, ["sha512", sha512] as const]) {
        const scheme = { ...plain, algorithm, secret: "whsec" as const }
        expect(check(scheme, secret, { "x-signature": signature }, data)).toBe(true)
        // Truncated, as in test case 5: a part of a signature is none.
        expect(check(scheme, secret, { "x-signature": signature.slice(0, 32) }, data)).toBe(false)
      }
    })
  }
})

describe("Function compileScheme", () => {
  it("A signature scheme without a valid key is not compiled", () => {
    expect(compileScheme(plain, "")).toBeNull()
    expect(compileScheme({ ...plain, secret: "whsec" }, "")).toBeNull()
    expect(compileScheme({ ...plain, secret: "whsec" }, "whsec_")).toBeNull()
    expect(compileScheme({ ...plain, secret: "whsec" }, "whsec_not base64")).toBeNull()
    expect(compileScheme({ ...plain, secret: "whsec" }, "whsec_abcde")).toBeNull()
  })

  it("A signature scheme with an unknown placeholder or a missing timestamp rule throws", () => {
    expect(() => compileScheme({ ...plain, content: "{host}{body}" }, "k")).toThrow(/unknown placeholder \{host\}/)
    expect(() => compileScheme({ ...plain, content: "{timestamp}.{body}" }, "k")).toThrow(/needs a timestamp rule/)
    // A timestamp inside the body is signed with it, and is nowhere else to be signed.
    const timestamp = { from: { bodyMember: "at" }, unit: "seconds", toleranceSeconds: 60 } as const
    expect(() => compileScheme({ ...plain, content: "{timestamp}.{body}", timestamp }, "k")).toThrow(
      /needs a timestamp rule/
    )
  })
})

// Fixtures: printf '1700000000.hello' | openssl dgst -sha256 -hmac k -r, and so with 1700000000999.hello and
// v0:1700000000:7:hello.
describe("Signature headers with items", () => {
  const pairs: SignatureScheme = {
    ...plain,
    separator: ",",
    prefix: "v1=",
    content: "{timestamp}.{body}",
    timestamp: { from: { itemPrefix: "t=" }, unit: "seconds", toleranceSeconds: 300 }
  }
  const good = "0c511384dbc4c6b6cbe53e5da961410697e51518b6128a9f4b1c0920a2ba5ff5"
  const verify = (value: string, at = now) => check(pairs, "k", { "x-signature": value }, "hello", at)

  it("One of several signatures in a header is enough, in any order and among unknown items", () => {
    expect(verify(`t=1700000000,v1=${good}`)).toBe(true)
    expect(verify(`v1=${good}, t=1700000000`)).toBe(true)
    expect(verify(`t=1700000000,v1=${"0".repeat(64)},v0=abc,v1=${good},`)).toBe(true)
  })

  it("A signature header with a wrong version, an ambiguous timestamp or an old signature is refused", () => {
    expect(verify(`t=1700000000,v0=${good}`)).toBe(false)
    expect(verify(`t=1700000000,v1=${"0".repeat(64)}`)).toBe(false)
    expect(verify(`t=1700000000,t=1700000000,v1=${good}`)).toBe(false)
    expect(verify(`t=1700000000,t=1700000001,v1=${good}`)).toBe(false)
    expect(verify(`t=,v1=${good}`)).toBe(false)
    expect(verify(`v1=${good}`)).toBe(false)
    expect(verify(good)).toBe(false)
    expect(verify(`t=1700000000,v1=${good}`, now + 301)).toBe(false)
  })

  it("A timestamp may be ahead by the tolerance, but by 5 minutes at most", () => {
    const within = (toleranceSeconds: number, at: number) =>
      check(
        { ...pairs, timestamp: { from: { itemPrefix: "t=" }, unit: "seconds", toleranceSeconds } },
        "k",
        { "x-signature": `t=1700000000,v1=${good}` },
        "hello",
        at
      )
    expect([within(5400, now + 5400), within(5400, now + 5401)]).toEqual([true, false])
    expect([within(5400, now - 300), within(5400, now - 301)]).toEqual([true, false])
    expect([within(60, now - 60), within(60, now - 61)]).toEqual([true, false])
  })

  it("A timestamp may be in milliseconds", () => {
    const scheme: SignatureScheme = {
      ...pairs,
      timestamp: { from: { itemPrefix: "t=" }, unit: "milliseconds", toleranceSeconds: 300 }
    }
    const headers = {
      "x-signature": "t=1700000000999,v1=a222084356723e2c10ffff942ded5a020b49353f74f22173451c097592c292d1"
    }
    expect(check(scheme, "k", headers, "hello", now + 300)).toBe(true)
    expect(check(scheme, "k", headers, "hello", now + 301)).toBe(false)
    expect(check(scheme, "k", headers, "hello", now - 300)).toBe(false)
  })
})

describe("Signed content", () => {
  it("Signed content is built from literal text, headers and the body", () => {
    const scheme: SignatureScheme = {
      ...plain,
      prefix: "v0=",
      content: "v0:{timestamp}:{header:x-id}:{body}",
      timestamp: { from: { header: "x-timestamp" }, unit: "seconds", toleranceSeconds: 300 }
    }
    const headers = {
      "x-signature": "v0=0e0b5374c172a9aedc762624978a4789815e106299f95c9c9e997391a1ba75d3",
      "x-timestamp": "1700000000",
      "x-id": "7"
    }
    expect(check(scheme, "k", headers, "hello")).toBe(true)
    expect(check(scheme, "k", { ...headers, "x-id": "8" }, "hello")).toBe(false)
    // A header that is missing is not an empty one, even to a sender who signed it so.
    const without = createHmac("sha256", "k").update("v0:1700000000::hello").digest("hex")
    expect(check(scheme, "k", { ...headers, "x-signature": `v0=${without}`, "x-id": undefined }, "hello")).toBe(false)
    expect(check(scheme, "k", { ...headers, "x-signature": `v0=${without}`, "x-id": "" }, "hello")).toBe(false)
    expect(check(scheme, "k", { ...headers, "x-id": ["7"] }, "hello")).toBe(false)
    expect(check(scheme, "k", { ...headers, "x-timestamp": "1700000001" }, "hello")).toBe(false)
  })

  it("The scheme of Standard Webhooks verifies what the reference implementation signs", () => {
    const scheme: SignatureScheme = {
      header: "webhook-signature",
      separator: " ",
      prefix: "v1,",
      algorithm: "sha256",
      encoding: "base64",
      content: "{header:webhook-id}.{timestamp}.{body}",
      timestamp: { from: { header: "webhook-timestamp" }, unit: "seconds", toleranceSeconds: 300 },
      secret: "whsec"
    }
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    const signature = new Webhook(secret).sign("msg_1", new Date(now * 1000), "hello")
    const headers = (value: string) => ({
      "webhook-id": "msg_1",
      "webhook-timestamp": "1700000000",
      "webhook-signature": value
    })
    expect(check(scheme, secret, headers(signature), "hello")).toBe(true)
    expect(check(scheme, secret, headers(`v1,${"A".repeat(43)}= v1a,xyz ${signature}`), "hello")).toBe(true)
    expect(check(scheme, secret, headers(signature.slice("v1,".length)), "hello")).toBe(false)
    expect(check(scheme, "whsec_AAAAAAAAAAAAAAAA", headers(signature), "hello")).toBe(false)
  })
})

const byte = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
const properties = {
  body: Arbitrary.array(Arbitrary.schema(byte), { minLength: 1, maxLength: 200 }),
  secret: Schema.String.check(Schema.isMinLength(1)),
  algorithm: Schema.Literals(algorithms),
  encoding: Schema.Literals(encodings),
  at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 })),
  flip: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 93 }))
}

describe("Signature properties", () => {
  it.prop("A signed body is verified, and refused when any byte of body or signature changes", properties, (sample) => {
    const { algorithm, encoding, secret } = sample
    const body = Buffer.from(sample.body)
    const signature = createHmac(algorithm, secret).update(body).digest(encoding)
    const scheme = { ...plain, algorithm, encoding }
    expect(check(scheme, secret, { "x-signature": signature }, body)).toBe(true)

    const altered = Buffer.from(body)
    altered[sample.at % body.length]! ^= sample.flip
    expect(check(scheme, secret, { "x-signature": signature }, altered)).toBe(false)

    const index = sample.at % signature.length
    const code = 33 + ((signature.charCodeAt(index) - 33 + sample.flip) % 94)
    const forged = signature.slice(0, index) + String.fromCharCode(code) + signature.slice(index + 1)
    const isSameHex = encoding === "hex" && forged.toLowerCase() === signature
    expect(check(scheme, secret, { "x-signature": forged }, body)).toBe(isSameHex)
  })

  it.prop("No header makes a check throw", { value: Schema.String, body: Schema.String }, ({ body, value }) => {
    for (const separator of [null, ",", " "]) {
      expect(check({ ...plain, separator }, "k", { "x-signature": value }, body)).toBe(false)
    }
  })
})
