import { Effect } from "effect"
import { seededId, prefixes } from "@tidegate/model/Ids"
import type { Random } from "../../entities/test/Random.ts"
import type { Adapter } from "../src/Adapter.ts"
import type { Changes, Channel, ChannelSubscription, Done, Failure, Step } from "../src/machine/Channel.ts"
import { advance, isStillOf } from "../src/machine/Outcome.ts"
import { initialState } from "../src/machine/State.ts"
import { minuteMs } from "../src/machine/Times.ts"
import type { SourceProvider, Trigger } from "../src/SourceProvider.ts"
import type { Definition } from "../src/SourceProviders.ts"

/*
 * A channel, its rows and its provider in memory, on a clock of their own. The machine decides; the provider does what it is told,
 * or what its faults are. What the machine must never do fails at once; what it owes is checked at the end.
 */

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

/** How likely faults are: each call or message draws for itself. */
export interface Faults {
  readonly refused: number
  readonly lost: number
  readonly crash: number
  readonly unheard: number
  readonly repeated: number
  readonly delayed: number
}

const calm: Faults = { refused: 0, lost: 0, crash: 0, unheard: 0, repeated: 0, delayed: 0 }

interface Hook {
  readonly id: string
  readonly target: string
  verified: boolean
  expiresAt: number | null
}

interface Happening {
  readonly at: number
  readonly run: () => void
}

const refusals: ReadonlyArray<Failure> = [
  { code: "PROVIDER_UNAVAILABLE", message: "500", permanent: false, status: 500, retryAfterMs: null },
  { code: "PROVIDER_RATE_LIMITED", message: "429", permanent: false, status: 429, retryAfterMs: 3 * minuteMs },
  { code: "PROVIDER_REFUSED", message: "400", permanent: false, status: 400, retryAfterMs: null },
  { code: "PROVIDER_FORBIDDEN", message: "403", permanent: true, status: 403, retryAfterMs: null }
]
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

/** The longest time (ms of a working gateway) without a subscription, polling or an alert. */
const unalertedMs = 20 * minuteMs

const unused = () => Effect.die("the world calls its own provider")

export class ChannelWorld {
  readonly #random: Random
  readonly #behaviour: Behaviour
  readonly #happenings: Array<Happening> = []
  readonly #hooks = new Map<string, Hook>()
  /** What the provider lists, oldest first. */
  readonly #items: Array<{ readonly id: string; readonly at: number }> = []
  /** From which item on the source has to make requests: since its first poll. Other inputs begin anew. */
  #owedFrom: number | null = null
  readonly stored = new Set<string>()
  readonly #subscriptions = new Map<string, ChannelSubscription>()
  readonly #alerts = new Set<string>()
  readonly kinds = new Set<string>()
  faults: Faults
  now: number
  channel: Channel
  steps = 0
  #count = 0
  #dueAt: number | null
  #uncoveredMs = 0

  constructor(random: Random, behaviour: Behaviour, faults: Faults, autoFallback: boolean, startAt: number) {
    this.#random = random
    this.#behaviour = behaviour
    this.faults = faults
    this.now = startAt
    this.#dueAt = startAt
    this.channel = {
      source_id: "src_1",
      team_id: "tm_1",
      created_at: startAt,
      disabled: false,
      deleted: false,
      settings: {
        provider_key: "model",
        definition_key: "item.changed",
        provider_account_id: "pac_1",
        inputs: { targets: 1 },
        schedule: { interval_minutes: 240 },
        auto_fallback: autoFallback,
        max_failures: 3,
        restore_after_minutes: 30
      },
      definition: this.#definition("instant"),
      account: { id: "pac_1", state: "active" },
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

  #definition(mode: "instant" | "polling"): Definition {
    const adapter: Adapter = {
      key: "model",
      targets: ({ targets }) => Array.from({ length: Number(targets) }, (_, index) => ({ key: `target-${index}` })),
      provision: unused,
      renew: this.#behaviour.renews ? unused : null,
      stop: unused,
      receive: () => {
        throw new Error("unused")
      }
    }
    const trigger = { key: "item.changed", adapter, poller: { key: "model", poll: unused } } as unknown as Trigger
    return { key: "item.changed", mode, provider: { key: "model", account: {} } as SourceProvider, trigger }
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
    this.#dueAt = this.now
  }

  // What happens at the provider.

  item(): void {
    const item = { id: `item-${this.#items.length}`, at: this.now }
    this.#items.push(item)
    for (const hook of this.#hooks.values()) {
      if (!this.#lives(hook) || !hook.verified) continue
      if (this.#random.chance(this.faults.unheard)) continue
      const times = this.#random.chance(this.faults.repeated) ? 2 : 1
      for (let time = 0; time < times; time++) {
        const ms = this.#random.chance(this.faults.delayed) ? this.#random.between(1, 600_000) : 500
        this.after(ms, () => this.#notify(hook.id, item.id))
      }
    }
  }

  #lives({ expiresAt }: Hook): boolean {
    return expiresAt === null || expiresAt > this.now
  }

  /** Ends a subscription, and says so or not. */
  revoke(isSaid: boolean): void {
    const hook = this.#random.pick([...this.#hooks.values(), undefined])
    if (hook === undefined) return
    this.#hooks.delete(hook.id)
    const row = this.#subscriptions.get(hook.id)
    if (!isSaid || row === undefined || row.forgotten_at !== null) return
    this.#subscriptions.set(hook.id, {
      ...row,
      state: "revoked",
      stop_at: null,
      stopped_at: this.now,
      forgotten_at: this.now + 1
    })
    this.touch({})
  }

  // What arrives at callbacks, as the ingress stores it.

  #callback(id: string): ChannelSubscription | null {
    const row = this.#subscriptions.get(id)
    const isLiving = row !== undefined && ["requested", "verifying", "active", "superseded"].includes(row.state)
    return isLiving && row.forgotten_at === null ? row : null
  }

  #notify(id: string, item: string): void {
    const row = this.#callback(id)
    if (row === null) return
    this.#subscriptions.set(id, { ...row, last_notification_at: this.now })
    if (this.#behaviour.fat) this.#store(item)
    this.touch(this.#behaviour.fat ? {} : { dirty_at: this.now })
  }

  #handshake(id: string): void {
    const row = this.#callback(id)
    const hook = this.#hooks.get(id)
    if (row === null || hook === undefined) return
    hook.verified = true
    hook.expiresAt = this.#lease()
    this.#subscriptions.set(id, {
      ...row,
      state: row.state === "superseded" ? row.state : "active",
      verified_at: row.verified_at ?? this.now,
      expires_at: hook.expiresAt
    })
    this.touch({})
  }

  #lease(): number | null {
    return this.#behaviour.lifeMs === null ? null : this.now + this.#behaviour.lifeMs
  }

  #store(item: string): boolean {
    const isNew = !this.stored.has(item)
    this.stored.add(item)
    return isNew
  }

  // What the provider answers.

  #perform(step: Exclude<Step, { readonly do: "wait" | "deliver" | "removed" }>): Done {
    const done = this.#carryOut(step)
    if (!this.#random.chance(this.faults.lost)) return done
    return step.do === "poll"
      ? { did: "poll failed", step, error: unanswered }
      : { did: "failed", id: step.id, what: step.do, error: unanswered }
  }

  #carryOut(step: Exclude<Step, { readonly do: "wait" | "deliver" | "removed" }>): Done {
    const failed = (error: Failure): Done =>
      step.do === "poll" ? { did: "poll failed", step, error } : { did: "failed", id: step.id, what: step.do, error }
    if (this.channel.account?.state !== "active") return failed(unauthorized)
    if (this.#random.chance(this.faults.refused)) return failed(this.#random.pick(refusals))
    switch (step.do) {
      case "poll": {
        const from = step.cursor === null ? this.#items.length : Number(step.cursor)
        const found = this.#items.slice(from, from + 3)
        const next = from + found.length
        const isOurs = isStillOf(this.channel, step)
        const stored = isOurs ? found.filter(({ id }) => this.#store(id)).length : 0
        return {
          did: "poll",
          step,
          items: found.map(({ at }) => ({ occurredAt: at })),
          stored,
          cursor: next,
          more: next < this.#items.length,
          cursorReset: false
        }
      }
      case "provision": {
        const row = this.#subscriptions.get(step.id)!
        const known = this.#hooks.get(step.id)
        if (known !== undefined && this.#behaviour.refusesRepetition) return failed(refusals[2]!)
        const { handshake } = this.#behaviour
        const expiresAt = handshake ? null : this.#lease()
        this.#hooks.set(step.id, { id: step.id, target: row.target, verified: !handshake, expiresAt })
        if (handshake) this.#askBack(step.id)
        const agreed = { externalChannelId: `c-${step.id}`, externalResourceId: null, expiresAt }
        return { did: "provision", id: step.id, agreed: { ...agreed, state: handshake ? "verifying" : "active" } }
      }
      case "renew": {
        const hook = this.#hooks.get(step.id)
        if (hook === undefined || !this.#lives(hook)) return failed(gone)
        const { handshake } = this.#behaviour
        if (handshake) this.#askBack(step.id)
        else hook.expiresAt = this.#lease()
        const agreed = {
          externalChannelId: null,
          externalResourceId: null,
          expiresAt: handshake ? null : hook.expiresAt
        }
        const { expires_at } = this.#subscriptions.get(step.id)!
        return {
          did: "renew",
          id: step.id,
          expires_at,
          agreed: { ...agreed, state: handshake ? "verifying" : "active" }
        }
      }
      default:
        return this.#hooks.delete(step.id) ? { did: "stop", id: step.id } : failed(gone)
    }
  }

  #askBack(id: string): void {
    if (this.#random.chance(this.faults.unheard)) return
    this.after(this.#random.chance(this.faults.delayed) ? 90_000 : 2_000, () => this.#handshake(id))
  }

  // The actor.

  #commit(done: Done | null): Step {
    const given = {
      now: this.now,
      subscriptionId: seededId(prefixes.channelSubscription, this.now, `s${this.#count++}`),
      runId: seededId(prefixes.sourceRun, this.now, `r${this.#count}`)
    }
    const { changes, next } = advance(this.#loaded(), done, given)
    this.#write(changes)
    this.#dueAt = next.do === "wait" ? next.until : this.now
    return next
  }

  #loaded(): Channel {
    return {
      ...this.channel,
      subscriptions: [...this.#subscriptions.values()],
      alerts: [...this.#alerts] as Channel["alerts"]
    }
  }

  #write(changes: Changes): void {
    for (const row of [...changes.created, ...changes.changed]) this.#subscriptions.set(row.id, row)
    const known = changes.state.subscriptions
    for (const { forgotten_at, id } of this.#subscriptions.values()) {
      if (forgotten_at !== null && known[id] === undefined) this.#subscriptions.delete(id)
    }
    for (const { code } of changes.raised) this.#alerts.add(code)
    for (const code of changes.resolved) this.#alerts.delete(code)
    for (const { kind } of changes.events) this.kinds.add(kind)
    if (!changes.state.primed) this.#owedFrom = null
    else this.#owedFrom ??= Number(changes.state.cursor)
    this.channel = {
      ...this.channel,
      // Now and then as it is stored: what JSON does not keep is lost.
      state: this.steps % 16 === 0 ? JSON.parse(JSON.stringify(changes.state)) : changes.state,
      dirty_at: changes.clears.dirty ? null : this.channel.dirty_at,
      run_id: changes.clears.run ? null : this.channel.run_id
    }
  }

  /** Works until nothing is due. The process may end between a call and its commit. */
  #work(): void {
    let next = this.#commit(null)
    for (let turn = 0; next.do !== "wait" && next.do !== "removed"; turn++) {
      if (turn > 400) throw new Error(`the channel does not come to rest: ${JSON.stringify(next)}`)
      if (next.do === "deliver") throw new Error("no items wait here")
      this.steps++
      const done = this.#perform(next)
      this.#elapse()
      if (this.#random.chance(this.faults.crash)) {
        this.#dueAt = this.now + 5_000
        return
      }
      next = this.#commit(done)
    }
  }

  /** A slow answer: meanwhile callbacks arrive, and something happens at the provider. */
  #elapse(): void {
    if (!this.#random.chance(this.faults.delayed)) return
    const until = this.now + this.#random.between(1, 40) * 1_000
    if (this.#random.chance(0.2)) this.after(500, () => this.item())
    for (let next = this.#happenings[0]; next !== undefined && next.at <= until; next = this.#happenings[0]) {
      this.#happenings.shift()
      this.now = Math.max(this.now, next.at)
      next.run()
    }
    this.now = until
  }

  /** Time passes. `isDown`: no process works; callbacks are not answered, so the provider sends them later. */
  run(untilMs: number, isDown = false): void {
    while (true) {
      const happening = this.#happenings[0]
      const due = isDown ? null : this.#dueAt
      const at = Math.min(happening?.at ?? Infinity, due ?? Infinity)
      if (at >= untilMs) break
      this.#pass(Math.max(at, this.now), isDown)
      if (happening !== undefined && happening.at <= this.now) {
        this.#happenings.shift()
        happening.run()
      } else this.#work()
    }
    this.#pass(untilMs, isDown)
  }

  #pass(to: number, isDown: boolean): void {
    const { account, disabled, settings, state } = this.channel
    const isOk =
      isDown ||
      disabled ||
      account?.state !== "active" ||
      this.channel.definition?.mode !== "instant" ||
      state.fallback.active ||
      this.#alerts.size > 0 ||
      this.covered.length >= Number(settings!.inputs["targets"])
    this.#uncoveredMs = isOk ? 0 : this.#uncoveredMs + to - this.now
    if (this.#uncoveredMs > unalertedMs)
      throw new Error(`a gap of ${this.#uncoveredMs} ms at ${this.now} was not alerted`)
    this.now = to
  }

  /** Targets that have an active subscription, as the gateway knows it. */
  get covered(): ReadonlyArray<string> {
    const active = [...this.#subscriptions.values()].filter(
      ({ forgotten_at, state }) => state === "active" && forgotten_at === null
    )
    return [...new Set(active.map(({ target }) => target))]
  }

  /** Without any fault. */
  calm(ms: number): void {
    this.faults = calm
    this.run(this.now + ms)
  }

  /** The inputs ask for so many targets; the cursor of the former ones is not used any more. */
  setTargets(targets: number): void {
    this.touch({ settings: Object.assign({}, this.channel.settings, { inputs: { targets } }) })
  }

  setMode(mode: "instant" | "polling"): void {
    this.touch({ definition: this.#definition(mode) })
  }

  /** Items that the provider lists, and that have not arrived. */
  get missing(): ReadonlyArray<string> {
    return this.#items
      .slice(this.#owedFrom ?? this.#items.length)
      .flatMap(({ id }) => (this.stored.has(id) ? [] : [id]))
  }

  /** Living subscriptions at the provider, and the active ones that the gateway knows. */
  get subscribed(): { readonly provider: ReadonlyArray<string>; readonly gateway: ReadonlyArray<string> } {
    const active = [...this.#subscriptions.values()].filter(
      ({ forgotten_at, state }) => state === "active" && forgotten_at === null
    )
    return {
      provider: [...this.#hooks.values()].filter((hook) => this.#lives(hook)).map(({ id }) => id),
      gateway: active.map(({ id }) => id)
    }
  }
}
