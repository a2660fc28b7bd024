import { needed, setting, text } from "@tidegate/connectors/Settings"
import { accountRequest, pathOf } from "../AccountRequest.ts"
import { account } from "../AuthModes.ts"
import { calling, type Provider } from "../Provider.ts"

const key = "watch"

const calendar_id = setting(text.annotate({ description: "The calendar; primary is the account's own" }), "primary")
const output = { type: "object", properties: { data: { description: "The event" } }, required: ["data"] } as const
const sampled = { data: { id: "e1", status: "confirmed", summary: "Review" } } as const

const eventsOf = (calendar: string | null): ReadonlyArray<string> => [
  "calendar",
  "v3",
  "calendars",
  calendar ?? "primary",
  "events"
]

export const watch: Provider = {
  key,
  name: "Google Calendar",
  description: "Reads and adds calendar events with a provider account.",
  icon_key: "calendar",
  manifest_version: "1.0.0",
  auth: [account],
  actions: [
    calling({
      key: "get_event",
      name: "Get an event",
      description: "Gets an event of a calendar.",
      category: "calendar",
      version: "1.0.0",
      inputs: { calendar_id, event_id: needed(text, "the event's id") },
      output,
      primary_output: "data",
      sample: { inputs: { event_id: "e1" }, output: sampled },
      rate_limit: null,
      call: ({ calendar_id, event_id }, credentials) =>
        accountRequest(
          key,
          credentials,
          { method: "GET", path: pathOf([...eventsOf(calendar_id), event_id]), body: null },
          (data) => ({ data })
        )
    }),
    calling({
      key: "create_event",
      name: "Create an event",
      description:
        "Adds an event to a calendar. The account needs the scope https://www.googleapis.com/auth/calendar.events.",
      category: "calendar",
      version: "1.0.0",
      inputs: {
        calendar_id,
        summary: needed(text, "the title"),
        start: needed(text, "when it starts, ISO 8601 with an offset"),
        end: needed(text, "when it ends, ISO 8601 with an offset"),
        description: setting(text, null)
      },
      output,
      primary_output: "data",
      sample: {
        inputs: { summary: "Review", start: "2026-01-05T10:00:00Z", end: "2026-01-05T11:00:00Z" },
        output: sampled
      },
      rate_limit: null,
      call: ({ calendar_id, description, end, start, summary }, credentials) => {
        const event = { summary, start: { dateTime: start }, end: { dateTime: end } }
        const body = description === null ? event : { ...event, description }
        return accountRequest(
          key,
          credentials,
          { method: "POST", path: pathOf(eventsOf(calendar_id)), body },
          (data) => ({ data })
        )
      }
    })
  ]
}
