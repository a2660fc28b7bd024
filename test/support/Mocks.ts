import { connectorOf, knownOrigins } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import { authOf } from "../../packages/connectors/test/rows/Auths.ts"
import type { Written } from "../../packages/connectors/test/rows/Row.ts"
import { rowOf } from "../../packages/connectors/test/rows/Rows.ts"
import type { DestinationConfig } from "./Contract.ts"

/** Destinations of any type whose calls come to a server of a test. */

/** Settings of a gateway that calls this origin in the place of the APIs that types have built in. */
export const standingIn = (origin: string): Readonly<Record<string, string>> => ({
  TIDEGATE_API_ORIGINS: [...knownOrigins].map((api) => `${api}=${origin}`).join(", ")
})

/** A `config` of a type, complete: that of its example, with what its row says. */
export const configOf = (type: string, { auth, auth_type, config }: Written): DestinationConfig => {
  const row = connectorOf(type)!
  const way = auth_type ?? row.auths[0]!
  const example = row.example["config"] as Config
  return { ...example, ...config, auth_type: way, auth: auth ?? authOf(way) }
}

/** One that is delivered to a server at this origin. */
export const configAt = (type: string, origin: string): DestinationConfig => {
  const { standIn } = rowOf(type)
  if (standIn === null) throw new Error(`nothing stands in for what ${type} talks to`)
  return configOf(type, standIn(origin))
}
