import { setTimeout as sleep } from "node:timers/promises"
import { expect } from "vitest"
import type { Source } from "../support/Contract.ts"
import { type Answer, type Conversation, request, requestBytes, talk } from "../support/RawHttp.ts"
import { ownIt as gatewayIt } from "../support/it.ts"

/** Without its database the gateway promises nothing: senders are asked to retry. */

const it = gatewayIt
  .extend("isLinked", { scope: "file" }, true)
  .extend("known", { scope: "file" }, async ({ gateway, startTarget }) => {
    const target = await startTarget()
    const { source } = await gateway.route(target)
    expect((await request(gateway.port, { path: `/e/${source.id}`, body: "{}" })).status).toBe(200)
    await target.next()
    return source
  })
  /** One that no request has come to yet. */
  .extend(
    "unknown",
    { scope: "file" },
    async ({ gateway, startTarget }) => (await gateway.route(await startTarget())).source
  )
  .extend(
    "send",
    ({ gateway }) =>
      (source: Source, body: string | Uint8Array = "{}"): Promise<Answer> =>
        request(gateway.port, { path: `/e/${source.id}`, body })
  )
  .extend(
    "storedIds",
    ({ gateway }) =>
      async (): Promise<ReadonlySet<string>> =>
        new Set((await gateway.sql("select id from requests")).map((row) => row.id))
  )
  .extend(
    "recovered",
    ({ gateway, send }) =>
      (source: Source): Promise<Answer> =>
        gateway.eventually("requests are taken again", async () => {
          const answer = await send(source)
          return answer.status === 200 ? answer : null
        })
  )

it.afterEach(({ gateway }) => gateway.link.mend())

const comeAgain = ({ body, headers, status }: Answer): void => {
  expect([status, JSON.parse(body).code]).toEqual([503, "QUEUE_UNAVAILABLE"])
  expect(Number(headers["retry-after"])).toBeGreaterThanOrEqual(1)
}

it("Without the database every sender is asked to retry, and no request is acknowledged", async ({
  gateway,
  known,
  recovered,
  send,
  unknown
}) => {
  await gateway.link.cut()
  const startedAt = performance.now()
  const answers = await Promise.all([...Array.from({ length: 30 }, () => send(known)), send(unknown)])
  expect(performance.now() - startedAt).toBeLessThan(30_000)
  for (const answer of answers) comeAgain(answer)
  expect((await request(gateway.port, { method: "GET", path: "/readyz" })).status).toBe(503)
  expect((await request(gateway.port, { method: "GET", path: "/healthz" })).status).toBe(200)

  await gateway.link.mend()
  for (const source of [known, unknown]) await recovered(source)
})

it("A short outage of the database is bridged, and each waiting sender gets a correct answer", async ({
  gateway,
  recovered,
  send,
  storedIds,
  target
}) => {
  const { source } = await gateway.route(target)
  await recovered(source)
  await target.next()
  target.reset()
  await gateway.link.cut()
  const waiting = Array.from({ length: 20 }, () => send(source))
  const [answers] = await Promise.all([Promise.all(waiting), sleep(500).then(() => gateway.link.mend())])
  const stored = await storedIds()
  for (const { body, status } of answers) {
    expect([200, 503]).toContain(status)
    if (status === 200) expect(stored.has(JSON.parse(body).request_id)).toBe(true)
  }
  expect(answers.some(({ status }) => status === 200)).toBe(true)
  await target.next(answers.filter(({ status }) => status === 200).length)
})

it("The requests that wait for the database are limited, and further senders are refused at once", async ({
  gateway,
  known,
  recovered,
  storedIds
}) => {
  await recovered(known)
  await gateway.link.cut()
  const large = requestBytes({ path: `/e/${known.id}`, body: Buffer.alloc(10 * 1024 * 1024) })
  const patient = { answers: 1 }
  const waiting = Array.from({ length: 11 }, () => talk(gateway.port, [large], patient))
  const early: Array<Promise<Conversation>> = []
  const refused = async (): Promise<void> => {
    await gateway.eventually("a sender is turned away at once", async () => {
      const sent = talk(gateway.port, [requestBytes({ path: `/e/${known.id}`, body: "{}" })], patient)
      const answer = await Promise.race([sent.then(({ final }) => final), sleep(200, null)])
      if (answer === null) early.push(sent)
      else comeAgain(answer)
      return answer
    })
    // Waiting senders get a correct answer once the database is back.
    await gateway.link.mend()
  }
  const [first] = await Promise.all([Promise.all(waiting), refused()])
  const answers = [...first, ...(await Promise.all(early))].map(({ final }) => final)
  const stored = await storedIds()
  for (const { body, status } of answers) {
    expect([200, 503]).toContain(status)
    if (status === 200) expect(stored.has(JSON.parse(body).request_id)).toBe(true)
  }
  await recovered(known)
})
