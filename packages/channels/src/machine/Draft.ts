import { hash } from "node:crypto"
import { maxTargets } from "../Adapter.ts"
import type { AlertCode, EventKind, MetricName, Severity } from "./Facts.ts"
import type { Changes, Channel, ChannelSubscription, Failure, Noted, RunChange, SubscriptionStage } from "./Channel.ts"
import { type Failures, noFailures, type State, type SubscriptionState } from "./State.ts"
import { backoff, forgottenAfterMs, nextOnGrid } from "./Times.ts"

const liveStages: ReadonlySet<SubscriptionStage> = new Set(["requested", "verifying", "active"])

/** One more failure. */
export const failedAgain = (before: Failures, error: Failure, now: number): Failures => ({
  failures: before.failures + 1,
  retry_at: now + backoff(before.failures + 1, error.permanent, error.retryAfterMs),
  of_account: error.code === "ACCOUNT_UNAUTHORIZED"
})

/** A channel while the machine decides: the changes so far, and the channel as it is with them. */
export class Draft {
  readonly channel: Channel
  readonly now: number
  state: State
  readonly alerts: Set<AlertCode>
  /** The settings to which the cursor and new subscriptions belong. Null: there are none. */
  readonly basis: string | null
  /** The targets that should have a subscription. */
  readonly targets: ReadonlyArray<string>
  /** Whether the provider may be called. */
  readonly canCall: boolean
  /** The same, or the account is refused at the moment. */
  readonly mayPoll: boolean
  readonly isInstant: boolean
  dirty: boolean
  runId: string | null
  removed = false
  dropsItems = false

  readonly #subscriptions: Map<string, ChannelSubscription>
  readonly #created = new Set<string>()
  readonly #changed = new Set<string>()
  readonly #events: Array<Noted> = []
  readonly #raised: Array<{ readonly code: AlertCode; readonly message: string }> = []
  readonly #resolved: Array<AlertCode> = []
  readonly #counts: { [name in MetricName]?: number } = {}
  readonly #runs: Array<RunChange> = []

  constructor(channel: Channel, now: number) {
    this.channel = channel
    this.now = now
    this.state = channel.state
    this.alerts = new Set(channel.alerts)
    this.dirty = channel.dirty_at !== null
    this.runId = channel.run_id
    this.#subscriptions = new Map(channel.subscriptions.map((one) => [one.id, one]))

    const { account, definition, deleted, disabled, settings } = channel
    const isKnown = settings !== null && definition !== null
    const hasAccount = definition?.provider.account === null || account?.state === "active"
    this.canCall = isKnown && hasAccount && !disabled && !deleted
    const isRefused = account?.state === "expired" || account?.state === "error"
    this.mayPoll = isKnown && (hasAccount || isRefused) && !disabled && !deleted
    this.isInstant = isKnown && definition.mode === "instant" && !disabled && !deleted
    this.basis = isKnown
      ? hash(
          "sha256",
          JSON.stringify([settings.provider_key, definition.trigger.key, account?.id ?? null, settings.inputs]),
          "hex"
        ).slice(0, 16)
      : null
    const adapter = this.isInstant ? definition!.trigger.adapter : null
    this.targets = (adapter?.targets(settings!.inputs) ?? []).slice(0, maxTargets).map(({ key }) => key)
  }

  /** The next scheduled poll after now. */
  get nextScheduled(): number {
    return nextOnGrid(this.channel.created_at, this.channel.settings?.schedule.interval_minutes ?? 1, this.now)
  }

  get subscriptions(): ReadonlyArray<ChannelSubscription> {
    return [...this.#subscriptions.values()]
  }

  subscription(id: string): ChannelSubscription | undefined {
    return this.#subscriptions.get(id)
  }

  /** The state of the subscription. A row without state was written by a process that then ended. */
  memory(id: string): SubscriptionState | undefined {
    return this.state.subscriptions[id]
  }

  /** Subscriptions of the target that are not to be stopped, in the order of their creation. */
  living(target: string): ReadonlyArray<ChannelSubscription> {
    return this.subscriptions
      .filter((one) => one.target === target && one.stop_at === null && liveStages.has(one.state))
      .toSorted((left, right) => (left.id < right.id ? -1 : 1))
  }

  /** Whether it was created with the current inputs and account. */
  isCurrent({ id }: ChannelSubscription): boolean {
    return this.memory(id)?.basis === this.basis
  }

  /** The active subscription of the target with the current inputs: the newest one. */
  active(target: string): ChannelSubscription | undefined {
    return this.living(target).findLast((one) => one.state === "active" && this.isCurrent(one))
  }

  /** The subscription of the target that is being created. */
  coming(target: string): ChannelSubscription | undefined {
    return this.living(target).findLast((one) => one.state !== "active" && this.isCurrent(one))
  }

  get allActive(): boolean {
    return this.targets.every((target) => this.active(target) !== undefined)
  }

  /** All targets are active, notify, and could be renewed. */
  get isHealthy(): boolean {
    return this.targets.every((target) => {
      const active = this.active(target)
      if (active === undefined) return false
      const { renewal, silent } = this.memory(active.id)!
      return !silent && renewal.failures === 0
    })
  }

  set(part: Partial<State>): void {
    this.state = { ...this.state, ...part }
  }

  remember(id: string, part: Partial<SubscriptionState>): void {
    const before = this.state.subscriptions[id]
    if (before === undefined) return
    this.set({ subscriptions: { ...this.state.subscriptions, [id]: { ...before, ...part } } })
  }

  failures(target: string): Failures {
    return this.state.targets[target] ?? noFailures
  }

  setFailures(target: string, failures: Failures | null): void {
    const { [target]: _, ...others } = this.state.targets
    this.set({ targets: failures === null ? others : { ...others, [target]: failures } })
  }

  change(id: string, part: Partial<ChannelSubscription>): void {
    const before = this.#subscriptions.get(id)
    if (before === undefined) return
    this.#subscriptions.set(id, { ...before, ...part })
    if (!this.#created.has(id)) this.#changed.add(id)
  }

  create(row: ChannelSubscription, memory: SubscriptionState): void {
    this.#subscriptions.set(row.id, row)
    this.#created.add(row.id)
    this.set({ subscriptions: { ...this.state.subscriptions, [row.id]: memory } })
  }

  /** It has ended: its row stays for a while, and the machine forgets it. */
  end(id: string, part: Partial<ChannelSubscription>): void {
    const row = this.#subscriptions.get(id)
    if (row !== undefined) this.change(id, { forgotten_at: row.forgotten_at ?? this.now + forgottenAfterMs, ...part })
    const { [id]: _, ...others } = this.state.subscriptions
    this.set({ subscriptions: others })
  }

  note(
    kind: EventKind,
    severity: Severity,
    message: string,
    about: Partial<Pick<Noted, "error_code" | "subscription_id" | "details">> = {}
  ): void {
    this.#events.push({ kind, severity, message, error_code: null, subscription_id: null, details: {}, ...about })
  }

  raise(code: AlertCode, message: string): void {
    this.alerts.add(code)
    this.#raised.push({ code, message })
  }

  resolve(code: AlertCode): void {
    if (this.alerts.delete(code)) this.#resolved.push(code)
  }

  count(name: MetricName, n = 1): void {
    this.#counts[name] = (this.#counts[name] ?? 0) + n
  }

  saveRun(run: RunChange): void {
    this.#runs.push(run)
  }

  get changes(): Changes {
    const rows = (ids: ReadonlySet<string>) => [...ids].map((id) => this.#subscriptions.get(id)!)
    return {
      state: this.state,
      created: rows(this.#created),
      changed: rows(this.#changed),
      events: this.#events,
      raised: this.#raised,
      resolved: this.#resolved,
      counts: this.#counts,
      runs: this.#runs,
      clears: {
        dirty: this.channel.dirty_at !== null && !this.dirty,
        run: this.channel.run_id !== null && this.runId === null
      },
      dropsItems: this.dropsItems,
      removed: this.removed
    }
  }

  /** The channel with the changes, as the next read would return it. */
  get after(): Channel {
    return {
      ...this.channel,
      state: this.state,
      alerts: [...this.alerts],
      dirty_at: this.dirty ? this.channel.dirty_at : null,
      run_id: this.runId,
      subscriptions: this.subscriptions.filter(({ forgotten_at }) => forgotten_at === null),
      waiting: this.channel.waiting && !this.dropsItems
    }
  }
}
