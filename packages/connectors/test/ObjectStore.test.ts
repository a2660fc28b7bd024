import { GetObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Result, SchemaParser } from "effect"
import { request as httpRequest } from "node:http"
import { buffer } from "node:stream/consumers"
import { gunzipSync, gzipSync } from "node:zlib"
import { type Answer, type HttpSender, type OutboundRequest, Refusal } from "@tidegate/connectors/Connector"
import { connectorOf, settingsOf } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import type { Message } from "@tidegate/model/Message"
import { compileOutboundAuth, validateOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import { factsOf } from "./Facts.ts"
import { startStore, type StoreKey, storeKey } from "./StoreServer.ts"

/** What the types that store objects put, as a store that recomputes their signatures takes it, and what its answers mean. */

let store: Awaited<ReturnType<typeof startStore>>
const bucket = "webhook-archive"
beforeAll(async () => {
  store = await startStore([bucket, "with.dots"])
})
afterAll(() => store.close())

type Type = "OBJECT_STORE_R" | "OBJECT_STORE_S"

const place = (type: Type): Config =>
  type === "OBJECT_STORE_R" ? { account_id: "Account1", bucket } : { region: store.region, bucket }

const authOf = ({ accessKeyId, secretAccessKey, sessionToken }: StoreKey) => ({
  access_key_id: accessKeyId,
  secret_access_key: secretAccessKey,
  ...(sessionToken === undefined ? {} : { session_token: sessionToken })
})

const open = (type: Type, config: Config = {}, key: StoreKey = storeKey): HttpSender => {
  const row = connectorOf(type)!
  const checked = Result.getOrThrow(validateOutboundAuth(`${type}_ACCESS_KEY`, authOf(key), row.auths))
  const settings = Result.getOrThrow(settingsOf(row, { ...place(type), ...config }))
  const { headers } = compileOutboundAuth(checked)
  const sender = row.open(settings, { headers, signing: null, settings: checked.auth }, (origin) => origin)
  if (sender.kind !== "http") throw new Error("it is none")
  return sender
}

const event = (payload: unknown): Message => ({
  method: "POST",
  path: "/orders",
  query: "",
  headers: { "content-type": "application/json" },
  body: payload instanceof Uint8Array ? payload : Buffer.from(JSON.stringify(payload))
})

const facts = (message: Message) => factsOf(message, { timestampSeconds: Math.floor(Date.now() / 1_000) })

const prepared = (sender: HttpSender, message: Message): OutboundRequest => {
  const request = sender.prepare(message, facts(message))
  if (request instanceof Refusal) throw new Error(request.message)
  return request
}

const refusal = (sender: HttpSender, message: Message): Refusal => {
  const request = sender.prepare(message, facts(message))
  if (!(request instanceof Refusal)) throw new Error(`it goes to ${request.url}`)
  return request
}

const faultsOf = (type: Type, config: Config): ReadonlyArray<string> => {
  const complete = settingsOf(connectorOf(type)!, { ...place(type), ...config })
  return Result.isFailure(complete) ? complete.failure.map(({ message, path }) => `${path} ${message}`) : []
}

/** Sends it to the store, whatever host it is for. */
const put = async (
  sender: HttpSender,
  message: Message,
  spoilt: (request: OutboundRequest) => OutboundRequest = (one) => one
) => {
  const signed = spoilt(await sender.complete!(prepared(sender, message), facts(message)))
  const { host, pathname } = new URL(signed.url)
  const answer = await new Promise<Pick<Answer, "status" | "body" | "headers">>((resolve, reject) => {
    const headers = signed.headers.filter((_, i) => signed.headers[i - (i % 2)] !== "host")
    httpRequest(
      {
        host: "127.0.0.1",
        port: store.port,
        path: pathname,
        method: signed.method,
        headers: ["host", host, ...headers]
      },
      (response) =>
        void buffer(response).then(
          (body) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
          reject
        )
    )
      .once("error", reject)
      .end(signed.body)
  })
  return { ...answer, verdict: sender.judge({ ...answer, bodyTruncated: false }), url: signed.url }
}

const client = (credentials: StoreKey = storeKey) =>
  new S3Client({
    region: store.region,
    endpoint: store.origin,
    forcePathStyle: true,
    credentials,
    requestChecksumCalculation: "WHEN_REQUIRED"
  })

describe("Object store mock", () => {
  it("Object store mock works with the vendor's client and refuses wrong signatures", async () => {
    const s3 = client()
    const Key = "a b/ü+%'*.json"
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key, Body: "by the client", ContentType: "text/plain" }))
    const { Body } = await s3.send(new GetObjectCommand({ Bucket: bucket, Key }))
    expect(await Body?.transformToString()).toBe("by the client")
    await expect(s3.send(new GetObjectCommand({ Bucket: "no-such", Key }))).rejects.toMatchObject({
      name: "NoSuchBucket"
    })
    const stranger = client({ ...storeKey, secretAccessKey: "another" })
    await expect(stranger.send(new GetObjectCommand({ Bucket: bucket, Key }))).rejects.toMatchObject({
      name: "SignatureDoesNotMatch"
    })
  })
})

/** Keys that a signature or a URL could be wrong about. */
const keys = [
  "plain.json",
  "te am/(ü)+%/é!'*_1.json",
  "a//b/",
  "%2e%2e/x",
  "a?b#c&d=e;f",
  "\\..\\x",
  "日本/😀",
  "~._-",
  "..a/b.."
]

describe.each(["OBJECT_STORE_R", "OBJECT_STORE_S"] as const)("Object store destination %s", (type) => {
  const here = () => ({ endpoint: store.origin, ...(type === "OBJECT_STORE_S" ? { force_path_style: true } : {}) })

  it("Object store destination stores payload and metadata under the default key", async () => {
    const { body, verdict } = await put(open(type, here()), event({ id: 7, text: "ü" }))
    expect([verdict, body.toString()]).toEqual(["successful", ""])
    const object = store.objects.get(`${bucket}/archives/tm_1/src_1/evt_1.json`)!
    const metadata = {
      event_id: "evt_1",
      request_id: "req_1",
      team_id: "tm_1",
      source_id: "src_1",
      connection_id: "con_1",
      destination_id: "des_1",
      created_at: "1970-01-01T00:00:00.000Z"
    }
    expect(JSON.parse(object.body.toString())).toEqual({ ...metadata, payload: { id: 7, text: "ü" } })
    expect(object.headers["content-type"]).toBe("application/json")
    for (const [name, value] of Object.entries(metadata)) {
      expect(object.headers[`x-amz-meta-${name.replaceAll("_", "-")}`]).toBe(value)
    }
  })

  it("Object store destination keeps the content encoding of a compressed body", async () => {
    const plain = Buffer.from('{"id":7}')
    const compressed = (coding: string, body: Buffer = gzipSync(plain)): Message => ({
      ...event(body),
      headers: { "content-type": "application/json", "content-encoding": coding }
    })
    const sender = open(type, { ...here(), include_metadata: false, key_template: "compressed" })
    expect((await put(sender, compressed("GZIP"))).verdict).toBe("successful")
    const object = store.objects.get(`${bucket}/compressed`)!
    expect(object.headers["content-encoding"]).toBe("gzip")
    // As the vendor's own client reads it.
    const read = await client().send(new GetObjectCommand({ Bucket: bucket, Key: "compressed" }))
    expect(read.ContentEncoding).toBe("gzip")
    expect(gunzipSync(await read.Body!.transformToByteArray()).toString()).toBe(plain.toString())
    const inside = JSON.parse(Buffer.from(prepared(open(type, here()), compressed("gzip")).body).toString())
    expect(inside).toMatchObject({ payload_content_encoding: "gzip", payload_encoding: "base64" })
    for (const message of [
      compressed("identity"),
      compressed("gzip", plain),
      compressed("utf-8", plain),
      compressed("a\r\nb: c")
    ]) {
      expect(prepared(sender, message).headers).not.toContain("content-encoding")
    }
    const templated = open(type, { ...here(), body_template: "{}" })
    expect(prepared(templated, compressed("gzip")).headers).not.toContain("content-encoding")
  })

  it.each(keys)("Object store destination signs the key %j and stores under it", async (key) => {
    const sender = open(type, { ...here(), key_template: "{{payload.key}}" })
    const { verdict } = await put(sender, event({ key }))
    expect(verdict).toBe("successful")
    expect(store.objects.has(`${bucket}/${key}`)).toBe(true)
    const { Body } = await client().send(new GetObjectCommand({ Bucket: bucket, Key: key }))
    expect(JSON.parse((await Body?.transformToString()) ?? "")).toMatchObject({ payload: { key } })
  })

  it("Object store destination fails with a wrong secret or a request that was changed on the way", async () => {
    const wrong = await put(open(type, here(), { ...storeKey, secretAccessKey: "another" }), event({}))
    expect(wrong.verdict).toMatchObject({ code: "AUTH_REJECTED", final: false })
    expect((wrong.verdict as { readonly message: string }).message).toContain("SignatureDoesNotMatch")
    const changed = await put(open(type, here()), event({}), (request) => ({ ...request, body: Buffer.from("{}") }))
    expect(changed.verdict).toMatchObject({ code: "BAD_RESPONSE", final: false })
    const renamed = await put(open(type, here()), event({}), (request) => ({
      ...request,
      headers: request.headers.map((text) => (text === "evt_1" ? "evt_2" : text))
    }))
    expect(renamed.verdict).toMatchObject({ code: "AUTH_REJECTED" })
  })

  it.each([
    ["a step up", "../admin"],
    ["steps up", "a/../../b"],
    ["a step to itself", "./x"],
    ["a step at the end", "a/."],
    ["a line break", "line\r\nbreak"],
    ["a NUL", "nul\u0000"],
    ["too many characters", "x".repeat(1_025)],
    ["too many bytes", "ü".repeat(513)],
    ["nothing", ""],
    ["white space", "  "]
  ])("Object store destination stores nothing when the payload makes a key with %s", (_, key) => {
    const refused = refusal(open(type, { key_template: "{{payload.key}}" }), event({ key }))
    expect(refused.code).toBe("TEMPLATE_ERROR")
    if (key.trim() !== "") expect(refused.message).not.toContain(key)
  })

  it("Object store destination reports a key template that is invalid for every event", () => {
    expect(faultsOf(type, { key_template: "a/../b" })).toEqual([
      'config.key_template must be a key that can be stored: it has "." or ".." between slashes'
    ])
    expect(faultsOf(type, { key_template: "a/{{payload.b}}/../c" })).toEqual([])
  })

  it("Object store destination without metadata stores the payload's bytes alone", async () => {
    const body = Buffer.from([0xff, 0, 0xfe, 0x0a])
    const config = {
      ...here(),
      include_metadata: false,
      key_template: "bare",
      content_type: "application/octet-stream"
    }
    await put(open(type, config), event(body))
    const object = store.objects.get(`${bucket}/bare`)!
    expect(object.body).toEqual(body)
    expect(Object.keys(object.headers).filter((name) => name.startsWith("x-amz-meta-"))).toEqual([])
  })

  it("Object store metadata keeps text as text, other bytes as base64 and numbers as written", () => {
    const stored = (body: Uint8Array) => Buffer.from(prepared(open(type), event(body)).body).toString()
    expect(JSON.parse(stored(Buffer.from('say "ü"')))).toMatchObject({ payload: 'say "ü"' })
    expect(JSON.parse(stored(Buffer.alloc(0)))).toMatchObject({ payload: "" })
    expect(stored(Buffer.from("12345678901234567890.0"))).toContain('"payload":12345678901234567890.0}')
    expect(JSON.parse(stored(Buffer.from([0xff, 0xfe])))).toMatchObject({ payload: "//4=", payload_encoding: "base64" })
    const large = Buffer.from(JSON.stringify("x".repeat(1_048_577)))
    expect(prepared(open(type), event(large)).body).toEqual(large)
  })

  it.each([
    ["application/json", '{"n":{{payload.n}},"s":"{{payload.s}}"}', '{"n":1,"s":"<\\"&"}'],
    ["application/vnd.x+json; charset=utf-8", "{{payload}}", '{"n":1,"s":"<\\"&"}'],
    ["application/x-ndjson", '{"s":{{payload.s}}}\n', '{"s":"<\\"&"}\n'],
    ["application/xml", "<s>{{payload.s}}</s>", "<s>&lt;&quot;&amp;</s>"],
    ["text/html; charset=utf-8", "<p>{{payload.s}}", "<p>&lt;&quot;&amp;"],
    ["text/plain", "{{payload.s}} {{payload.none}}", '<"& ']
  ])("Object store body of type %s has its template values escaped", (content_type, body_template, expected) => {
    const { body, headers } = prepared(open(type, { content_type, body_template }), event({ n: 1, s: '<"&' }))
    expect(Buffer.from(body).toString()).toBe(expected)
    expect(headers[headers.indexOf("content-type") + 1]).toBe(content_type)
    expect(headers).toContain("x-amz-meta-event-id")
  })

  it("Object store destination stores nothing when a template makes invalid JSON", () => {
    expect(refusal(open(type, { body_template: '{"a":{{payload.a}}' }), event({ a: 1 })).code).toBe("TEMPLATE_ERROR")
  })

  it("Object store destination includes a session token in its signature", async () => {
    const key = { ...storeKey, sessionToken: "FQoGZXIvYXdzEXAMPLE//" }
    const other = await startStore([bucket], key)
    const sender = open(type, { ...here(), endpoint: other.origin }, key)
    const message = event({})
    const { body, headers, method, url } = await sender.complete!(prepared(sender, message), facts(message))
    const pairs = headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]!] as const] : []))
    const answer = await fetch(url, {
      method,
      headers: Object.fromEntries(pairs.filter(([name]) => name !== "host")),
      body: Buffer.from(body)
    })
    expect(answer.status).toBe(200)
    expect(pairs).toContainEqual(["x-amz-security-token", key.sessionToken])
    await other.close()
  })

  it("Object store destination with disabled auth sends without a signature", () => {
    const row = connectorOf(type)!
    const settings = Result.getOrThrow(settingsOf(row, place(type)))
    expect(
      row.open(settings, { headers: {}, signing: null, settings: { disabled: true } }, (origin) => origin)
    ).not.toHaveProperty("complete")
  })

  it.each(["ftp://x", "https://x.test/path", "https://x.test?a=b", "https://u:p@x.test", "//x", "https://x.test#f"])(
    "Object store destination refuses the endpoint %s",
    (endpoint) => {
      const { schema } = connectorOf(type)!.settings["endpoint"]!
      expect(Result.isFailure(SchemaParser.decodeUnknownResult(schema as never)(endpoint))).toBe(true)
    }
  )
})

describe("Address of a bucket", () => {
  const urlOf = (type: Type, config: Config) => prepared(open(type, { key_template: "k", ...config }), event({})).url

  it.each<[string, Type, Config, string]>([
    ["host of the account", "OBJECT_STORE_R", {}, "https://account1.r2.cloudflarestorage.com/webhook-archive/k"],
    ["host of the region", "OBJECT_STORE_S", {}, "https://webhook-archive.s3.eu-central-1.amazonaws.com/k"],
    ["China", "OBJECT_STORE_S", { region: "cn-north-1" }, "https://webhook-archive.s3.cn-north-1.amazonaws.com.cn/k"],
    [
      "bucket in the path",
      "OBJECT_STORE_S",
      { force_path_style: true },
      "https://s3.eu-central-1.amazonaws.com/webhook-archive/k"
    ],
    [
      "bucket with dots in the path",
      "OBJECT_STORE_S",
      { bucket: "with.dots" },
      "https://s3.eu-central-1.amazonaws.com/with.dots/k"
    ],
    [
      "bucket with capitals in the path",
      "OBJECT_STORE_S",
      { bucket: "Big_one" },
      "https://s3.eu-central-1.amazonaws.com/Big_one/k"
    ],
    [
      "endpoint with an IPv4 address",
      "OBJECT_STORE_S",
      { endpoint: "http://127.0.0.1:9000" },
      "http://127.0.0.1:9000/webhook-archive/k"
    ],
    [
      "endpoint with an IPv6 address",
      "OBJECT_STORE_S",
      { endpoint: "http://[::1]:9000/" },
      "http://[::1]:9000/webhook-archive/k"
    ],
    [
      "endpoint of another store",
      "OBJECT_STORE_S",
      { endpoint: "https://store.test:8443" },
      "https://webhook-archive.store.test:8443/k"
    ]
  ])("Address of a bucket follows its settings: %s", (_, type, config, url) => {
    expect(urlOf(type, config)).toBe(url)
  })

  it("Request to a bucket host is signed for that host", async () => {
    const { url, verdict } = await put(
      open("OBJECT_STORE_S", { endpoint: `http://store.test:${store.port}`, key_template: "hosted/ü" }),
      event({ a: 1 })
    )
    expect([new URL(url).hostname, verdict]).toEqual([`${bucket}.store.test`, "successful"])
    expect(store.objects.has(`${bucket}/hosted/ü`)).toBe(true)
  })
})

describe("Large object", () => {
  it("Large object is hashed in several turns of the event loop", async () => {
    const sender = open("OBJECT_STORE_S", { endpoint: store.origin, include_metadata: false, key_template: "large" })
    let turns = 0
    const count = (): void => {
      turns++
      timer = setImmediate(count)
    }
    let timer = setImmediate(count)
    const message = event(Buffer.alloc(10 * 1024 * 1024, "x"))
    const completed = sender.complete!(prepared(sender, message), facts(message))
    const { headers } = await completed.finally(() => clearImmediate(timer))
    expect(turns).toBeGreaterThan(2)
    expect(headers).toContain("content-md5")
    const { verdict } = await put(sender, message)
    expect(verdict).toBe("successful")
  })
})
