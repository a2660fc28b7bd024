import { expect } from "vitest"
import { it } from "../../test/support/it.ts"

it("Failed deliveries are retried, a pause holds events, and an event can be retried by hand", async ({
  gateway,
  target
}) => {
  const { connection, source } = await gateway.route(target, {
    rules: [{ type: "retry", strategy: "linear", interval: 1_000, count: 3 }]
  })
  const post = async (): Promise<string> => {
    const answer = await fetch(source.url, { method: "POST", body: "{}" })
    return ((await answer.json()) as { request_id: string }).request_id
  }
  const eventOf = (requestId: string, status: string) =>
    gateway.eventually(`the event is ${status}`, async () => {
      const { events } = await gateway.traced(requestId)
      return events[0]?.status === status ? events[0] : null
    })

  // The target fails once. The second attempt carries the same id, so a target can tell that it is the same event.
  target.reply = (response) => void response.writeHead(target.received.length === 1 ? 503 : 200).end()
  const event = await eventOf(await post(), "SUCCESSFUL")
  expect(event.attempts).toBe(2)
  const [first, second] = await target.next(2)
  expect(second!.headers["webhook-id"]).toBe(first!.headers["webhook-id"])

  // Paused, the gateway goes on accepting, and holds. Nothing is lost.
  await gateway.api("PUT", `/connections/${connection.id}/pause`)
  const held = await post()
  await eventOf(held, "HOLD")
  expect(target.received).toHaveLength(2)
  await gateway.api("PUT", `/connections/${connection.id}/unpause`)
  await eventOf(held, "SUCCESSFUL")

  // A retry by hand is a new event that names the one it repeats.
  const { replay_event_id } = await gateway.api("POST", `/events/${event.id}/retry`)
  await target.next(4)
  expect((await gateway.api("GET", `/events/${replay_event_id}`)).retry_parent_event_id).toBe(event.id)
})
