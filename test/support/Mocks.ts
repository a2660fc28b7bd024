import { connectorOf, knownOrigins } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import { authOf } from "../../packages/connectors/test/rows/Auths.ts"
import type { Written } from "../../packages/connectors/test/rows/Row.ts"
import { rowOf } from "../../packages/connectors/test/rows/Rows.ts"
import type { DestinationConfig } from "./Contract.ts"

/** Destinations of any type whose calls go to a test's server. */

/** Settings of a gateway that calls this origin instead of the types' built-in API origins. */
export const standingIn = (origin: string): Readonly<Record<string, string>> => ({
  TIDEGATE_API_ORIGINS: [...knownOrigins].map((api) => `${api}=${origin}`).join(", ")
})

/** A complete `config` of a type: its example, changed by its row. */
export const configOf = (type: string, { auth, auth_type, config }: Written): DestinationConfig => {
  const row = connectorOf(type)!
  const way = auth_type ?? row.auths[0]!
  const example = row.example["config"] as Config
  return { ...example, ...config, auth_type: way, auth: auth ?? authOf(way) }
}

/** The `config` of a destination whose calls go to a server at this origin. */
export const configAt = (type: string, origin: string): DestinationConfig => {
  const { mock } = rowOf(type)
  if (mock === null) throw new Error(`there is no mock for the API of ${type}`)
  return configOf(type, mock(origin))
}
