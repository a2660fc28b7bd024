import type { ProviderAnswer } from "../../src/Adapter.ts"
import {
  json,
  day,
  type FakeCallback,
  type FakeSubscription,
  type FakeTrigger,
  type Service,
  type Routes
} from "./Service.ts"

/** Calendars and files, and their watch channels. */
export class FakeWatch {
  readonly #service: Service

  constructor(service: Service) {
    this.#service = service
  }

  readonly routes: Routes = [
    ["GET", /^\/calendar\/v3\/users\/me\/calendarList$/, () => json(200, { items: [{ id: "primary" }] })],
    ["GET", /^\/calendar\/v3\/calendars\/([^/]+)\/events$/, ([id = ""], query) => this.#events(id, query)],
    [
      "POST",
      /^\/calendar\/v3\/calendars\/([^/]+)\/events\/watch$/,
      ([id = ""], _, body) => this.#watch("calendar.event.changed", id, body)
    ],
    ["POST", /^\/calendar\/v3\/channels\/stop$/, (_, __, body) => this.#stopChannel(body)],
    [
      "GET",
      /^\/drive\/v3\/changes\/startPageToken$/,
      () => json(200, { kind: "drive#startPageToken", startPageToken: String(this.#service.number) })
    ],
    ["GET", /^\/drive\/v3\/changes$/, (_, query) => this.#driveChanges(query)],
    ["GET", /^\/drive\/v3\/files$/, (_, query) => this.#driveFiles(query)],
    ["POST", /^\/drive\/v3\/changes\/watch$/, (_, __, body) => this.#watch("drive.changed", "changes", body)],
    ["POST", /^\/drive\/v3\/channels\/stop$/, (_, __, body) => this.#stopChannel(body)],
    ["GET", /^\/oauth2\/v2\/userinfo$/, () => json(200, { id: "77", name: "Ada", email: "ada@acme.example" })]
  ]

  message(subscription: FakeSubscription): Partial<FakeCallback> {
    return this.#message(subscription, "exists")
  }

  #watch(trigger: FakeTrigger, target: string, body: string): ProviderAnswer {
    const asked = JSON.parse(body) as { id: string; address: string; token: string; expiration?: string }
    if (this.#service.subscriptions.has(asked.id)) {
      const error = { errors: [{ reason: "channelIdNotUnique" }], code: 400, message: "Channel id not unique" }
      return json(400, { error })
    }
    const subscription = this.#service.keep({
      id: asked.id,
      protocol: "watch",
      callback: asked.address,
      secret: asked.token,
      resource: `res-${target}`,
      watches: (changed, of) => changed === trigger && of === target,
      state: "active",
      expiresAt: this.#service.lifeOf(
        asked.expiration === undefined ? 7 * day : Number(asked.expiration) - this.#service.now(),
        7 * day
      )
    })
    const sync = this.#message(subscription, "sync")
    const wrong = this.#service.faults.handshake === "wrong" ? { "x-goog-channel-token": "another" } : {}
    this.#service.shake(subscription, { ...sync, headers: { ...sync.headers, ...wrong } }, "handshake")
    return json(200, {
      kind: "api#channel",
      id: subscription.id,
      resourceId: subscription.resource,
      resourceUri: `${this.#service.origin}/${target}`,
      token: subscription.secret,
      expiration: String(subscription.expiresAt)
    })
  }

  #message(subscription: FakeSubscription, state: string) {
    const headers: Record<string, string> = {
      "x-goog-channel-id": subscription.id,
      "x-goog-channel-token": this.#service.faults.signature === "right" ? subscription.secret : "another",
      "x-goog-message-number": String(++subscription.messages),
      "x-goog-resource-id": subscription.resource,
      "x-goog-resource-state": state
    }
    if (subscription.expiresAt !== null) {
      headers["x-goog-channel-expiration"] = new Date(subscription.expiresAt).toUTCString()
    }
    return { headers }
  }

  #stopChannel(body: string): ProviderAnswer {
    const { id, resourceId } = JSON.parse(body) as { id: string; resourceId: string }
    return this.#service.subscriptions.get(id)?.resource === resourceId
      ? this.#service.end(id)
      : json(404, { error: { code: 404 } })
  }

  #events(calendar: string, query: URLSearchParams): ProviderAnswer {
    const sync = query.get("syncToken")
    const page = Number(query.get("pageToken") ?? "0")
    const after = sync === null ? 0 : Number(sync)
    if (sync !== null && this.#service.isForgotten(after)) {
      return json(410, {
        error: { errors: [{ reason: "fullSyncRequired" }], code: 410, message: "Sync token is no longer valid" }
      })
    }
    const least = Date.parse(query.get("updatedMin") ?? "")
    const all = this.#service
      .of("calendar.event.changed", calendar)
      .filter(({ at, number }) => number > after && (Number.isNaN(least) || at >= least))
    const size = Number(query.get("maxResults") ?? "250")
    const more = all.length > page + size
    return json(200, {
      kind: "calendar#events",
      items: all.slice(page, page + size).map(({ value }) => value),
      ...(more ? { nextPageToken: String(page + size) } : { nextSyncToken: String(this.#service.number) })
    })
  }

  #driveChanges(query: URLSearchParams): ProviderAnswer {
    const after = Number(query.get("pageToken"))
    if (this.#service.isForgotten(after)) return json(404, { error: { code: 404, message: "Page token not found" } })
    const all = this.#service.of("drive.changed", "changes").filter(({ number }) => number > after)
    const page = all.slice(0, Number(query.get("pageSize") ?? "100"))
    return json(200, {
      kind: "drive#changeList",
      changes: page.map(({ value }) => value),
      ...(page.length < all.length
        ? { nextPageToken: String(page.at(-1)?.number) }
        : { newStartPageToken: String(this.#service.number) })
    })
  }

  #driveFiles(query: URLSearchParams): ProviderAnswer {
    const files = this.#service
      .of("drive.changed", "changes")
      .toReversed()
      .map(({ value }) => value["file"])
    const from = Number(query.get("pageToken") ?? "0")
    const to = from + Number(query.get("pageSize") ?? "100")
    return json(200, { files: files.slice(from, to), ...(to < files.length ? { nextPageToken: String(to) } : {}) })
  }
}
