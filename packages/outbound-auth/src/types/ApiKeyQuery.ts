import { Identifier, TextSecret } from "@tidegate/model/AuthSettings"
import * as Characters from "@tidegate/model/Characters"
import { authType } from "./OutboundAuthType.ts"

/** Deliveries have a key in the query of their URL. */
export const apiKeyQuery = authType({
  type: "API_KEY_QUERY",
  description: "A key in the query of the URL, masked wherever the URL is shown",
  settings: {
    query_key: Identifier.check(Characters.upTo(256)).annotate({
      description: "The name of the parameter. A sender's own parameter of this name is left out",
      examples: ["api_key"]
    }),
    api_key: TextSecret.check(Characters.upTo(2048)).annotate({
      description: "The key. Encrypted at rest, masked on read; writing the mask back keeps it"
    })
  },
  aliases: {},
  reachesTarget: true,
  readable: ["query_key"],
  compile: ({ api_key, query_key }) => ({ headers: {}, signs: false, query: { name: query_key, value: api_key } })
})
