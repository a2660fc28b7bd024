import { Context } from "effect"

/** The address of an API with an origin like `https://slack.com`: that origin, or the operator's mock or proxy. */
export type Origins = (origin: string) => string

/** The origins of this process. */
export const ApiOrigins = Context.Reference<Origins>("@tidegate/connectors/ApiOrigins", {
  defaultValue: () => (origin) => origin
})
