import type { ProviderAnswer } from "../../src/Adapter.ts"
import {
  iso,
  hmac,
  sha1,
  json,
  type FakeCallback,
  type FakeSubscription,
  type FakeTrigger,
  type Change,
  type Service,
  type Routes
} from "./Service.ts"

/** Repositories, and their webhooks. */
export class FakeRepositories {
  readonly #service: Service

  constructor(service: Service) {
    this.#service = service
  }

  readonly routes: Routes = [
    ["POST", /^\/repos\/([^/]+\/[^/]+)\/hooks$/, ([repo = ""], _, body) => this.#createHook(repo, body)],
    ["GET", /^\/repos\/([^/]+\/[^/]+)\/hooks$/, ([repo = ""]) => this.#hooks(repo)],
    ["DELETE", /^\/repos\/[^/]+\/[^/]+\/hooks\/(\d+)$/, ([id = ""]) => this.#service.end(id)],
    ["GET", /^\/repos\/([^/]+\/[^/]+)\/branches$/, ([repo = ""], query) => this.#branches(repo, query)],
    ["GET", /^\/repos\/([^/]+\/[^/]+)\/issues$/, ([repo = ""], query) => this.#issues(repo, query)],
    ["GET", /^\/repos\/([^/]+\/[^/]+)\/releases$/, ([repo = ""], query) => this.#releases(repo, query)],
    ["GET", /^\/user$/, () => json(200, { id: 7, login: "acme-bot", email: "bot@acme.example" })]
  ]

  #createHook(repo: string, body: string): ProviderAnswer {
    const asked = JSON.parse(body) as { events: ReadonlyArray<string>; config: { url: string; secret: string } }
    const known = [...this.#service.subscriptions.values()].some(
      (one) => one.protocol === "repo_webhook" && one.callback === asked.config.url
    )
    if (known) {
      return json(422, {
        message: "Validation Failed",
        errors: [{ resource: "Hook", code: "custom", message: "Hook already exists on this repository" }]
      })
    }
    const triggers: Record<string, FakeTrigger> = {
      push: "push",
      issues: "issue.changed",
      release: "release.published"
    }
    const subscription = this.#service.keep({
      id: String(100 + ++this.#service.number),
      protocol: "repo_webhook",
      callback: asked.config.url,
      secret: asked.config.secret,
      resource: repo,
      watches: (trigger, target) => target === repo && asked.events.some((event) => triggers[event] === trigger),
      state: "active"
    })
    const ping = this.#signed(subscription, "ping", { zen: "Design for failure.", hook_id: Number(subscription.id) })
    this.#service.shake(subscription, ping, "ping")
    return json(201, this.#hookShown(subscription))
  }

  #hookShown({ callback, id }: FakeSubscription) {
    return { id: Number(id), name: "web", active: true, config: { url: callback, content_type: "json" } }
  }

  #hooks(repo: string): ProviderAnswer {
    const all = [...this.#service.subscriptions.values()].filter(
      (one) => one.protocol === "repo_webhook" && one.resource === repo
    )
    return json(
      200,
      all.map((one) => this.#hookShown(one))
    )
  }

  #signed({ id, messages, secret }: FakeSubscription, event: string, payload: unknown): Partial<FakeCallback> {
    const body = JSON.stringify(payload)
    const key = this.#service.faults.signature === "right" ? secret : "another"
    return {
      headers: {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": sha1(`${id} ${messages} ${body}`).slice(0, 36),
        "x-hub-signature-256": `sha256=${hmac("sha256", key, body)}`
      },
      body
    }
  }

  message(subscription: FakeSubscription, { target, trigger, value }: Change): Partial<FakeCallback> {
    subscription.messages++
    const repository = { id: 1, full_name: target, name: target.split("/")[1] }
    if (trigger === "push") {
      const { branch, sha } = value as { branch: string; sha: string }
      const commits = [{ id: sha, message: "Work", timestamp: iso(this.#service.now()) }]
      const payload = {
        ref: `refs/heads/${branch}`,
        before: sha1("0"),
        after: sha,
        deleted: false,
        commits,
        repository
      }
      return this.#signed(subscription, "push", payload)
    }
    return trigger === "issue.changed"
      ? this.#signed(subscription, "issues", { action: "opened", issue: value, repository })
      : this.#signed(subscription, "release", { action: "published", release: value, repository })
  }

  #paged(all: ReadonlyArray<unknown>, query: URLSearchParams): ProviderAnswer {
    const size = Number(query.get("per_page") ?? query.get("limit") ?? "30")
    const page = Number(query.get("page") ?? "1")
    const to = page * size
    return json(200, all.slice(to - size, to), {
      date: new Date(this.#service.now()).toUTCString(),
      ...(to < all.length ? { link: `<${this.#service.origin}/?page=${page + 1}>; rel="next"` } : {})
    })
  }

  #branches(repo: string, query: URLSearchParams): ProviderAnswer {
    const newest = new Map(this.#service.of("push", repo).map(({ value }) => [value["branch"], value["sha"]]))
    return this.#paged(
      [...newest].map(([name, sha]) => ({
        name,
        commit: { sha, url: `${this.#service.origin}/commits/${String(sha)}` }
      })),
      query
    )
  }

  #issues(repo: string, query: URLSearchParams): ProviderAnswer {
    const since = Date.parse(query.get("since") ?? "")
    const all = this.#service
      .of("issue.changed", repo)
      .filter(({ at }) => Number.isNaN(since) || Math.floor(at / 1_000) * 1_000 >= since)
    return this.#paged(
      (query.get("direction") === "asc" ? all : all.toReversed()).map(({ value }) => value),
      query
    )
  }

  #releases(repo: string, query: URLSearchParams): ProviderAnswer {
    return this.#paged(
      this.#service
        .of("release.published", repo)
        .toReversed()
        .map(({ value }) => value),
      query
    )
  }
}
