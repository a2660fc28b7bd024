import { Identifier, TextSecret } from "@tidegate/model/AuthSettings"
import * as Characters from "@tidegate/model/Characters"
import { authType, nothing } from "./OutboundAuthType.ts"

/** A shared access policy of Azure: its key signs a token for each call, and is never sent. */
export const azureSasKey = authType({
  type: "AZURE_SAS_KEY",
  description: "A shared access policy and its key: a token is signed with it for each call",
  settings: {
    key_name: Identifier.check(Characters.upTo(256)).annotate({
      description: "The name of the policy: `SharedAccessKeyName` of a connection string",
      examples: ["gateway-send"]
    }),
    key: TextSecret.check(Characters.upTo(512)).annotate({
      description:
        "The key: `SharedAccessKey` of a connection string. Encrypted at rest, masked on read; writing the mask back keeps it"
    })
  },
  aliases: {},
  // A token is sent to the target, and is valid for whatever has the target's address.
  reachesTarget: true,
  readable: ["key_name"],
  compile: () => nothing
})
