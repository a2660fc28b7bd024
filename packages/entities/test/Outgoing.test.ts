import { RunnerAddress } from "effect/cluster"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { type DeliveryItem, newItem } from "../src/Destination/queue/DeliveryItem.ts"
import { Outgoing, type Location } from "../src/dispatch/Outgoing.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "performance"] }))
afterEach(() => void vi.useRealTimers())

const other = RunnerAddress.make("127.0.0.1", 1)
const third = RunnerAddress.make("127.0.0.1", 2)

const itemOf = (id: string, bytes = 1): DeliveryItem =>
  newItem({ id, connectionId: "web_1", dueAt: 2, orderingKey: null }, { teamId: "tm_1", sourceId: "src_1" }, 1, {
    requestId: "req_1",
    dataId: null,
    method: "POST",
    path: "/",
    query: "",
    headers: {},
    presented: null,
    body: Buffer.alloc(bytes),
    verified: true,
    originalIp: null
  })

/** Destinations that begin with the name of their place, and messages that are taken when the test says so. */
const world = () => {
  const sent: Array<{ readonly place: Location; readonly to: Record<string, ReadonlyArray<string>> }> = []
  const more: Array<string> = []
  const taken: Array<() => void> = []
  const places: Record<string, Location> = { here: "here", other, third }
  const outgoing = new Outgoing({
    give: (id) => id.startsWith("resident"),
    locationOf: (id) => places[id.split("_")[0]!],
    send: (place, batches, after) => {
      const to: Record<string, ReadonlyArray<string>> = {}
      for (const [id, batch] of batches) {
        to[id] = batch.items.map(({ eventId }) => eventId)
        if (batch.more) more.push(id)
      }
      sent.push({ place, to })
      taken.push(after)
    }
  })
  const tell = (id: string, ...items: ReadonlyArray<DeliveryItem>): void => {
    for (const item of items) outgoing.add(id, item)
    outgoing.flush()
  }
  return { outgoing, sent, more, taken, tell, places }
}

describe("Events on their way to destinations", () => {
  it("Events are sent as one message per runner, and local actors get theirs directly", () => {
    const { outgoing, sent } = world()
    for (const id of ["resident_1", "here_1", "other_1", "other_2", "third_1"]) outgoing.add(id, itemOf(`of ${id}`))
    outgoing.add("other_1", itemOf("another"))
    outgoing.flush()
    expect(sent).toEqual([
      { place: "here", to: { here_1: ["of here_1"] } },
      { place: other, to: { other_1: ["of other_1", "another"], other_2: ["of other_2"] } },
      { place: third, to: { third_1: ["of third_1"] } }
    ])
  })

  it("Events gather for the next message while one to their runner is in progress", () => {
    const { sent, taken, tell } = world()
    tell("other_1", itemOf("a"))
    tell("other_1", itemOf("b"))
    tell("other_2", itemOf("c"))
    tell("other_1", itemOf("d"), itemOf("e"))
    tell("third_1", itemOf("f"))
    expect(sent.map(({ place }) => place)).toEqual([other, third])
    taken[0]!()
    expect(sent.at(-1)).toEqual({ place: other, to: { other_1: ["b", "d", "e"], other_2: ["c"] } })
    taken[2]!()
    expect(sent.length).toBe(3)
    tell("other_1", itemOf("g"))
    expect(sent.at(-1)).toEqual({ place: other, to: { other_1: ["g"] } })
  })

  it("Events gather longer while messages take several times as long as the fastest one", () => {
    const { sent, taken, tell } = world()
    for (const ms of [1, 10, 10, 10, 10]) {
      tell("other_1", itemOf("before"))
      vi.advanceTimersByTime(ms)
      taken.at(-1)!()
    }
    expect(sent.length).toBe(5)
    tell("other_1", itemOf("a"))
    vi.advanceTimersByTime(9)
    tell("other_1", itemOf("b"))
    expect(sent.length).toBe(5)
    vi.advanceTimersByTime(1)
    expect(sent.at(-1)).toEqual({ place: other, to: { other_1: ["a", "b"] } })
  })

  it("Events go to the runner to which their destination has moved", () => {
    const { places, sent, taken, tell } = world()
    tell("other_1", itemOf("a"))
    tell("other_1", itemOf("b"))
    places["other"] = third
    taken[0]!()
    expect(sent.at(-1)).toEqual({ place: third, to: { other_1: ["b"] } })
  })

  it("Events beyond the limit are only announced, and accepted again after the message is sent", () => {
    const { more, sent, taken, tell } = world()
    tell("other_1", itemOf("a"))
    tell("other_1", itemOf("b", 5 * 1024 * 1024))
    tell("other_2", itemOf("c", 5 * 1024 * 1024))
    taken[0]!()
    expect(sent.at(-1)).toEqual({ place: other, to: { other_1: ["b"], other_2: [] } })
    expect(more).toEqual(["other_2"])
    tell("other_2", itemOf("d", 5 * 1024 * 1024))
    taken[1]!()
    expect(sent.at(-1)).toEqual({ place: other, to: { other_2: ["d"] } })
    expect(more).toEqual(["other_2"])
  })

  it("The number of announced destinations beyond the limit is bounded", () => {
    const { sent, taken, tell } = world()
    tell("other_1", itemOf("a"))
    for (let index = 0; index < 1_000; index++) tell(`other_${index}`, itemOf("b", 1024 * 1024))
    taken[0]!()
    expect(Object.keys(sent.at(-1)!.to).length).toBe(512)
  })
})
