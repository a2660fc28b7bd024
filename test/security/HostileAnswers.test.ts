import { createServer, type Server, type Socket } from "node:net"
import type { AddressInfo } from "node:net"
import { gzipSync } from "node:zlib"
import { describe, expect } from "vitest"
import { begin, edge, ended } from "../contract/workflowRuns.ts"
import { it as gatewayIt } from "../support/it.ts"
import { heldMs, leastMsOf, timesSlower, watchedLoop } from "../support/LoopHeld.ts"

/** What targets of actions may answer to do harm: the step ends, within bounds, and nothing else notices. */

const it = gatewayIt.extend("settings", { scope: "file" }, watchedLoop)

const mebibyte = 1_048_576
const secret = "token-of-the-target-that-nobody-sees"

const head = (more: ReadonlyArray<string>): string => ["HTTP/1.1 200 OK", ...more, "", ""].join("\r\n")
const whole =
  (type: string, body: string | Buffer, more: ReadonlyArray<string> = []) =>
  (socket: Socket): void => {
    socket.write(head([`content-type: ${type}`, `content-length: ${Buffer.byteLength(body)}`, ...more]))
    socket.write(body)
  }
/** Goes on as long as it is listened to. */
const endless = (beginning: string, more: string | Buffer) => (socket: Socket) => {
  socket.write(beginning)
  const write = (): void => {
    if (socket.destroyed) return
    socket.write(more, () => setImmediate(write))
  }
  write()
}
const json = (body: string) => whole("application/json", body)
const feed = (items: string) => json(`{"items":[${items}]}`)

interface Expected {
  /** Null: the step succeeds. */
  readonly http: string | null
  readonly feed: string | null
}

const answers: ReadonlyArray<readonly [name: string, answer: (socket: Socket) => void, Expected]> = [
  [
    "a hundred megabytes compressed to a hundred kilobytes",
    whole("application/json", gzipSync(Buffer.alloc(100 * mebibyte)), ["content-encoding: gzip"]),
    { http: null, feed: "ACTION_FAILED" }
  ],
  [
    "endless chunks",
    endless(
      head(["content-type: application/json", "transfer-encoding: chunked"]),
      `10000\r\n${"[".repeat(65_536)}\r\n`
    ),
    { http: "OUTPUT_TOO_LARGE", feed: "OUTPUT_TOO_LARGE" }
  ],
  [
    "endless chunks of one byte",
    endless(head(["transfer-encoding: chunked"]), "1\r\na\r\n".repeat(1_000)),
    { http: "OUTPUT_TOO_LARGE", feed: "OUTPUT_TOO_LARGE" }
  ],
  [
    "one byte at a time",
    (socket) => {
      const timer = setInterval(() => socket.write("H"), 200)
      socket.once("close", () => clearInterval(timer))
    },
    { http: "PROTOCOL_ERROR", feed: "PROTOCOL_ERROR" }
  ],
  [
    "endless interim answers",
    endless("", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100)),
    { http: "PROTOCOL_ERROR", feed: "PROTOCOL_ERROR" }
  ],
  [
    "endless headers",
    endless("HTTP/1.1 200 OK\r\n", "x-a: b\r\n".repeat(1_000)),
    { http: "RESPONSE_TOO_LARGE", feed: "RESPONSE_TOO_LARGE" }
  ],
  [
    "an endless status line",
    endless("HTTP/1.1 200 ", "O".repeat(65_536)),
    { http: "RESPONSE_TOO_LARGE", feed: "RESPONSE_TOO_LARGE" }
  ],
  [
    "endless extensions of a chunk",
    endless(`${head(["transfer-encoding: chunked"])}1;`, "x".repeat(65_536)),
    { http: "RESPONSE_TOO_LARGE", feed: "RESPONSE_TOO_LARGE" }
  ],
  [
    "endless chunks of one byte with a kilobyte of extensions",
    endless(head(["transfer-encoding: chunked"]), `1;${"x".repeat(1_024)}\r\na\r\n`.repeat(64)),
    { http: "RESPONSE_TOO_LARGE", feed: "RESPONSE_TOO_LARGE" }
  ],
  [
    "ten thousand headers",
    (socket) =>
      void socket.write(head([...Array.from({ length: 10_000 }, (_, i) => `x-${i}: ${i}`), "content-length: 0"])),
    { http: "RESPONSE_TOO_LARGE", feed: "RESPONSE_TOO_LARGE" }
  ],
  [
    "a redirect into the private network",
    (socket) =>
      void socket.write(
        "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest/meta-data\r\ncontent-length: 0\r\n\r\n"
      ),
    { http: "BAD_RESPONSE", feed: "BAD_RESPONSE" }
  ],
  // What costs too much to be parsed is text, and text has no items.
  ["endless nesting", json("[".repeat(1_000_000)), { http: null, feed: "ACTION_FAILED" }],
  ["a megabyte of empty lists", feed("[],".repeat(330_000) + "[]"), { http: null, feed: "ACTION_FAILED" }],
  ["a megabyte of small objects", feed('{"a":1},'.repeat(120_000) + "{}"), { http: null, feed: "ACTION_FAILED" }],
  [
    "a megabyte of names",
    json(`{${Array.from({ length: 90_000 }, (_, i) => `"k${i}":1`).join(",")}}`),
    { http: null, feed: "ACTION_FAILED" }
  ],
  [
    "a megabyte of the call's secret",
    whole("text/plain", `${secret} `.repeat(27_000)),
    { http: null, feed: "ACTION_FAILED" }
  ],
  [
    "a megabyte of beginnings of the secret",
    whole("text/plain", secret.slice(0, -1).repeat(28_000)),
    { http: null, feed: "ACTION_FAILED" }
  ],
  [
    "names of members that objects have",
    json('{"items":[{"__proto__":{"a":1},"constructor":1}],"__proto__":{"x":1}}'),
    { http: null, feed: null }
  ],
  [
    "binary data declared as JSON",
    whole("application/json", Buffer.alloc(750_000, 0xff)),
    { http: null, feed: "ACTION_FAILED" }
  ],
  ["a picture", whole("image/png", Buffer.alloc(750_000, 0x89)), { http: null, feed: "ACTION_FAILED" }],
  ["an empty body", json(""), { http: null, feed: "ACTION_FAILED" }]
]

const listening = (server: Server): Promise<number> =>
  new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)))

describe("Hostile answers to an action", () => {
  it.for(answers)("A hostile answer does no harm: %s", async ([, answer, expected], { gateway, onTestFinished }) => {
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket)
      socket.on("error", () => {})
      socket.on("data", () => answer(socket))
    })
    const url = `http://127.0.0.1:${await listening(server)}/`
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    const carriedOut = async (): Promise<number> => {
      await heldMs()
      for (const [provider_key, action_key, code] of [
        ["http", "request", expected.http],
        ["json_feed", "fetch", expected.feed]
      ] as const) {
        const saved = await gateway.call("POST", "/actions", {
          name: gateway.name("action"),
          provider_key,
          action_key,
          auth_mode: "bearer",
          credentials: { token: secret },
          inputs: { url }
        })
        expect(saved.status, JSON.stringify(saved.body)).toBe(201)
        const step = { id: "call", kind: "action", resource_id: saved.body.id, config: { timeout_ms: 30_000 } }
        const { post } = await begin(gateway, [step], [edge(null, "call")])
        const { outputs, row } = await ended(gateway, await post())
        expect([provider_key, row.error_code, row.error_message]).toEqual([
          provider_key,
          code,
          code === null ? null : expect.any(String)
        ])
        expect(JSON.stringify([row, outputs]).includes(secret)).toBe(false)
      }
      return (await heldMs()).processorMs
    }
    // Of an idle machine it is 50 at the most; what else the loop does between two looks is in it.
    const boundMs = (): number => 250 * timesSlower()
    expect(await leastMsOf(boundMs, carriedOut)).toBeLessThan(boundMs())
  })
})
