import { Identifier, TextSecret } from "@tidegate/model/AuthSettings"
import { authType, nothing } from "./OutboundAuthType.ts"

/** A user of a database or a message broker, and the password. */
export const databasePassword = authType({
  type: "DATABASE_PASSWORD",
  description: "The user of a database or a message broker, and the password",
  settings: {
    username: Identifier,
    password: TextSecret.annotate({ description: "Encrypted at rest, masked on read; writing the mask back keeps it" })
  },
  aliases: {},
  reachesTarget: true,
  readable: ["username"],
  compile: () => nothing
})
