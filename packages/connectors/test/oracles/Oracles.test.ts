import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Refusal } from "@tidegate/connectors/Connector"
import { Target } from "../../../../test/support/Target.ts"
import { event, opened, prepared } from "../Opened.ts"
import { gmail, sheets } from "./Google.ts"
import type { Answered, Oracle } from "./Oracle.ts"
import { sendGrid } from "./SendGrid.ts"
import { slack } from "./Slack.ts"
import { twilio } from "./Twilio.ts"

/** The calls of connectors beside those of the providers' own clients. */

const oracles: ReadonlyArray<readonly [by: string, oracle: Oracle]> = [
  ["@slack/web-api", slack],
  ["@sendgrid/mail", sendGrid],
  ["twilio", twilio],
  ["@googleapis/sheets", sheets],
  ["@googleapis/gmail", gmail]
]

let api: Target
beforeAll(async () => {
  api = await Target.start()
})
afterAll(() => api.close())

const answering = ({ body, headers = {}, status }: Answered): void => {
  api.reset()
  api.reply = (response) =>
    void response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(body === undefined ? "" : JSON.stringify(body))
}

/** Our call, and what we make of its answer. */
const ours = async ({ auth, config, payload, type }: Oracle) => {
  const sender = opened(type, config, auth, () => api.origin)
  const request = prepared(sender, event(payload))
  if (request instanceof Refusal) throw new Error(request.message)
  const headers = request.headers.flatMap((name, i) => (i % 2 === 0 ? [[name, request.headers[i + 1]!]] : []))
  const body = Buffer.from(request.body)
  const answer = await fetch(request.url, { method: request.method, headers: headers as [string, string][], body })
  return sender.judge({
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
    body: Buffer.from(await answer.arrayBuffer()),
    bodyTruncated: false
  })
}

describe.each(oracles)("Vendor library %s", (_, oracle) => {
  it("Connector makes the same call as the vendor's library", async () => {
    answering(oracle.accepted)
    await oracle.call(api.origin)
    expect(await ours(oracle)).toBe("successful")
    expect(api.received).toHaveLength(2)
    const [theirs, own] = await Promise.all(api.received.map((request) => oracle.meaning(request)))
    expect(theirs).toMatchObject(oracle.expected)
    expect(own).toEqual(theirs)
  })

  it.each(oracle.noes.map((no) => [no.what, no] as const))(
    "Connector and vendor's library recognize the same failure: %s",
    async (_what, no) => {
      answering(no.answer)
      if (no.client === null) await oracle.call(api.origin)
      else await expect(oracle.call(api.origin)).rejects.toMatchObject(no.client)
      const verdict = await ours(oracle)
      const { retryAfter, ...expected } = no.verdict
      expect(verdict).toMatchObject(expected)
      expect(verdict).toHaveProperty("message")
      if (typeof verdict === "object") expect(verdict.retryAfter).toBe(retryAfter)
    }
  )
})
