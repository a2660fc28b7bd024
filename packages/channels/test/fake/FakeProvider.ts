import type { ProviderAnswer, ProviderRequest } from "../../src/Adapter.ts"
import { usualTargets, valueOf } from "./Changes.ts"
import { FakeEventSub } from "./FakeEventSub.ts"
import { FakeGraph } from "./FakeGraph.ts"
import { FakeRepositories } from "./FakeRepositories.ts"
import { FakeWatch } from "./FakeWatch.ts"
import { FakeWebSub } from "./FakeWebSub.ts"
import {
  type CallbackAnswer,
  type Change,
  type FakeCallback,
  type FakeOptions,
  type FakeSubscription,
  type FakeTrigger,
  json,
  type Pending,
  Service,
  textOf
} from "./Service.ts"

export { usualTargets } from "./Changes.ts"
export type * from "./Service.ts"

/*
 * A provider in memory. It speaks all protocols of the adapters (WebSub, watch channels, Graph subscriptions, EventSub, repository
 * webhooks) and has the lists that the pollers read. It does no I/O: `handle` answers a request, and the callbacks that it would
 * send wait in a list, so that a test decides when they arrive. `FakeCalls.ts` makes a `Call` of it, `FakeProviderServer.ts` an HTTP
 * server.
 */

interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly path: RegExp
  left: number
}

export class FakeProvider extends Service {
  token: string | null
  /** Every request, in order. */
  readonly requests: Array<ProviderRequest> = []
  readonly #refusals: Array<Refusal> = []
  readonly #protocols = {
    websub: new FakeWebSub(this),
    watch: new FakeWatch(this),
    graph: new FakeGraph(this),
    eventsub: new FakeEventSub(this),
    repo_webhook: new FakeRepositories(this)
  }

  readonly #routes = Object.values(this.#protocols).flatMap(({ routes }) => routes)

  constructor({ token = null, ...options }: FakeOptions) {
    super(options)
    this.token = token
  }

  /* For tests. */

  /** Something happens. Subscriptions are notified. Returns the id of the item that a source must get of it. */
  change(trigger: FakeTrigger, target: string = usualTargets[trigger], more: Readonly<Record<string, unknown>> = {}) {
    const change = this.#record(trigger, target, more)
    if (this.faults.notifications !== "drop") this.#notify(change)
    return change.item
  }

  /** The next requests are answered with this status. */
  refuse(
    status: number,
    {
      headers = {},
      path = /^/,
      times = 1
    }: { readonly headers?: Readonly<Record<string, string>>; readonly path?: RegExp; readonly times?: number } = {}
  ): void {
    this.#refusals.push({ status, headers, path, left: times })
  }

  /** Answers as usual again. */
  recover(): void {
    this.#refusals.length = 0
  }

  /** The callbacks that are to be sent now. The test sends each, and tells `answered` how it was answered. */
  takeCallbacks(): ReadonlyArray<FakeCallback> {
    const callbacks = this.callbacks
    this.callbacks = []
    return callbacks
  }

  /** Whether callbacks wait. */
  get hasCallbacks(): boolean {
    return this.callbacks.length > 0
  }

  /** Sends the handshakes that `faults.handshake` "delay" has held back. */
  releaseHandshakes(): void {
    this.callbacks.push(...this.held)
    this.held = []
  }

  /** How a callback was answered. */
  answered(callback: FakeCallback, given: CallbackAnswer): void {
    this.answers.push({ callback, answer: given })
    const subscription = this.subscriptions.get(callback.subscription)
    if (subscription === undefined) return
    const agreed = given.status >= 200 && given.status < 300 && given.body === subscription.challenge
    switch (callback.purpose) {
      case "handshake":
        if (subscription.protocol === "watch") return
        if (agreed) subscription.state = "active"
        // A renewal that is not confirmed leaves the subscription as it was.
        else if (subscription.state === "pending") this.subscriptions.delete(subscription.id)
        return
      case "unsubscription":
        if (agreed) this.subscriptions.delete(subscription.id)
        return
      default:
        if (given.status === 410 && subscription.protocol === "websub") this.subscriptions.delete(subscription.id)
    }
  }

  /** The subscriptions that are notified now. */
  get active(): ReadonlyArray<FakeSubscription> {
    return [...this.subscriptions.values()].filter((one) => one.state === "active" && !this.isOver(one))
  }

  /** The provider ends the subscriptions, and says so if the protocol can. */
  revoke(reason = "authorization_revoked"): void {
    for (const subscription of this.active) {
      const { protocol } = subscription
      if (protocol === "eventsub" || protocol === "graph" || protocol === "websub") {
        this.send(subscription, "lifecycle", this.#protocols[protocol].revocation(subscription, reason))
      }
      this.subscriptions.delete(subscription.id)
    }
  }

  /** Graph says something about its subscriptions. */
  lifecycle(event: "reauthorizationRequired" | "subscriptionRemoved" | "missed"): void {
    for (const subscription of this.active) {
      if (subscription.protocol === "graph") {
        this.send(subscription, "lifecycle", this.#protocols.graph.lifecycle(subscription, event))
      }
    }
  }

  /** All cursors that were given out until now become unknown. */
  forgetCursors(): void {
    this.oldestCursor = this.number + 1
    this.number++
  }

  /* The provider. */

  handle(request: ProviderRequest): ProviderAnswer | Pending {
    this.requests.push(request)
    const url = new URL(request.url)
    const refusal = this.#refusals.find(({ left, path }) => left > 0 && path.test(url.pathname))
    if (refusal !== undefined) {
      refusal.left--
      return json(refusal.status, { error: { code: refusal.status, message: "refused" } }, refusal.headers)
    }
    const isPublic = /^\/(?:feeds|lists|hub)\b/.test(url.pathname)
    if (!isPublic && this.token !== null && request.headers?.["authorization"] !== `Bearer ${this.token}`) {
      return json(401, { error: { code: 401, message: "Invalid Credentials" } })
    }
    const body = textOf(request.body)
    const path = decodeURIComponent(url.pathname).replace(/^\/api\/v[13]/, "")
    const query = url.searchParams
    for (const [method, pattern, go] of this.#routes) {
      const found = method === request.method ? pattern.exec(path) : null
      if (found !== null) return go(found.slice(1), query, body, request)
    }
    return json(404, { message: `there is no ${request.method} ${path}` })
  }

  #record(trigger: FakeTrigger, target: string, more: Readonly<Record<string, unknown>>): Change {
    const number = ++this.number
    const at = this.now()
    const [item, value] = valueOf(this.origin, trigger, target, number, at, more)
    const change = { number, trigger, target, at, item, value: { ...value, ...more } }
    this.changes.push(change)
    return change
  }

  #notify(change: Change): void {
    for (const subscription of this.active) {
      if (!subscription.watches(change.trigger, change.target)) continue
      this.send(subscription, "notification", this.#protocols[subscription.protocol].message(subscription, change))
    }
  }
}
