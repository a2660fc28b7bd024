import { Context } from "effect"
import { type ErrorCode, fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { AnyResource } from "./Resource.ts"
import { resources } from "./Resources.ts"

/** How many rows of a kind a team may have: what one team may take of the disk, and of lists. */
export interface TeamLimit {
  /** What is counted, in the plural. */
  readonly what: string
  readonly most: number
  /** The environment variable by which an operator says otherwise. */
  readonly setting: string
  /** What fails with it that would make one more; `data` has the `limit`, and what it is of as `resource`. */
  readonly code: ErrorCode
}

/** Of a resource that says nothing else. */
export const usualMost = 10_000

const settingOf = (kind: string): string => `TIDEGATE_MOST_${kind.toUpperCase()}`

const ofResource = ({ limitCode = "LIMIT_EXCEEDED", most = usualMost, plural }: AnyResource): TeamLimit => ({
  what: plural,
  most,
  setting: settingOf(plural),
  code: limitCode
})

/** Every limit of a team, by the kind of row: each resource has one, and what resources have many of. */
export const teamLimits: { readonly [kind: string]: TeamLimit } = {
  ...Object.fromEntries((resources as ReadonlyArray<AnyResource>).map((one) => [one.plural, ofResource(one)])),
  workflow_versions: {
    what: "versions of one workflow that runs may go by",
    most: 200,
    setting: settingOf("workflow_versions"),
    code: "LIMIT_EXCEEDED"
  }
}

/** How many of a kind a team may have in this installation, and the failure of who asks for one more. */
export const TeamLimits = Context.Reference<{ readonly [kind: string]: number }>("@tidegate/resources/TeamLimits", {
  defaultValue: () => Object.fromEntries(Object.entries(teamLimits).map(([kind, { most }]) => [kind, most]))
})

export const beyondLimit = (kind: string, limit: number, remedy: string): GatewayError => {
  const { code, what } = teamLimits[kind]!
  return fail(code, `a team can have ${limit} ${what}; ${remedy}`, { limit, resource: kind })
}
