import { expect } from "vitest"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { rows } from "../../packages/connectors/test/rows/Rows.ts"
import { it as base } from "../support/it.ts"
import { configOf } from "../support/Mocks.ts"
import { waitUntil } from "../support/Waiting.ts"

/**
 * Every setting of every type that leads somewhere, with every address that must not be led to: what is not refused when it is
 * written fails its attempt, and nobody is connected to. A setting is here by its conformance row, which the suite of the
 * connectors demands.
 */

/** A server on loopback behind each of these would be reached by its port. */
const loopback = [
  "127.0.0.1",
  "127.1",
  "127.255.255.254",
  "2130706433",
  "0x7f.1",
  "0x7f000001",
  "0177.0.0.1",
  "0.0.0.0",
  "0",
  "１２７。0.0.1",
  "localhost",
  "LOCALHOST.",
  "[::1]",
  "[0:0:0:0:0:0:0:1]",
  "[::]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[::127.0.0.1]",
  "[64:ff9b::7f00:1]",
  "[2002:7f00:1::]"
]

const elsewhere = [
  "10.0.0.1",
  "100.64.0.1",
  "169.254.169.254",
  "[fd00:ec2::254]",
  "172.16.0.1",
  "192.168.1.1",
  "[fe80::1]",
  "224.0.0.1",
  "255.255.255.255"
]

/** What is no address of HTTP at all. */
const schemes = [
  "file:///etc/passwd",
  "gopher://127.0.0.1/",
  "ftp://127.0.0.1/",
  "unix:/run/x.sock",
  "//127.0.0.1/",
  "data:,x"
]

/** Of attempts that connected to nobody. */
const refused = new Set(["TARGET_NOT_ALLOWED", "INVALID_URL", "TEMPLATE_ERROR", "DNS_LOOKUP_FAILED"])

/** A token that could not be asked for says why at its end. */
const isRefused = (code: string, message: string | null): boolean =>
  refused.has(code) ||
  (code === "OAUTH2_HANDSHAKE_FAILED" && refused.has(/: ([A-Z_]+)$/.exec(message ?? "")?.[1] ?? ""))

const it = base
  // Unless something is allowed, loopback is, for whoever tries a gateway on his own machine.
  .extend("settings", { scope: "file" }, () => ({ TIDEGATE_EGRESS_ALLOW: "203.0.113.0/24" }))
  /** Whom nobody may connect to. */
  .extend("canary", { scope: "file" }, async ({}, { onCleanup }) => {
    let connections = 0
    const server = createServer((socket) => {
      connections++
      socket.destroy()
    })
    await new Promise<void>((resolve) => server.listen(0, "::", resolve))
    onCleanup(() => new Promise<void>((resolve) => server.close(() => resolve())))
    return { port: (server.address() as AddressInfo).port, connections: () => connections }
  })

const settings = rows.flatMap(({ addresses, type }) =>
  Object.entries(addresses).map(([setting, written]) => [`${type} ${setting}`, type, written] as const)
)

it.for(settings)("Destination %s reaches no forbidden address", async ([, type, written], { canary, gateway }) => {
  const source = await gateway.source()
  const hosts = [...loopback, ...elsewhere]
  const urls = [
    ...hosts.map((host) => `http://${host}:${canary.port}/`),
    ...["127.0.0.1", "localhost", "[::1]"].map((host) => `https://${host}:${canary.port}/`),
    ...schemes
  ]
  const led = new Map<string, string>()
  const lead = async (url: string): Promise<void> => {
    const host = /^\w+:\/\/(\[[^\]]*\]|[^/:]*)/.exec(url)?.[1]?.replaceAll(/[[\]]/g, "") ?? url
    const config = configOf(type, written({ url, host }))
    const { body, status } = await gateway.call("POST", "/destinations", { name: gateway.name("corpus"), type, config })
    if (status === 400) return
    expect([url, status]).toEqual([url, 200])
    led.set(body.id, url)
    await gateway.connection(source, body)
  }
  for (let at = 0; at < urls.length; at += 8) await Promise.all(urls.slice(at, at + 8).map(lead))
  // Something of the corpus is only known when it is connected to.
  expect(led.size).toBeGreaterThan(0)
  await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: '{"id":1,"message":"m"}' })
  const attempts = () =>
    gateway.sql(
      "select a.destination_id, a.error_code, e.failure_message, a.response_status " +
        "from attempts a join events e on e.id = a.event_id where a.source_id = $1",
      [source.id]
    )
  await waitUntil("each has been tried", async () => (await attempts()).length >= led.size, { everyMs: 200 })
  const wrong = (await attempts()).flatMap(({ destination_id, error_code, failure_message, response_status }) =>
    response_status === null && isRefused(error_code, failure_message)
      ? []
      : [{ url: led.get(destination_id), error_code, failure_message }]
  )
  expect(wrong).toEqual([])
  expect(canary.connections()).toBe(0)
})
