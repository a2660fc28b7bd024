import { expect } from "vitest"
import type { Body } from "../support/Gateway.ts"
import { it } from "../support/it.ts"
import { TunnelClient } from "../support/TunnelClient.ts"
import { eventually } from "../support/Waiting.ts"

/** A tunnel is held open at any process, and its destination is at any runner: whichever of them is killed, no event is lost by that. */

const key = "gwk_cluster_test_key"
const count = 2_000

/** A client that comes back whenever its connection breaks, at the next process in turn, and notes what it was asked for. */
const listening = (origins: () => ReadonlyArray<string>, destination: string) => {
  const asked: Array<number> = []
  let comings = 0
  let isOver = false
  let client: TunnelClient
  const come = (): void => {
    const all = origins()
    client = new TunnelClient(all[comings++ % all.length]!, destination, {
      key,
      reply: ({ request }) => {
        asked.push(JSON.parse(request.body).n)
        return { status: 200 }
      }
    })
    client.socket.on("close", () => {
      if (!isOver) setTimeout(come, 200)
    })
  }
  come()
  return {
    asked,
    comings: () => comings,
    greeted: () => client.greeted(),
    end: () => {
      isOver = true
      client.drop()
    }
  }
}

it("A tunnel loses no event while runners and the edge that holds it are killed", async ({
  onTestFinished,
  running
}) => {
  const gateways = await running({ edge: "edge", other: "edge", one: "runner", two: "runner" })
  const source = await gateways.api("other", "POST", "/sources", { name: "sender" })
  const destination = await gateways.api("other", "POST", "/destinations", { name: "laptop", type: "CLI" })
  await gateways.api("other", "POST", "/connections", {
    name: "to the laptop",
    source_id: source.id,
    destination_id: destination.id
  })
  const listener = listening(() => [gateways.process("edge").origin, gateways.process("other").origin], destination.id)
  onTestFinished(() => listener.end())
  await listener.greeted()

  const send = async (from: number, to: number): Promise<void> => {
    for (let n = from; n < to; n += 20) {
      const batch = Array.from({ length: Math.min(20, to - n) }, (_, i) =>
        gateways.call("other", "POST", `/e/${source.id}`, { body: JSON.stringify({ n: n + i }) })
      )
      for (const { status } of await Promise.all(batch)) expect(status).toBe(200)
    }
  }
  const kills = [
    ["one", 0],
    ["edge", 400],
    ["two", 800],
    ["one", 1_200]
  ] as const
  for (const [name, from] of kills) {
    const kill = async (): Promise<void> => {
      await eventually("it is in the middle of it", () => (listener.asked.length > from / 2 ? true : null))
      await gateways.process(name).end("SIGKILL")
    }
    await Promise.all([send(from, from + 400), kill()])
    await gateways.process(name).start()
  }
  await send(1_600, count)

  await eventually("all events are delivered", async () => {
    const [row] = (await gateways.query("select count(*)::int as n from events where state = 'SUCCESSFUL'")) as [Body]
    return row.n === count ? true : null
  })
  expect(new Set(listener.asked).size).toBe(count)
  expect(listener.comings(), "only the edge that was killed broke the connection").toBeGreaterThan(1)
  const [{ failed }] = (await gateways.query(
    "select count(*)::int as failed from attempts where status <> 'SUCCESSFUL'"
  )) as [Body]
  expect(failed, "what was not answered is sent again, and is no failure").toBe(0)
})
