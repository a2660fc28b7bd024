import { Context } from "effect"

/** Where the API of an origin like `https://slack.com` is reached: there, or at a stand-in or proxy of the operator's. */
export type Origins = (origin: string) => string

/** Those of this process. */
export const ApiOrigins = Context.Reference<Origins>("@tidegate/connectors/ApiOrigins", {
  defaultValue: () => (origin) => origin
})
