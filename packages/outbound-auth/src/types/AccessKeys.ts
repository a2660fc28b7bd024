import { Schema } from "effect"
import { HeaderSecret, Identifier } from "@tidegate/model/AuthSettings"
import { authType, nothing } from "./OutboundAuthType.ts"

/** Keys that sign requests: only the key id and signatures are sent (`AwsSignature.ts`), and a session token in plain text. */

const isVisible = (value: string) => /^[\x21-\x7e]+$/.test(value) || "must be printable ASCII without spaces"
const asShown = { toJsonSchema: () => ({ minLength: 1, pattern: String.raw`^[\x21-\x7e]+$` }) }

const Secret = HeaderSecret.check(Schema.makeFilter(isVisible, asShown)).annotate({
  description: "Encrypted at rest, masked on read; writing the mask back keeps it"
})

/** The settings of a key. */
export const accessKey = {
  // The id is part of a signature's scope, which is separated by slashes and commas.
  access_key_id: Identifier.check(
    Schema.isPattern(/^[\w.:=+@-]{1,256}$/, { message: "must be at most 256 letters, digits and .:=+@_-" })
  ),
  secret_access_key: Secret,
  session_token: Schema.optionalKey(Secret)
}

const keyOf = (type: string, description: string) =>
  authType({
    type,
    description,
    settings: accessKey,
    aliases: {},
    readable: ["access_key_id"],
    reachesTarget: "session_token",
    compile: () => nothing
  })

export const objectStoreRKey = keyOf(
  "OBJECT_STORE_R_ACCESS_KEY",
  "An access key of an R2 account: calls are signed with it; a session token goes with temporary ones"
)
export const objectStoreSKey = keyOf(
  "OBJECT_STORE_S_ACCESS_KEY",
  "An access key that may put objects: calls are signed with it; a session token goes with temporary ones"
)
export const awsAccessKey = keyOf(
  "AWS_ACCESS_KEY",
  "An access key of an AWS account: calls are signed with it; a session token goes with temporary ones"
)
