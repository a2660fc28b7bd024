import { describe, expect, it, vi } from "vitest"
import { Client } from "../src/Client.ts"
import { pullMessages, type PulledMessage, type PullOptions } from "../src/Pull.ts"

/** The loop of a consumer, with a gateway that has these messages. Its timers are those of the test. */

interface Call {
  readonly how: string
  readonly receipts?: ReadonlyArray<string>
  readonly reason?: string
  readonly max?: number
  readonly wait_seconds?: number
}

const message = (number: number, body: object = { body: `"${number}"` }) => ({
  receipt: `evt_${number}.1`,
  event_id: `evt_${number}`,
  headers: {},
  ...body
})

const refusal = (status: number) =>
  new Response(JSON.stringify({ error: "x", code: "UNAVAILABLE", status, message: `no ${status}` }), { status })

/** Ends as soon as there is no message. */
const atOnce = { waitSeconds: 0 }

/** `failures` are given instead of answers, by the number of the call. */
const gatewayWith = (
  waiting: Array<object>,
  { expired = [], failures = {} }: { failures?: Record<number, () => Response>; expired?: ReadonlyArray<string> } = {}
) => {
  const calls: Array<Call> = []
  const fetch = async (request: Request): Promise<Response> => {
    request.signal.throwIfAborted()
    const body = (await request.json()) as Omit<Call, "how">
    const { pathname } = new URL(request.url)
    expect(pathname).toMatch(/^\/v1\/destinations\/des_1\/messages\/(pull|ack|nack)$/)
    calls.push({ how: pathname.split("/").at(-1)!, ...body })
    const failure = failures[calls.length]
    if (failure !== undefined) return failure()
    if (body.receipts === undefined) return Response.json({ messages: waiting.splice(0, body.max), leased_until: null })
    const isLate = (receipt: string): boolean => expired.includes(receipt)
    return Response.json({
      settled: body.receipts.filter((receipt) => !isLate(receipt)),
      expired: body.receipts.filter(isLate)
    })
  }
  const client = new Client({ baseUrl: "http://gateway", key: "gwk_1", fetch, retries: 0 })
  return {
    calls,
    settled: () => calls.filter(({ how }) => how !== "pull"),
    pulled: (options: PullOptions = atOnce) => pullMessages(client, "des_1", options)
  }
}

describe("Loop over pulled messages", () => {
  it("A message is acknowledged when the next one is asked for, and not before", async () => {
    const { calls, pulled } = gatewayWith([message(1), message(2)])
    const seen: Array<string> = []
    for await (const { event_id } of pulled()) seen.push(`${event_id} after ${calls.length} calls`)
    expect(seen).toEqual(["evt_1 after 1 calls", "evt_2 after 3 calls"])
    const pull = { how: "pull", max: 1, wait_seconds: 0 }
    expect(calls).toEqual([
      pull,
      { how: "ack", receipts: ["evt_1.1"] },
      pull,
      { how: "ack", receipts: ["evt_2.1"] },
      pull
    ])
  })

  it("A message is refused when its work throws, and so are those that were fetched with it", async () => {
    const { calls, pulled } = gatewayWith([1, 2, 3, 4].map((number) => message(number)))
    const work = async (): Promise<void> => {
      for await (const { event_id } of pulled({ ...atOnce, batch: 3 }))
        if (event_id === "evt_2") throw new Error("of the work")
    }
    await expect(work()).rejects.toThrow("of the work")
    expect(calls).toEqual([
      { how: "pull", max: 3, wait_seconds: 0 },
      { how: "ack", receipts: ["evt_1.1"] },
      { how: "nack", receipts: ["evt_2.1", "evt_3.1"], reason: "the consumer has stopped" }
    ])
  })

  it("A message that its consumer settles is not settled again, whichever way the loop is left", async () => {
    const { pulled, settled } = gatewayWith([1, 2, 3].map((number) => message(number)))
    const answers: Array<boolean> = []
    for await (const one of pulled()) {
      answers.push(one.event_id === "evt_2" ? await one.nack("\u{1f643}".repeat(201)) : await one.ack())
      if (one.event_id === "evt_3") break
    }
    expect(answers).toEqual([true, true, true])
    expect(settled()).toEqual([
      { how: "ack", receipts: ["evt_1.1"] },
      { how: "nack", receipts: ["evt_2.1"], reason: "\u{1f643}".repeat(200) },
      { how: "ack", receipts: ["evt_3.1"] }
    ])
  })

  it("Its limit of messages is never exceeded by a call", async () => {
    const { calls, pulled } = gatewayWith([1, 2, 3, 4].map((number) => message(number)))
    const seen = await Array.fromAsync(pulled({ batch: 2, limit: 3 }), ({ event_id }) => event_id)
    expect(seen).toEqual(["evt_1", "evt_2", "evt_3"])
    expect(calls.flatMap(({ max }) => max ?? [])).toEqual([2, 1])
  })

  it("A lease that has ended is reported with its message", async () => {
    const { pulled } = gatewayWith([message(1), message(2)], { expired: ["evt_1.1"] })
    const late: Array<PulledMessage> = []
    for await (const one of pulled({ ...atOnce, onExpired: (expired) => late.push(expired) })) {
      expect(await one.ack()).toBe(one.event_id !== "evt_1")
    }
    expect(late.map(({ receipt }) => receipt)).toEqual(["evt_1.1"])
  })

  it("A body has the same bytes as text and in base64", async () => {
    const { pulled } = gatewayWith([
      message(1, { body: "\u00fc" }),
      message(2, { body_base64: "w7wA" }),
      message(3, {})
    ])
    const bodies = await Array.fromAsync(pulled(), ({ bytes }) => [...bytes()])
    expect(bodies).toEqual([[0xc3, 0xbc], [0xc3, 0xbc, 0], []])
  })
})

describe("Loop over pulled messages that waits", () => {
  /** Runs while all timers end at once. */
  const withTimers = async <A>(work: () => Promise<A>): Promise<A> => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      const worked = work()
      const state = { isOver: false }
      const over = (): void => void (state.isOver = true)
      worked.then(over, over)
      while (!state.isOver) {
        await vi.advanceTimersByTimeAsync(10_000)
        await new Promise((resolve) => setImmediate(resolve))
      }
      return await worked
    } finally {
      vi.useRealTimers()
    }
  }

  it("It ends when there was no message for its time, in calls of 20 seconds at the most", async () => {
    const { calls, pulled } = gatewayWith([message(1)])
    await withTimers(() => Array.fromAsync(pulled({ waitSeconds: 45 })))
    expect(calls.flatMap(({ wait_seconds }) => wait_seconds ?? [])).toEqual([20, 20, 20, 5])
  })

  it("It repeats a fetch and an acknowledgement that the gateway could not answer, and tells of both", async () => {
    const ending = new AbortController()
    const failures = {
      1: () => {
        throw new TypeError("fetch failed")
      },
      2: () => refusal(503),
      4: () => refusal(500)
    }
    const { calls, pulled } = gatewayWith([message(1)], { failures })
    const told: Array<number> = []
    const options = { signal: ending.signal, onUnavailable: (_: unknown, retryInMs: number) => told.push(retryInMs) }
    await withTimers(async () => {
      for await (const one of pulled(options)) {
        await one.ack()
        ending.abort()
      }
    })
    expect(calls.map(({ how }) => how)).toEqual(["pull", "pull", "pull", "ack", "ack"])
    expect(told).toHaveLength(3)
    expect(Math.max(...told)).toBeLessThanOrEqual(1_000)
  })

  it("It fails after five tries if it was told how long to wait", async () => {
    const failures = Object.fromEntries([1, 2, 3, 4, 5].map((call) => [call, () => refusal(503)]))
    const { calls, pulled } = gatewayWith([message(1)], { failures })
    await expect(withTimers(() => Array.fromAsync(pulled({ waitSeconds: 1 })))).rejects.toMatchObject({ status: 503 })
    expect(calls).toHaveLength(5)
  })

  it("It fails at once when the gateway refuses the call", async () => {
    const { calls, pulled } = gatewayWith([message(1)], { failures: { 1: () => refusal(404) } })
    const waiting = pulled({})
    await expect(Array.fromAsync(waiting)).rejects.toMatchObject({ status: 404 })
    expect(calls).toHaveLength(1)
  })

  it("Its signal ends it, after the message in hand is settled", async () => {
    const ending = new AbortController()
    const { calls, pulled } = gatewayWith([1, 2, 3].map((number) => message(number)))
    const seen: Array<string> = []
    for await (const { event_id } of pulled({ batch: 2, signal: ending.signal })) {
      seen.push(event_id)
      ending.abort()
    }
    expect(seen).toEqual(["evt_1"])
    expect(calls.slice(1)).toEqual([
      { how: "ack", receipts: ["evt_1.1"] },
      { how: "nack", receipts: ["evt_2.1"], reason: "the consumer has stopped" }
    ])
  })
})
