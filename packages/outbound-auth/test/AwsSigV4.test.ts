import { describe, expect, it } from "@effect/vitest"
import { AwsV4Signer } from "aws4fetch"
import { Result } from "effect"
import { carrying, compileOutboundAuth, validateOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import { keyAsToken } from "@tidegate/outbound-auth/types/AwsSigV4"

const auth = {
  access_key_id: "AKIDEXAMPLE",
  secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  region: "eu-central-1",
  service: "execute-api"
}
const role_arn = "arn:aws:iam::123456789012:role/gateway"
const facts = { eventId: "evt_1", attemptNumber: 1, timestampSeconds: Date.UTC(2026, 0, 2, 3, 4, 5) / 1_000 }
const request = {
  method: "POST",
  url: "https://api.example.com/hooks/%C3%BC?b=2&a=%2F",
  headers: ["content-type", "application/json", "x-gateway-source-name", "ü"],
  body: Buffer.from('{"text":"ü"}')
}

const compiled = (settings: object) =>
  compileOutboundAuth(Result.getOrThrow(validateOutboundAuth("AWS_SIGV4", settings)))

/** The headers by name, and the rest of what signs a request. */
const signed = async (settings: object, change: object = {}) => {
  const { headers, ...rest } = await compiled(settings).sign!({ ...request, ...change }, facts)
  const pairs = headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]!] as const] : []))
  return { ...rest, headers: Object.fromEntries(pairs) }
}

const faults = (settings: object): ReadonlyArray<string> =>
  Result.match(validateOutboundAuth("AWS_SIGV4", settings), {
    onSuccess: () => [],
    onFailure: (errors) => errors.map(({ message, path }) => `${path} ${message}`)
  })

/** The header of another implementation for the same request. */
const elsewhere = async (
  settings: typeof auth & { readonly session_token?: string },
  headers: Record<string, string>
) => {
  const made = await new AwsV4Signer({
    method: request.method,
    url: request.url,
    headers: { ...headers, "content-type": "application/json" },
    body: request.body,
    accessKeyId: settings.access_key_id,
    secretAccessKey: settings.secret_access_key,
    ...(settings.session_token === undefined ? {} : { sessionToken: settings.session_token }),
    region: settings.region,
    service: settings.service,
    datetime: "20260102T030405Z",
    allHeaders: true
  }).sign()
  return made.headers.get("authorization")!.replaceAll(/,\s*/g, ", ")
}

describe("AWS_SIGV4", () => {
  it.each([
    ["an API", auth, undefined],
    ["an object store, whose paths are encoded once", { ...auth, service: "s3" }, undefined],
    ["a session token", { ...auth, session_token: "FQoGZXIvYXdzEXAMPLE//" }, undefined],
    ["a target of the service", { ...auth, service: "states" }, "AWSStepFunctions.StartExecution"]
  ])("Signature for %s is that of another implementation", async (_, settings, amz_target) => {
    const { headers } = await signed({ ...settings, ...(amz_target === undefined ? {} : { amz_target }) })
    const added = { "x-amz-content-sha256": headers["x-amz-content-sha256"]! }
    const target = amz_target === undefined ? {} : { "x-amz-target": amz_target }
    expect(headers["authorization"]).toBe(await elsewhere(settings, { ...added, ...target }))
    expect(headers["x-amz-target"]).toBe(amz_target)
  })

  it("Sender's own headers of Amazon's are neither signed nor sent, and its other headers are not signed", async () => {
    const forged = [
      "X-Amz-Copy-Source",
      "/secret/object",
      "x-amz-target",
      "Service.DeleteAll",
      "Authorization",
      "AWS4 x"
    ]
    const { drops, headers } = await signed(auth, { headers: [...request.headers, ...forged] })
    expect(headers).toEqual((await signed(auth)).headers)
    expect(headers["authorization"]).toContain("SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date,")
    expect(["x-amz-copy-source", "x-amz-target", "x-gateway-event-id"].map((name) => drops!(name))).toEqual([
      true,
      true,
      false
    ])
  })

  it("Secret of a request is its session token, or else its signature", async () => {
    expect((await signed({ ...auth, session_token: "of-a-session" })).secret).toBe("of-a-session")
    const { headers, secret } = await signed(auth)
    expect(secret).toMatch(/^[\da-f]{64}$/)
    expect(headers["authorization"]).toContain(`Signature=${secret}`)
  })

  it("Role signs with the key that was given for it, and the destination's own key signs nothing", async () => {
    const { grant, sign, ...rest } = compiled({ ...auth, role_arn, external_id: "e-1" })
    expect(sign).toBeUndefined()
    expect(grant).toMatchObject({
      tokenUrl: "https://sts.eu-central-1.amazonaws.com/",
      how: { kind: "assumed_role", roleArn: role_arn, externalId: "e-1", sessionName: "event-gateway" }
    })
    const given = { accessKeyId: "ASIAOFTHEROLE", secretAccessKey: "of/the+role", sessionToken: "token//==" }
    const { headers, sign: signs } = carrying(rest, keyAsToken(given))
    const own = {
      ...auth,
      access_key_id: given.accessKeyId,
      secret_access_key: given.secretAccessKey,
      session_token: given.sessionToken
    }
    expect([headers, (await signs!(request, facts)).headers]).toEqual([
      {},
      (await compiled(own).sign!(request, facts)).headers
    ])
  })

  it.each([
    [{ region: "eu central" }, "config.auth.region must be at most 63 small letters, digits and dashes"],
    [{ service: "S3" }, "config.auth.service must be at most 63 small letters, digits and dashes"],
    [
      { role_arn: "gateway" },
      "config.auth.role_arn must be the ARN of a role, like arn:aws:iam::123456789012:role/gateway"
    ],
    [{ external_id: "e-1" }, "config.auth.external_id needs a role_arn: it is for the role"],
    [{ sts_endpoint: "https://sts.example.com/" }, "config.auth.sts_endpoint needs a role_arn: it is for the role"],
    [{ amz_target: "a b" }, "config.auth.amz_target must be at most 256 letters, digits and ._-"]
  ])("Settings %j are refused", (change, fault) => {
    expect(faults({ ...auth, ...change })).toEqual([fault])
  })
})
