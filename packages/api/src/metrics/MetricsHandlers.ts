import { Effect, type Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { SqlError } from "effect/sql"
import { invalid } from "@tidegate/model/GatewayError"
import { eventMeasures, requestMeasures } from "@tidegate/model/Metrics"
import { eventFilters, requestFilters } from "@tidegate/model/RecordFilter"
import * as MetricsReads from "@tidegate/storage/reads/MetricsReads"
import { eventFilterOf, requestFilterOf } from "@tidegate/storage/reads/Narrowing"
import * as SummaryReads from "@tidegate/storage/reads/SummaryReads"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import type { seriesFields } from "../contract/Parameters.ts"
import { reporter, type Stores } from "../handlers/Calls.ts"
import { answeringSeries } from "../handlers/Listing.ts"
import { narrowingOf, valuesOf, windowOf } from "../handlers/ListInput.ts"

type Series = Schema.Struct.Type<typeof seriesFields>

/** The requested measures; default: all. */
const measuresOf = Effect.fnUntraced(function* <Measure extends string>(
  { measure, measures }: Series,
  known: ReadonlyArray<Measure>
) {
  const names = yield* valuesOf("measures", measures, measure)
  const asked = known.filter((name) => names.includes(name))
  if (asked.length < names.length) {
    return yield* invalid([{ path: "measures", message: `must be of ${known.join(", ")}` }])
  }
  return asked.length === 0 ? known : asked
})

const seriesOf = Effect.fnUntraced(function* <Measure extends string>(query: Series, known: ReadonlyArray<Measure>) {
  const measures = yield* measuresOf(query, known)
  return { window: yield* windowOf(query), granularity: query.granularity, measures }
})

/** The requested ids, under any of their names. */
const idsOf = Effect.fnUntraced(function* (query: {
  readonly [name: string]: string | ReadonlyArray<string> | undefined
}) {
  const { team_id: _, ...lists } = query
  const ids = yield* valuesOf("id", ...Object.values(lists).map((list) => list as ReadonlyArray<string> | undefined))
  return ids.length > 0 ? ids : yield* invalid([{ path: "id", message: "is required: name one or more" }])
})

export const layer = HttpApiBuilder.group(
  Api,
  "metrics",
  Effect.fnUntraced(function* (handlers) {
    const reporting = yield* reporter
    const summary =
      <A>(
        of: (team: string, ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<A>, SqlError.SqlError, Stores>
      ) =>
      ({ query }: { readonly query: Parameters<typeof idsOf>[0] }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          const models = yield* reporting(of(team, yield* idsOf(query)))
          return { count: models.length, models }
        })

    return handlers
      .handle(
        "requests",
        answeringSeries(({ query }) =>
          Effect.gen(function* () {
            const { id: team } = yield* CurrentTeam
            const filter = requestFilterOf(yield* narrowingOf(requestFilters, query))
            return yield* reporting(MetricsReads.requests(team, filter, yield* seriesOf(query, requestMeasures)))
          })
        )
      )
      .handle(
        "events",
        answeringSeries(({ query }) =>
          Effect.gen(function* () {
            const { id: team } = yield* CurrentTeam
            const filter = eventFilterOf(yield* narrowingOf(eventFilters, query))
            return yield* reporting(MetricsReads.events(team, filter, yield* seriesOf(query, eventMeasures)))
          })
        )
      )
      .handle("sources", summary(SummaryReads.sources))
      .handle("destinations", summary(SummaryReads.destinations))
      .handle("transformations", summary(SummaryReads.transformations))
      .handle("connections", summary(SummaryReads.connections))
      .handle("rates", ({ query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          return yield* reporting(SummaryReads.rates(team, yield* idsOf(query)))
        })
      )
      .handle("workflows", summary(SummaryReads.workflows))
  })
)
