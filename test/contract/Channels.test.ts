import { createHmac } from "node:crypto"
import { expect } from "vitest"
import { FakeProviderServer } from "../support/FakeProviderServer.ts"
import type { Body, Gateway } from "../support/Gateway.ts"
import { it as gatewayIt } from "../support/it.ts"
import { eventually } from "../support/Waiting.ts"

/**
 * The whole path of provider sources: a provider notifies or is polled, its items become requests, and these are delivered and run
 * workflows. The providers are HTTP servers, and call the gateway back.
 */

const graph = "https://graph.microsoft.com"
const token = "t0ken-of-an-account"

const it = gatewayIt
  .extend("feeds", { scope: "file" }, async ({}, { onCleanup }) => {
    const server = await FakeProviderServer.start()
    onCleanup(() => server.close())
    return server
  })
  .extend("mail", { scope: "file" }, async ({}, { onCleanup }) => {
    const server = await FakeProviderServer.start(token, graph)
    onCleanup(() => server.close())
    return server
  })
  .extend("settings", { scope: "file" }, ({ mail }) => ({ TIDEGATE_API_ORIGINS: `${graph}=${mail.address}` }))

/** A provider source, as its provider and its API see it. */
class Watched {
  readonly gateway: Gateway
  readonly server: FakeProviderServer
  readonly id: string
  #events = 0

  private constructor(gateway: Gateway, server: FakeProviderServer, id: string) {
    this.gateway = gateway
    this.server = server
    this.id = id
  }

  static async make(gateway: Gateway, server: FakeProviderServer, provider: object): Promise<Watched> {
    const source = await success(gateway, "POST", "/sources", {
      name: gateway.name("provider"),
      type: "PROVIDER",
      config: { provider }
    })
    return new Watched(gateway, server, source.id)
  }

  call(method: string, path: string, body?: unknown): Promise<Body> {
    return success(this.gateway, method, `/sources/${this.id}${path}`, body)
  }

  /** Waits until `read` returns a value. Meanwhile the provider sends its callbacks. */
  until<A>(what: string, read: () => Promise<A | null | undefined>): Promise<A> {
    return eventually(what, async () => {
      await this.server.flush()
      return read()
    })
  }

  /** Waits for an event of this kind that is newer than the last one waited for, and returns it. */
  async event(kind: string): Promise<Body> {
    return this.until(`an event ${kind}`, async () => {
      const events = (await this.events()).toReversed()
      const at = events.findIndex((event, index) => index >= this.#events && event.kind === kind)
      if (at === -1) return null
      this.#events = at + 1
      return events[at]
    })
  }

  /** The newest first. */
  async events(): Promise<ReadonlyArray<Body>> {
    return (await this.call("GET", "/channel-events?limit=200")).events
  }

  /** Waits until the channel has this status. */
  async isIn(status: string): Promise<Body> {
    return this.until(`the channel is ${status}`, async () => {
      const { models } = await success(this.gateway, "GET", "/sources/channels")
      const found = models.find(({ id }: Body) => id === this.id)
      return found?.channel.status === status ? found.channel : null
    })
  }

  /** Waits for this number of requests, and returns the newest. */
  async request(count: number): Promise<Body> {
    return this.until(`${count} requests`, async () => {
      const { models } = await success(this.gateway, "GET", `/requests?source_id=${this.id}`)
      expect(models.length).toBeLessThanOrEqual(count)
      if (models.length < count) return null
      return success(this.gateway, "GET", `/requests/${models[0].id}`)
    })
  }

  /** Polls now, and returns the run. */
  async run(): Promise<Body> {
    const { id } = await this.call("POST", "/run")
    return this.until(`the run ${id} has ended`, async () => {
      const { models } = await this.call("GET", "/runs")
      return models.find((run: Body) => run.id === id && run.finished_at !== null)
    })
  }
}

const success = async (gateway: Gateway, method: string, path: string, body?: unknown): Promise<Body> => {
  const answer = await gateway.call(method, path, body)
  expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
  return answer.body
}

it("An entry of a feed becomes one request, whether its hub notifies or a poll finds it", async ({
  feeds,
  gateway,
  target
}) => {
  const { provider } = feeds
  provider.faults.sendsWholeFeeds = true
  const old = provider.change("entry.added", "news.atom")
  const feed = await Watched.make(gateway, feeds, {
    provider_key: "websub",
    definition_key: "entry.added",
    inputs: { url: `${feeds.origin}/feeds/news.atom` }
  })
  await gateway.connection({ id: feed.id }, await gateway.destination({ url: target.origin }))
  const workflow = await success(gateway, "POST", "/workflows", {
    name: gateway.name("workflow"),
    source_id: feed.id,
    steps: [
      {
        id: "shout",
        kind: "action",
        action: { provider_key: "formatter", action_key: "text.uppercase", version: "1.0.0" },
        invocation_inputs: { input: "{{trigger.body.title}}" }
      }
    ],
    edges: [{ source_type: "trigger", target_step_id: "shout" }]
  })
  await feed.event("provision_succeeded")
  expect(provider.active).toMatchObject([{ protocol: "websub", state: "active" }])
  expect(await feed.isIn("active")).toMatchObject({ expected_targets: 1, active_subscriptions: 1 })

  const entry = provider.change("entry.added", "news.atom")
  const request = await feed.request(1)
  const [delivered] = await target.next()
  const body = JSON.parse(delivered!.body.toString())
  expect(`entry:${body.id}`).toBe(entry)
  expect(entry).not.toBe(old)
  const run = await feed.until("the workflow has run", async () => {
    const { models } = await success(gateway, "GET", `/workflows/${workflow.id}/runs`)
    return models.find(({ status }: Body) => status === "succeeded")
  })
  expect(run).toMatchObject({ status: "succeeded" })
  expect(request).toMatchObject({ source_id: feed.id, verified: true })
  expect(request.data.headers).toMatchObject({
    "x-gateway-delivery-mode": "instant",
    "x-gateway-channel-id": expect.stringMatching(/^chn_/)
  })

  const test = await success(gateway, "POST", `/workflows/${workflow.id}/test`, { request_id: request.id })
  expect(test.trigger).toMatchObject({
    source: { id: feed.id, provider_key: "websub", definition_key: "entry.added", trigger_name: "Entry added" },
    delivery_mode: "instant"
  })

  // The same entry is in the list that a poll reads.
  expect(await feed.run()).toMatchObject({ status: "succeeded", reason: "manual", items_new: 0 })
  await feed.request(1)

  // An entry that was not notified.
  provider.faults.notifications = "drop"
  provider.change("entry.added", "news.atom")
  expect(await feed.run()).toMatchObject({ status: "succeeded", items_new: 1 })
  expect((await feed.request(2)).data.headers).toMatchObject({
    "x-gateway-delivery-mode": "polling",
    "x-gateway-channel-id": feed.id
  })
  await target.next()
  provider.faults.notifications = "send"

  // The hub sends all entries again, of which one is new.
  const last = provider.change("entry.added", "news.atom")
  expect(`entry:${(await feed.request(3)).data.body.id}`).toBe(last)
  provider.faults.sendsWholeFeeds = false
})

it("A subscription of a feed is renewed, replaced by polling when its hub ends it, restored, and stopped", async ({
  feeds,
  gateway
}) => {
  const { provider } = feeds
  const mine = () => provider.active.filter(({ resource }) => resource.endsWith("/life.rss"))
  const feed = await Watched.make(gateway, feeds, {
    provider_key: "websub",
    definition_key: "entry.added",
    inputs: { url: `${feeds.origin}/feeds/life.rss` }
  })
  await feed.event("provision_succeeded")
  const [first] = mine()

  // As if the lease had been short: its end is near.
  await gateway.sql(
    "update channel_subscriptions set verified_at = now() - interval '1 hour', expires_at = now() + interval '2 minutes' where source_id = $1",
    [feed.id]
  )
  await gateway.sql("update channels set due_at = now(), version = version + 1 where source_id = $1", [feed.id])
  await feed.event("renewal_succeeded")
  expect(mine()).toMatchObject([{ id: first!.id }])
  expect(Date.parse((await feed.isIn("active")).expires_at)).toBeGreaterThan(Date.now() + 86_400_000)

  provider.revoke()
  expect((await feed.event("subscription_revoked")).severity).toBe("error")
  await feed.event("fallback_activated")
  expect((await feed.isIn("fallback")).fallback).toMatchObject({ active: true, reason: "subscription_revoked" })
  provider.change("entry.added", "life.rss")
  expect(await feed.run()).toMatchObject({ status: "succeeded", items_new: 1 })
  await feed.request(1)

  // Happens before the restore, and is found by its last poll.
  provider.change("entry.added", "life.rss")
  expect((await gateway.call("POST", `/sources/${feed.id}/channel-retry`)).status).toBe(202)
  await feed.event("restore_attempted")
  await feed.event("fallback_restored")
  await feed.request(2)
  provider.change("entry.added", "life.rss")
  await feed.request(3)
  expect((await feed.isIn("active")).fallback).toMatchObject({ active: false })
  expect(mine().length).toBe(1)

  await feed.call("PUT", "/disable")
  await feed.event("stopped")
  await feed.until("the hub has ended the subscription", async () => (mine().length === 0 ? true : null))
  expect(await feed.isIn("connecting")).toMatchObject({ status_reason: "source_disabled" })
  await feed.call("PUT", "/enable")
  await feed.event("provision_succeeded")
  expect(mine().length).toBe(1)

  await success(gateway, "DELETE", `/sources/${feed.id}`)
  await feed.until("the channel is gone", async () => {
    const rows = await gateway.sql("select 1 from channels where source_id = $1", [feed.id])
    return rows.length === 0 && mine().length === 0 ? true : null
  })
})

it("A source with an account is notified of changes, stops with its account, and goes on when it is connected again", async ({
  gateway,
  mail
}) => {
  const { provider } = mail
  const connect = (more: object = {}) =>
    success(gateway, "POST", "/provider-accounts/credentials/connect", {
      provider_key: "graph",
      name: "ada",
      credentials: { token },
      ...more
    })
  const account = await connect()
  const inbox = await Watched.make(gateway, mail, {
    provider_key: "graph",
    definition_key: "message.created",
    provider_account_id: account.id,
    inputs: {}
  })
  await inbox.event("provision_succeeded")
  expect(provider.active).toMatchObject([{ protocol: "graph" }])
  // The poll after the subscription would find the message as well.
  await inbox.until("the polls before and after the subscription have ended", async () => {
    const { models } = await inbox.call("GET", "/runs")
    return models.filter((run: Body) => run.finished_at !== null).length > 1 ? true : null
  })

  const message = provider.change("message.created")
  const first = await inbox.request(1)
  expect(`message:${first.data.body.id}`).toBe(message)
  expect(first.data.headers).toMatchObject({ "x-gateway-delivery-mode": "instant" })

  expect(await success(gateway, "DELETE", `/provider-accounts/${account.id}`)).toMatchObject({
    status: "disabled",
    channels_stopped: 1,
    channels_failed: 0
  })
  expect(await inbox.isIn("error")).toMatchObject({ status_reason: "account_revoked", active_subscriptions: 0 })
  await inbox.event("account_disconnected")
  expect(provider.active).toEqual([])
  provider.change("message.created")

  expect((await connect({ account_id: account.id })).id).toBe(account.id)
  await inbox.event("account_reconnected")
  await inbox.isIn("active")
  expect(provider.active.length).toBe(1)
  // What happened meanwhile, and what happens now.
  await inbox.request(2)
  provider.change("message.created")
  await inbox.request(3)
})

it("Strangers who flood the callbacks of a feed are refused or bounded, and senders of other sources are served", async ({
  feeds,
  gateway,
  target
}) => {
  const { provider } = feeds
  const feed = await Watched.make(gateway, feeds, {
    provider_key: "websub",
    definition_key: "entry.added",
    inputs: { url: `${feeds.origin}/feeds/strange.atom` }
  })
  await feed.isIn("active")
  const { callback, resource, secret } = provider.active.find((one) => one.resource.endsWith("/strange.atom"))!
  const plain = await gateway.source()
  await gateway.connection(plain, await gateway.destination({ url: target.origin }))

  const send = async (method: string, url: string, key: string | null = null, body?: string): Promise<number> => {
    const signature =
      key === null
        ? ""
        : `sha256=${createHmac("sha256", key)
            .update(body ?? "")
            .digest("hex")}`
    const headers = { "content-type": "application/atom+xml", "x-hub-signature": signature }
    const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) })
    await response.arrayBuffer()
    return response.status
  }
  const atom = (entry: string, type = "") => `${type}<feed xmlns="http://www.w3.org/2005/Atom">${entry}</feed>`
  const entry = (id: string, title: string) => `<entry><id>${id}</id><title>${title}</title></entry>`
  // Each entity is ten times the one before: a billion letters, if they were expanded.
  const entities = Array.from({ length: 9 }, (_, n) => `<!ENTITY e${n + 1} "${`&e${n};`.repeat(10)}">`).join("")
  const bomb = atom(entry("bomb", "&e9;"), `<!DOCTYPE feed [<!ENTITY e0 "x">${entities}]>`)
  const large = atom(entry("large", "x").repeat(240_000)).slice(0, 10 * 1_048_576)
  const unknown = callback.replace(/.{43}$/, (token) => token.replaceAll(/./g, "x"))
  const handshake = new URLSearchParams({ "hub.mode": "subscribe", "hub.topic": resource, "hub.challenge": "again" })

  const strangers = [
    { times: 100, status: 404, does: () => send("POST", unknown, secret, bomb) },
    { times: 50, status: 200, does: () => send("GET", `${callback}?${handshake.toString()}`) },
    { times: 50, status: 404, does: () => send("GET", `${callback}?${handshake.toString()}&hub.mode=unsubscribe`) },
    { times: 50, status: 202, does: () => send("POST", callback, "guessed", atom(entry("forged", "x"))) },
    { times: 4, status: 202, does: () => send("POST", callback, "guessed", large) },
    { times: 4, status: 202, does: () => send("POST", callback, secret, large) },
    { times: 4, status: 413, does: () => send("POST", callback, secret, large.padEnd(11 * 1_048_576, " ")) },
    { times: 10, status: 202, does: () => send("POST", callback, secret, bomb) }
  ]
  const flood = Promise.all(
    strangers.map(async ({ does, times }) => {
      const statuses: Array<number> = []
      for (let n = 0; n < times; n++) statuses.push(await does())
      return statuses
    })
  )
  const serve = async (): Promise<ReadonlyArray<number>> => {
    const statuses: Array<number> = []
    for (let n = 0; n < 50; n++) {
      statuses.push(await send("POST", `${gateway.origin}/e/${plain.id}`, null, JSON.stringify({ n })))
    }
    return statuses
  }
  const [flooded, served] = await Promise.all([flood, serve()])
  expect(served).toEqual(Array.from({ length: 50 }, () => 200))
  expect(flooded).toEqual(strangers.map(({ status, times }) => Array.from({ length: times }, () => status)))
  const delivered = await target.next(50)
  expect(new Set(delivered.map(({ body }) => body.toString())).size).toBe(50)

  // Of the bombs one entry has come, with what stands in its title.
  const { data } = await feed.request(1)
  expect(data.body).toMatchObject({ id: "bomb", title: expect.stringMatching(/^.{0,10}$/) })
  const kinds = (await feed.events()).map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind === "handshake_verified").length).toBe(1)
  const [counts] = await gateway.sql(
    `select sum(value) filter (where metric = 'notifications_rejected')::int as rejected,
       sum(value) filter (where metric = 'handshakes')::int as handshakes
     from channel_metrics where source_id = $1`,
    [feed.id]
  )
  expect(counts).toEqual({ rejected: 54, handshakes: 51 })
  // What is notified now arrives as before.
  provider.change("entry.added", "strange.atom")
  await feed.request(2)
})
