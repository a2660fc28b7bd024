import { Identifier, TextSecret } from "@tidegate/model/AuthSettings"
import { authType, nothing } from "./OutboundAuthType.ts"

/** A database user and its password. */
export const databasePassword = authType({
  type: "DATABASE_PASSWORD",
  description: "The user of a database and its password",
  settings: {
    username: Identifier,
    password: TextSecret.annotate({ description: "Encrypted at rest, masked on read; writing the mask back keeps it" })
  },
  aliases: {},
  reachesTarget: true,
  readable: ["username"],
  compile: () => nothing
})
