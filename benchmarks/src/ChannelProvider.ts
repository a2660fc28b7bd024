/**
 * The provider of the scenario `channels`: feeds with a hub, and lists. The hub grants leases of different lengths, so that renewals
 * are spread. A lease that ends before its renewal is counted.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Pool } from "undici"
import { type FakeCallback, FakeProvider } from "../../packages/channels/test/fake/FakeProvider.ts"
import { serve } from "./Worker.ts"

/** How long leases are (ms): from half of `longest` to all of it. */
interface Start {
  readonly longest: number
}

export interface Report {
  readonly active: number
  /** Requests to subscribe, and reads of lists and feeds, so far. */
  readonly subscribed: number
  readonly reads: number
  /** Subscriptions that were not renewed in time, so far. */
  readonly expired: number
}

/** Callbacks under way at the same time. */
const atOnce = 64

let provider: FakeProvider | null = null
let longest = 0
let [subscribed, reads, sending] = [0, 0, 0]
let waiting: Array<FakeCallback> = []
/** The ends of the leases that ended. */
const ended = new Set<string>()
const pools = new Map<string, Pool>()

const poolOf = (origin: string): Pool => {
  const known = pools.get(origin)
  if (known !== undefined) return known
  const made = new Pool(origin, { connections: atOnce })
  pools.set(origin, made)
  return made
}

const send = async (to: FakeProvider, callback: FakeCallback): Promise<void> => {
  const { body, headers, method, url } = callback
  const { origin, pathname, search } = new URL(url)
  try {
    const answer = await poolOf(origin).request({
      method,
      path: pathname + search,
      headers,
      body: method === "POST" ? body : null
    })
    to.answered(callback, { status: answer.statusCode, body: await answer.body.text() })
  } catch {
    to.answered(callback, { status: 502, body: "" })
  }
}

const flush = (from: FakeProvider): void => {
  waiting.push(...from.takeCallbacks())
  while (sending < atOnce) {
    const [next] = waiting.splice(0, 1)
    if (next === undefined) return
    sending++
    void send(from, next).then(() => {
      sending--
      flush(from)
    })
  }
}

/** Forgets what tests read, and notes which leases have ended. */
const look = (of: FakeProvider): void => {
  of.requests.length = 0
  of.answers.length = 0
  const now = Date.now()
  for (const { expiresAt, id, state } of of.subscriptions.values()) {
    if (state === "active" && expiresAt !== null && expiresAt <= now) ended.add(`${id} ${expiresAt}`)
  }
}

const answer = async (of: FakeProvider, message: IncomingMessage, response: ServerResponse): Promise<void> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  if (message.method === "POST") subscribed++
  else reads++
  of.faults.life = longest * (0.5 + Math.random() / 2)
  const reply = of.handle({
    method: message.method as "GET" | "POST",
    url: of.origin + (message.url ?? "/"),
    headers: message.headers as Readonly<Record<string, string>>,
    body: Buffer.concat(chunks),
    authorized: false
  })
  if ("resume" in reply) throw new Error("this provider validates no callbacks")
  response.writeHead(reply.status, reply.headers).end(reply.body)
  flush(of)
}

serve({
  start: async (options: Start): Promise<string> => {
    longest = options.longest
    const server = createServer({ keepAliveTimeout: 120_000 })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const made = new FakeProvider({ origin, now: Date.now })
    provider = made
    server.on("request", (message, response) => void answer(made, message, response).catch(() => response.destroy()))
    setInterval(() => look(made), 250)
    return origin
  },
  report: (): Report => {
    if (provider === null) throw new Error("the provider has not started")
    return { active: provider.active.length, subscribed, reads, expired: ended.size }
  }
})

export interface ChannelProviderCommands {
  readonly start: (input: Start) => Promise<string>
  readonly report: (input: undefined) => Report
  readonly [name: string]: (input: never) => unknown
}
