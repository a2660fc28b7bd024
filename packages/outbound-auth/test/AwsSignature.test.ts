import { expect, it } from "@effect/vitest"
import { AwsV4Signer } from "aws4fetch"
import { signer, type SigningKey, type SigningScope } from "@tidegate/outbound-auth/AwsSignature"
import type { SignedRequest } from "../src/types/OutboundAuthType.ts"
import suite from "./vectors/SignatureV4.json" with { type: "json" }

/** Signatures beside those of AWS's test suite and of another library. */

const key: SigningKey = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
}
const at = Date.UTC(2015, 7, 30, 12, 36) / 1_000
const scope: SigningScope = { region: "us-east-1", service: "service" }

const requestOf = (part: Partial<SignedRequest>): SignedRequest => {
  const url = part.url ?? "https://example.amazonaws.com/"
  return { method: "POST", url, headers: [], body: Buffer.alloc(0), ...part }
}

const signed = async (part: Partial<SignedRequest>, scoped: SigningScope = scope, by = key) => {
  const request = await signer(by, scoped)(requestOf(part), { timestampSeconds: at })
  const named = (wanted: string) =>
    request.headers.flatMap((name, i) =>
      i % 2 === 0 && name.toLowerCase() === wanted ? [request.headers[i + 1]!] : []
    )
  return { ...request, named, authorization: named("authorization")[0] ?? "" }
}

it.each(suite.cases.map((one) => [one.name, one] as const))(
  "Signature is that of AWS's test suite: %s",
  async (_, { body, headers, method, path, sessionToken, signed: expected }) => {
    const by = sessionToken === undefined ? key : { ...key, sessionToken }
    const url = `https://example.amazonaws.com${path}`
    const { authorization } = await signed({ method, url, headers, body: Buffer.from(body) }, scope, by)
    expect(authorization).toBe(
      `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ${expected}`
    )
  }
)

/** The signature of another library. */
const otherSignature = async (request: SignedRequest, token: string | undefined) => {
  const { headers } = await new AwsV4Signer({
    method: request.method,
    url: request.url,
    headers: [["content-type", "application/x-amz-json-1.0"]],
    body: Buffer.from(request.body),
    accessKeyId: key.accessKeyId,
    secretAccessKey: key.secretAccessKey,
    ...(token === undefined ? {} : { sessionToken: token }),
    ...scope,
    datetime: "20150830T123600Z",
    allHeaders: true
  }).sign()
  return headers.get("authorization")?.replaceAll(/,\s*/g, ", ")
}

it.each([
  ["a body", "https://example.amazonaws.com/", undefined],
  ["an encoded path", "https://example.amazonaws.com/a%20b/%C3%BC/", undefined],
  ["a query", "https://example.amazonaws.com/x?b=2&a=%2F&a=1&c", undefined],
  ["a port", "http://127.0.0.1:4566/000000000000/orders", undefined],
  ["a session token", "https://example.amazonaws.com/", "FQoGZXIvYXdzEXAMPLE//"]
])("Signature is that of another library: %s", async (_, url, token) => {
  const headers = ["content-type", "application/x-amz-json-1.0"]
  const by = token === undefined ? key : { ...key, sessionToken: token }
  const request = await signed({ url, headers, body: Buffer.from('{"text":"ü"}') }, scope, by)
  expect(request.authorization).toBe(await otherSignature(requestOf(request), token))
  expect(request.named("x-amz-security-token")).toEqual(token === undefined ? [] : [token])
})

it("Signature replaces the parts of another one that the request came with", async () => {
  const headers = ["Authorization", "AWS4-HMAC-SHA256 of-the-sender", "X-Amz-Security-Token", "t", "x-amz-date", "1"]
  const { authorization, named } = await signed({ headers })
  expect(authorization).toBe((await signed({})).authorization)
  expect([named("authorization").length, named("x-amz-date"), named("x-amz-security-token")]).toEqual([
    1,
    ["20150830T123600Z"],
    []
  ])
})

it("Signature covers only the headers that it is told to, and all of them are sent", async () => {
  const headers = ["x-a", "1", "x-a", "2", "content-type", "text/plain"]
  const { authorization, named } = await signed({ headers }, { ...scope, covers: (name) => name === "content-type" })
  expect(authorization).toContain("SignedHeaders=content-type;host;x-amz-date,")
  expect(named("x-a")).toEqual(["1", "2"])
})

it("Plus in a query is sent as the space that is signed", async () => {
  const [plus, space] = await Promise.all(
    ["a+b", "a%20b"].map((value) => signed({ url: `https://example.amazonaws.com/?q=${value}` }))
  )
  expect([plus!.url, plus!.authorization]).toEqual([space!.url, space!.authorization])
})
