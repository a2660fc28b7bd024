import { Identifier } from "@tidegate/model/AuthSettings"
import type { FieldError } from "@tidegate/model/GatewayError"
import { Schema } from "effect"
import { awsOrigin, awsRegion } from "../AwsPlace.ts"
import { awsSignatures, sha256Header, type SigningKey, signingKeyOf } from "../AwsSignature.ts"
import { accessKey } from "./AccessKeys.ts"
import { authType, type Carried } from "./OutboundAuthType.ts"
import { providerUrl } from "./OAuth.ts"

const named = (pattern: RegExp, message: string, description: string, ...examples: ReadonlyArray<string>) =>
  Identifier.check(Schema.isPattern(pattern, { message })).annotate({ description, examples })

const usualSessionName = "event-gateway"

/** Headers that tell Amazon what to do. */
const isAmazons = (name: string): boolean => name.startsWith("x-amz-")

const isCovered = (name: string): boolean => name === "content-type" || isAmazons(name)

/** A key as one text, for those who keep it as a token. None of its parts has a space. */
export const keyAsToken = ({ accessKeyId, secretAccessKey, sessionToken }: Required<SigningKey>): string =>
  [accessKeyId, secretAccessKey, sessionToken].join(" ")

const keyOfToken = (token: string): Required<SigningKey> => {
  const [accessKeyId = "", secretAccessKey = "", sessionToken = ""] = token.split(" ")
  return { accessKeyId, secretAccessKey, sessionToken }
}

/** Deliveries are signed as Amazon's services ask for. */
export const awsSigV4 = authType({
  type: "AWS_SIGV4",
  description: "Signed with AWS Signature Version 4, by an access key or by a role that it may assume",
  settings: {
    ...accessKey,
    region: named(awsRegion.pattern, awsRegion.message, "The region of the target", "eu-central-1"),
    service: named(
      /^[a-z\d][a-z\d-]{0,62}$/,
      "must be at most 63 small letters, digits and dashes",
      "The target's service, as signatures name it",
      "execute-api",
      "lambda"
    ),
    amz_target: Schema.optionalKey(
      named(
        /^[\w.-]{1,256}$/,
        "must be at most 256 letters, digits and ._-",
        "`x-amz-target` of every delivery, for services that are told by it what to do",
        "AWSStepFunctions.StartExecution"
      )
    ),
    role_arn: Schema.optionalKey(
      named(
        /^arn:aws[\w-]{0,20}:iam::\d{12}:role\/[\w+=,.@/-]{1,576}$/,
        "must be the ARN of a role, like arn:aws:iam::123456789012:role/gateway",
        "The role that signs; the key only asks for it. Without it the key itself signs",
        "arn:aws:iam::123456789012:role/gateway"
      )
    ),
    external_id: Schema.optionalKey(
      named(
        /^[\w+=,.@:/-]{2,1224}$/,
        "must be 2 to 1,224 letters, digits and +=,.@:/_-",
        "What the role's owner asks for beside the key"
      )
    ),
    session_name: Schema.optionalKey(
      named(
        /^[\w+=,.@-]{2,64}$/,
        "must be 2 to 64 letters, digits and +=,.@_-",
        `By what name the account's logs show who used the role; default: ${usualSessionName}`
      )
    ),
    sts_endpoint: Schema.optionalKey(providerUrl("Where the role is asked for; default: Amazon's `sts` of the region"))
  },
  aliases: {},
  // The session token is sent there, and a signature is for whoever can make use of it.
  sentTo: "sts_endpoint",
  reachesTarget: true,
  readable: [
    "access_key_id",
    "region",
    "service",
    "amz_target",
    "role_arn",
    "external_id",
    "session_name",
    "sts_endpoint"
  ],
  check: ({ role_arn, ...auth }): ReadonlyArray<FieldError> =>
    role_arn !== undefined
      ? []
      : (["external_id", "session_name", "sts_endpoint"] as const)
          .filter((name) => auth[name] !== undefined)
          .map((name) => ({ path: `config.auth.${name}`, message: "needs a role_arn: it is for the role" })),
  compile: (auth) => {
    const { amz_target, external_id, region, role_arn, service, session_name, sts_endpoint } = auth
    const target = amz_target === undefined ? [] : ["x-amz-target", amz_target]
    const signedBy = (key: SigningKey): Carried => {
      const { sign } = awsSignatures(key, { region, service, digests: [sha256Header], covers: isCovered })
      return {
        headers: {},
        sign: async (request, facts) => {
          // A stranger's header of this kind would be signed like the operator's own, and be obeyed: to copy an object, for example.
          const own = request.headers.filter((_, i, flat) => !isAmazons(flat[i - (i % 2)]!.toLowerCase()))
          const { headers, url } = await sign({ ...request, headers: [...own, ...target] }, facts)
          const signature = headers[headers.indexOf("authorization") + 1]!.replace(/^.*Signature=/, "")
          // With a session token, the signature is of no use without it.
          return { url, headers: [...target, ...headers], drops: isAmazons, secret: key.sessionToken ?? signature }
        }
      }
    }
    const key = signingKeyOf(auth)!
    if (role_arn === undefined) return { ...signedBy(key), signs: false }
    return {
      headers: {},
      signs: false,
      carry: (token) => signedBy(keyOfToken(token)),
      grant: {
        tokenUrl: sts_endpoint ?? `${awsOrigin("sts", region)}/`,
        scope: null,
        how: {
          kind: "assumed_role",
          key,
          region,
          roleArn: role_arn,
          sessionName: session_name ?? usualSessionName,
          externalId: external_id ?? null
        }
      }
    }
  }
})
