import { createHmac } from "node:crypto"
import { requestBytes, type RequestParts } from "../../support/RawHttp.ts"

/** Sources that are there while the ingress corpus is sent, and how each is set up. */
export const sources = {
  /** Takes everything but GET and HEAD. */
  open: {},
  postOnly: { allowed_http_methods: ["POST"] },
  basic: { auth_type: "BASIC_AUTH", auth: { username: "sender", password: "p:w" } },
  key: { auth_type: "API_KEY", auth: { header_key: "x-api-key", query_key: "key", api_key: "sender-key" } },
  hmac: { auth_type: "HMAC", auth: { webhook_secret_key: "sender-secret", prefix: "sha256=" } },
  timed: {
    auth_type: "HMAC",
    auth: { webhook_secret_key: "sender-secret", timestamp_header: "x-timestamp", encoding: "base64" }
  },
  /** Disabled once it is there. */
  disabled: {},
  /** Deleted once it is there. */
  deleted: {}
} as const satisfies Readonly<Record<string, Readonly<Record<string, unknown>>>>

export type SourceName = keyof typeof sources

/** One request that is turned away, and whether that is stored. */
export interface IngressCase {
  readonly name: string
  readonly bytes: (ids: Readonly<Record<SourceName, string>>) => ReadonlyArray<Uint8Array>
  readonly status: number
  readonly code: string
  /** The source that a rejected request is stored for, and why; null when nothing is stored. */
  readonly stored: { readonly source: SourceName; readonly cause: string } | null
}

const at = (path: string, ids: Readonly<Record<SourceName, string>>): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: SourceName) => ids[name])

const one = (
  name: string,
  parts: RequestParts,
  expected: Pick<IngressCase, "status" | "code" | "stored">
): IngressCase => ({
  name,
  bytes: (ids) => [requestBytes({ ...parts, path: at(parts.path, ids) })],
  ...expected
})

const notFound = { status: 404, code: "NOT_FOUND", stored: null }

const nowhere: ReadonlyArray<IngressCase> = [
  "/e/",
  "/e/x",
  "/e//",
  "/e/src_",
  "/e/src_00000000000000000000000000",
  "/e/src_0000000000000000000000000",
  "/e/src_000000000000000000000000000",
  "/e/SRC_00000000000000000000000000",
  "/e/des_00000000000000000000000000",
  "/e/{open}x",
  "/e/{open}%00",
  "/e/{open}%2fsuffix",
  "/e/{open};a=b",
  "/e/{open}#fragment",
  "/e/%73rc_00000000000000000000000000",
  "/e/../e/{open}",
  "/e/./{open}",
  "/e//{open}",
  "/e/src_'; drop table sources; --".replaceAll(" ", "%20"),
  "/e/{deleted}",
  "/e/{deleted}/suffix?query",
  `/e/${"x".repeat(8_000)}`,
  "/e/__proto__"
].map((path) => one(path.slice(0, 60), { path, body: "{}" }, notFound))

const methods: ReadonlyArray<IngressCase> = [
  ...["GET", "OPTIONS", "TRACE", "PROPFIND", "PURGE", "SEARCH", "LOCK", "QUERY"].map(
    (method) => [method, "open"] as const
  ),
  ...["GET", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) => [method, "postOnly"] as const)
].map(([method, source]) =>
  one(
    `${method} to ${source}`,
    { method, path: `/e/{${source}}/path?q=1` },
    { status: 405, code: "SOURCE_METHOD_NOT_ALLOWED", stored: { source, cause: "SOURCE_METHOD_NOT_ALLOWED" } }
  )
)

const disabled: ReadonlyArray<IngressCase> = ["POST", "GET", "DELETE"].map((method) =>
  one(
    `${method} to a disabled source`,
    { method, path: "/e/{disabled}", ...(method === "POST" ? { body: "{}" } : {}) },
    { status: 403, code: "SOURCE_DISABLED", stored: { source: "disabled", cause: "SOURCE_DISABLED" } }
  )
)

type Headers = ReadonlyArray<readonly [string, string]>

const unverified = (name: string, source: SourceName, headers: Headers, query = ""): IngressCase =>
  one(
    `${source}: ${name}`,
    { path: `/e/{${source}}${query}`, headers, body: '{"a":1}' },
    { status: 401, code: "SOURCE_AUTH_FAILED", stored: { source, cause: "SOURCE_AUTH_FAILED" } }
  )

const basic = (text: string, scheme = "Basic"): Headers => [
  ["Authorization", `${scheme} ${Buffer.from(text).toString("base64")}`]
]
const signature = createHmac("sha256", "sender-secret").update('{"a":1}').digest("hex")
const signed = (value: string): Headers => [["X-Signature", value]]
const timestamped = (seconds: string, signedSeconds = seconds): Headers => [
  ["X-Timestamp", seconds],
  ["X-Signature", createHmac("sha256", "sender-secret").update(`${signedSeconds}.{"a":1}`).digest("base64")]
]
const nowSeconds = Math.floor(Date.now() / 1000)

const verification: ReadonlyArray<IngressCase> = [
  unverified("none", "basic", []),
  unverified("an empty header", "basic", [["Authorization", ""]]),
  unverified("another scheme", "basic", basic("sender:p:w", "Bearer")),
  unverified("a wrong password", "basic", basic("sender:p:x")),
  unverified("a wrong user", "basic", basic("Sender:p:w")),
  unverified("the password alone", "basic", basic(":p:w")),
  unverified("no password", "basic", basic("sender:")),
  unverified("what is not base64", "basic", [["Authorization", "Basic sender:p:w"]]),
  unverified("a trailing NUL", "basic", basic("sender:p:w\0")),
  unverified("two headers, both right", "basic", [...basic("sender:p:w"), ...basic("sender:p:w")]),
  unverified("a header of 16 KiB", "basic", basic("x".repeat(12_000))),
  unverified("credentials in the URL", "basic", [], "?username=sender&password=p:w"),
  unverified("none", "key", []),
  unverified("an empty header", "key", [["X-Api-Key", ""]]),
  unverified("a wrong key", "key", [["X-Api-Key", "sender-kez"]]),
  unverified("the key in capitals", "key", [["X-Api-Key", "SENDER-KEY"]]),
  unverified("the key with more behind", "key", [["X-Api-Key", "sender-key2"]]),
  unverified("two headers, both right", "key", [
    ["X-Api-Key", "sender-key"],
    ["X-Api-Key", "sender-key"]
  ]),
  unverified("a wrong header and the right query", "key", [["X-Api-Key", "x"]], "?key=sender-key"),
  unverified("a wrong key in the query", "key", [], "?key=sender"),
  unverified("the key twice in the query", "key", [], "?key=sender-key&key=sender-key"),
  unverified("the key under another name", "key", [["Authorization", "sender-key"]], "?Key=sender-key"),
  unverified("none", "hmac", []),
  unverified("an empty signature", "hmac", signed("")),
  unverified("the prefix alone", "hmac", signed("sha256=")),
  unverified("no prefix", "hmac", signed(signature)),
  unverified("another prefix", "hmac", signed(`sha1=${signature}`)),
  unverified("a signature cut short", "hmac", signed(`sha256=${signature.slice(0, -2)}`)),
  unverified("a signature with more behind", "hmac", signed(`sha256=${signature}00`)),
  unverified("one digit off", "hmac", signed(`sha256=${signature.replace(/.$/, (c) => (c === "0" ? "1" : "0"))}`)),
  unverified("a signature in base64", "hmac", signed(`sha256=${Buffer.from(signature, "hex").toString("base64")}`)),
  unverified(
    "another body's signature",
    "hmac",
    signed(`sha256=${createHmac("sha256", "sender-secret").digest("hex")}`)
  ),
  unverified(
    "another secret's signature",
    "hmac",
    signed(`sha256=${createHmac("sha256", "x").update('{"a":1}').digest("hex")}`)
  ),
  unverified("two signatures", "hmac", [...signed(`sha256=${signature}`), ...signed(`sha256=${signature}`)]),
  unverified("what is not hexadecimal", "hmac", signed(`sha256=${"zz".repeat(32)}`)),
  unverified("no timestamp", "timed", timestamped(String(nowSeconds)).slice(1)),
  unverified("an empty timestamp", "timed", timestamped("")),
  unverified("a timestamp of yesterday", "timed", timestamped(String(nowSeconds - 86_400))),
  unverified("a timestamp of tomorrow", "timed", timestamped(String(nowSeconds + 86_400))),
  unverified("a timestamp in milliseconds", "timed", timestamped(String(nowSeconds * 1000))),
  unverified("another timestamp than was signed", "timed", timestamped(String(nowSeconds), String(nowSeconds - 1))),
  unverified("a timestamp that is a word", "timed", timestamped("now")),
  unverified("an endless timestamp", "timed", timestamped("9".repeat(400))),
  unverified("a timestamp with a fraction", "timed", timestamped(`${nowSeconds}.5e0`))
]

const tooLarge = {
  status: 413,
  code: "PAYLOAD_TOO_LARGE",
  stored: { source: "open", cause: "PAYLOAD_TOO_LARGE" }
} as const

/** Told in advance, a body that is too large is turned away before it comes. */
const sizes: ReadonlyArray<IngressCase> = [
  10_485_761,
  2_147_483_647,
  2_147_483_648,
  4_294_967_296,
  1_000_000_000_000,
  Number.MAX_SAFE_INTEGER
].map((bytes) =>
  one(
    `a body of ${bytes} bytes, announced`,
    { path: "/e/{open}", headers: [["Content-Length", String(bytes)]] },
    tooLarge
  )
)

export const wrongRequests: ReadonlyArray<IngressCase> = [
  ...nowhere,
  ...methods,
  ...disabled,
  ...verification,
  ...sizes
]
