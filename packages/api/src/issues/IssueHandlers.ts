import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { IssueStatus } from "@tidegate/model/Issue"
import { changeIssue } from "@tidegate/storage/alarms/IssueChanges"
import { issueOf, listIssues } from "@tidegate/storage/reads/IssueReads"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { asked, reader } from "../handlers/Calls.ts"
import { pageOf, statesOf, valuesOf } from "../handlers/ListInput.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "issues",
  Effect.fnUntraced(function* (handlers) {
    const reading = yield* reader
    const change = (id: string, status: "acknowledged" | "dismissed") =>
      Effect.flatMap(asked, (of) => reading(changeIssue({ ...of, id }, status)))
    return handlers
      .handle("list", ({ query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          const filter = {
            destinations: yield* valuesOf("destination_id", query.destination_id),
            statuses: yield* statesOf(query.status, IssueStatus.literals)
          }
          return yield* reading(listIssues(team, filter, yield* pageOf(Lists.issues, query, { team, ...filter })))
        })
      )
      .handle("retrieve", ({ params }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) => reading(issueOf(team, params.id)))
      )
      .handle("acknowledge", ({ params }) => change(params.id, "acknowledged"))
      .handle("dismiss", ({ params }) => change(params.id, "dismissed"))
  })
)
