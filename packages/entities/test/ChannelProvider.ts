import { Effect } from "effect"
import { type Adapter, type Item, ProviderError, type Poller, type Subscription } from "@tidegate/channels/Adapter"
import type { SourceProvider, Trigger } from "@tidegate/channels/SourceProvider"

/** A provider in memory, which sends nothing: what was asked of it, and how it answers. */
export class ChannelProvider {
  /** The subscriptions that live, by id, and the callback of each. */
  readonly hooks = new Map<string, string>()
  /** Every call, for example "provision chn_1". */
  readonly asked: Array<string> = []
  readonly items: Array<Item> = []
  /** The id that a subscription gets. */
  externalId = (id: string): string => `at-${id}`
  /** The next calls of this kind fail. */
  fails: "provision" | "renew" | "stop" | "poll" | null = null

  /** Runs within each call. */
  during: Effect.Effect<void> = Effect.void

  add(id: string): void {
    this.items.push({ id, body: `{"id":"${id}","number":12345678901234567890.5}`, occurredAt: null })
  }

  #ask<A>(
    what: "provision" | "renew" | "stop" | "poll",
    about: string,
    answer: () => A
  ): Effect.Effect<A, ProviderError> {
    return Effect.suspend(() => {
      this.asked.push(`${what} ${about}`)
      return this.fails === what
        ? Effect.fail(
            new ProviderError({
              code: "PROVIDER_UNAVAILABLE",
              message: "not now",
              permanent: false,
              status: 503,
              retryAfterMs: null
            })
          )
        : Effect.andThen(this.during, Effect.sync(answer))
    })
  }

  readonly #poller: Poller = {
    key: "memory",
    poll: (_context, cursor) =>
      this.#ask("poll", JSON.stringify(cursor), () => {
        const from = cursor === null ? this.items.length : Number(cursor)
        const items = this.items.slice(from, from + 2)
        const next = from + items.length
        return { items, cursor: next, more: next < this.items.length, cursorReset: false }
      })
  }

  readonly #adapter: Adapter = {
    key: "memory",
    targets: () => [{ key: "all" }],
    provision: (_context, { id }: Subscription, callback) =>
      this.#ask("provision", id, () => {
        this.hooks.set(id, callback)
        return { externalChannelId: this.externalId(id), externalResourceId: null, expiresAt: null, state: "active" }
      }),
    renew: null,
    stop: (_context, { id }) =>
      this.#ask("stop", id, () => {
        this.hooks.delete(id)
      }),
    receive: () => ({ kind: "ping", reply: { status: 200, contentType: null, body: "" } })
  }

  /** The same with leases, which a handshake confirms. */
  readonly #leasing: Adapter = {
    ...this.#adapter,
    key: "memory_leases",
    provision: (context, subscription, callback) =>
      Effect.map(this.#adapter.provision(context, subscription, callback), (agreed) => ({
        ...agreed,
        expiresAt: context.now + 86_400_000
      })),
    renew: (_context, { id }) =>
      this.#ask("renew", id, () => ({
        externalChannelId: null,
        externalResourceId: null,
        expiresAt: null,
        state: "verifying"
      }))
  }

  #trigger(key: string, adapter: Adapter): Trigger {
    return {
      key,
      name: "Item added",
      description: "An item was added",
      category: "tests",
      version: "1",
      requiredScopes: [],
      inputs: {},
      output: {},
      primaryOutput: null,
      sample: { inputs: {}, output: {} },
      adapter,
      poller: this.#poller
    }
  }

  readonly row: SourceProvider = {
    key: "memory",
    name: "Memory",
    description: "A provider of tests",
    icon_key: "memory",
    manifest_version: "1",
    account: null,
    triggers: [this.#trigger("item.added", this.#adapter), this.#trigger("item.leased", this.#leasing)]
  }
}
