import { Context } from "effect"
import { type ErrorCode, fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { AnyResource } from "./Resource.ts"
import { resources } from "./Resources.ts"

/** How many rows of a kind a team may have: this limits one team's use of the disk and of lists. */
export interface TeamLimit {
  /** What is counted, in the plural. */
  readonly what: string
  readonly most: number
  /** The environment variable with which an operator changes it. */
  readonly setting: string
  /** The error code of a create beyond the limit; `data` has the `limit`, and the kind as `resource`. */
  readonly code: ErrorCode
}

/** The default limit of a resource. */
export const usualMost = 10_000

const settingOf = (kind: string): string => `TIDEGATE_MOST_${kind.toUpperCase()}`

const ofResource = ({ limitCode = "LIMIT_EXCEEDED", most = usualMost, plural }: AnyResource): TeamLimit => ({
  what: plural,
  most,
  setting: settingOf(plural),
  code: limitCode
})

/**
 * Every limit of a team, by the kind of row: each resource has one, and so has each kind of row that a resource may have many of.
 */
export const teamLimits: { readonly [kind: string]: TeamLimit } = {
  ...Object.fromEntries((resources as ReadonlyArray<AnyResource>).map((one) => [one.plural, ofResource(one)])),
  workflow_versions: {
    what: "versions of one workflow that runs may go by",
    most: 200,
    setting: settingOf("workflow_versions"),
    code: "LIMIT_EXCEEDED"
  },
  workflow_templates: {
    what: "templates of workflows of its own",
    most: 100,
    setting: settingOf("workflow_templates"),
    code: "LIMIT_EXCEEDED"
  },
  scheduled_sources: {
    what: "sources of type CRON",
    most: 100,
    setting: settingOf("scheduled_sources"),
    code: "LIMIT_EXCEEDED"
  },
  subscribed_sources: {
    what: "sources whose requests are messages of a broker",
    most: 20,
    setting: settingOf("subscribed_sources"),
    code: "LIMIT_EXCEEDED"
  },
  provider_accounts: {
    what: "provider accounts that are not revoked",
    most: 200,
    setting: settingOf("provider_accounts"),
    code: "LIMIT_EXCEEDED"
  }
}

/** The limits of this installation, and the failure of a create beyond one. */
export const TeamLimits = Context.Reference<{ readonly [kind: string]: number }>("@tidegate/resources/TeamLimits", {
  defaultValue: () => Object.fromEntries(Object.entries(teamLimits).map(([kind, { most }]) => [kind, most]))
})

export const beyondLimit = (kind: string, limit: number, remedy: string): GatewayError => {
  const { code, what } = teamLimits[kind]!
  return fail(code, `a team can have ${limit} ${what}; ${remedy}`, { limit, resource: kind })
}
