import type { TunnelEvent } from "@tidegate/client/source"
import { plain } from "../Output.ts"
import { eventTypeOf } from "./EventType.ts"

/** What `listen` prints of an event of a tunnel, in words and as JSON. */

export interface Line {
  readonly record: object
  readonly words: string
}

/** The event's page on the dashboard. An id that is none leads nowhere. */
export const linkTo = (baseUrl: string, eventId: string): string =>
  `${baseUrl}/dashboard/events/${encodeURIComponent(eventId)}`

const clockOf = (at: Date): string => at.toTimeString().slice(0, 8)

/** Null if there is nothing to say. `paint`: the text in the colour of a status. */
export const lineOf = (
  event: TunnelEvent,
  {
    at,
    baseUrl,
    paint
  }: { readonly at: Date; readonly baseUrl: string; readonly paint: (status: number, text: string) => string }
): Line | null => {
  switch (event.type) {
    case "connected":
      return null
    case "ready":
      return {
        record: { type: "ready", cli_id: event.cliId },
        words: "ready: events are delivered from now on (Ctrl-C to stop)"
      }
    case "disconnected": {
      const { code, reason, retryInMs } = event
      const why = reason === "" ? "" : ` (${plain(reason)})`
      return {
        record: { type: "disconnected", code, reason, retry_in_ms: Math.round(retryInMs) },
        words: `the connection is lost${why}: retrying in ${(retryInMs / 1000).toFixed(1)} s; events wait`
      }
    }
    default: {
      const { delivery, error, status, tookMs } = event
      const { attempt_number, event_id, method, path, request_id } = delivery.request
      const event_type = eventTypeOf(delivery.request)
      const link = linkTo(baseUrl, event_id)
      const called = [method, path, ...(event_type === null ? [] : [event_type])].map(plain).join(" ")
      const why = error === null ? "" : ` ${plain(error)}`
      return {
        record: {
          type: "delivered",
          at: at.toISOString(),
          event_id,
          request_id,
          attempt_number,
          method,
          path,
          event_type,
          status,
          error,
          took_ms: tookMs,
          link
        },
        words: `${clockOf(at)} ${paint(status, String(status))} ${called} ${tookMs} ms${why} ${link}`
      }
    }
  }
}
