import { expect } from "vitest"
import { ownIt as it } from "../support/it.ts"
import { hanging, saying } from "../support/Target.ts"
import { patience } from "../support/Waiting.ts"

/** Deliveries by HTTP that are under way when a process ends: what their target sees, and what becomes of them. */

it(
  "A delivery without an answer at shutdown is aborted, and the next process sends it again",
  { timeout: 4 * patience },
  async ({ gateway, target }) => {
    target.reply = hanging
    const source = await gateway.source()
    // Without a retry rule: were it an attempt, it would be the last.
    const destination = await gateway.destination({ url: target.origin })
    await gateway.connection(source, destination)
    const answer = await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: "{}" })
    const { request_id } = (await answer.json()) as { readonly request_id: string }
    await target.next(1)
    const abandoned = async (): Promise<void> => {
      await target.received[0]!.abandoned
      target.reply = saying("ok")
    }
    await Promise.all([gateway.restart("SIGTERM"), abandoned()])
    const { attempts, events } = await gateway.eventually("it is delivered", async () => {
      const traced = await gateway.traced(request_id)
      return traced.events[0]?.status === "QUEUED" ? null : traced
    })
    expect(events[0]).toMatchObject({ status: "SUCCESSFUL", attempts: 1 })
    expect(attempts).toMatchObject([{ attempt_number: 1, response_status: 200, error_code: null }])
    const [first, second, ...others] = target.received.map(({ headers }) => headers["webhook-id"])
    expect([second, others]).toEqual([first, []])
  }
)
