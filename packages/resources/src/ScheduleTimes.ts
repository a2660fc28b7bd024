import { Result } from "effect"
import { MissedRule } from "@tidegate/model/WorkflowTriggers"
import { compileSchedule, longestCron } from "@tidegate/workflows/triggers/Schedule"
import { OneOf, text } from "./Members.ts"

/** The times of a schedule, as workflows and sources write them. */

export const Cron = text.annotate({
  message: "must be a string",
  description: `Five fields: minute, hour, day of month, month, day of week. At most ${longestCron} characters`
})

export const Timezone = text.annotate({
  message: "must be a string",
  description: "A name of the IANA database. Default: UTC"
})

/** `none`: what such a time does by `skip`. */
export const missedOf = (none: string) =>
  OneOf(MissedRule.literals).annotate({
    description: `What becomes of times at which nothing ran: they ${none} (\`skip\`), one for the latest (\`once\`, the default), or one each (\`all\`, for the latest 100)`
  })

/** What a schedule that occurs again is looked for after: no time of the present may decide whether it is valid. */
const someTime = Date.UTC(2026, 0, 1)

/** Why a schedule is invalid; true: it is valid. */
export const faultOf = ({ cron, timezone = "UTC" }: { readonly cron: string; readonly timezone?: string }) =>
  Result.match(compileSchedule(cron, timezone), {
    onSuccess: ({ after }) => (after(someTime) === null ? "never occurs" : true),
    onFailure: (message) => message
  })

/** The fields of an expression, each separated by one space. */
export const normalCron = (cron: string): string => cron.trim().split(/\s+/u).join(" ")
