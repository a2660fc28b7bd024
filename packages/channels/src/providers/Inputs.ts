import { setting, text } from "@tidegate/connectors/Settings"
import { Schema } from "effect"
import type { Target } from "../Adapter.ts"
import { listOf } from "../Foreign.ts"

/** Inputs that several providers have. */

/** A text within a number of characters, of one line. */
export const line = (longest: number) =>
  text.check(
    Schema.isPattern(new RegExp(String.raw`^[^\p{Cc}]{1,${longest}}$`, "u"), {
      message: `must be a text of 1 to ${longest} characters on one line`,
      toJsonSchema: () => ({ minLength: 1, maxLength: longest })
    })
  )

/** Ids that are watched, each by a subscription of its own. */
export const ids = (value: readonly [string], most: number, description: string) => {
  const kind = `must be a list of 1 to ${most} ids`
  return setting(
    Schema.Array(line(256))
      .annotate({ message: kind, description })
      .check(Schema.isMinLength(1, { message: kind }), Schema.isMaxLength(most, { message: kind })),
    value,
    kind
  )
}

/** The targets of a list of ids: `calendar:primary`. A repeated id is one target. */
export const targetsOf = (kind: string, of: unknown): ReadonlyArray<Target> =>
  [...new Set(listOf(of).filter((id) => typeof id === "string"))].map((id) => ({ key: `${kind}:${id}` }))

/** The id that a target names. */
export const idIn = (target: string): string => target.slice(target.indexOf(":") + 1)

/** A JSON Schema of a body: an object whose members are always there. */
export const shape = (properties: { readonly [name: string]: Schema.JsonObject }) => ({
  type: "object",
  properties,
  required: Object.keys(properties)
})

export const aText = (description: string) => ({ type: "string", description })
export const maybeText = (description: string) => ({ type: ["string", "null"], description })
export const theData = (description: string) => ({ type: "object", description })

/** The account's field of a key that is no API key of the provider, but an access token. */
export const tokenField = (help: string) =>
  ({ key: "token", label: "Access token", type: "secret", required: true, help }) as const

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
