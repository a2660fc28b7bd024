import { expect } from "vitest"
import { secret } from "../../packages/connectors/test/rows/Auths.ts"
import type { Answered, Failing } from "../../packages/connectors/test/rows/Row.ts"
import { rows } from "../../packages/connectors/test/rows/Rows.ts"
import type { Attempt, DestinationConfig, Event } from "../support/Contract.ts"
import { configAt, configOf } from "../support/Mocks.ts"
import { answering, it as base } from "./apiStandIn.ts"

/**
 * Destinations that send by HTTP. A mock replaces the API of each, as its conformance row describes it. The suite checks the outcome of an
 * event and of each kind of failure, and what is stored and shown.
 */

const it = base
  /** Sends an event to a destination of a type whose API gives this answer, and waits for the end of the first attempt. */
  .extend(
    "attempted",
    ({ api, gateway }) =>
      async (type: string, answered: Answered, config: Partial<DestinationConfig> = {}) => {
        api.reset()
        api.reply = answering(answered)
        const source = await gateway.source()
        const retry = { type: "retry", strategy: "linear", interval: 3_600_000, count: 3 } as const
        const destination = await gateway.destination(
          { ...configAt(type, api.origin), ...config } as DestinationConfig,
          type
        )
        await gateway.connection(source, destination, [retry])
        const send = async (): Promise<string> => {
          const answer = await fetch(`${gateway.origin}/e/${source.id}`, {
            method: "POST",
            body: JSON.stringify(event)
          })
          return ((await answer.json()) as { readonly request_id: string }).request_id
        }
        const request = await send()
        const { attempts, events } = await gateway.eventually("the end of the attempt", async () => {
          const trace = await gateway.traced(request)
          return trace.attempts.length > 0 && trace.events[0]?.attempts === 1 ? trace : null
        })
        return { attempt: attempts[0]!, event: events[0]!, send }
      }
  )

const event = { message: "hello", id: 7, media_url: "https://93.184.216.34/a.png" }

const calling = rows.filter(({ mock }) => mock !== null).map((row) => [row.type, row] as const)

it.for(calling)(
  "An event for %s becomes a call of the API, and its trace contains no secret",
  async ([type, { accepted, secrets = [] }], { api, attempted, calls, gateway }) => {
    const done = await attempted(type, accepted)
    expect([done.event.status, done.event.error_code]).toEqual(["SUCCESSFUL", null])
    const [call, ...more] = calls()
    expect(more).toEqual([])
    expect(call!.method).toMatch(/^P(?:OS|U)T$/)
    expect(call!.body.length).toBeGreaterThan(0)
    expect(done.attempt).toMatchObject({
      error_code: null,
      response_status: accepted.status,
      http_method: call!.method
    })
    expect(done.attempt.requested_url).toMatch(api.origin)
    expect(done.attempt.delivery_latency).toBeGreaterThanOrEqual(0)
    expect(done.attempt.response_latency).toBeGreaterThanOrEqual(0)
    expect(done.attempt.body ?? "").toBe(accepted.body ?? "")
    const visible = JSON.stringify(done) + (await gateway.logged())
    for (const hidden of [secret, "t0ken-of-a-provider", ...secrets]) expect(visible).not.toContain(hidden)
  }
)

/** The recorded failure: the event waits for its retry, or has ended. */
const failureOf = ({ attempt, event }: { readonly attempt: Attempt; readonly event: Event }) => ({
  attempt: [attempt.error_code, attempt.response_status],
  event: [event.error_code, event.status, event.next_attempt_at === null]
})

it.for(calling.filter(([, { failures }]) => failures !== null))(
  "A failed call of %s has its error code and is retried only if that can help",
  async ([type, { failures, secrets = [] }], { attempted, gateway }) => {
    for (const [kind, of] of Object.entries(failures!) as ReadonlyArray<readonly [string, ReadonlyArray<Failing>]>) {
      for (const failing of of.slice(0, 1)) {
        // It says again what it was sent, as some do.
        const { code, final, ...answered } = { ...failing, headers: { ...failing.headers, "x-trouble": "kept" } }
        const failed = await attempted(type, answered)
        expect([kind, failureOf(failed)]).toEqual([
          kind,
          {
            attempt: [code, answered.status],
            event: [code, final ? "FAILED" : "SCHEDULED", final]
          }
        ])
        expect(failed.event.failure_message).not.toBe("")
        for (const hidden of [secret, ...secrets]) expect(JSON.stringify(failed)).not.toContain(hidden)
        // Its retry would come in another test.
        await gateway.api("PUT", `/connections/${failed.event.connection_id}/disable`)
      }
    }
  }
)

it.for(calling)(
  "The rate limit of %s delays events, and waiting events can be cancelled",
  async ([type, { accepted }], { attempted, calls, gateway }) => {
    const { send } = await attempted(type, accepted, { rate_limit: 1, rate_limit_period: "day" })
    const waiting = await send()
    const { connection_id, status } = (await gateway.traced(waiting)).events[0]!
    expect(["QUEUED", "SCHEDULED"]).toContain(status)
    await gateway.api("PUT", `/connections/${connection_id}/disable`)
    const cancelled = await gateway.eventually("the event is cancelled", async () => {
      const [event] = (await gateway.traced(waiting)).events
      return event?.status === "CANCELLED" ? event : null
    })
    expect([cancelled.attempts, calls().length]).toEqual([0, 1])
  }
)

it("An API's wait in the response body delays the retry", async ({ attempted }) => {
  const body = JSON.stringify({ ok: false, error_code: 429, parameters: { retry_after: 7_200 } })
  const { event } = await attempted("MESSENGER_MESSAGE", { status: 429, body })
  const [last, next] = [event.last_attempt_at, event.next_attempt_at].map((at) => Date.parse(at ?? ""))
  expect(next! - last!).toBeGreaterThan(7_100_000)
})

it("API destinations show their settings as written and without secrets", async ({ gateway }) => {
  for (const [type, { secrets = [], mock }] of calling) {
    const { config } = await gateway.destination(configOf(type, mock!("https://api.example.com")), type)
    expect(JSON.stringify(config)).not.toContain(secret)
    expect(secrets.every((one) => one.length > 8)).toBe(true)
  }
})
