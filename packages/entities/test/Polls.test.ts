import { describe, expect, it } from "vitest"
import { SharedBytes } from "@tidegate/runtime/SharedBytes"
import { maxLeased, maxPolls, Polls } from "../src/Destination/pull/Polls.ts"
import type { Pulled } from "../src/Destination/pull/PullProtocol.ts"

/** The calls of a destination's consumers: who gets which messages, and what becomes of those that are not settled. */

interface Timer {
  readonly at: number
  readonly call: () => void
}

/** The calls of one destination, with a clock that a test moves. */
class World {
  now = 1_790_000_000_000
  isOurs = true
  readonly timers = new Set<Timer>()
  readonly ends: Array<string> = []
  readonly handedOut: Array<string> = []
  readonly presence: Array<boolean> = []
  readonly shared: SharedBytes
  readonly polls: Polls

  constructor(leases = 10_000) {
    this.shared = new SharedBytes(leases)
    this.polls = new Polls({
      now: () => this.now,
      after: (ms, then) => {
        const timer = { at: this.now + ms, call: then }
        this.timers.add(timer)
        return () => void this.timers.delete(timer)
      },
      asked: () => {},
      changed: () => void this.presence.push(this.polls.areThere),
      mayDeliver: () => this.isOurs,
      leases: this.shared.share()
    })
  }

  pass(ms: number): void {
    const until = this.now + ms
    for (;;) {
      const [next] = [...this.timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      this.timers.delete(next)
      this.now = next.at
      next.call()
    }
    this.now = until
  }

  /** Asks, and what it is answered: null until it is. */
  ask(max = 10, wait_ms = 20_000, room = 1_000): { pulled: Pulled | null; readonly withdraw: () => void } {
    const asked = { pulled: null as Pulled | null, withdraw: () => {} }
    asked.withdraw = this.polls.pull({ max, room, wait_ms }, (pulled) => (asked.pulled = pulled))
    return asked
  }

  offer(receipt: string, bytes = 1): void {
    this.polls.offer({
      message: { receipt, head: "{}", body: new Uint8Array(bytes) },
      leaseMs: 60_000,
      handedOut: () => void this.handedOut.push(receipt),
      done: ({ kind }) => void this.ends.push(`${receipt} ${kind}`)
    })
  }

  /** Settles, and what it is answered: null until all attempts are recorded. */
  settle(receipts: ReadonlyArray<string>, refusal: string | null = null): { settled: ReadonlyArray<string> | null } {
    const asked: { settled: ReadonlyArray<string> | null } = { settled: null }
    this.polls.settle({ receipts, refusal }, (settled) => (asked.settled = settled))
    return asked
  }
}

const receipts = (pulled: Pulled | null) => pulled?.messages.map(({ receipt }) => receipt)
const flushed = () => new Promise<void>((resolve) => queueMicrotask(resolve))

describe("Polls", () => {
  it("Calls get messages in the order in which they wait, and all that begin together in one answer", async () => {
    const world = new World()
    const first = world.ask(2)
    const second = world.ask()
    expect(world.polls.demand).toBe(12)
    for (const receipt of ["a", "b", "c", "d"]) world.offer(receipt)
    expect(receipts(first.pulled)).toEqual(["a", "b"])
    expect(second.pulled).toBeNull()
    await flushed()
    expect(receipts(second.pulled)).toEqual(["c", "d"])
    expect(second.pulled?.leased_until).toBe(world.now + 60_000)
    expect(world.handedOut).toEqual(["a", "b", "c", "d"])
    expect(world.polls.demand).toBe(0)
  })

  it("An answer has at most so many bytes, or one larger message", async () => {
    const world = new World()
    const [first, second, third] = [world.ask(), world.ask(), world.ask()]
    world.offer("a", 600)
    world.offer("b", 600)
    world.offer("c", 5_000)
    expect(receipts(first.pulled)).toEqual(["a"])
    expect(receipts(second.pulled)).toEqual(["b"])
    await flushed()
    expect(receipts(third.pulled)).toEqual(["c"])
    world.offer("d")
    expect(world.ends).toEqual(["d returned"])
  })

  it("A call without messages is answered after its wait, and the consumer counts as there for a while", () => {
    const world = new World()
    const asked = world.ask(10, 3_000)
    world.pass(2_999)
    expect(asked.pulled).toBeNull()
    world.pass(1)
    expect(asked.pulled).toEqual({ messages: [], leased_until: world.now, refused: null })
    world.pass(9_999)
    expect(world.presence).toEqual([true])
    world.pass(1)
    expect(world.presence).toEqual([true, false])
    world.ask()
    world.pass(19_999)
    expect(world.presence).toEqual([true, false, true])
  })

  it("A lease that ends returns its message, and a late settlement changes nothing", async () => {
    const world = new World()
    world.ask()
    world.offer("a")
    await flushed()
    world.pass(59_999)
    expect(world.ends).toEqual([])
    world.pass(1)
    expect(world.ends).toEqual(["a expired"])
    expect(world.settle(["a"]).settled).toEqual([])
    expect(world.shared.free).toBe(10_000)
  })

  it("A settlement is answered once it is recorded, and the same way when it is repeated", async () => {
    const world = new World()
    world.ask()
    world.offer("a")
    world.offer("b")
    await flushed()
    const first = world.settle(["a", "a", "nobody's"])
    const second = world.settle(["a"])
    const other = world.settle(["a"], "no")
    expect([first.settled, second.settled, other.settled]).toEqual([null, null, []])
    world.polls.over("a", true)
    expect([first.settled, second.settled]).toEqual([["a"], ["a"]])
    expect(world.settle(["a"]).settled).toEqual(["a"])
    expect(world.settle(["a"], "no").settled).toEqual([])
    const refused = world.settle(["b"], "no")
    expect(world.ends).toEqual(["a acknowledged", "b refused"])
    // Another owner has recorded this attempt.
    world.polls.over("b", false)
    expect(refused.settled).toEqual([])
    world.pass(60_000)
    expect(world.ends).toHaveLength(2)
  })

  it("A call that is withdrawn leaves nothing behind, and what was gathered for it is put back", async () => {
    const world = new World()
    const asked = world.ask()
    world.offer("a")
    world.offer("b")
    asked.withdraw()
    await flushed()
    expect(world.ends).toEqual(["b returned", "a returned"])
    expect(world.handedOut).toEqual([])
    expect(world.polls.demand).toBe(0)
    asked.withdraw()
    world.pass(20_000)
    expect(asked.pulled).toBeNull()
    expect(world.timers.size).toBe(0)
  })

  it("Nothing is handed out while another process owns the shard", async () => {
    const world = new World()
    const asked = world.ask()
    world.offer("a")
    world.isOurs = false
    await flushed()
    expect(receipts(asked.pulled)).toEqual([])
    expect(world.ends).toEqual(["a returned"])
  })

  it("Calls and leases of a destination are limited, and leases of a process too", async () => {
    const world = new World()
    for (let calls = 0; calls < maxPolls; calls++) world.ask(100)
    expect(world.ask().pulled?.refused).toBe("busy")
    expect(world.polls.demand).toBe(maxLeased)
    for (let n = 0; n < 150; n++) world.offer(String(n))
    await flushed()
    expect(world.polls.demand).toBe(maxLeased - 150)

    const small = new World(4)
    small.ask(100)
    expect(small.polls.demand).toBe(1)
    for (const receipt of ["a", "b", "c", "d"]) small.offer(receipt)
    await flushed()
    small.ask(100)
    expect(small.polls.demand).toBe(0)
  })

  it("When a destination is no longer fetched, waiting calls end, and leases go on", async () => {
    const world = new World()
    world.ask(1)
    world.offer("a")
    const waiting = world.ask()
    world.polls.configure(false)
    expect(waiting.pulled?.refused).toBe("gone")
    expect(world.ask().pulled?.refused).toBe("gone")
    world.settle(["a"])
    expect(world.ends).toEqual(["a acknowledged"])
  })

  it("When the actor ends, calls are answered and leases are left to the next owner", () => {
    const world = new World()
    world.ask(1)
    world.offer("a")
    const waiting = world.ask()
    world.polls.stop()
    expect(waiting.pulled).toEqual({ messages: [], leased_until: 0, refused: null })
    expect(world.ends).toEqual(["a abandoned"])
    expect(world.shared.free).toBe(10_000)
    expect(world.timers.size).toBe(0)
  })
})
