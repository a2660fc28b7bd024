import type { Pacer } from "@tidegate/coordination/limits/Pacer"
import type { StepPermits } from "../../limits/RatePermits.ts"
import type { DeliveryItem } from "./DeliveryItem.ts"
import type { ConnectionQueueRules, ConnectionQueueState, Consumers, TargetAvailability } from "./QueueHost.ts"

/** The settings of a destination and its connections, as a queue needs them. */
export interface QueueConfiguration {
  readonly state: ConnectionQueueState
  readonly cancelBefore: number
  readonly connections: ReadonlyMap<string, ConnectionQueueRules>
  readonly pacer: Pacer | null
  /** The rate permits for calls of workflow steps, which have no events that would show their starts. */
  readonly stepPermits?: StepPermits | null
  /** The largest number of concurrent deliveries; null: found out by the concurrency limit. */
  readonly maxConcurrency: number | null
  /** For a target that may be unavailable. */
  readonly targetAvailability?: TargetAvailability | null
  /** For a destination whose events are fetched. */
  readonly consumers?: Consumers | null
}

/** Which events may wait and start, by the settings of the destination and of their connections. */
export class QueueSettings {
  connections: ReadonlyMap<string, ConnectionQueueRules> = new Map()
  #state: ConnectionQueueState = "open"
  #cancelBefore = 0
  #targetAvailability: TargetAvailability | null = null
  #consumers: Consumers | null = null

  apply({ cancelBefore, connections, consumers, state, targetAvailability }: QueueConfiguration): void {
    this.#state = state
    this.#cancelBefore = cancelBefore
    this.connections = connections
    this.#targetAvailability = targetAvailability ?? null
    this.#consumers = consumers ?? null
  }

  /** Whether the destination sends anything now. */
  get isOpen(): boolean {
    return this.#state === "open"
  }

  stateOf(connectionId: string): ConnectionQueueState {
    if (this.#state !== "open") return this.#state
    const state = this.connections.get(connectionId)?.state ?? "paused"
    return state === "open" && this.#consumers?.areThere === false ? "paused" : state
  }

  isOpenFor(connectionId: string): boolean {
    return this.stateOf(connectionId) === "open"
  }

  isCancelled({ connectionId, createdAt }: DeliveryItem): boolean {
    return createdAt <= Math.max(this.#cancelBefore, this.connections.get(connectionId)?.cancelBefore ?? 0)
  }

  /** Since when the target is unavailable (Unix ms); null: it is available. */
  get awaySince(): number | null {
    return this.#targetAvailability?.awaySince ?? null
  }

  /** How long a due event waits for its target (ms). */
  get patience(): number {
    return this.awaySince === null ? 0 : this.#targetAvailability!.patience
  }
}
