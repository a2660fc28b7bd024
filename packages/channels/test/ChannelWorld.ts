import { prefixes, seededId } from "@tidegate/model/Ids"
import type { Schema } from "effect"
import type { Random } from "../../entities/test/Random.ts"
import type { Changes, Channel, ChannelSubscription, Done, Failure, Step } from "../src/machine/Channel.ts"
import type { EventKind } from "../src/machine/Facts.ts"
import { advance, isStillOf } from "../src/machine/Outcome.ts"
import { initialState, type State } from "../src/machine/State.ts"
import { forgottenAfterMs, minuteMs } from "../src/machine/Times.ts"
import type { Definition } from "../src/SourceProviders.ts"

/*
 * A channel and its rows in memory, on a clock of their own. The machine decides; the provider does what it is told, or what its
 * faults are. What the machine must never do fails at once; what it owes is checked at the end. `ModelWorld` has a provider that is a
 * model, `ProviderWorld` the adapters and the fake provider.
 */

/** How likely faults are: each call or message draws for itself. */
export interface Faults {
  /** A request to the provider is refused. */
  readonly refused: number
  /** The answer to a request is lost, but the provider has done what was asked. */
  readonly lost: number
  /** The process ends between a call and its commit. */
  readonly crash: number
  /** A message of the provider is lost. */
  readonly unheard: number
  /** A message comes twice. */
  readonly repeated: number
  /** A message or an answer comes late. */
  readonly delayed: number
}

export const calm: Faults = { refused: 0, lost: 0, crash: 0, unheard: 0, repeated: 0, delayed: 0 }

/** How the provider refuses. None of it says that a subscription is gone. */
export const refusals: ReadonlyArray<Failure> = [
  { code: "PROVIDER_UNAVAILABLE", message: "500", permanent: false, status: 500, retryAfterMs: null },
  { code: "PROVIDER_RATE_LIMITED", message: "429", permanent: false, status: 429, retryAfterMs: 3 * minuteMs },
  { code: "PROVIDER_REFUSED", message: "400", permanent: false, status: 400, retryAfterMs: null },
  { code: "PROVIDER_FORBIDDEN", message: "403", permanent: true, status: 403, retryAfterMs: null }
]

/** A step that the provider is called for. */
export type Calling = Exclude<Step, { readonly do: "wait" | "deliver" | "removed" }>

export const failedStep = (step: Calling, error: Failure): Done =>
  step.do === "poll" ? { did: "poll failed", step, error } : { did: "failed", id: step.id, what: step.do, error }

/** What a world begins with. */
export interface Beginning {
  readonly random: Random
  readonly faults: Faults
  readonly autoFallback: boolean
  readonly startAt: number
  readonly definition: Definition
  readonly inputs: Schema.JsonObject
  /** The schedule of polling. */
  readonly intervalMinutes: number
}

interface Happening {
  readonly at: number
  readonly run: () => void
}

interface Happened {
  readonly at: number
  readonly kind: EventKind
}

/** The longest time (ms of a working gateway) without a subscription, polling or an alert. */
const unalertedMs = 20 * minuteMs

const living: ReadonlySet<string> = new Set(["requested", "verifying", "active", "superseded"])

export abstract class ChannelWorld {
  protected readonly random: Random
  readonly #happenings: Array<Happening> = []
  protected readonly rows = new Map<string, ChannelSubscription>()
  /** Rows of subscriptions that the machine has forgotten. */
  protected readonly ended = new Map<string, ChannelSubscription>()
  /** The items that have become requests. */
  readonly stored = new Set<string>()
  readonly #alerts = new Set<string>()
  /** What was written about the channel, in order. */
  readonly events: Array<Happened> = []
  /** The times at which polls were made, and why. */
  readonly polls: Array<{ readonly at: number; readonly reason: string; readonly quiet: boolean }> = []
  faults: Faults
  /** The right time, which is the provider's. */
  now: number
  /** How far the gateway's clock is behind (ms). */
  behind = 0
  channel: Channel
  steps = 0
  protected isDown = false
  #count = 0
  #dueAt: number | null
  #uncoveredMs = 0

  constructor({ autoFallback, definition, faults, inputs, intervalMinutes, random, startAt }: Beginning) {
    this.random = random
    this.faults = faults
    this.now = startAt
    this.#dueAt = startAt
    const needsAccount = definition.provider.account !== null
    this.channel = {
      source_id: "src_1",
      team_id: "tm_1",
      created_at: startAt,
      disabled: false,
      deleted: false,
      settings: {
        provider_key: definition.provider.key,
        definition_key: definition.key,
        provider_account_id: needsAccount ? "pac_1" : null,
        inputs,
        schedule: { interval_minutes: intervalMinutes },
        auto_fallback: autoFallback,
        max_failures: 3,
        restore_after_minutes: 30
      },
      definition,
      account: needsAccount ? { id: "pac_1", state: "active" } : null,
      silence: { enabled: true, hours: 24 },
      state: initialState,
      dirty_at: null,
      run_id: null,
      retry_requested_at: null,
      subscriptions: [],
      alerts: [],
      waiting: false
    }
  }

  /** Makes a step at the provider. */
  protected abstract perform(step: Calling): Done | Promise<Done>
  /** Something happens at the provider. */
  abstract item(): void
  /** The machine has begun a new list, or goes on with the one of before. */
  protected abstract begun(state: State): void

  /** The time by the gateway's clock. */
  get gatewayNow(): number {
    return this.now - this.behind
  }

  get targets(): ReadonlyArray<string> {
    const { definition, settings } = this.channel
    return (definition?.trigger.adapter?.targets(settings!.inputs) ?? []).map(({ key }) => key)
  }

  get alerts(): ReadonlyArray<string> {
    return [...this.#alerts]
  }

  /** The kinds of what was written from a time on. */
  kindsFrom(at: number): ReadonlyArray<EventKind> {
    return this.events.flatMap((event) => (event.at >= at ? [event.kind] : []))
  }

  /** Something happens after this time (ms). */
  after(ms: number, run: () => void): void {
    const at = this.now + ms
    const index = this.#happenings.findLastIndex((one) => one.at <= at)
    this.#happenings.splice(index + 1, 0, { at, run })
  }

  /** The rows of the channel change, as a callback or a route changes them. */
  touch(part: Partial<Channel>): void {
    this.channel = { ...this.channel, ...part }
    this.#dueAt = this.gatewayNow
  }

  // What arrives at callbacks, as the ingress stores it.

  /** The row that a callback is for; null: it has ended. */
  protected called(id: string): ChannelSubscription | null {
    const row = this.rows.get(id)
    return row !== undefined && living.has(row.state) && row.forgotten_at === null ? row : null
  }

  protected write(row: ChannelSubscription, part: Partial<ChannelSubscription>): void {
    this.rows.set(row.id, { ...row, ...part })
  }

  protected notified(row: ChannelSubscription, items: ReadonlyArray<string>): void {
    this.write(row, { last_notification_at: this.gatewayNow })
    for (const item of items) this.store(item)
    this.touch({})
  }

  protected verified(row: ChannelSubscription, expiresAt: number | null): void {
    if (row.state !== "superseded") {
      this.write(row, {
        state: "active",
        verified_at: row.verified_at ?? this.gatewayNow,
        expires_at: expiresAt ?? row.expires_at
      })
    }
    this.touch({})
  }

  protected revoked(row: ChannelSubscription): void {
    this.write(row, {
      state: "revoked",
      stop_at: null,
      stopped_at: this.gatewayNow,
      forgotten_at: this.gatewayNow + forgottenAfterMs
    })
    this.touch({})
  }

  /** Returns whether the item is new. */
  protected store(item: string): boolean {
    const isNew = !this.stored.has(item)
    this.stored.add(item)
    return isNew
  }

  /** What a poll has found. Items of other settings are not stored. */
  protected found(step: Calling & { readonly do: "poll" }, items: ReadonlyArray<string>): number {
    return isStillOf(this.channel, step) ? items.filter((item) => this.store(item)).length : 0
  }

  // The actor.

  #commit(done: Done | null): Step {
    const now = this.gatewayNow
    const given = {
      now,
      subscriptionId: seededId(prefixes.channelSubscription, now, `s${this.#count++}`),
      runId: seededId(prefixes.sourceRun, now, `r${this.#count}`)
    }
    const { changes, next } = advance(this.#loaded(), done, given)
    this.#write(changes)
    this.#dueAt = next.do === "wait" ? next.until : now
    return next
  }

  #loaded(): Channel {
    return {
      ...this.channel,
      subscriptions: [...this.rows.values()],
      alerts: [...this.#alerts] as Channel["alerts"]
    }
  }

  #write(changes: Changes): void {
    for (const row of [...changes.created, ...changes.changed]) this.rows.set(row.id, row)
    const known = changes.state.subscriptions
    for (const { forgotten_at, id } of this.rows.values()) {
      if (forgotten_at === null || known[id] !== undefined) continue
      this.ended.set(id, this.rows.get(id)!)
      this.rows.delete(id)
    }
    for (const { code } of changes.raised) this.#alerts.add(code)
    for (const code of changes.resolved) this.#alerts.delete(code)
    for (const { kind } of changes.events) this.events.push({ at: this.now, kind })
    this.begun(changes.state)
    this.channel = {
      ...this.channel,
      // Now and then as it is stored: what JSON does not keep is lost.
      state: this.steps % 16 === 0 ? JSON.parse(JSON.stringify(changes.state)) : changes.state,
      dirty_at: changes.clears.dirty ? null : this.channel.dirty_at,
      run_id: changes.clears.run ? null : this.channel.run_id
    }
  }

  /** Works until nothing is due. The process may end between a call and its commit. */
  async #work(): Promise<void> {
    let next = this.#commit(null)
    for (let turn = 0; next.do !== "wait" && next.do !== "removed"; turn++) {
      if (turn > 400) throw new Error(`the channel does not come to rest: ${JSON.stringify(next)}`)
      if (next.do === "deliver") throw new Error("no items wait here")
      this.steps++
      if (next.do === "poll") this.polls.push({ at: this.now, reason: next.reason, quiet: next.quiet })
      const performed = this.perform(next)
      const done = performed instanceof Promise ? await performed : performed
      this.#elapse()
      if (this.random.chance(this.faults.crash)) {
        this.#dueAt = this.gatewayNow + 5_000
        return
      }
      next = this.#commit(done)
    }
  }

  /** A slow answer: meanwhile callbacks arrive, and something happens at the provider. */
  #elapse(): void {
    if (!this.random.chance(this.faults.delayed)) return
    const until = this.now + this.random.between(1, 40) * 1_000
    if (this.random.chance(0.2)) this.after(500, () => this.item())
    for (let next = this.#happenings[0]; next !== undefined && next.at <= until; next = this.#happenings[0]) {
      this.#happenings.shift()
      this.now = Math.max(this.now, next.at)
      next.run()
    }
    this.now = until
  }

  /** Time passes. `isDown`: no process works. */
  async run(untilMs: number, isDown = false): Promise<void> {
    this.isDown = isDown
    while (true) {
      const happening = this.#happenings[0]
      const due = isDown || this.#dueAt === null ? null : this.#dueAt + this.behind
      const at = Math.min(happening?.at ?? Infinity, due ?? Infinity)
      if (at >= untilMs) break
      this.#pass(Math.max(at, this.now))
      if (happening !== undefined && happening.at <= this.now) {
        this.#happenings.shift()
        happening.run()
      } else await this.#work()
    }
    this.#pass(untilMs)
    this.isDown = false
  }

  #pass(to: number): void {
    const { account, definition, disabled, state } = this.channel
    const isOk =
      this.isDown ||
      disabled ||
      (account !== null && account.state !== "active") ||
      definition?.mode !== "instant" ||
      state.fallback.active ||
      this.#alerts.size > 0 ||
      this.covered.length >= this.targets.length
    this.#uncoveredMs = isOk ? 0 : this.#uncoveredMs + to - this.now
    if (this.#uncoveredMs > unalertedMs)
      throw new Error(`a gap of ${this.#uncoveredMs} ms at ${this.now} was not alerted`)
    this.now = to
  }

  /** The subscriptions that notify, as the gateway knows it. */
  get active(): ReadonlyArray<ChannelSubscription> {
    return [...this.rows.values()].filter(({ forgotten_at, state }) => state === "active" && forgotten_at === null)
  }

  /** Targets that have an active subscription. */
  get covered(): ReadonlyArray<string> {
    return [...new Set(this.active.map(({ target }) => target))]
  }

  /** Time passes without any fault. */
  calm(ms: number): Promise<void> {
    this.faults = calm
    return this.run(this.now + ms)
  }

  setMode(mode: "instant" | "polling"): void {
    this.touch({ definition: { ...this.channel.definition!, mode } })
  }

  setInputs(inputs: Schema.JsonObject): void {
    this.touch({ settings: Object.assign({}, this.channel.settings, { inputs }) })
  }
}
