import { completed, type Config } from "@tidegate/connectors/Settings"
import { Effect, Result, type Schema } from "effect"
import type { Random } from "../../entities/test/Random.ts"
import {
  type Adapter,
  type Call,
  type Context,
  type ProviderAnswer,
  ProviderError,
  type ProviderRequest,
  type Subscription
} from "../src/Adapter.ts"
import type { ChannelSubscription, Done } from "../src/machine/Channel.ts"
import type { State } from "../src/machine/State.ts"
import { dayMs, minuteMs } from "../src/machine/Times.ts"
import type { SourceProvider, Trigger } from "../src/SourceProvider.ts"
import { definitionsOf } from "../src/SourceProviders.ts"
import { type Calling, ChannelWorld, type Faults, failedStep, refusals } from "./ChannelWorld.ts"
import { callsTo } from "./fake/FakeCalls.ts"
import { type CallbackAnswer, type FakeCallback, FakeProvider, type FakeTrigger } from "./fake/FakeProvider.ts"
import { receive } from "./receive.ts"

const origin = "https://provider.test"

/** Inputs of a source, and what is changed at the provider so that the source gets it. */
interface Variant {
  readonly inputs: Config
  readonly changed: readonly [string, ...ReadonlyArray<string>]
}

/** The inputs that the source of a trigger has: the first ones at the beginning. */
const variants: Readonly<Record<Exclude<FakeTrigger, "item.added">, readonly [Variant, ...ReadonlyArray<Variant>]>> = {
  "entry.added": [
    { inputs: { url: `${origin}/feeds/news.atom` }, changed: ["news.atom"] },
    { inputs: { url: `${origin}/feeds/other.json` }, changed: ["other.json"] }
  ],
  "calendar.event.changed": [
    { inputs: { calendar_ids: ["primary"] }, changed: ["primary"] },
    { inputs: { calendar_ids: ["primary", "team"] }, changed: ["primary", "team"] }
  ],
  "drive.changed": [{ inputs: {}, changed: ["changes"] }],
  "message.created": [
    { inputs: { folder_ids: ["inbox"] }, changed: ["inbox"] },
    { inputs: { folder_ids: ["inbox", "archive"] }, changed: ["inbox", "archive"] }
  ],
  "drive_item.changed": [{ inputs: {}, changed: ["root"] }],
  "stream.online": [
    { inputs: { broadcaster_user_id: "1337" }, changed: ["1337"] },
    { inputs: { broadcaster_user_id: "1338" }, changed: ["1338"] }
  ],
  "channel.follow": [
    { inputs: { broadcaster_user_id: "1337" }, changed: ["1337"] },
    { inputs: { broadcaster_user_id: "1338" }, changed: ["1338"] }
  ],
  push: [
    { inputs: { repository: "acme/shop" }, changed: ["acme/shop"] },
    { inputs: { repository: "acme/tools" }, changed: ["acme/tools"] }
  ],
  "issue.changed": [
    { inputs: { repository: "acme/shop" }, changed: ["acme/shop"] },
    { inputs: { repository: "acme/tools" }, changed: ["acme/tools"] }
  ],
  "release.published": [
    { inputs: { repository: "acme/shop" }, changed: ["acme/shop"] },
    { inputs: { repository: "acme/tools" }, changed: ["acme/tools"] }
  ]
}

const failure = (
  code: ProviderError["code"],
  message: string,
  permanent = false,
  status: number | null = null
): ProviderError => new ProviderError({ code, message, permanent, status, retryAfterMs: null })

const refusal = (status: number, retryAfterMs: number | null): ProviderAnswer => ({
  status,
  headers: retryAfterMs === null ? {} : { "retry-after": `${retryAfterMs / 1_000}` },
  body: new Uint8Array(),
  truncated: false
})

/** After this time (ms) a provider sends again what nobody has taken. */
const resentMs = 10 * minuteMs

/** A list that replaces a cursor goes at least so far back. */
const shortestListMs = 20 * dayMs

/** Everything that the world is made of, if a test does not say otherwise. */
interface Options {
  readonly random: Random
  readonly faults: Faults
  readonly autoFallback?: boolean
  readonly startAt: number
  readonly intervalMinutes?: number
}

/** A channel of a trigger, with its adapter and its poller, at the fake provider. */
export class ProviderWorld extends ChannelWorld {
  readonly fake: FakeProvider
  readonly #trigger: Trigger
  readonly #variants: ReadonlyArray<{ readonly inputs: Schema.JsonObject; readonly changed: Variant["changed"] }>
  /** All items that the provider has made, oldest first. */
  readonly #items: Array<{ readonly id: string; readonly target: string; readonly at: number }> = []
  /** From which item on the source has to make requests: since its first poll. Other inputs begin anew. */
  #owedFrom: number | null = null
  /** How many items there were at the newest poll. */
  #listed = 0
  /** Older items were in no list, if they had not been read before the provider forgot the cursor. */
  #listedFrom = 0
  /** Which requests the provider refuses at the moment, and with which status. */
  refuses: (request: ProviderRequest) => number | null = () => null
  /** Subscriptions that the provider has ended without a word. */
  readonly #dropped = new Set<string>()

  constructor(
    provider: SourceProvider,
    trigger: Trigger,
    { autoFallback = true, faults, intervalMinutes = 240, random, startAt }: Options
  ) {
    const all = variants[trigger.key as keyof typeof variants].map(({ changed, inputs }) => ({
      changed,
      inputs: Result.getOrThrow(completed(trigger.inputs, inputs)) as Schema.JsonObject
    }))
    const definition = definitionsOf(provider).find((one) => one.trigger === trigger && one.mode === "instant")!
    super({ random, faults, autoFallback, startAt, definition, inputs: all[0]!.inputs, intervalMinutes })
    this.#trigger = trigger
    this.#variants = all
    this.fake = new FakeProvider({ origin, now: () => this.now })
  }

  get inputs(): ReadonlyArray<Schema.JsonObject> {
    return this.#variants.map(({ inputs }) => inputs)
  }

  protected override begun({ primed }: State): void {
    if (!primed) this.#owedFrom = null
    else this.#owedFrom ??= this.#listed
  }

  // What happens at the provider.

  override item(): void {
    const { inputs } = this.channel.settings!
    const { changed } = this.#variants.find((one) => one.inputs === inputs)!
    const target = this.random.pick(changed)
    // Each push is to a branch of its own: a list has the newest commit of each branch only.
    const more = this.#trigger.key === "push" ? { branch: `branch-${this.#items.length}` } : {}
    const id = this.fake.change(this.#trigger.key as FakeTrigger, target, more)
    this.#items.push({ id, target, at: this.now })
    this.send()
  }

  /** Ends all subscriptions without a word. */
  drop(): void {
    for (const { callback, id } of this.fake.active) {
      this.#dropped.add(this.#rowOf(callback))
      this.fake.subscriptions.delete(id)
    }
  }

  revoke(isSaid: boolean): void {
    if (isSaid) {
      for (const { callback, protocol } of this.fake.active) {
        if (protocol === "watch" || protocol === "repo_webhook") this.#dropped.add(this.#rowOf(callback))
      }
      this.fake.revoke()
      return this.send()
    }
    const one = this.random.pick([...this.fake.active, undefined])
    if (one === undefined) return
    this.#dropped.add(this.#rowOf(one.callback))
    this.fake.subscriptions.delete(one.id)
  }

  /** The callbacks that the provider wants to send are sent, each after a while. */
  send(): void {
    for (const callback of this.fake.takeCallbacks()) {
      const isMessage = callback.purpose === "notification"
      // Hubs ask again whether to end a subscription, so that this question only comes late.
      if (callback.purpose !== "unsubscription" && this.random.chance(this.faults.unheard)) {
        if (!isMessage) this.fake.answered(callback, unreachable)
        // Its end was not heard of.
        if (!this.fake.subscriptions.has(callback.subscription)) this.#dropped.add(this.#rowOf(callback.url))
        continue
      }
      const isDelayed = this.random.chance(this.faults.delayed)
      const ms = isMessage ? [500, this.random.between(1, 600_000)] : [2_000, 90_000]
      const times = this.random.chance(this.faults.repeated) ? 2 : 1
      for (let time = 0; time < times; time++) this.after(ms[isDelayed ? 1 : 0]! + time, () => this.#deliver(callback))
    }
  }

  #deliver(callback: FakeCallback): void {
    // The provider has given it up meanwhile.
    if (callback.purpose === "handshake" && !this.fake.subscriptions.has(callback.subscription)) return
    if (this.isDown && callback.purpose !== "handshake") return this.after(resentMs, () => this.#deliver(callback))
    this.fake.answered(callback, this.#receive(callback))
    this.send()
  }

  // What arrives at callbacks.

  readonly #callback = (id: string): string => `https://gateway.test/channels/${id}`

  readonly #rowOf = (callback: string): string => /\/channels\/([^?]+)/.exec(callback)![1]!

  #subscription(row: ChannelSubscription): Subscription {
    return {
      id: row.id,
      target: row.target,
      secret: `secret-of-${row.id}`.padEnd(43, "x"),
      externalChannelId: row.external_channel_id,
      externalResourceId: row.external_resource_id,
      expiresAt: row.expires_at,
      lastMessageNumber: row.last_message_number,
      ended: row.stop_at !== null || this.called(row.id) === null
    }
  }

  #receive({ body, headers, method, url }: FakeCallback): CallbackAnswer {
    if (this.isDown) return unreachable
    const id = this.#rowOf(url)
    const row = this.rows.get(id) ?? this.ended.get(id)
    if (row === undefined) return { status: 404, body: "" }
    const notification = receive(this.#adapter, this.#subscription(row), this.channel.settings!.inputs, {
      method,
      query: url.split("?")[1] ?? "",
      headers,
      body: Buffer.from(body),
      receivedAt: this.gatewayNow
    })
    const { reply } = notification
    if (this.called(row.id) === null) return method === "GET" ? reply : { status: 410, body: "" }
    switch (notification.kind) {
      case "handshake":
        if (!notification.accepted) break
        if (notification.withinCreation === true) this.write(row, { verified_at: row.verified_at ?? this.gatewayNow })
        else this.verified(row, notification.expiresAt ?? null)
        break
      case "items":
        this.notified(
          row,
          notification.items.map(({ id }) => id)
        )
        break
      case "dirty": {
        const { messageNumber } = notification
        const last = row.last_message_number
        const isRepeated = messageNumber !== null && last !== null && messageNumber <= last
        this.notified({ ...row, last_message_number: Math.max(messageNumber ?? 0, last ?? 0) || null }, [])
        if (!isRepeated) this.touch({ dirty_at: this.gatewayNow })
        break
      }
      case "lifecycle": {
        const { what } = notification
        if (what === "revoked" || what === "denied") this.revoked(row)
        if (what === "reauthorize") this.write(row, { renew_at: this.gatewayNow })
        this.touch(what === "missed" ? { dirty_at: this.gatewayNow } : {})
      }
    }
    return reply
  }

  // What it answers.

  get #adapter(): Adapter {
    return this.#trigger.adapter!
  }

  readonly #call: Call = (request) =>
    Effect.suspend(() => {
      const { account } = this.channel
      if (request.authorized && account?.state !== "active") {
        return Effect.fail(failure("ACCOUNT_UNAUTHORIZED", "401", true, 401))
      }
      const refused = this.refuses(request)
      if (refused !== null) return Effect.succeed(refusal(refused, null))
      if (this.random.chance(this.faults.refused)) {
        const { retryAfterMs, status } = this.random.pick(refusals)
        return Effect.succeed(refusal(status!, retryAfterMs))
      }
      const answer = callsTo(this.fake, (callback) =>
        Effect.sync(() => (this.random.chance(this.faults.unheard) ? unreachable : this.#receive(callback)))
      )(request)
      return this.random.chance(this.faults.lost)
        ? Effect.andThen(answer, Effect.fail(failure("PROVIDER_UNREACHABLE", "no answer")))
        : answer
    })

  protected override async perform(step: Calling): Promise<Done> {
    const { settings, state } = this.channel
    const context = (inputs: Schema.JsonObject): Context => ({
      call: this.#call,
      baseUrl: origin,
      inputs,
      now: this.gatewayNow
    })
    const done = await Effect.runPromise(
      Effect.suspend((): Effect.Effect<Done, ProviderError> => {
        if (step.do === "poll") {
          this.#listed = this.#items.length
          return Effect.map(this.#trigger.poller.poll(context(settings!.inputs), step.cursor), (polled): Done => {
            if (polled.cursorReset) this.#listedFrom = this.now - shortestListMs
            const stored = this.found(
              step,
              polled.items.map(({ id }) => id)
            )
            // As it is stored.
            const cursor = JSON.parse(JSON.stringify(polled.cursor)) as Schema.Json
            return { did: "poll", step, ...polled, cursor, stored }
          })
        }
        const row = this.rows.get(step.id)!
        const { inputs } = state.bases[state.subscriptions[step.id]!.basis] ?? { inputs: settings!.inputs }
        const subscription = this.#subscription(row)
        const callback = this.#callback(step.id)
        const { id } = step
        switch (step.do) {
          case "provision":
            return Effect.map(this.#adapter.provision(context(inputs), subscription, callback), (agreed): Done => ({
              did: "provision",
              id,
              agreed
            }))
          case "renew":
            return Effect.map(this.#adapter.renew!(context(inputs), subscription, callback), (agreed): Done => ({
              did: "renew",
              id,
              expires_at: row.expires_at,
              agreed
            }))
          default:
            return Effect.as(this.#adapter.stop(context(inputs), subscription, callback), { did: "stop", id } as Done)
        }
      }).pipe(Effect.catch((error) => Effect.succeed(failedStep(step, error))))
    )
    this.fake.requests.length = 0
    this.fake.answers.length = 0
    this.send()
    return done
  }

  // What is checked at the end.

  /** Items that the source has to have, and has not. Of streams a list has only the newest. */
  get missing(): ReadonlyArray<string> {
    const { inputs } = this.channel.settings!
    const { changed } = this.#variants.find((one) => one.inputs === inputs)!
    const owed = this.#items
      .slice(this.#owedFrom ?? this.#items.length)
      .flatMap(({ at, id, target }) => (changed.includes(target) && at >= this.#listedFrom ? [id] : []))
    const listed = this.#trigger.key === "stream.online" ? owed.slice(-1) : owed
    return listed.filter((id) => !this.stored.has(id))
  }

  /** Items that are no items of the provider: one that has two ids would become two requests. */
  get strange(): ReadonlyArray<string> {
    const known = new Set(this.#items.map(({ id }) => id))
    return [...this.stored].filter((id) => !known.has(id))
  }

  /** Living subscriptions at the provider that the gateway does not know as active. */
  get leftBehind(): ReadonlyArray<string> {
    const known = new Set(this.active.map(({ id }) => id))
    return this.fake.active.map(({ callback }) => this.#rowOf(callback)).filter((id) => !known.has(id))
  }

  /** Subscriptions that the gateway believes to be active, although the provider has not kept them and has said so. */
  get deaf(): ReadonlyArray<string> {
    const kept = new Set(this.fake.active.map(({ callback }) => this.#rowOf(callback)))
    return this.active.flatMap(({ id }) => (kept.has(id) || this.#dropped.has(id) ? [] : [id]))
  }
}

const unreachable: CallbackAnswer = { status: 503, body: "" }
