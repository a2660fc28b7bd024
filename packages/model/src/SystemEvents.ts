import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/*
 * The gateway's own events, a row each. A new one is a row here, and the code that writes its occurrences. The statement about the
 * subject, the window and the schema are made of the row.
 */

const minute = 60_000

/** How many hours before an API key expires its team is told. */
export const keyWarnedHours: ReadonlyArray<number> = [30 * 24, 7 * 24, 24]
/** The same for a former signing secret, which ends a day after its rotation. */
export const formerSecretWarnedHours: ReadonlyArray<number> = [6]

/** What a system event is about. */
const subjects = ["destination", "source", "workflow", "key"] as const
export type Subject = (typeof subjects)[number]

interface SystemEvent {
  readonly type: string
  readonly when: string
  readonly subject: Subject
  /** The shortest time (ms) between two events of this type about one subject. What happens meanwhile is in the next one. */
  readonly windowMs: number
  /** What the ids in `sample_ids` are. */
  readonly samples: "events" | "runs" | "requests" | "none"
}

export const systemEvents = [
  {
    type: "destination.failing",
    when: "deliveries to a destination begin to fail: its first issue opens",
    subject: "destination",
    windowMs: 5 * minute,
    samples: "events"
  },
  {
    type: "destination.recovered",
    when: "all issues of a destination are resolved, because deliveries succeed again; once for each `destination.failing`",
    subject: "destination",
    windowMs: 0,
    samples: "events"
  },
  {
    type: "event.failed",
    when: "events of a destination have failed for good: their retries have ended",
    subject: "destination",
    windowMs: minute,
    samples: "events"
  },
  {
    type: "queue.growing",
    when: "the oldest event of a destination has been due for ten minutes, and the destination is not paused",
    subject: "destination",
    windowMs: 60 * minute,
    samples: "none"
  },
  {
    type: "source.unverified",
    when: "requests to a source are rejected because they could not be verified",
    subject: "source",
    windowMs: 15 * minute,
    samples: "requests"
  },
  {
    type: "channel.failing",
    when: "an alert about the channel of a provider source opens",
    subject: "source",
    windowMs: 60 * minute,
    samples: "none"
  },
  {
    type: "workflow.run_failed",
    when: "runs of a workflow have failed; a run that somebody cancels does not count",
    subject: "workflow",
    windowMs: minute,
    samples: "runs"
  },
  {
    type: "key.expiring",
    when: "an API key expires in 30 days, 7 days and 1 day, once each; a former signing secret ends in 6 hours",
    subject: "key",
    windowMs: 0,
    samples: "none"
  }
] as const satisfies ReadonlyArray<SystemEvent>

export type SystemEventType = (typeof systemEvents)[number]["type"]

export const systemEventOf = (type: SystemEventType): SystemEvent => systemEvents.find((one) => one.type === type)!

/** The largest number of ids and of error codes in an event. */
export const maxSamples = 10

/** The largest number of system events that a team gets in a minute. What is beyond waits, and goes into later ones. */
export const maxPerMinute = 60

/** The body of the request that a system event is. */
export const SystemEventBody = Schema.Struct({
  type: Schema.Literals(systemEvents.map(({ type }) => type)),
  created_at: Timestamp,
  team_id: Schema.String,
  subject: Schema.Struct({
    type: Schema.Literals(subjects),
    id: Schema.String,
    name: Schema.String
  }),
  data: Schema.Struct({
    count: Schema.Int.annotate({
      description: "How often it happened since the last event of this type about the subject"
    }),
    error_codes: Schema.Array(Schema.String).annotate({ description: `At most ${maxSamples}, the latest first` }),
    sample_ids: Schema.Array(Schema.String).annotate({
      description: `At most ${maxSamples} ids of events, runs or requests, the latest first`
    }),
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
    expires_at: Schema.optionalKey(Timestamp).annotate({ description: "Only in `key.expiring`: when the key ends" }),
    hours_before: Schema.optionalKey(Schema.Int).annotate({
      description:
        "Only in `key.expiring`: which warning it is, in hours before the end (720, 168, 24; 6 for a former signing secret)"
    })
  })
}).annotate({ identifier: "SystemEvent" })

export type SystemEventBody = typeof SystemEventBody.Type
