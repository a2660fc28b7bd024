import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ProviderAnswer, ProviderRequest } from "../src/Adapter.ts"
import { definitionOf } from "../src/SourceProviders.ts"
import { Channel } from "./Channel.ts"

const triggerOf = (provider: string, key: string) => definitionOf(provider, key)!.trigger

const now = Date.parse("2026-03-01T12:00:00.000Z")

const idsOf = (items: ReadonlyArray<{ readonly id: string }>) => items.map(({ id }) => id)

/** An endpoint whose answers a test sets. It keeps the requests. */
class Endpoint {
  readonly requests: Array<ProviderRequest> = []
  answer: Partial<Omit<ProviderAnswer, "body">> & { readonly body: string } = { body: "[]" }

  readonly call = (request: ProviderRequest) => {
    this.requests.push(request)
    const { body, ...rest } = this.answer
    return Effect.succeed<ProviderAnswer>({
      status: 200,
      headers: {},
      truncated: false,
      ...rest,
      body: Buffer.from(body)
    })
  }
}

describe("A JSON list", () => {
  const { poller } = triggerOf("json_feed", "item.added")
  const inputs = {
    url: "https://api.example/orders?state=open",
    items_path: null,
    id_path: "id",
    since_parameter: null,
    since_path: "created_at"
  }
  const contextOf = (endpoint: Endpoint, more: Partial<Record<keyof typeof inputs, string>> = {}) => ({
    call: endpoint.call,
    baseUrl: "",
    inputs: { ...inputs, ...more },
    now
  })

  it.effect("An item keeps all digits of its numbers, and is identified by them", () =>
    Effect.gen(function* () {
      const endpoint = new Endpoint()
      const { cursor } = yield* poller.poll(contextOf(endpoint), null)
      endpoint.answer = { body: '[{"id":12345678901234567891,"total":0.1000000000000000055}]' }
      const { items } = yield* poller.poll(contextOf(endpoint), cursor)
      expect(items).toMatchObject([
        {
          id: "item:12345678901234567891",
          body: '{"id":12345678901234567891,"total":0.1000000000000000055}'
        }
      ])
    })
  )

  it.effect("The next request names the version of the answer before, and an unchanged list brings nothing", () =>
    Effect.gen(function* () {
      const endpoint = new Endpoint()
      endpoint.answer = { body: "[]", headers: { etag: '"v1"', "last-modified": "Sun, 01 Mar 2026 11:00:00 GMT" } }
      const first = yield* poller.poll(contextOf(endpoint), null)
      endpoint.answer = { body: "", status: 304 }
      const second = yield* poller.poll(contextOf(endpoint), first.cursor)
      expect(second).toEqual({ items: [], cursor: first.cursor, more: false, cursorReset: false })
      expect(endpoint.requests[1]!.headers).toMatchObject({
        "if-none-match": '"v1"',
        "if-modified-since": "Sun, 01 Mar 2026 11:00:00 GMT"
      })
      yield* poller.poll(contextOf(endpoint, { url: "https://api.example/others" }), first.cursor).pipe(Effect.ignore)
      expect(endpoint.requests[2]!.headers).not.toHaveProperty("if-none-match")
    })
  )

  it.effect("With a parameter for newer items, a request asks from the newest item of before", () =>
    Effect.gen(function* () {
      const endpoint = new Endpoint()
      const context = contextOf(endpoint, { since_parameter: "from", since_path: "n" })
      endpoint.answer = { body: '[{"id":1,"n":9007199254740993},{"id":2,"n":9007199254740992}]' }
      const { cursor } = yield* poller.poll(context, null)
      endpoint.answer = { body: '[{"id":1,"n":9007199254740993},{"id":3,"n":9007199254740994}]' }
      // The cursor is stored as JSON in the meantime.
      const next = yield* poller.poll(context, cursor)
      expect(endpoint.requests.map(({ url }) => url)).toEqual([
        "https://api.example/orders?state=open",
        "https://api.example/orders?state=open&from=9007199254740993"
      ])
      expect(idsOf(next.items)).toEqual(["item:3"])
    })
  )

  it.effect("An item without an id is identified by what it is", () =>
    Effect.gen(function* () {
      const endpoint = new Endpoint()
      const { cursor } = yield* poller.poll(contextOf(endpoint), null)
      endpoint.answer = { body: '["a","b","a"]' }
      const polled = yield* poller.poll(contextOf(endpoint), cursor)
      expect(polled.items.map(({ body }) => body).toSorted()).toEqual(['"a"', '"b"'])
      expect((yield* poller.poll(contextOf(endpoint), polled.cursor)).items).toEqual([])
    })
  )

  it.effect("An item that is too large is named, without its content", () =>
    Effect.gen(function* () {
      const endpoint = new Endpoint()
      const { cursor } = yield* poller.poll(contextOf(endpoint), null)
      endpoint.answer = { body: JSON.stringify([{ id: 1, text: "x".repeat(1_048_577) }]) }
      const { items } = yield* poller.poll(contextOf(endpoint), cursor)
      expect(items[0]!.body).toBe('{"item_id":"item:1","omitted":"the item has more than 1048576 bytes"}')
    })
  )

  it.effect.each([
    ["is cut off", { body: "[1", truncated: true }],
    ["is no JSON", { body: "<html>" }],
    ["has no list", { body: '{"items":7}' }],
    ["is nested too deeply", { body: "[".repeat(100_000) }]
  ] as const)("An answer that $0 is a failure that says so", ([, answer]) =>
    Effect.gen(function* () {
      const endpoint = new Endpoint()
      endpoint.answer = answer
      const failure = yield* Effect.flip(poller.poll(contextOf(endpoint), null))
      expect(failure).toMatchObject({ code: "PROVIDER_ANSWER_INVALID", permanent: false })
    })
  )
})

describe("Several targets", () => {
  it.effect("Each target has a subscription and a cursor of its own", () =>
    Effect.gen(function* () {
      const channel = new Channel(triggerOf("watch", "calendar.event.changed"), {
        calendar_ids: ["primary", "team", "team"]
      })
      expect(channel.adapter.targets(channel.inputs)).toEqual([{ key: "calendar:primary" }, { key: "calendar:team" }])
      yield* channel.poll()
      channel.now += 1_000
      const changed = ["team", "primary", "other"].map((id) => channel.fake.change("calendar.event.changed", id))
      expect(idsOf((yield* channel.poll()).items).toSorted()).toEqual(changed.slice(0, 2).toSorted())
    })
  )

  it.effect("A target that is added later begins with what happens from then on", () =>
    Effect.gen(function* () {
      const trigger = triggerOf("graph", "message.created")
      const channel = new Channel(trigger, { folder_ids: ["inbox"] })
      channel.fake.change("message.created", "archive")
      yield* channel.poll()
      const wider = { ...channel.context, inputs: { folder_ids: ["inbox", "archive"] } }
      const added = yield* trigger.poller.poll(wider, channel.cursor)
      expect(added.items).toEqual([])
      channel.now += 1_000
      const changed = channel.fake.change("message.created", "archive")
      const polled = yield* trigger.poller.poll({ ...wider, now: channel.now }, added.cursor)
      expect(idsOf(polled.items)).toEqual([changed])
    })
  )

  it.effect("A target with very much news does not hold up the others", () =>
    Effect.gen(function* () {
      const trigger = triggerOf("watch", "calendar.event.changed")
      const channel = new Channel(trigger, { calendar_ids: ["primary", "team"] })
      yield* channel.poll()
      for (let count = 0; count < 1_500; count++) channel.fake.change("calendar.event.changed", "primary")
      const quiet = channel.fake.change("calendar.event.changed", "team")
      const first = yield* trigger.poller.poll(channel.context, channel.cursor)
      expect(first.more).toBe(true)
      const second = yield* trigger.poller.poll(channel.context, first.cursor)
      expect(second.more).toBe(false)
      const all = idsOf([...first.items, ...second.items])
      expect(all).toHaveLength(1_501)
      expect(all).toContain(quiet)
    })
  )

  it.effect("A link to another origin is refused, because it would get the credentials", () =>
    Effect.gen(function* () {
      const channel = new Channel(triggerOf("graph", "message.created"))
      const cursor = { first: null, targets: { "folder:inbox": { link: "https://evil.example/v1.0/delta" } } }
      const failure = yield* Effect.flip(channel.trigger.poller.poll(channel.context, cursor))
      expect(failure.code).toBe("ACCOUNT_ORIGIN_REFUSED")
    })
  )
})

describe("Self-hosted Git servers", () => {
  it.effect.each([
    ["https://api.github.com", "https://api.github.com/repos/acme/shop/branches"],
    ["https://git.example/api/v1", "https://git.example/api/v1/repos/acme/shop/branches"]
  ] as const)("The API at %s is read below that URL", ([baseUrl, url]) =>
    Effect.gen(function* () {
      const endpoint = new Endpoint()
      const inputs = { repository: "acme/shop", branch: null }
      yield* triggerOf("git_host", "push").poller.poll({ call: endpoint.call, baseUrl, inputs, now }, null)
      expect(endpoint.requests[0]!.url.split("?")[0]).toBe(url)
    })
  )
})

describe("WebSub discovery", () => {
  it.effect("The links of a header are found behind a title with a comma, and without it", () =>
    Effect.gen(function* () {
      const channel = new Channel(triggerOf("websub", "entry.added"))
      const asked: Array<string> = []
      for (const title of ["", '; title="a, b"']) {
        const endpoint = new Endpoint()
        endpoint.answer = {
          body: "",
          headers: { link: `<https://hub.example/>${title}; rel="hub", </feed>; rel="self"` }
        }
        const subscription = {
          id: "chn_1",
          target: "t",
          secret: "s",
          externalChannelId: null,
          externalResourceId: null,
          expiresAt: null,
          lastMessageNumber: null
        }
        const context = { ...channel.context, inputs: { url: "https://shop.example/a" }, call: endpoint.call }
        const agreed = yield* channel.adapter.provision(context, subscription, "https://gateway.test/c")
        asked.push(`${agreed.externalChannelId} ${agreed.externalResourceId}`)
      }
      expect(new Set(asked)).toEqual(new Set(["https://hub.example/ https://shop.example/feed"]))
    })
  )

  it.effect("A feed without a hub can only be polled, which is a lasting failure of notifications", () =>
    Effect.gen(function* () {
      const channel = new Channel(triggerOf("websub", "entry.added"))
      const endpoint = new Endpoint()
      endpoint.answer = { body: "<rss><channel><title>t</title></channel></rss>" }
      const subscription = {
        id: "chn_1",
        target: "t",
        secret: "s",
        externalChannelId: null,
        externalResourceId: null,
        expiresAt: null,
        lastMessageNumber: null
      }
      const context = { ...channel.context, call: endpoint.call }
      const failure = yield* Effect.flip(channel.adapter.provision(context, subscription, "https://gateway.test/c"))
      expect(failure).toMatchObject({ code: "PROVIDER_ANSWER_INVALID", permanent: true })
    })
  )

  it.effect.each(["news.atom", "news.rss", "news.json"])(
    "The hub of %s is found, and its entries have one id",
    (name) =>
      Effect.gen(function* () {
        const trigger = triggerOf("websub", "entry.added")
        const channel = new Channel(trigger)
        const url = `${channel.fake.origin}/feeds/${name}`
        Object.assign(channel.inputs, { url })
        yield* channel.poll()
        const live = yield* channel.subscribed()
        expect(live.subscription).toMatchObject({
          externalChannelId: `${channel.fake.origin}/hub`,
          externalResourceId: url
        })
        channel.now += 1_000
        const changed = channel.fake.change("entry.added", name)
        yield* channel.deliver()
        expect(idsOf(yield* channel.taken(live))).toEqual([changed])
        expect(idsOf((yield* channel.poll()).items)).toEqual([changed])
      })
  )
})

describe("A list whose pages never end", () => {
  const calendarEvent = (n: number) => ({ id: `e${n}`, status: "confirmed", updated: new Date(now + n).toISOString() })
  const account = { baseUrl: "https://provider.example", now }
  /** Asks for pages until the poll ends; each page names another one. */
  const endless = (page: (n: number) => object) => {
    let pages = 0
    const call = () =>
      Effect.sync((): ProviderAnswer => ({
        status: 200,
        headers: {},
        truncated: false,
        body: Buffer.from(JSON.stringify(page(++pages)))
      }))
    return { call, pages: () => pages }
  }

  it.effect("with items ends a poll at 1,000 items, and the next poll goes on at the next page", () =>
    Effect.gen(function* () {
      const { poller } = triggerOf("watch", "calendar.event.changed")
      const context = { ...account, inputs: { calendar_ids: ["primary"] } }
      const { cursor } = yield* poller.poll({ ...context, call: endless(() => ({ nextSyncToken: "s" })).call }, null)
      const list = endless((n) => ({
        nextPageToken: `p${n}`,
        items: Array.from({ length: 250 }, (_, i) => calendarEvent(n * 250 + i))
      }))
      const first = yield* poller.poll({ ...context, call: list.call }, cursor)
      expect([first.items.length, list.pages(), first.more]).toEqual([1_000, 4, true])
      const second = yield* poller.poll({ ...context, call: list.call }, first.cursor)
      expect([second.items.length, list.pages(), second.more]).toEqual([1_000, 8, true])
      expect(new Set(idsOf([...first.items, ...second.items])).size).toBe(2_000)
    })
  )

  it.effect("without items ends a poll after 100 pages, and the cursor stays small", () =>
    Effect.gen(function* () {
      const { poller } = triggerOf("watch", "calendar.event.changed")
      const context = { ...account, inputs: { calendar_ids: ["primary"] } }
      const { cursor } = yield* poller.poll({ ...context, call: endless(() => ({ nextSyncToken: "s" })).call }, null)
      const list = endless((n) => ({ nextPageToken: `p${n}`, items: [] }))
      const polled = yield* poller.poll({ ...context, call: list.call }, cursor)
      expect([polled.items.length, list.pages(), polled.more]).toEqual([0, 100, true])
      expect(JSON.stringify(polled.cursor).length).toBeLessThan(1_000)
      const long = endless(() => ({ nextPageToken: "p".repeat(70_000), items: [] }))
      const failure = yield* Effect.flip(poller.poll({ ...context, call: long.call }, cursor))
      expect(failure.code).toBe("PROVIDER_ANSWER_INVALID")
    })
  )

  it.effect("of followers is read for ten pages, and a page that is cut off is a failure", () =>
    Effect.gen(function* () {
      const { poller } = triggerOf("eventsub", "channel.follow")
      const context = { ...account, inputs: { broadcaster_user_id: "1", moderator_user_id: null } }
      const { cursor } = yield* poller.poll({ ...context, call: endless(() => ({ data: [] })).call }, null)
      const list = endless((n) => ({
        data: Array.from({ length: 100 }, (_, i) => ({
          user_id: String(n * 100 + i),
          user_login: "u",
          user_name: "U",
          followed_at: "2026-03-01T11:00:00Z"
        })),
        pagination: { cursor: `p${n}` }
      }))
      const polled = yield* poller.poll({ ...context, call: list.call }, cursor)
      expect([polled.items.length, list.pages()]).toEqual([1_000, 10])
      const cut = () =>
        Effect.succeed<ProviderAnswer>({ status: 200, headers: {}, truncated: true, body: Buffer.from('{"data":[') })
      expect((yield* Effect.flip(poller.poll({ ...context, call: cut }, cursor))).code).toBe("PROVIDER_ANSWER_INVALID")
    })
  )
})
