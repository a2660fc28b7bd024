import { Effect } from "effect"
import type { Context, Item, ProviderError } from "../Adapter.ts"
import { getJson, getPage, invalid } from "../adapters/Answers.ts"
import { watchAdapter } from "../adapters/Watch.ts"
import { listOf, memberOf, objectOf, textOf, timeOf } from "../Foreign.ts"
import { itemId, itemOf, maxItems, writing } from "../Items.ts"
import { pageSize, type Step, walkPoller } from "../pollers/Walk.ts"
import { withQuery } from "../Query.ts"
import type { SourceProvider } from "../SourceProvider.ts"
import { aText, bearer, idIn, ids, maybeText, shape, targetsOf, theData, tokenField } from "./Inputs.ts"

/* Calendar and Drive of Google. Both answer changes after a token; a token that has become too old is replaced by a bounded list. */

const day = 86_400_000

/** If a sync token is lost, a list replaces it. It goes back this far; the calendar keeps deleted events for about as long. */
const furthest = 20 * day

const calendarTargets = (inputs: { readonly [name: string]: unknown }) => targetsOf("calendar", inputs["calendar_ids"])

const eventsUrl = ({ baseUrl }: Context, target: string): string =>
  `${baseUrl}/calendar/v3/calendars/${encodeURIComponent(idIn(target))}/events`

const eventItem = (target: string, event: unknown): Item => {
  const [id, updated] = [textOf(event, "id") ?? "", textOf(event, "updated")]
  return itemOf(
    itemId("event", idIn(target), id, updated ?? ""),
    {
      calendar_id: idIn(target),
      id,
      status: textOf(event, "status"),
      summary: textOf(event, "summary"),
      updated_at: updated,
      data: event
    },
    timeOf(updated)
  )
}

/** A sync token comes with the last page of all events, so the pages are read without the events. `since`: what to list afterwards. */
const primeCalendar = (
  context: Context,
  target: string,
  page: string | null,
  since: string | null
): Effect.Effect<Step, ProviderError> =>
  Effect.gen(function* () {
    const what = "reading where the calendar's changes begin"
    const parameters = { maxResults: "2500", fields: "nextPageToken,nextSyncToken", pageToken: page }
    const answer = yield* getJson(context, withQuery(eventsUrl(context, target), parameters), what)
    const [next, token] = [textOf(answer, "nextPageToken"), textOf(answer, "nextSyncToken")]
    if (next !== null) return { items: [], state: { prime: next, since }, more: true }
    if (token === null) return yield* invalid(`${what}: the answer has no token`)
    const updated = new Date(context.now).toISOString()
    return since === null
      ? { items: [], state: { token, updated }, more: false }
      : { items: [], state: { token, updated, list: { since, page: null, left: maxItems } }, more: true }
  })

const calendarPoll = walkPoller({
  key: "watch",
  targets: calendarTargets,
  start: (context, target) => primeCalendar(context, target, null, null),
  next: (context, target, state) =>
    Effect.gen(function* () {
      const what = "reading the calendar's changes"
      const prime = textOf(state, "prime")
      if (prime !== null) return yield* primeCalendar(context, target, prime, textOf(state, "since"))
      const token = textOf(state, "token") ?? ""
      const updated = textOf(state, "updated")
      const list = memberOf(state, "list")
      const page = textOf(list, "page") ?? textOf(state, "page")
      const url = withQuery(eventsUrl(context, target), {
        maxResults: String(pageSize),
        pageToken: page,
        ...(list === undefined
          ? { syncToken: token }
          : { orderBy: "updated", showDeleted: "true", updatedMin: textOf(list, "since") })
      })
      const { status, value } = yield* getPage(context, url, what, list === undefined ? [410] : [])
      if (status === 410) {
        // The token is too old: a new one first, and then what has changed in the meantime, so that nothing falls between them.
        const since = Math.max(timeOf(updated) ?? 0, context.now - furthest)
        return yield* primeCalendar(context, target, null, new Date(since).toISOString())
      }
      const events = listOf(value, "items")
      const items = yield* writing(events.map((event) => () => eventItem(target, event)))
      const next = textOf(value, "nextPageToken")
      if (list !== undefined) {
        const left = Number(memberOf(list, "left") ?? 0) - items.length
        const rest = { token, updated }
        return next === null || left <= 0
          ? { items, state: rest, more: false, reset: true as const }
          : {
              items,
              state: { ...rest, list: { ...objectOf(list), page: next, left } as never },
              more: true,
              reset: true as const
            }
      }
      if (next !== null) return { items, state: { token, page: next, updated }, more: true }
      const sync = textOf(value, "nextSyncToken")
      if (sync === null) return yield* invalid(`${what}: the answer has no token`)
      return { items, state: { token: sync, updated: new Date(context.now).toISOString() }, more: false }
    })
})

const driveTarget = { key: "changes" } as const

const changesUrl = ({ baseUrl }: Context): string => `${baseUrl}/drive/v3/changes`

const startToken = (context: Context): Effect.Effect<string, ProviderError> => {
  const what = "reading where the drive's changes begin"
  return Effect.flatMap(
    getJson(context, `${changesUrl(context)}/startPageToken?supportsAllDrives=true`, what),
    (answer) => {
      const token = textOf(answer, "startPageToken")
      return token === null ? Effect.fail(invalid(`${what}: the answer has no token`)) : Effect.succeed(token)
    }
  )
}

const fileFields =
  "kind,id,name,mimeType,version,trashed,parents,size,modifiedTime,webViewLink,owners,lastModifyingUser"

/** A file's version grows with each of its changes, so that a list of files and a list of changes name the same change. */
const changeItem = (change: unknown): Item => {
  const file = memberOf(change, "file")
  const id = textOf(change, "fileId") ?? textOf(change, "driveId") ?? ""
  const [changedAt, version] = [textOf(change, "time"), textOf(file, "version")]
  return itemOf(
    itemId("file", id, version ?? `removed:${changedAt ?? ""}`),
    {
      file_id: id,
      name: textOf(file, "name"),
      removed: memberOf(change, "removed") === true,
      changed_at: changedAt,
      data: change
    },
    timeOf(changedAt)
  )
}

/** A file of a list, as the change that made it what it is. */
const changeOf = (file: unknown) => ({
  kind: "drive#change",
  changeType: "file",
  time: textOf(file, "modifiedTime"),
  removed: false,
  fileId: textOf(file, "id"),
  file
})

const drivePoll = walkPoller({
  key: "watch",
  targets: () => [driveTarget],
  start: (context) => Effect.map(startToken(context), (token) => ({ items: [], state: { token }, more: false })),
  next: (context, _, state) =>
    Effect.gen(function* () {
      const what = "reading the drive's changes"
      const token = textOf(state, "token") ?? ""
      const list = memberOf(state, "list")
      if (list !== undefined) {
        const url = withQuery(`${context.baseUrl}/drive/v3/files`, {
          pageSize: String(pageSize),
          orderBy: "modifiedTime desc",
          fields: `nextPageToken,files(${fileFields})`,
          pageToken: textOf(list, "page")
        })
        const value = yield* getJson(context, url, what)
        const items = yield* writing(listOf(value, "files").map((file) => () => changeItem(changeOf(file))))
        const [next, left] = [textOf(value, "nextPageToken"), Number(memberOf(list, "left") ?? 0) - items.length]
        const isOver = next === null || left <= 0
        return {
          items,
          state: isOver ? { token } : { token, list: { page: next, left } },
          more: !isOver,
          reset: true as const
        }
      }
      const url = withQuery(changesUrl(context), {
        pageToken: token,
        pageSize: String(pageSize),
        includeRemoved: "true",
        supportsAllDrives: "true",
        includeItemsFromAllDrives: "true",
        fields: `nextPageToken,newStartPageToken,changes(kind,changeType,time,removed,fileId,driveId,file(${fileFields}))`
      })
      const { status, value } = yield* getPage(context, url, what, [404, 410])
      // The token is not known any more: a new one first, and then the newest files, so that nothing falls between them.
      if (status === 404 || status === 410) {
        const begin = yield* startToken(context)
        return {
          items: [],
          state: { token: begin, list: { page: null, left: maxItems } },
          more: true,
          reset: true as const
        }
      }
      const items = yield* writing(listOf(value, "changes").map((change) => () => changeItem(change)))
      const [next, end] = [textOf(value, "nextPageToken"), textOf(value, "newStartPageToken")]
      if (next === null && end === null) return yield* invalid(`${what}: the answer has no token`)
      return { items, state: { token: next ?? end }, more: next !== null }
    })
})

const calendarScope = "https://www.googleapis.com/auth/calendar.readonly"
const driveScope = "https://www.googleapis.com/auth/drive.metadata.readonly"

export const watch: SourceProvider = {
  key: "watch",
  name: "Google Calendar and Drive",
  description: "Changes of calendars and files, by watch channels.",
  icon_key: "calendar",
  manifest_version: "1.0.0",
  account: {
    connections: ["oauth2", "api_key"],
    origin: "https://www.googleapis.com",
    selfHosted: false,
    oauth2: {
      authorizationUrl: "https://accounts.google.com/o/oauth2/v2/auth",
      tokenUrl: "https://oauth2.googleapis.com/token",
      revocationUrl: "https://oauth2.googleapis.com/revoke",
      scopes: ["openid", "email", calendarScope, driveScope],
      // Without them Google gives a refresh token only to the first consent, or none.
      parameters: { access_type: "offline", prompt: "consent" }
    },
    fields: [tokenField("An OAuth access token. It is not renewed: connect by OAuth 2 for more than a trial")],
    headers: bearer,
    identity: { path: "/oauth2/v2/userinfo", id: ["id"], name: ["name"], email: ["email"] }
  },
  triggers: [
    {
      key: "calendar.event.changed",
      name: "Calendar event changed",
      description: "An event of a calendar was created, changed or cancelled.",
      category: "calendar",
      version: "1.0.0",
      requiredScopes: [calendarScope],
      inputs: { calendar_ids: ids(["primary"], 50, "The calendars that are watched, by their ids") },
      output: shape({
        calendar_id: aText("The calendar"),
        id: aText("The event"),
        status: maybeText("confirmed, tentative or cancelled"),
        summary: maybeText("The event's title"),
        updated_at: maybeText("When it was changed"),
        data: theData("The event as the Calendar API gives it")
      }),
      primaryOutput: "data",
      sample: {
        inputs: { calendar_ids: ["primary"] },
        output: {
          calendar_id: "primary",
          id: "event1",
          status: "confirmed",
          summary: "Stand-up",
          updated_at: "2026-01-01T00:00:00.000Z",
          data: { kind: "calendar#event", id: "event1", status: "confirmed", summary: "Stand-up" }
        }
      },
      adapter: watchAdapter({
        targets: calendarTargets,
        watchUrl: (context, target) => Effect.succeed(`${eventsUrl(context, target)}/watch`),
        stopUrl: ({ baseUrl }) => `${baseUrl}/calendar/v3/channels/stop`
      }),
      poller: calendarPoll
    },
    {
      key: "drive.changed",
      name: "Drive changed",
      description: "A file that the account can see was created, changed or removed.",
      category: "files",
      version: "1.0.0",
      requiredScopes: [driveScope],
      inputs: {},
      output: shape({
        file_id: aText("The file"),
        name: maybeText("The file's name; null: it was removed"),
        removed: { type: "boolean", description: "Whether the account cannot see it any more" },
        changed_at: maybeText("When it was changed"),
        data: theData("The change as the Drive API gives it")
      }),
      primaryOutput: "data",
      sample: {
        inputs: {},
        output: {
          file_id: "file1",
          name: "Plan",
          removed: false,
          changed_at: "2026-01-01T00:00:00.000Z",
          data: { kind: "drive#change", changeType: "file", fileId: "file1", removed: false }
        }
      },
      adapter: watchAdapter({
        targets: () => [driveTarget],
        watchUrl: (context) =>
          Effect.map(startToken(context), (token) => {
            const parameters = { pageToken: token, includeRemoved: "true", supportsAllDrives: "true" }
            return withQuery(`${changesUrl(context)}/watch`, parameters)
          }),
        stopUrl: ({ baseUrl }) => `${baseUrl}/drive/v3/channels/stop`
      }),
      poller: drivePoll
    }
  ]
}
