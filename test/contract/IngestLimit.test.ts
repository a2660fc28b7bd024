import { describe, expect } from "vitest"
import type { Source, SourceConfig } from "../support/Contract.ts"
import { type Answer, request, requestBytes, talk } from "../support/RawHttp.ts"
import { sleep } from "../support/Waiting.ts"
import { it as gatewayIt } from "../support/it.ts"

/** `config.rate_limit` of a source: how many of its requests are accepted in a period. */

const it = gatewayIt
  .extend(
    "limited",
    ({ gateway }) =>
      (rate_limit: number, more: SourceConfig = {}): Promise<Source> =>
        gateway.source({ rate_limit, rate_limit_period: "hour", ...more })
  )
  .extend(
    "send",
    ({ gateway }) =>
      (source: Source, more: object = {}): Promise<Answer> =>
        request(gateway.port, { path: `/e/${source.id}`, body: "{}", ...more })
  )
  /** Sends until the period has nothing left; gives how many were accepted. */
  .extend("useUp", ({ gateway, send }) => async (source: Source, limit: number): Promise<number> => {
    let accepted = 0
    const isSpent = await gateway.eventually("nothing is left of the period", async () => {
      for (;;) {
        const answer = await send(source)
        if (answer.status !== 200) return retryOf(answer) > 1 ? true : null
        accepted++
      }
    })
    expect(isSpent).toBe(true)
    const lease = Math.max(1, Math.ceil(limit / 8))
    expect(accepted).toBeGreaterThanOrEqual(limit)
    expect(accepted).toBeLessThanOrEqual(limit + lease)
    return accepted
  })

const retryOf = ({ body, headers, status }: Answer): number => {
  expect([status, JSON.parse(body).code]).toEqual([429, "RATE_LIMITED"])
  return Number(headers["retry-after"])
}

describe("Source with a rate limit", () => {
  it("A source accepts requests up to its rate limit, and counts the others without storing them", async ({
    gateway,
    limited,
    send,
    useUp
  }) => {
    const source = await limited(20)
    const accepted = await useUp(source, 20)
    for (let i = 0; i < 5; i++) {
      const retry = retryOf(await send(source))
      expect(retry).toBeGreaterThan(3_000)
      expect(retry).toBeLessThanOrEqual(3_600)
    }
    expect(await gateway.requests(source.id)).toHaveLength(accepted)
    const health = await gateway.eventually("what was refused is counted", async () => {
      const health = await gateway.api("GET", `/sources/${source.id}/health`)
      return health.limited_24h_count >= 6 ? health : null
    })
    expect(health).toMatchObject({
      source_id: source.id,
      accepted_24h_count: accepted,
      rejected_24h_count: 0,
      rate_limit: 20,
      rate_limit_period: "hour",
      period: { leased: 20, remaining: 0, processes: 1 }
    })
    const left = Date.parse(health.period!.ends_at) - Date.now()
    expect(left).toBeGreaterThan(3_000_000)
    expect(left).toBeLessThanOrEqual(3_600_000)
    expect(health.last_request_at).not.toBeNull()
  })

  it("Rejected requests do not use a source's rate limit", async ({ gateway, limited, send }) => {
    const auth = { username: "sender", password: "known" }
    const source = await limited(8, { auth_type: "BASIC_AUTH", auth })
    for (let i = 0; i < 20; i++) expect((await send(source)).status).toBe(401)
    for (let i = 0; i < 20; i++) expect((await send(source, { method: "GET" })).status).toBe(405)
    const headers = [["Authorization", `Basic ${Buffer.from("sender:known").toString("base64")}`]]
    const known = await gateway.eventually("the limit is used up by who is let in", async () => {
      const answers: Array<Answer> = []
      for (let i = 0; i < 12; i++) answers.push(await send(source, { headers }))
      return answers.some((answer) => answer.status === 429 && retryOf(answer) > 1) ? true : null
    })
    expect(known).toBe(true)
    const stored = await gateway.requests(source.id)
    expect(stored.filter(({ status }) => status === "accepted").length).toBeGreaterThanOrEqual(8)
    expect(stored.filter(({ status }) => status === "accepted").length).toBeLessThanOrEqual(9)
    // Over it, nobody's body is read: not to find out who it is either.
    retryOf(await send(source))
    expect((await gateway.api("GET", `/sources/${source.id}/health`)).rejected_24h_count).toBe(40)
  })

  it("A request above the rate limit is answered before its body, and the connection stays open", async ({
    gateway,
    limited,
    useUp
  }) => {
    const source = await limited(4)
    await useUp(source, 4)
    const sent = requestBytes({ path: `/e/${source.id}`, body: Buffer.alloc(64 * 1024, 32), keepAlive: true })
    const headersEnd = sent.indexOf("\r\n\r\n") + 4
    retryOf((await talk(gateway.port, [sent.subarray(0, headersEnd)], { answers: 1 })).final)
    const { answers } = await talk(gateway.port, [sent, sent], { answers: 2 })
    expect(answers.map(({ status }) => status)).toEqual([429, 429])
  })

  it("A lower rate limit applies at once, and a higher one within a second", async ({ gateway, limited, send }) => {
    const source = await limited(1_000)
    for (let i = 0; i < 20; i++) expect((await send(source)).status).toBe(200)
    await gateway.api("PATCH", `/sources/${source.id}`, { config: { rate_limit: 8 } })
    const answers: Array<number> = []
    for (let i = 0; i < 10; i++) answers.push((await send(source)).status)
    expect(answers.filter((status) => status === 200).length).toBeLessThanOrEqual(1)
    await gateway.api("PATCH", `/sources/${source.id}`, { config: { rate_limit: 2_000 } })
    await gateway.eventually("the higher limit holds", async () => ((await send(source)).status === 200 ? true : null))
    await gateway.api("PATCH", `/sources/${source.id}`, { config: { rate_limit: 1 } })
    await gateway.eventually("it is over it again", async () => ((await send(source)).status === 429 ? true : null))
    await gateway.api("PATCH", `/sources/${source.id}`, { config: { rate_limit: null } })
    await gateway.eventually("there is no limit", async () => ((await send(source)).status === 200 ? true : null))
    for (let i = 0; i < 20; i++) expect((await send(source)).status).toBe(200)
  })

  it("A disabled source with a used-up rate limit answers that it is disabled", async ({
    gateway,
    limited,
    send,
    useUp
  }) => {
    const source = await limited(2)
    await useUp(source, 2)
    await gateway.api("PUT", `/sources/${source.id}/disable`)
    await gateway.eventually("ingress knows that the source is disabled", async () =>
      (await send(source)).status === 403 ? true : null
    )
  })

  it("A source's rate limit starts anew in each period", async ({ gateway, send }) => {
    const source = await gateway.source({ rate_limit: 4 })
    expect(source.config).toMatchObject({ rate_limit: 4, rate_limit_period: "second" })
    let accepted = 0
    for (let period = 0; period < 3; period++) {
      await gateway.eventually("the period is used up", async () => {
        // One after the other without a pause: on a busy machine too, five come within a second.
        for (let n = 0; n < 10; n++) {
          const answer = await send(source)
          if (answer.status === 429) return true
          accepted++
        }
        return null
      })
      await sleep(1_000)
    }
    expect((await send(source)).status).toBe(200)
    expect(accepted).toBeGreaterThan(6)
  })
})

describe("Health of a source", () => {
  it("The health of a source without a rate limit has no period", async ({ gateway, send }) => {
    const source = await gateway.source()
    const path = `/sources/${source.id}/health` as const
    expect(await gateway.api("GET", path)).toMatchObject({ last_request_at: null, rate_limit: null, period: null })
    await send(source)
    await send(source, { method: "GET" })
    expect(await gateway.api("GET", path)).toMatchObject({ accepted_24h_count: 1, rejected_24h_count: 1, period: null })
  })

  it("The health of an unknown source is not found", async ({ gateway }) => {
    expect((await gateway.call("GET", "/sources/src_01kak1v8m0c3x9f2e7d5b4a6gh/health")).status).toBe(404)
  })
})
