import { receive } from "./receive.ts"
import { describe, expect, it } from "@effect/vitest"
import type { calendar_v3 } from "@googleapis/calendar"
import type { drive_v3 } from "@googleapis/drive"
import type { ChangeNotificationCollection, DriveItem, Message, Subscription } from "@microsoft/microsoft-graph-types"
import examples from "@octokit/webhooks-examples/api.github.com/index.json" with { type: "json" }
import { sign } from "@octokit/webhooks-methods"
import { EventSubMiddleware } from "@twurple/eventsub-http"
import { Effect } from "effect"
import { Readable } from "node:stream"
import vectors from "../../verification/test/fixtures/providers/vectors.json" with { type: "json" }
import type { CallbackMessage, ProviderAnswer } from "../src/Adapter.ts"
import type { Trigger } from "../src/SourceProvider.ts"
import { definitionOf } from "../src/SourceProviders.ts"
import { FakeProvider } from "./fake/FakeProvider.ts"
import type { FakeCallback } from "./fake/Service.ts"

/**
 * Messages that others wrote: payloads and signatures of Octokit's packages, signatures that OpenSSL computed or that Twurple
 * accepts, and answers that have the published types of Google and Microsoft.
 */
const triggerOf = (provider: string, key: string): Trigger => definitionOf(provider, key)!.trigger

const now = Date.parse("2026-03-01T12:00:00.000Z")

const subscription = {
  id: "chn_00000000000000000000000001",
  target: "t:1",
  secret: "s3cret",
  externalChannelId: null,
  externalResourceId: null,
  expiresAt: null,
  lastMessageNumber: null
}

const message = (of: Partial<CallbackMessage>): CallbackMessage => ({
  method: "POST",
  query: "",
  headers: {},
  body: new Uint8Array(),
  receivedAt: now,
  ...of
})

/** Every request gets this answer. */
const answering = (value: object) => () =>
  Effect.succeed<ProviderAnswer>({
    status: 200,
    headers: { date: new Date(now).toUTCString() },
    body: Buffer.from(JSON.stringify(value)),
    truncated: false
  })

describe("Webhooks of GitHub", () => {
  const inputs = { repository: "Codertocat/Hello-World", branch: null }
  const payloads = (event: string): ReadonlyArray<object> =>
    (examples as ReadonlyArray<{ readonly name: string; readonly examples: ReadonlyArray<object> }>).find(
      ({ name }) => name === event
    )!.examples

  const received = (key: string, event: string, payload: object) =>
    Effect.map(
      Effect.promise(() => sign(subscription.secret, JSON.stringify(payload))),
      (signature) =>
        receive(
          triggerOf("git_host", key).adapter!,
          subscription,
          inputs,
          message({
            headers: { "x-github-event": event, "x-hub-signature-256": signature },
            body: Buffer.from(JSON.stringify(payload))
          })
        )
    )

  it.effect("Every payload of Octokit's examples is genuine, and brings one item or none", () =>
    Effect.gen(function* () {
      for (const key of ["push", "issue.changed", "release.published"]) {
        for (const event of ["push", "issues", "issue_comment", "release", "ping", "star", "create", "delete"]) {
          for (const payload of payloads(event)) {
            const got = yield* received(key, event, payload)
            expect(["items", "ping"]).toContain(got.kind)
          }
        }
      }
    })
  )

  it.effect("A push of a branch brings an item, and a push of a tag or the end of a branch brings none", () =>
    Effect.gen(function* () {
      for (const payload of payloads("push") as ReadonlyArray<{ ref: string; after: string; deleted: boolean }>) {
        const got = yield* received("push", "push", payload)
        const isBranch = payload.ref.startsWith("refs/heads/") && !payload.deleted
        if (isBranch) expect(got).toMatchObject({ items: [{ id: `push:${payload.ref}:${payload.after}` }] })
        else expect(got.kind).toBe("ping")
      }
    })
  )

  it.effect("The item of an issue is the one that the list of issues gives", () =>
    Effect.gen(function* () {
      const trigger = triggerOf("git_host", "issue.changed")
      for (const payload of payloads("issues") as ReadonlyArray<{ issue: { updated_at: string } }>) {
        const got = yield* received("issue.changed", "issues", payload)
        const context = { baseUrl: "https://api.github.com", inputs, now }
        const { cursor } = yield* trigger.poller.poll({ ...context, call: answering([]) }, null)
        const { items } = yield* trigger.poller.poll({ ...context, call: answering([payload.issue]) }, cursor)
        // Some of the payloads are of pull requests.
        const isIssue = !("pull_request" in payload.issue)
        expect(items).toHaveLength(isIssue ? 1 : 0)
        if (isIssue) expect(got).toMatchObject({ kind: "items", items: [{ id: items[0]!.id }] })
        else expect(got.kind).toBe("ping")
      }
    })
  )

  it.effect("Only a published release brings an item", () =>
    Effect.gen(function* () {
      for (const payload of payloads("release") as ReadonlyArray<{ action: string; release: { id: number } }>) {
        const got = yield* received("release.published", "release", payload)
        if (payload.action === "published") {
          expect(got).toMatchObject({ kind: "items", items: [{ id: `release:${payload.release.id}` }] })
        } else expect(got.kind).toBe("ping")
      }
    })
  )
})

describe("EventSub messages of Twitch", () => {
  const { auth, request } = vectors.find(({ type }) => type === "TWITCH")!
  const twitch = triggerOf("eventsub", "stream.online").adapter!
  const signed = { ...subscription, secret: auth["webhook_secret_key" as never] as string }
  const headers = { ...(request.headers as Record<string, string>), "twitch-eventsub-message-type": "notification" }
  const at = (receivedAt: number) => message({ headers, body: Buffer.from(request.body), receivedAt })

  it("A signature that OpenSSL computed is genuine for ten minutes", () => {
    const sentAt = Date.parse(headers["twitch-eventsub-message-timestamp" as never])
    expect(receive(twitch, signed, {}, at(sentAt + 599_000)).kind).not.toBe("rejected")
    expect(receive(twitch, signed, {}, at(sentAt + 601_000)).kind).toBe("rejected")
    expect(receive(twitch, signed, {}, at(sentAt - 301_000)).kind).toBe("rejected")
    expect(receive(twitch, { ...signed, secret: "another" }, {}, at(sentAt)).kind).toBe("rejected")
  })

  /** A receiver that others wrote, with the secret of a subscription to `stream.online` of user 1337. */
  const twurple = async (secret: string) => {
    const receiver = new EventSubMiddleware({
      managed: false,
      clientId: "client",
      hostName: "receiver.test",
      secret,
      strictHostCheck: false,
      logger: { minLevel: "critical" }
    })
    const got: Array<string> = []
    receiver.onStreamOnline("1337", (event) => void got.push(`${event.broadcasterId} ${event.startDate.toISOString()}`))
    receiver.onRevoke((_, status) => void got.push(status))
    const handlers: Array<(request: object, response: object, next: (error: unknown) => void) => Promise<void>> = []
    receiver.apply({ post: (_: string, handler: never) => handlers.push(handler), get: () => {} } as never)
    const send = async ({ body, headers }: FakeCallback) => {
      const answer = { status: 0, body: "" }
      const request = Object.assign(Readable.from([Buffer.from(body)]), {
        headers,
        params: { id: "stream.online.1337" }
      })
      const response = {
        setHeader: () => {},
        writeHead: (status: number) => void (answer.status = status),
        end: (text: string) => void (answer.body = text)
      }
      await handlers[0]!(request, response, (error) => {
        throw error
      })
      return answer
    }
    return { got, send }
  }

  for (const signature of ["right", "wrong"] as const) {
    it(`Twurple and the gateway agree about messages whose signature is ${signature}`, async () => {
      const at = Math.floor(Date.now() / 1_000) * 1_000
      const provider = new FakeProvider({ origin: "https://api.twitch.tv", now: () => at })
      provider.faults.signature = signature
      const { secret } = signed
      const { send, got } = await twurple(secret)
      const answers: Array<readonly [theirs: number, ours: string]> = []
      const both = async () => {
        for (const callback of provider.takeCallbacks()) {
          const theirs = await send(callback)
          const ours = receive(
            twitch,
            signed,
            { broadcaster_user_id: "1337" },
            {
              ...message({ headers: callback.headers, body: Buffer.from(callback.body), receivedAt: at })
            }
          )
          const isConfirmed = ours.kind === "handshake" && ours.accepted
          answers.push([theirs.status, ours.kind === "handshake" && !isConfirmed ? "rejected" : ours.kind])
          if (isConfirmed) expect(ours.reply.body).toBe(theirs.body)
          // A provider that does not know its own secret goes on.
          provider.answered(
            callback,
            signature === "right" ? theirs : { status: 200, body: JSON.parse(callback.body).challenge }
          )
        }
      }
      provider.handle({
        method: "POST",
        url: "https://api.twitch.tv/helix/eventsub/subscriptions",
        authorized: true,
        body: JSON.stringify({
          type: "stream.online",
          version: "1",
          condition: { broadcaster_user_id: "1337" },
          transport: { method: "webhook", callback: "https://receiver.test/event", secret }
        })
      })
      await both()
      provider.change("stream.online", "1337")
      await both()
      provider.revoke()
      await both()
      expect(answers).toEqual(
        signature === "right"
          ? [
              [200, "handshake"],
              [202, "items"],
              [202, "lifecycle"]
            ]
          : Array.from({ length: 3 }, () => [410, "rejected"])
      )
      expect(got).toEqual(signature === "right" ? [`1337 ${new Date(at).toISOString()}`, "authorization_revoked"] : [])
    })
  }

  it.effect("The follower of a notification is the one that the list of followers gives", () =>
    Effect.gen(function* () {
      const trigger = triggerOf("eventsub", "channel.follow")
      const inputs = { broadcaster_user_id: "1337", moderator_user_id: null }
      const follower = { user_id: "1234", user_login: "cool_user", user_name: "Cool_User" }
      const list = { total: 1, data: [{ ...follower, followed_at: "2020-07-15T18:16:11Z" }], pagination: {} }
      const context = { baseUrl: "https://api.twitch.tv", inputs, now }
      const { cursor } = yield* trigger.poller.poll({ ...context, call: answering({ data: [] }) }, null)
      const { items } = yield* trigger.poller.poll({ ...context, call: answering(list) }, cursor)
      expect(items[0]!.id).toBe(`follow:1337:1234:${Date.parse("2020-07-15T18:16:11Z") / 1_000}`)
    })
  )
})

describe("Answers of Google", () => {
  it.effect("A watch channel of the published type is taken", () =>
    Effect.gen(function* () {
      const channel: calendar_v3.Schema$Channel = {
        kind: "api#channel",
        id: subscription.id,
        resourceId: "o3hgv1538sdjfh",
        resourceUri: "https://www.googleapis.com/calendar/v3/calendars/primary/events",
        expiration: "1426325213000"
      }
      const { adapter } = triggerOf("watch", "calendar.event.changed")
      const context = { baseUrl: "https://www.googleapis.com", inputs: { calendar_ids: ["primary"] }, now }
      const provisioned = yield* adapter!.provision(
        { ...context, call: answering(channel) },
        subscription,
        "https://gateway.test/channels/x"
      )
      expect(provisioned).toMatchObject({ externalResourceId: "o3hgv1538sdjfh", expiresAt: 1_426_325_213_000 })
    })
  )

  it.effect("Events and changes of the published types are read", () =>
    Effect.gen(function* () {
      const events: calendar_v3.Schema$Events = {
        kind: "calendar#events",
        nextSyncToken: "CPDAlvWDx70CEPDAlvWDx70CGAU=",
        items: [{ id: "e1", status: "cancelled", updated: "2026-03-01T11:00:00.123Z" }]
      }
      const calendar = triggerOf("watch", "calendar.event.changed").poller
      const of = { baseUrl: "https://www.googleapis.com", inputs: { calendar_ids: ["primary"] }, now }
      const primed = yield* calendar.poll({ ...of, call: answering({ nextSyncToken: "s" }) }, null)
      const { items } = yield* calendar.poll({ ...of, call: answering(events) }, primed.cursor)
      expect(items.map(({ id }) => id)).toEqual(["event:primary:e1:2026-03-01T11:00:00.123Z"])

      const token: drive_v3.Schema$StartPageToken = { startPageToken: "1" }
      const changes: drive_v3.Schema$ChangeList = {
        newStartPageToken: "3",
        changes: [
          { changeType: "file", fileId: "f1", removed: true, time: "2026-03-01T11:00:00.000Z" },
          { changeType: "file", fileId: "f2", removed: false, file: { id: "f2", version: "12345678901234567" } }
        ]
      }
      const drive = triggerOf("watch", "drive.changed").poller
      const begun = yield* drive.poll({ ...of, inputs: {}, call: answering(token) }, null)
      const found = yield* drive.poll({ ...of, inputs: {}, call: answering(changes) }, begun.cursor)
      expect(found.items.map(({ id }) => id)).toEqual([
        "file:f1:removed:2026-03-01T11:00:00.000Z",
        "file:f2:12345678901234567"
      ])
    })
  )
})

describe("Answers of Microsoft Graph", () => {
  const inbox = { folder_ids: ["inbox"] }

  it.effect("A subscription of the published type is taken, and a notification of the published type is ours", () =>
    Effect.gen(function* () {
      const { adapter } = triggerOf("graph", "message.created")
      const created: Subscription = {
        id: "7f105c7d-2dc5-4530-97cd-4e7ae6534c07",
        resource: "me/mailFolders('inbox')/messages",
        expirationDateTime: "2026-03-04T18:23:45.9356913Z"
      }
      const context = { baseUrl: "https://graph.microsoft.com", inputs: inbox, now, call: answering(created) }
      const provisioned = yield* adapter!.provision(context, subscription, "https://gateway.test/channels/x")
      expect(provisioned).toMatchObject({ externalChannelId: created.id, state: "active" })
      expect(provisioned.expiresAt).toBe(Date.parse("2026-03-04T18:23:45.935Z"))
      const notified = (clientState: string): ChangeNotificationCollection => ({
        value: [
          {
            subscriptionId: "7f105c7d-2dc5-4530-97cd-4e7ae6534c07",
            changeType: "created",
            clientState,
            resource: "Users/1/Messages/2",
            tenantId: "84bd8158-6d4d-4958-8b9f-9d6445542f95",
            subscriptionExpirationDateTime: "2026-03-04T18:23:45.9356913Z"
          }
        ]
      })
      const kindOf = (clientState: string) =>
        receive(adapter!, subscription, inbox, message({ body: Buffer.from(JSON.stringify(notified(clientState))) }))
          .kind
      expect(kindOf(subscription.secret)).toBe("dirty")
      expect(kindOf("another")).toBe("rejected")
    })
  )

  it.effect("Messages and drive items of the published types are read", () =>
    Effect.gen(function* () {
      const mail: Message = { id: "AAMk=", subject: "Hello", receivedDateTime: "2026-03-01T11:00:00Z" }
      const file: DriveItem = { id: "01", name: "a.txt", eTag: '"{01},2"', file: {} }
      const link = "https://graph.microsoft.com/v1.0/delta?token=1"
      const root: DriveItem = { id: "00", name: "root", root: {} }
      for (const [key, values, ids] of [
        ["message.created", [mail], ["message:AAMk="]],
        [
          "drive_item.changed",
          [root, file, { id: "02", deleted: {} }],
          ['drive_item:01:"{01},2"', "drive_item:02:deleted"]
        ]
      ] as const) {
        const { poller } = triggerOf("graph", key)
        const of = { baseUrl: "https://graph.microsoft.com", inputs: inbox, now }
        const empty = { value: [], "@odata.deltaLink": link }
        const { cursor } = yield* poller.poll({ ...of, call: answering(empty) }, null)
        const { items } = yield* poller.poll({ ...of, call: answering({ ...empty, value: values }) }, cursor)
        expect(items.map(({ id }) => id)).toEqual(ids)
      }
    })
  )
})
