import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { createHmac } from "node:crypto"
import { compileSourceAuth, validateSourceAuth } from "@tidegate/verification/SourceAuth"
import type { InboundRequest } from "@tidegate/verification/SourceAuth"

const utf8 = (text: string) => Buffer.from(text, "utf8")

/** The Latin-1 string in which Node hands over the bytes of a header. */
const wire = (text: string) => utf8(text).toString("latin1")

const now = 1_700_000_000

const empty: InboundRequest = {
  method: "POST",
  url: "https://in.test/e/src_1",
  headers: {},
  query: "",
  body: new Uint8Array(),
  nowSeconds: now
}

const verify = (authType: unknown, auth: unknown, request: Partial<InboundRequest>) =>
  compileSourceAuth({ type: "WEBHOOK", ...Result.getOrThrow(validateSourceAuth("WEBHOOK", authType, auth)) }).verify({
    ...empty,
    ...request
  })

const secret = "It is a secret: ü"
const body = utf8('{"id":1,"name":"Zoë","amount":12.50}')

// printf '{"id":1,"name":"Zoë","amount":12.50}' | openssl dgst -<algorithm> -hmac 'It is a secret: ü' -r
// and for base64:                                 … -binary | base64
const signed = {
  md5: { hex: "6c45a8e8760c2f6ed7ec8962c626399f", base64: "bEWo6HYML27X7IlixiY5nw==" },
  sha1: { hex: "af07d6dc36b0fa2bfb15227556f077d282d5ab7a", base64: "rwfW3Daw+iv7FSJ1VvB30oLVq3o=" },
  sha256: {
    hex: "e860d69af9c4adee6a8660769aca73bd5d2d177d5d9986488cfc146d6a13290a",
    base64: "6GDWmvnEre5qhmB2mspzvV0tF31dmYZIjPwUbWoTKQo="
  },
  sha512: {
    hex: "dbaf5d0b3830cf70bd72b5f636aeef32df009390feda252b3b76818bec8d97f08f993fce648c004fe7be54863cb11afd02d38de3bdb7cbaacf457f842b967baf",
    base64: "269dCzgwz3C9crX2Nq7vMt8Ak5D+2iUrO3aBi+yNl/CPmT/OZIwAT+e+VIY8sRr9AtON4723y6rPRX+EK5Z7rw=="
  }
} as const

// printf '1700000000.{"id":1,"name":"Zoë","amount":12.50}' | openssl dgst -sha256 -hmac 'It is a secret: ü' -r
const signedWithTimestamp = "c6e5815269f0e89ae9c8acfc9482fcfb7aabedcf0c659613dbfef271b8ffa387"

const urlSafe = (text: string) => text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")

it("Without an auth_type every request is accepted as unverified", () => {
  expect(verify(null, {}, { headers: { "x-signature": "whatever" } })).toBe("unverified")
})

describe("HMAC verification", () => {
  for (const algorithm of ["md5", "sha1", "sha256", "sha512"] as const) {
    const { base64, hex } = signed[algorithm]
    const withSignature = (encoding: string, value: string) =>
      verify("HMAC", { secret, algorithm, encoding }, { headers: { "x-signature": value }, body })

    it(`HMAC with ${algorithm} verifies signatures of openssl in each spelling of their encoding`, () => {
      expect(withSignature("hex", hex)).toBe("verified")
      expect(withSignature("hex", hex.toUpperCase())).toBe("verified")
      expect(withSignature("base64", base64)).toBe("verified")
      expect(withSignature("base64", base64.replaceAll("=", ""))).toBe("verified")
      expect(withSignature("base64url", urlSafe(base64))).toBe("verified")
      expect(withSignature("base64url", base64.replaceAll("+", "-").replaceAll("/", "_"))).toBe("verified")
    })

    it(`HMAC with ${algorithm} refuses another encoding, length or padding`, () => {
      const refused = [
        ["hex", base64],
        ["base64", hex],
        ["base64url", hex],
        ["hex", hex.slice(0, -1)],
        ["hex", hex.slice(0, -2)],
        ["hex", `${hex}0`],
        ["hex", `0x${hex}`],
        ["hex", ` ${hex}`],
        ["hex", `${hex} `],
        ["base64", base64.slice(1)],
        ["base64", `${base64}=`],
        ["base64", `${base64.replaceAll("=", "")}====`],
        ["base64", base64.replace(/=/, "A")],
        ["hex", `sha256=${hex}`],
        ["hex", "=".repeat(hex.length)],
        ["hex", ""]
      ] as const
      for (const [encoding, value] of refused) {
        expect(withSignature(encoding, value), `${encoding} ${value}`).toBe("failed")
      }
    })
  }

  it("HMAC does not mix up the two base64 alphabets", () => {
    const value = signed.sha512.base64
    const headers = (text: string) => ({ headers: { "x-signature": text }, body })
    const settings = (encoding: string) => ({ secret, algorithm: "sha512", encoding })
    expect(verify("HMAC", settings("base64url"), headers(value))).toBe("failed")
    expect(verify("HMAC", settings("base64"), headers(urlSafe(value)))).toBe("failed")
  })

  it("HMAC refuses base64 with spare bits set, although it decodes to the same bytes", () => {
    const altered = signed.sha256.base64.replace("o=", "p=")
    expect(Buffer.from(altered, "base64")).toStrictEqual(Buffer.from(signed.sha256.base64, "base64"))
    const request = { headers: { "x-signature": altered }, body }
    expect(verify("HMAC", { secret, encoding: "base64" }, request)).toBe("failed")
  })

  it("HMAC refuses another key, another algorithm of the same length, or a missing signature", () => {
    const headers = { "x-signature": signed.sha256.hex }
    expect(verify("HMAC", { secret: "It is a secret: u" }, { headers, body })).toBe("failed")
    expect(verify("HMAC", { secret: `${secret}\n` }, { headers, body })).toBe("failed")
    expect(verify("HMAC", { secret, algorithm: "sha512" }, { headers, body })).toBe("failed")
    expect(verify("HMAC", { secret }, { body })).toBe("failed")
    expect(verify("HMAC", { secret }, { headers: { "x-other": signed.sha256.hex }, body })).toBe("failed")
    expect(verify("HMAC", { secret }, { query: `x-signature=${signed.sha256.hex}`, body })).toBe("failed")
  })

  it("HMAC refuses a body that was parsed and serialized again", () => {
    const again = utf8(JSON.stringify(JSON.parse(body.toString("utf8"))))
    expect(again).not.toStrictEqual(body)
    const headers = { "x-signature": signed.sha256.hex }
    expect(verify("HMAC", { secret }, { headers, body: again })).toBe("failed")
    expect(verify("HMAC", { secret }, { headers, body: utf8(`${body.toString("utf8")}\n`) })).toBe("failed")
  })

  it("HMAC refuses several values of the signature header, as an array or joined by Node", () => {
    const { hex } = signed.sha256
    for (const value of [[hex], [hex, hex], `${hex}, ${hex}`, `${hex},${hex}`, `0, ${hex}`]) {
      expect(verify("HMAC", { secret }, { headers: { "x-signature": value }, body })).toBe("failed")
    }
  })

  it("HMAC takes no signature from members that every JavaScript object has", () => {
    for (const name of ["constructor", "__proto__", "toString"]) {
      expect(verify("HMAC", { secret, header_key: name }, { headers: {}, body })).toBe("failed")
    }
  })

  it("HMAC finds the signature header whatever the case of its configured name", () => {
    const settings = { secret, signature_header: "X-Hub-Signature-256", prefix: "sha256=" }
    const headers = { "x-hub-signature-256": `sha256=${signed.sha256.hex}` }
    expect(verify("HMAC", settings, { headers, body })).toBe("verified")
  })

  it("HMAC requires the signature prefix exactly as it is configured", () => {
    const withValue = (value: string) =>
      verify("HMAC", { secret, prefix: "sha256=" }, { headers: { "x-signature": value }, body })
    const { hex } = signed.sha256
    expect(withValue(`sha256=${hex}`)).toBe("verified")
    for (const value of [hex, `SHA256=${hex}`, `sha1=${hex}`, `sha256= ${hex}`, `sha256=sha256=${hex}`, "sha256="]) {
      expect(withValue(value), value).toBe("failed")
    }
  })

  it("HMAC verifies an empty body", () => {
    // printf '' | openssl dgst -sha256 -hmac k -r
    const headers = { "x-signature": "8bb990c40a7d61cb97597a942125025be50ac8beb74436e3735b98893a7f6620" }
    expect(verify("HMAC", { secret: "k" }, { headers })).toBe("verified")
  })
})

describe("HMAC with a timestamp", () => {
  const settings = { secret, timestamp_header: "X-Timestamp" }
  const at = (timestamp: string | ReadonlyArray<string>, nowSeconds: number, more = {}) =>
    verify(
      "HMAC",
      { ...settings, ...more },
      { headers: { "x-signature": signedWithTimestamp, "x-timestamp": timestamp }, body, nowSeconds }
    )

  it("HMAC accepts a timestamp within the tolerance in both directions, and not a second beyond", () => {
    for (const age of [-300, -1, 0, 0.5, 299, 300]) expect(at("1700000000", now + age)).toBe("verified")
    for (const age of [-301, 301, 86_400]) expect(at("1700000000", now + age)).toBe("failed")
  })

  it("HMAC uses the tolerance of the settings", () => {
    expect(at("1700000000", now + 20, { tolerance_seconds: 20 })).toBe("verified")
    expect(at("1700000000", now + 21, { tolerance_seconds: 20 })).toBe("failed")
  })

  it("HMAC signs the timestamp, so a fresh timestamp does not make an old signature valid", () => {
    expect(at("1700000900", now + 900)).toBe("failed")
  })

  it("HMAC signs the timestamp exactly as it is written", () => {
    expect(at("01700000000", now)).toBe("failed")
  })

  it.each([
    "now",
    "1700000000.0",
    "1.7e9",
    "+1700000000",
    "-1700000000",
    " 1700000000",
    "2023-11-14T22:13:20Z",
    "1700000000000"
  ])("HMAC refuses the signed timestamp %j", (timestamp) => {
    const signature = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex")
    const headers = { "x-signature": signature, "x-timestamp": timestamp }
    expect(verify("HMAC", settings, { headers, body })).toBe("failed")
  })

  it("HMAC refuses a missing or repeated timestamp, and a signature of the body alone", () => {
    expect(at("", now)).toBe("failed")
    expect(at(["1700000000"], now)).toBe("failed")
    expect(at("1700000000, 1700000000", now)).toBe("failed")
    expect(verify("HMAC", settings, { headers: { "x-signature": signedWithTimestamp }, body })).toBe("failed")
    const headers = { "x-signature": signed.sha256.hex, "x-timestamp": "1700000000" }
    expect(verify("HMAC", settings, { headers, body })).toBe("failed")
  })
})

describe("BASIC_AUTH", () => {
  const settings = { username: "Aladdin", password: "open sesame" }
  const withHeader = (authorization: string, auth: unknown = settings) =>
    verify("BASIC_AUTH", auth, { headers: { authorization } })

  it("BASIC_AUTH verifies the example of RFC 7617, in any case of the scheme, with or without padding", () => {
    for (const value of [
      "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
      "basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
      "BASIC  QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
      "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ"
    ]) {
      expect(withHeader(value), value).toBe("verified")
    }
  })

  it("A BASIC_AUTH password may contain colons and non-ASCII characters in UTF-8", () => {
    // printf 'tëst:a:b:£' | base64
    expect(withHeader("Basic dMOrc3Q6YTpiOsKj", { username: "tëst", password: "a:b:£" })).toBe("verified")
    const latin1 = Buffer.from("tëst:a:b:£", "latin1").toString("base64")
    expect(withHeader(`Basic ${latin1}`, { username: "tëst", password: "a:b:£" })).toBe("failed")
  })

  it("BASIC_AUTH bytes that are not UTF-8 match nothing, not even the replacement character", () => {
    const bytes = Buffer.concat([utf8("user:"), Buffer.from([0xff])]).toString("base64")
    const { verify } = compileSourceAuth({
      type: "WEBHOOK",
      auth_type: "BASIC_AUTH",
      auth: { username: "user", password: "\ufffd" }
    })
    const headers = { authorization: `Basic ${bytes}` }
    expect(verify({ ...empty, headers, body })).toBe("failed")
  })

  it("BASIC_AUTH refuses every other value of the header", () => {
    const of = (credentials: string) => `Basic ${utf8(credentials).toString("base64")}`
    const refused = [
      of("Aladdin:open sesam"),
      of("Aladdin:open sesame "),
      of("aladdin:open sesame"),
      of(":open sesame"),
      of("Aladdin:"),
      of("Aladdin"),
      of("Aladdinopen: sesame"),
      of("open sesame:Aladdin"),
      "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=",
      "Basic QWxhZGRpbjpvcGVuIHNlc2FtZR==",
      "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ== ,",
      "Basic Aladdin:open sesame",
      "BasicQWxhZGRpbjpvcGVuIHNlc2FtZQ==",
      "Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
      "QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
      "Basic",
      "Basic ",
      "Basic ==",
      ""
    ]
    for (const value of refused) expect(withHeader(value), value).toBe("failed")
    expect(verify("BASIC_AUTH", settings, {})).toBe("failed")
    const twice = { authorization: ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="] }
    expect(verify("BASIC_AUTH", settings, { headers: twice })).toBe("failed")
  })
})

describe("API_KEY", () => {
  it("API_KEY verifies the key in the header", () => {
    const settings = { api_key: "sesame-1234", header_key: "X-Token" }
    const withToken = (value: string | ReadonlyArray<string>) =>
      verify("API_KEY", settings, { headers: { "x-token": value } })
    expect(withToken("sesame-1234")).toBe("verified")
    const refused = ["", "sesame-123", "sesame-12345", "Sesame-1234", "sesame-1234, sesame-1234", "*".repeat(11)]
    for (const value of [...refused, ["sesame-1234"], ["sesame-1234", "sesame-1234"]]) {
      expect(withToken(value)).toBe("failed")
    }
    expect(verify("API_KEY", settings, { headers: { "x-api-key": "sesame-1234" } })).toBe("failed")
    expect(verify("API_KEY", settings, { query: "X-Token=sesame-1234" })).toBe("failed")
  })

  it("An API_KEY with non-ASCII characters is compared as UTF-8", () => {
    const withKey = (value: string) => verify("API_KEY", { api_key: "clé-£" }, { headers: { "x-api-key": value } })
    expect(withKey(wire("clé-£"))).toBe("verified")
    expect(withKey("clé-£")).toBe("failed")
  })

  it("API_KEY verifies the key in the query, which must occur once and is decoded", () => {
    const withQuery = (query: string) => verify("API_KEY", { api_key: "a b+c/é", query_key: "key" }, { query })
    expect(withQuery("key=a%20b%2Bc%2F%C3%A9")).toBe("verified")
    expect(withQuery("x=1&key=a+b%2bc/%C3%A9&y")).toBe("verified")
    for (const query of [
      "",
      "key",
      "key=",
      "KEY=a%20b%2Bc%2F%C3%A9",
      "key=a+b+c/%C3%A9",
      "key=a%20b%2Bc%2F%E9",
      "key=a%20b%2Bc%2F%C3%A9&key=a%20b%2Bc%2F%C3%A9",
      "key=wrong&key=a%20b%2Bc%2F%C3%A9"
    ]) {
      expect(withQuery(query), query).toBe("failed")
    }
  })

  it("API_KEY with header and query uses the header when it is present", () => {
    const settings = { api_key: "sesame-1234", header_key: "x-token", query_key: "token" }
    const query = "token=sesame-1234"
    expect(verify("API_KEY", settings, { query })).toBe("verified")
    expect(verify("API_KEY", settings, { headers: { "x-token": "sesame-1234" } })).toBe("verified")
    expect(verify("API_KEY", settings, { headers: { "x-token": "wrong" }, query })).toBe("failed")
    expect(verify("API_KEY", settings, { headers: { "x-token": "" }, query })).toBe("failed")
  })
})

describe("Invalid stored settings", () => {
  const verifyStored = (auth_type: string | null, auth: unknown, headers: InboundRequest["headers"]) =>
    compileSourceAuth({ type: "WEBHOOK", auth_type, auth }).verify({ ...empty, headers })

  it("Stored HMAC settings with an empty secret verify nobody", () => {
    // printf '' | openssl dgst -sha256 -hmac '' -r
    const headers = { "x-signature": "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad" }
    expect(verifyStored("HMAC", { webhook_secret_key: "" }, headers)).toBe("failed")
    expect(verifyStored("HMAC", {}, headers)).toBe("failed")
  })

  it("Missing stored credentials are not compared as the word undefined", () => {
    const authorization = `Basic ${utf8("undefined:undefined").toString("base64")}`
    expect(verifyStored("BASIC_AUTH", {}, { authorization })).toBe("failed")
    expect(verifyStored("API_KEY", {}, { "x-api-key": "undefined" })).toBe("failed")
    expect(verifyStored("API_KEY", { api_key: "" }, { "x-api-key": "" })).toBe("failed")
  })

  it("An unknown stored auth_type verifies nobody", () => {
    expect(verifyStored("NONE", {}, {})).toBe("failed")
  })
})
