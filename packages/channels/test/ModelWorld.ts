import { Effect } from "effect"
import type { Random } from "../../entities/test/Random.ts"
import type { Adapter } from "../src/Adapter.ts"
import type { Done, Failure } from "../src/machine/Channel.ts"
import type { State } from "../src/machine/State.ts"
import type { SourceProvider, Trigger } from "../src/SourceProvider.ts"
import { type Calling, ChannelWorld, type Faults, failedStep, refusals } from "./ChannelWorld.ts"

/** How a provider notifies. */
export interface Behaviour {
  readonly name: string
  readonly renews: boolean
  /** Null: subscriptions never expire. */
  readonly lifeMs: number | null
  readonly handshake: boolean
  /** The notification contains the item; otherwise a poll finds it. */
  readonly fat: boolean
  /** A repeated request to create the same subscription is refused. */
  readonly refusesRepetition: boolean
}

interface Hook {
  readonly id: string
  verified: boolean
  expiresAt: number | null
}

const gone: Failure = {
  code: "PROVIDER_NOT_FOUND",
  message: "410",
  permanent: true,
  status: 410,
  retryAfterMs: null
}
const unanswered: Failure = {
  code: "PROVIDER_UNREACHABLE",
  message: "no answer",
  permanent: false,
  status: null,
  retryAfterMs: null
}
const unauthorized: Failure = {
  code: "ACCOUNT_UNAUTHORIZED",
  message: "401",
  permanent: true,
  status: 401,
  retryAfterMs: null
}

const unused = () => Effect.die("the world calls its own provider")

const definitionOf = ({ renews }: Behaviour) => {
  const adapter: Adapter = {
    key: "model",
    targets: ({ targets }) => Array.from({ length: Number(targets) }, (_, index) => ({ key: `target-${index}` })),
    provision: unused,
    renew: renews ? unused : null,
    stop: unused,
    receive: () => {
      throw new Error("unused")
    }
  }
  const trigger = { key: "item.changed", adapter, poller: { key: "model", poll: unused } } as unknown as Trigger
  const provider = { key: "model", account: {} } as SourceProvider
  return { key: "item.changed", mode: "instant" as const, provider, trigger }
}

/** A channel of a provider that is a model: it keeps subscriptions and a list of items, and calls back. */
export class ModelWorld extends ChannelWorld {
  readonly #behaviour: Behaviour
  readonly #hooks = new Map<string, Hook>()
  /** What the provider lists, oldest first. */
  readonly #items: Array<{ readonly id: string; readonly at: number }> = []
  /** From which item on the source has to make requests: since its first poll. Other inputs begin anew. */
  #owedFrom: number | null = null

  constructor(random: Random, behaviour: Behaviour, faults: Faults, autoFallback: boolean, startAt: number) {
    const definition = definitionOf(behaviour)
    super({ random, faults, autoFallback, startAt, definition, inputs: { targets: 1 }, intervalMinutes: 240 })
    this.#behaviour = behaviour
  }

  protected override begun({ cursor, primed }: State): void {
    if (!primed) this.#owedFrom = null
    else this.#owedFrom ??= Number(cursor)
  }

  // What happens at the provider.

  override item(): void {
    const item = { id: `item-${this.#items.length}`, at: this.now }
    this.#items.push(item)
    for (const hook of this.#hooks.values()) {
      if (!this.#lives(hook) || !hook.verified) continue
      if (this.random.chance(this.faults.unheard)) continue
      const times = this.random.chance(this.faults.repeated) ? 2 : 1
      for (let time = 0; time < times; time++) {
        const ms = this.random.chance(this.faults.delayed) ? this.random.between(1, 600_000) : 500
        this.after(ms, () => this.#notify(hook.id, item.id))
      }
    }
  }

  #lives({ expiresAt }: Hook): boolean {
    return expiresAt === null || expiresAt > this.now
  }

  /** Ends a subscription, and says so or not. */
  revoke(isSaid: boolean): void {
    const hook = this.random.pick([...this.#hooks.values(), undefined])
    if (hook === undefined) return
    this.#hooks.delete(hook.id)
    const row = this.rows.get(hook.id)
    if (isSaid && row !== undefined && row.forgotten_at === null) this.revoked(row)
  }

  // What it sends.

  #notify(id: string, item: string): void {
    const row = this.called(id)
    if (row === null) return
    this.notified(row, this.#behaviour.fat ? [item] : [])
    if (!this.#behaviour.fat) this.touch({ dirty_at: this.now })
  }

  #handshake(id: string): void {
    const row = this.called(id)
    const hook = this.#hooks.get(id)
    if (row === null || hook === undefined) return
    hook.verified = true
    hook.expiresAt = this.#lease()
    this.verified(row, hook.expiresAt)
  }

  #lease(): number | null {
    return this.#behaviour.lifeMs === null ? null : this.now + this.#behaviour.lifeMs
  }

  // What it answers.

  protected override perform(step: Calling): Done {
    const done = this.#carryOut(step)
    return this.random.chance(this.faults.lost) ? failedStep(step, unanswered) : done
  }

  #carryOut(step: Calling): Done {
    if (this.channel.account?.state !== "active") return failedStep(step, unauthorized)
    if (this.random.chance(this.faults.refused)) return failedStep(step, this.random.pick(refusals))
    switch (step.do) {
      case "poll": {
        const from = step.cursor === null ? this.#items.length : Number(step.cursor)
        const found = this.#items.slice(from, from + 3)
        const next = from + found.length
        const ids = found.map(({ id }) => id)
        return {
          did: "poll",
          step,
          items: found.map(({ at }) => ({ occurredAt: at })),
          stored: this.found(step, ids),
          cursor: next,
          more: next < this.#items.length,
          cursorReset: false
        }
      }
      case "provision": {
        if (this.#hooks.has(step.id) && this.#behaviour.refusesRepetition) return failedStep(step, refusals[2]!)
        const { handshake } = this.#behaviour
        const expiresAt = handshake ? null : this.#lease()
        this.#hooks.set(step.id, { id: step.id, verified: !handshake, expiresAt })
        if (handshake) this.#askBack(step.id)
        const agreed = { externalChannelId: `c-${step.id}`, externalResourceId: null, expiresAt }
        return { did: "provision", id: step.id, agreed: { ...agreed, state: handshake ? "verifying" : "active" } }
      }
      case "renew": {
        const hook = this.#hooks.get(step.id)
        if (hook === undefined || !this.#lives(hook)) return failedStep(step, gone)
        const { handshake } = this.#behaviour
        if (handshake) this.#askBack(step.id)
        else hook.expiresAt = this.#lease()
        const agreed = {
          externalChannelId: null,
          externalResourceId: null,
          expiresAt: handshake ? null : hook.expiresAt
        }
        const { expires_at } = this.rows.get(step.id)!
        return {
          did: "renew",
          id: step.id,
          expires_at,
          agreed: { ...agreed, state: handshake ? "verifying" : "active" }
        }
      }
      default:
        return this.#hooks.delete(step.id) ? { did: "stop", id: step.id } : failedStep(step, gone)
    }
  }

  #askBack(id: string): void {
    if (this.random.chance(this.faults.unheard)) return
    this.after(this.random.chance(this.faults.delayed) ? 90_000 : 2_000, () => this.#handshake(id))
  }

  // What is checked at the end.

  /** Items that the provider lists, and that have not arrived. */
  get missing(): ReadonlyArray<string> {
    return this.#items
      .slice(this.#owedFrom ?? this.#items.length)
      .flatMap(({ id }) => (this.stored.has(id) ? [] : [id]))
  }

  /** Living subscriptions at the provider that the gateway does not know as active. */
  get leftBehind(): ReadonlyArray<string> {
    const known = new Set(this.active.map(({ id }) => id))
    return [...this.#hooks.values()].flatMap((hook) => (this.#lives(hook) && !known.has(hook.id) ? [hook.id] : []))
  }
}
