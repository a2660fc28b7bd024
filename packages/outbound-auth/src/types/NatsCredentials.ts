import { Schema } from "effect"
import { HeaderSecret, TextSecret } from "@tidegate/model/AuthSettings"
import { authType, nothing } from "./OutboundAuthType.ts"

const sealed = "Encrypted at rest, masked on read; writing the mask back keeps it"

/** A token that all clients of a NATS server share. */
export const natsToken = authType({
  type: "NATS_TOKEN",
  description: "The token of a NATS server",
  settings: { token: TextSecret.annotate({ description: sealed }) },
  aliases: {},
  reachesTarget: true,
  readable: [],
  compile: () => nothing
})

const Seed = HeaderSecret.check(
  Schema.isPattern(/^SU[A-Z2-7]{56}$/, { message: "must be the seed of a user: SU and 56 capital letters and digits" })
).annotate({ description: `The seed of the user's key, which signs and is never sent. ${sealed}` })

const Jwt = HeaderSecret.check(
  Schema.isPattern(/^[\w-]+\.[\w-]+\.[\w-]+$/, { message: "must be a JSON Web Token" })
).annotate({ description: `The user's JWT, where the server wants one. ${sealed}` })

/** A user of NATS by a key: the two parts of a file of credentials, or the seed alone. */
export const natsNkey = authType({
  type: "NATS_NKEY",
  description: "The key of a NATS user, and the user's JWT if there is one: both are in the file of credentials",
  settings: { seed: Seed, jwt: Schema.optionalKey(Jwt) },
  aliases: {},
  // What it signs, and the JWT, lead into the account: another server gets neither.
  reachesTarget: true,
  readable: [],
  compile: () => nothing
})
