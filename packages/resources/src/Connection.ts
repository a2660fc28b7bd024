import { Result, Schema } from "effect"
import { maxConnectionBody } from "@tidegate/model/BodyLimits"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import type { Ordering } from "@tidegate/model/Ordering"
import type { Resumable } from "@tidegate/runtime/Resumable"
import { Rule } from "@tidegate/model/Rule"
import { ConnectionRecord, Rules } from "./connection/Document.ts"
import { example } from "./connection/Example.ts"
import { orderingOf, OrderingWrite } from "./connection/Ordering.ts"
import { checkingRules, invalidWithRules } from "./connection/Rules.ts"
import { describedAs } from "./DescribedAs.ts"
import { every, fieldError, type FieldErrors, judgeBody, type Members } from "./Input.ts"
import { Description, Id, Name, optional } from "./Members.ts"
import { type Body, inParts, resource, type Situation } from "./Resource.ts"
import { ids } from "./ExampleIds.ts"

/** The writable fields of a connection, validated and complete. */
export interface ConnectionFields {
  readonly name: string
  readonly description: string | null
  readonly source_id: string
  readonly destination_id: string
  readonly rules: ReadonlyArray<Rule>
  /** Null: its events are delivered in any order. */
  readonly ordering: Ordering | null
  readonly disabled_at: Date | null
  readonly paused_at: Date | null
}

const isoMoment = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/

/** A valid time: not the 31st of February, which a lenient parser takes for a day in March. */
const isMoment = (text: string): boolean => {
  const day = text.slice(0, 10)
  const midnight = Date.parse(`${day}T00:00:00Z`)
  return (
    isoMoment.test(text) && Date.parse(text) >= 0 && midnight >= 0 && new Date(midnight).toISOString().startsWith(day)
  )
}

const Moment = (description: string) =>
  Schema.NullOr(Schema.String.annotate({ format: "date-time", description: `${description}; not in the future` }))
    .annotate({ message: "must be an ISO 8601 time or null" })
    .check(
      Schema.makeFilter(
        (text: string | null) => text === null || isMoment(text) || "must be an ISO 8601 time with a zone, or null"
      )
    )

const byId = (description: string) =>
  optional(
    Schema.Struct({ id: Id })
      .annotate({ message: "must be an object with an id", description })
      .pipe(
        describedAs(
          Schema.StructWithRest(Schema.Struct({ id: Id }).annotate({ description }), [
            Schema.Record(Schema.String, Schema.Json)
          ])
        )
      )
  )

const members = {
  source_id: optional(Id.annotate({ description: "The source", examples: [ids.source] })),
  source: byId("The same as source_id"),
  destination_id: optional(Id.annotate({ description: "The destination", examples: [ids.destination] })),
  destination: byId("The same as destination_id"),
  description: optional(Description),
  ordering: optional(OrderingWrite),
  disabled_at: optional(Moment("Since when it routes nothing; null enables it")),
  paused_at: optional(Moment("Since when its events are held; null lets them go"))
}

const part = { name: optional(Name), ...members }
const whole = { name: Name, ...members }

/** Written rules are validated one by one; a message carries them in stored form. */
const written = { rules: optional(Schema.Json) }
const judged = { rules: optional(Schema.Array(Rule)) }
const described = { rules: optional(Schema.NullOr(Rules)) }

const Part = Schema.Struct({ ...part, ...written })
type Part = typeof Part.Type
const WriteMessage = Schema.Struct({ ...whole, ...judged })
const PatchMessage = Schema.Struct({ ...part, ...judged })
type Write = typeof WriteMessage.Type
type Patch = typeof PatchMessage.Type

const ConnectionWrite = Schema.Struct({ ...whole, ...described }).annotate({
  identifier: "ConnectionWrite",
  description: "A source and a destination are needed, by id or as objects with an id.",
  examples: [example.body]
})

/** The body of an upsert. */
export const ConnectionUpsert = Schema.Struct({
  id: optional(Id.annotate({ description: "Selects the connection; without it, its source and name do" })),
  ...part,
  ...described
}).annotate({ identifier: "ConnectionUpsert" })

const ConnectionPatch = Schema.Struct({ ...part, ...described }).annotate({ identifier: "ConnectionPatch" })

/** How far a caller's clock may be ahead of ours (ms): its "now" then counts as ours. */
const clockSkew = 60_000

/** A state cannot begin in the future, because nothing would switch it on at that time. */
const moment = (
  path: "disabled_at" | "paused_at",
  body: Pick<Part, "disabled_at" | "paused_at">,
  now: Date
): Result.Result<Date | null | undefined, FieldErrors> => {
  const text = body[path]
  if (text === undefined || text === null) return Result.succeed(text)
  const at = Date.parse(text)
  return at > now.getTime() + clockSkew
    ? fieldError(path, "must not be in the future")
    : Result.succeed(new Date(Math.min(at, now.getTime())))
}

/** The two ends of a connection: one of each is needed. */
const ends = [
  ["source_id", "source"],
  ["destination_id", "destination"]
] as const

const bothThere = (body: Members): Result.Result<void, FieldErrors> => {
  const missing = ends.filter((names) => names.every((name) => body[name] === undefined))
  return missing.length === 0 ? Result.void : Result.fail(missing.map(([path]) => ({ path, message: "is required" })))
}

/**
 * Validates a body, as resumable work, because fifty rules may be megabytes of conditions. With `needs`, both ends are required.
 * An id takes precedence over an object of the same thing: a record that is sent back has both.
 */
const judging = (schema: Schema.Codec<Part, unknown>, needs: boolean) =>
  function* (body: Members, { now }: Situation): Resumable<Result.Result<never, GatewayError>> {
    const members = judgeBody(
      schema,
      body,
      (part) =>
        Result.map(
          every({
            ends: needs ? bothThere(body) : Result.void,
            disabled_at: moment("disabled_at", part, now),
            paused_at: moment("paused_at", part, now)
          }),
          () => part
        ),
      Part
    )
    const given = body["rules"]
    const rules = given === undefined ? Result.succeed(undefined) : yield* checkingRules(given ?? [])
    if (Result.isSuccess(members) && Result.isSuccess(rules)) {
      const { rules: _, ...rest } = members.success
      return Result.succeed((rules.success === undefined ? rest : { ...rest, rules: rules.success }) as never)
    }
    return Result.fail(
      invalidWithRules(Result.isFailure(members) ? members.failure : [], Result.isFailure(rules) ? rules.failure : [])
    )
  }

const write: Body<typeof WriteMessage, typeof ConnectionWrite> = {
  message: WriteMessage,
  described: ConnectionWrite,
  ...inParts(judging(Schema.Struct({ ...whole, ...written }), true))
}
const patch: Body<typeof PatchMessage, typeof ConnectionPatch> = {
  message: PatchMessage,
  described: ConnectionPatch,
  ...inParts(judging(Part, false))
}

/** The result of a partial change; `rules` are replaced as a whole. */
const change =
  (input: Patch, { now }: Situation) =>
  (stored: ConnectionFields): Result.Result<ConnectionFields, GatewayError> =>
    Result.mapError(
      Result.map(
        every({ disabled_at: moment("disabled_at", input, now), paused_at: moment("paused_at", input, now) }),
        ({ disabled_at, paused_at }) => ({
          name: input.name ?? stored.name,
          description: input.description === undefined ? stored.description : input.description,
          source_id: input.source_id ?? input.source?.id ?? stored.source_id,
          destination_id: input.destination_id ?? input.destination?.id ?? stored.destination_id,
          disabled_at: disabled_at === undefined ? stored.disabled_at : disabled_at,
          paused_at: paused_at === undefined ? stored.paused_at : paused_at,
          rules: input.rules ?? stored.rules,
          ordering: input.ordering === undefined ? stored.ordering : orderingOf(input.ordering)
        })
      ),
      (faults) => invalidWithRules(faults, [])
    )

const nothingStored: Omit<ConnectionFields, "name"> = {
  description: null,
  source_id: "",
  destination_id: "",
  rules: [],
  ordering: null,
  disabled_at: null,
  paused_at: null
}

/** A connection from a source to a destination, with its rules. */
export const connection = resource({
  name: "connection",
  plural: "connections",
  prefix: prefixes.connection,
  description: "What goes from where to where, and by which rules.",
  said: {
    create: { description: "From then on, every request that its source accepts is routed by its rules." },
    upsert: {
      summary: "Create or update a connection, by its id or by its source and name",
      description: "The connection that is selected is updated in part; when there is none, it is created."
    },
    retrieve: { description: "With its source and its destination in full." },
    update: { description: "Members in the body are merged into the connection. `rules` are replaced as a whole." },
    pause: {
      summary: "Hold what a connection delivers",
      description: "Its events wait in HOLD until it is unpaused. Repeating it changes nothing."
    },
    unpause: {
      summary: "Deliver what was held",
      description: "Held events are queued again. Repeating it changes nothing."
    },
    disable: {
      summary: "Stop routing over a connection",
      description: "What waits on it is cancelled, and later requests make no event. Repeating it changes nothing."
    },
    enable: { summary: "Route over a connection again", description: "Repeating it changes nothing." },
    delete: { description: "What waits on it is cancelled." }
  },
  record: ConnectionRecord,
  write,
  patch,
  create: (input: Write, situation) => change(input, situation)({ ...nothingStored, name: input.name }),
  change,
  columns: {
    name: "plain",
    description: "plain",
    source_id: "plain",
    destination_id: "plain",
    rules: "plain",
    ordering: "plain",
    disabled_at: "plain",
    paused_at: "plain"
  },
  switches: ["pause", "unpause", "disable", "enable"],
  // Its record includes its source and its destination.
  weight: `octet_length(t.rules::text)
    + coalesce((select octet_length(s.config::text) from sources s where s.id = t.source_id), 0)
    + coalesce((select octet_length(d.config::text) from destinations d where d.id = t.destination_id), 0)`,
  largestBody: maxConnectionBody,
  most: 20_000,
  errors: {
    // Only users who may write transformations may write code in a rule.
    write: [
      "NOT_FOUND",
      "CONNECTION_DISABLED",
      "RULE_INVALID",
      "TRANSFORMATION_INVALID",
      "LIMIT_EXCEEDED",
      "ROLE_REQUIRED",
      "USER_SESSION_REQUIRED"
    ],
    switch: { pause: ["CONNECTION_DISABLED"] }
  },
  example
})
