import { needed, text } from "@tidegate/connectors/Settings"
import type { Json } from "@tidegate/model/Rule"
import { accountRequest, pathOf } from "../AccountRequest.ts"
import { account } from "../AuthModes.ts"
import { calling, type Provider } from "../Provider.ts"

const key = "eventsub"

const login = needed(text, "the login name of the broadcaster")
const output = {
  type: "object",
  properties: { found: { type: "boolean" }, data: { description: "null where there is none" } },
  required: ["found", "data"]
} as const

/** The answer is a list with one entry, or with none. */
const firstOf = (body: Json): Json => {
  const list = typeof body === "object" && body !== null && "data" in body ? body["data"] : null
  const [first = null] = Array.isArray(list) ? list : []
  return { found: first !== null, data: first }
}

export const eventsub: Provider = {
  key,
  name: "Twitch",
  description: "Looks up streams and users with a provider account.",
  icon_key: "video",
  manifest_version: "1.0.0",
  auth: [account],
  actions: [
    calling({
      key: "get_stream",
      name: "Get a stream",
      description: "Gets the stream of a broadcaster; `found` is false while there is none.",
      category: "video",
      version: "1.0.0",
      inputs: { login },
      output,
      primary_output: "data",
      sample: { inputs: { login: "ada" }, output: { found: true, data: { id: "1", title: "Hello" } } },
      rate_limit: null,
      call: ({ login }, credentials) =>
        accountRequest(
          key,
          credentials,
          { method: "GET", path: pathOf(["helix", "streams"], { user_login: login }), body: null },
          firstOf
        )
    }),
    calling({
      key: "get_user",
      name: "Get a user",
      description: "Gets a user by the login name; `found` is false if there is none.",
      category: "video",
      version: "1.0.0",
      inputs: { login },
      output,
      primary_output: "data",
      sample: { inputs: { login: "ada" }, output: { found: true, data: { id: "1", display_name: "Ada" } } },
      rate_limit: null,
      call: ({ login }, credentials) =>
        accountRequest(
          key,
          credentials,
          { method: "GET", path: pathOf(["helix", "users"], { login }), body: null },
          firstOf
        )
    })
  ]
}
