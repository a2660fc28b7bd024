import type { RunnerAddress } from "effect/cluster"
import { GatheringTime } from "@tidegate/runtime/GatheringTime"
import { Batch } from "./Batch.ts"
import { type DeliveryItem, weightOf } from "../Destination/queue/DeliveryItem.ts"

/** Where a destination's actor lives: in this process, at another runner, or unknown. */
export type Location = "here" | RunnerAddress.RunnerAddress | undefined

/** Events for destinations, by their ids. */
export type Batches = ReadonlyMap<string, Batch<DeliveryItem>>

/** Bytes that may wait for the next message to a runner. For further events only their destinations are named. */
const maxWaitingBytes = 8 * 1024 * 1024
/** Destinations that may have something waiting. Further ones are dropped: the poller finds their events. */
const maxWaiting = 512

export interface OutgoingOptions {
  /** Gives a batch to a running actor of this process. Returns whether the actor has taken it. */
  readonly give: (destinationId: string, batch: Batch<DeliveryItem>) => boolean
  readonly locationOf: (destinationId: string) => Location
  /** Sends to a location the batches of its destinations. `after` is called when the message was taken or has failed. */
  readonly send: (location: Location, batches: Batches, after: () => void) => void
}

/** Events of one destination. */
interface Events {
  readonly items: Array<DeliveryItem>
  /** There are more events than the list has. */
  more: boolean
  bytes: number
}

/** Another runner. */
class Runner {
  waiting = new Map<string, Events>()
  /** Whether a message is under way to it, or about to be sent. */
  isBusy = false
  readonly gathering = new GatheringTime()
}

/**
 * Events on their way to their destinations' actors. Those of one iteration of the event loop go out as one message per runner.
 * Only one message is under way to a runner at a time: events that arrive meanwhile are gathered for the next one, so messages
 * grow with the load.
 */
export class Outgoing {
  readonly #options: OutgoingOptions
  #added = new Map<string, Events>()
  readonly #runners = new WeakMap<RunnerAddress.RunnerAddress, Runner>()
  readonly #unknown = new Runner()
  /** Bytes that wait, over all runners. */
  #waitingBytes = 0
  #waiting = 0

  constructor(options: OutgoingOptions) {
    this.#options = options
  }

  /** Adds an event; the next `flush` sends it. */
  add(destinationId: string, item: DeliveryItem): void {
    const bytes = weightOf(item)
    const events = this.#added.get(destinationId)
    if (events === undefined) this.#added.set(destinationId, { items: [item], more: false, bytes })
    else {
      events.items.push(item)
      events.bytes += bytes
    }
  }

  flush(): void {
    const added = this.#added
    this.#added = new Map()
    this.#route(added)
  }

  #route(added: ReadonlyMap<string, Events>): void {
    const { give, locationOf, send } = this.#options
    const here = new Map<string, Batch<DeliveryItem>>()
    const free = new Map<Exclude<Location, "here">, Map<string, Batch<DeliveryItem>>>()
    for (const [id, events] of added) {
      const batch = new Batch(events.items, events.more)
      if (give(id, batch)) continue
      const location = locationOf(id)
      if (location === "here") {
        here.set(id, batch)
        continue
      }
      const runner = this.#runnerAt(location)
      if (runner.isBusy) {
        this.#keep(runner, id, events)
        continue
      }
      const batches = free.get(location)
      if (batches === undefined) free.set(location, new Map([[id, batch]]))
      else batches.set(id, batch)
    }
    if (here.size > 0) send("here", here, () => {})
    for (const [location, batches] of free) this.#send(location, batches)
  }

  #runnerAt(location: Exclude<Location, "here">): Runner {
    if (location === undefined) return this.#unknown
    let runner = this.#runners.get(location)
    if (runner === undefined) this.#runners.set(location, (runner = new Runner()))
    return runner
  }

  #send(location: Exclude<Location, "here">, batches: Batches): void {
    const runner = this.#runnerAt(location)
    const { gathering } = runner
    runner.isBusy = true
    const startedAt = performance.now()
    this.#options.send(location, batches, () => {
      const now = performance.now()
      gathering.took(now - startedAt, now)
      if (gathering.ms > 0) setTimeout(() => this.#free(runner), gathering.ms)
      else this.#free(runner)
    })
  }

  #free(runner: Runner): void {
    const { waiting } = runner
    runner.isBusy = false
    runner.waiting = new Map()
    for (const { bytes } of waiting.values()) this.#waitingBytes -= bytes
    this.#waiting -= waiting.size
    // Routed again, because a destination may have moved meanwhile.
    this.#route(waiting)
  }

  #keep(runner: Runner, id: string, { bytes, items, more }: Events): void {
    const fits = this.#waitingBytes + bytes <= maxWaitingBytes
    let events = runner.waiting.get(id)
    if (events === undefined) {
      if (!fits && this.#waiting >= maxWaiting) return
      events = { items: [], more: false, bytes: 0 }
      runner.waiting.set(id, events)
      this.#waiting++
    }
    if (!fits) {
      events.more = true
      return
    }
    for (const item of items) events.items.push(item)
    events.more ||= more
    events.bytes += bytes
    this.#waitingBytes += bytes
  }
}
