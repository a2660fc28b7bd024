import type { ProviderAnswer } from "../../src/Adapter.ts"
import {
  iso,
  sha1,
  json,
  withQuery,
  type FakeCallback,
  type FakeSubscription,
  type FakeTrigger,
  type Pending,
  type Change,
  type Service,
  type Routes
} from "./Service.ts"

/** Mailboxes and drives of Microsoft Graph, and their subscriptions. */
export class FakeGraph {
  readonly #service: Service

  constructor(service: Service) {
    this.#service = service
  }

  readonly routes: Routes = [
    ["POST", /^\/v1\.0\/subscriptions$/, (_, __, body) => this.#subscribe(body)],
    ["GET", /^\/v1\.0\/subscriptions$/, () => this.#subscriptions()],
    ["PATCH", /^\/v1\.0\/subscriptions\/([\w-]+)$/, ([id = ""], _, body) => this.#renew(id, body)],
    ["DELETE", /^\/v1\.0\/subscriptions\/([\w-]+)$/, ([id = ""]) => this.#service.end(id)],
    [
      "GET",
      /^\/v1\.0\/me\/mailFolders\/([^/]+)\/messages\/delta$/,
      ([folder = ""], query) => this.#delta("message.created", folder, query)
    ],
    [
      "GET",
      /^\/v1\.0\/(?:me\/drive|drives\/[^/]+)\/root\/delta$/,
      (_, query) => this.#delta("drive_item.changed", "root", query)
    ],
    ["GET", /^\/v1\.0\/me$/, () => json(200, { id: "u-1", displayName: "Ada", mail: "ada@acme.example" })]
  ]

  revocation(subscription: FakeSubscription): Partial<FakeCallback> {
    return this.lifecycle(subscription, "subscriptionRemoved")
  }

  #subscribe(body: string): ProviderAnswer | Pending {
    const asked = JSON.parse(body) as Record<string, string>
    const resource = asked["resource"] ?? ""
    const folder = /mailFolders\('([^']+)'\)\/messages$/.exec(resource)?.[1]
    const callback = asked["notificationUrl"] ?? ""
    const longest = folder === undefined ? 42_300 * 60_000 : 4_230 * 60_000
    const expiresAt = this.#service.lifeOf(Date.parse(asked["expirationDateTime"] ?? "") - this.#service.now(), longest)
    const id = sha1(`graph ${++this.#service.number}`).slice(0, 32)
    const challenge = `Validation: ${id}`
    const failed = json(400, {
      error: { code: "ValidationError", message: "The notification URL did not answer the validation" }
    })
    if (this.#service.faults.handshake === "skip" || this.#service.faults.handshake === "delay") return failed
    const validation: FakeCallback = {
      purpose: "handshake",
      subscription: id,
      method: "POST",
      url: withQuery(callback, { validationToken: challenge }),
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: ""
    }
    return {
      callback: validation,
      resume: (given) => {
        this.#service.answers.push({ callback: validation, answer: given })
        if (given.status !== 200 || given.body !== challenge || this.#service.faults.handshake === "wrong")
          return failed
        this.#service.keep({
          id,
          protocol: "graph",
          callback,
          secret: asked["clientState"] ?? "",
          resource,
          watches: (trigger, target) =>
            folder === undefined
              ? trigger === "drive_item.changed"
              : trigger === "message.created" && target === folder,
          state: "active",
          expiresAt,
          challenge
        })
        return json(201, this.#shown(id))
      }
    }
  }

  #shown(id: string) {
    const { callback, expiresAt, resource } = this.#service.subscriptions.get(id)!
    return { id, resource, notificationUrl: callback, expirationDateTime: iso(expiresAt ?? 0), clientState: null }
  }

  #subscriptions(): ProviderAnswer {
    const all = [...this.#service.subscriptions.values()].filter(({ protocol }) => protocol === "graph")
    return json(200, { value: all.map(({ id }) => this.#shown(id)) })
  }

  #renew(id: string, body: string): ProviderAnswer {
    const subscription = this.#service.subscriptions.get(id)
    if (subscription === undefined || this.#service.isOver(subscription)) {
      return json(404, { error: { code: "ResourceNotFound", message: "The object was not found." } })
    }
    const { expirationDateTime } = JSON.parse(body) as { expirationDateTime: string }
    const longest = subscription.resource.includes("mailFolders") ? 4_230 * 60_000 : 42_300 * 60_000
    subscription.expiresAt = this.#service.lifeOf(Date.parse(expirationDateTime) - this.#service.now(), longest)
    return json(200, this.#shown(id))
  }

  #clientState({ secret }: FakeSubscription): string {
    return this.#service.faults.signature === "right" ? secret : "another"
  }

  message(subscription: FakeSubscription, { value }: Change): Partial<FakeCallback> {
    const notification = {
      subscriptionId: subscription.id,
      subscriptionExpirationDateTime: iso(subscription.expiresAt ?? 0),
      changeType: subscription.resource.includes("mailFolders") ? "created" : "updated",
      resource: subscription.resource,
      clientState: this.#clientState(subscription),
      resourceData: { "@odata.type": "#Microsoft.Graph.Message", id: value["id"] }
    }
    return { headers: { "content-type": "application/json" }, body: JSON.stringify({ value: [notification] }) }
  }

  lifecycle(subscription: FakeSubscription, lifecycleEvent: string): Partial<FakeCallback> {
    const notification = {
      subscriptionId: subscription.id,
      subscriptionExpirationDateTime: iso(subscription.expiresAt ?? 0),
      clientState: this.#clientState(subscription),
      lifecycleEvent
    }
    return { headers: { "content-type": "application/json" }, body: JSON.stringify({ value: [notification] }) }
  }

  #delta(trigger: FakeTrigger, target: string, query: URLSearchParams): ProviderAnswer {
    const token = query.get("$deltatoken") ?? query.get("token")
    const path = trigger === "message.created" ? `me/mailFolders/${target}/messages/delta` : "me/drive/root/delta"
    const link = (name: string, to: number | string) => `${this.#service.origin}/v1.0/${path}?${name}=${to}`
    const delta = trigger === "message.created" ? "$deltatoken" : "token"
    if (token === "latest") return json(200, { value: [], "@odata.deltaLink": link(delta, this.#service.number) })
    const after = Number(token ?? query.get("$skiptoken") ?? "0")
    if (token !== null && this.#service.isForgotten(after)) {
      return json(410, { error: { code: "resyncRequired", message: "Resync required" } }, { location: link(delta, "") })
    }
    const least = Date.parse(/receivedDateTime ge (\S+)/.exec(query.get("$filter") ?? "")?.[1] ?? "")
    const all = this.#service
      .of(trigger, target)
      .filter(({ at, number }) => number > after && (Number.isNaN(least) || at >= least))
    const page = all.slice(0, 100)
    return json(200, {
      value: page.map(({ value }) => value),
      ...(page.length < all.length
        ? { "@odata.nextLink": link("$skiptoken", page.at(-1)?.number ?? 0) }
        : { "@odata.deltaLink": link(delta, this.#service.number) })
    })
  }
}
