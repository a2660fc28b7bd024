import { Schema } from "effect"
import type { Message } from "@tidegate/model/Message"
import { type Escape, jsonEscape, textEscape, xmlEscape } from "@tidegate/interpolation/Escape"
import { maxParsedBytes } from "@tidegate/json/LargeJson"
import { awsOrigin } from "@tidegate/outbound-auth/AwsPlace"
import { AwsRegion } from "./AwsPlace.ts"
import { endpointOf } from "./Origin.ts"
import { codingOf, envelopeOf, metadataOf } from "./Envelope.ts"
import { batchOf, faultsOfObjectBatch, objectBatch } from "./ObjectBatch.ts"
import { encoded, keyFault, longestKeyBytes, objectUrl } from "./ObjectKey.ts"
import { judgeObjectStore } from "./ObjectStoreAnswers.ts"
import {
  type AttemptFacts,
  connector,
  type HttpSender,
  type OpenAuth,
  type OutboundRequest,
  payloadPerStep,
  Refusal
} from "./Connector.ts"
import { type Fill, filled, filledJson, filling, template, TemplateText, Unrenderable } from "./Rendering.ts"
import {
  concurrency,
  faultsOfBlanks,
  type FieldErrors,
  needed,
  pacing,
  setting,
  type SettingsOf,
  text
} from "./Settings.ts"
import { signer, signingKeyOf } from "@tidegate/outbound-auth/AwsSignature"

/** Object stores with the S3 protocol: each event becomes an object, or several of them one, and a repeated delivery writes the same object again. */

const Bucket = text
  .check(
    Schema.isPattern(/^(?!.*\.\.)[A-Za-z\d][\w.-]{1,253}[A-Za-z\d]$/, {
      message: "must be the name of a bucket: 3 to 255 letters, digits, dots, dashes and underscores"
    })
  )
  .annotate({ examples: ["webhook-archive"] })

const mediaType =
  /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(?:[ \t]*;[ \t]*[\w!#$&^.+-]{1,64}=[\w!#$&^.+-]{1,64}){0,4}$/

const usualKey = "archives/{{team_id}}/{{source_id}}/{{event_id}}.json"
const usualType = "application/json"

const stored = {
  bucket: needed(Bucket, "the bucket"),
  key_template: setting(
    TemplateText(1_024).annotate({
      description: `The object's key, at most ${longestKeyBytes} bytes; of keys that are the same the last object stays`
    }),
    usualKey
  ),
  content_type: setting(
    text
      .check(Schema.isPattern(mediaType, { message: "must be a media type" }))
      .annotate({ description: "The objects' media type; by it placeholders of body_template are escaped" }),
    usualType
  ),
  body_template: setting(
    TemplateText(65_536).annotate({
      description: "What an object holds; without it, the payload"
    }),
    null
  ),
  include_metadata: setting(
    Schema.Boolean.annotate({
      description:
        "Whether the object says which event it is of: in x-amz-meta headers and, without body_template, in a JSON object around a payload of at most 1 MiB"
    }),
    true,
    "must be true or false"
  ),
  batch: objectBatch,
  ...pacing,
  ...concurrency
}

type Stored = SettingsOf<typeof stored>

/** Errors of a key without placeholders. */
const faultsOfKey = (settings: Pick<Stored, "key_template">): FieldErrors => {
  const { key_template } = settings
  const blank = faultsOfBlanks(settings, "key_template")
  if (blank.length > 0) return blank
  const fault = key_template.includes("{{") ? null : keyFault(key_template)
  return fault === null
    ? []
    : [{ path: "config.key_template", message: `must be a key that can be stored: it ${fault}` }]
}

/** The URL of a bucket. Its name is in the path if it cannot be part of a host name that the certificate covers. */
const bucketUrl = (endpoint: string, bucket: string, isPathStyle: boolean): string => {
  const { host, hostname, origin, protocol } = new URL(endpoint)
  const isAddress = hostname.startsWith("[") || /^[\d.]+$/.test(hostname)
  return isPathStyle || isAddress || !/^[a-z\d][a-z\d-]{1,61}[a-z\d]$/.test(bucket)
    ? `${origin}/${encoded(bucket)}`
    : `${protocol}//${bucket}.${host}`
}

const faultsOf = (settings: Stored): FieldErrors => [
  ...faultsOfKey(settings),
  ...faultsOfObjectBatch(settings, { key_template: usualKey, content_type: usualType })
]

/** How values are escaped in a document of this media type. */
const escapeOf = (contentType: string): Escape => {
  const [type = ""] = contentType.toLowerCase().split(/[; \t]/)
  if (/[/+](?:json|x-ndjson|jsonl)$/.test(type)) return jsonEscape
  return /[/+](?:xml|html)$/.test(type) ? xmlEscape : textEscape
}

const method = "PUT"

/** Buckets with retention require `content-md5`, and all compatible stores accept it. */
const digests = ["x-amz-content-sha256", "content-md5"] as const

/** Writes objects into a bucket by PUT. `region`: the region of the signature. */
const putting = (settings: Stored, bucket: string, region: string, auth: OpenAuth): HttpSender => {
  const { body_template, content_type, include_metadata, key_template } = settings
  const key = template(key_template)
  const body = body_template === null ? null : template(body_template)
  const escape = escapeOf(content_type)
  const isJson = /\bjson$/.test(content_type.split(";")[0]!.trim())

  const keyFor = (fill: Fill): string => {
    const text = filled(fill, key, "key_template")
    const fault = keyFault(text)
    if (fault !== null) throw new Unrenderable(`the key that config.key_template makes of this event ${fault}`)
    return text
  }

  /** The bytes of the object, and their compression or null. */
  const objectOf = (fill: Fill, message: Message, facts: AttemptFacts): readonly [Uint8Array, string | null] => {
    if (body === null) {
      const coding = codingOf(message)
      return include_metadata && message.body.byteLength <= maxParsedBytes
        ? [envelopeOf(message.body, coding, facts), null]
        : [message.body, coding]
    }
    const text = isJson
      ? JSON.stringify(filledJson(fill, body, "body_template", escape))
      : fill(body, escape).toWellFormed()
    return [Buffer.from(text), null]
  }

  const signing = signingKeyOf(auth.settings)
  const complete = signing === null ? undefined : signer(signing, { service: "s3", region, digests })
  const batch = batchOf(settings, bucket, complete)

  return {
    kind: "http",
    judge: judgeObjectStore,
    prepare: (message: Message, facts: AttemptFacts): OutboundRequest | Refusal => {
      try {
        const fill = filling(message, facts)
        const url = objectUrl(bucket, keyFor(fill))
        const headers = ["user-agent", "event-gateway/1", "content-type", content_type]
        if (include_metadata) {
          for (const [name, value] of Object.entries(metadataOf(facts))) {
            headers.push(`x-amz-meta-${name.replaceAll("_", "-")}`, value)
          }
        }
        const [object, coding] = objectOf(fill, message, facts)
        if (coding !== null) headers.push("content-encoding", coding)
        return { method, url, shownUrl: url, headers, body: object }
      } catch (cause) {
        if (!(cause instanceof Unrenderable)) throw cause
        return new Refusal({ code: cause.code, message: cause.message, method, shownUrl: bucket })
      }
    },
    ...(batch === null ? {} : { batch }),
    ...(complete === undefined ? {} : { complete })
  }
}

// Steps cannot change the endpoint: signatures do not reveal the secret key, but a session token is sent in plain text.
const perStep = {
  ...payloadPerStep("What the object holds where there is no body_template"),
  address: ["endpoint"]
}

const exampleKey = { access_key_id: "AKIA0000000000000000", secret_access_key: "secret" }

/** Objects in a bucket of Cloudflare R2. */
export const objectStoreR = connector({
  type: "OBJECT_STORE_R",
  name: "Cloudflare R2",
  description: "Stores each event as an object (Cloudflare R2).",
  settings: {
    account_id: needed(
      text
        .check(Schema.isPattern(/^[A-Za-z\d][A-Za-z\d-]{0,62}$/, { message: "must be at most 63 letters and digits" }))
        .annotate({ examples: ["0123456789abcdef0123456789abcdef"] }),
      "the id of the account"
    ),
    endpoint: endpointOf("Where the store is; null: https://{account_id}.r2.cloudflarestorage.com"),
    ...stored
  },
  check: faultsOf,
  auths: ["OBJECT_STORE_R_ACCESS_KEY"],
  leadsTo: ({ endpoint }) => (endpoint === null ? "Cloudflare R2" : new URL(endpoint).origin),
  perStep,
  credentials: "mask",
  example: {
    name: "archive",
    type: "OBJECT_STORE_R",
    config: {
      account_id: "0123456789abcdef0123456789abcdef",
      bucket: "webhook-archive",
      auth_type: "OBJECT_STORE_R_ACCESS_KEY",
      auth: exampleKey
    }
  },
  open: ({ account_id, endpoint, ...settings }, auth) => {
    const store = endpoint ?? `https://${account_id.toLowerCase()}.r2.cloudflarestorage.com`
    return putting(settings, bucketUrl(store, settings.bucket, true), "auto", auth)
  }
})

/** Objects in a bucket of Amazon S3, and of compatible stores. */
export const objectStoreS = connector({
  type: "OBJECT_STORE_S",
  name: "Amazon S3",
  description: "Stores each event as an object (Amazon S3 and kin).",
  settings: {
    region: needed(
      AwsRegion.annotate({ description: "The bucket's region, which signatures name" }),
      "the region of the bucket"
    ),
    endpoint: endpointOf("Where the store is; null: Amazon's of the region"),
    force_path_style: setting(
      Schema.Boolean.annotate({
        description: "Whether the bucket is named in the path of the URL, and not in its host"
      }),
      false,
      "must be true or false"
    ),
    ...stored
  },
  check: faultsOf,
  auths: ["OBJECT_STORE_S_ACCESS_KEY"],
  leadsTo: ({ endpoint }) => (endpoint === null ? "Amazon S3" : new URL(endpoint).origin),
  perStep,
  credentials: "mask",
  example: {
    name: "archive",
    type: "OBJECT_STORE_S",
    config: {
      region: "eu-central-1",
      bucket: "webhook-archive",
      auth_type: "OBJECT_STORE_S_ACCESS_KEY",
      auth: exampleKey
    }
  },
  open: ({ endpoint, force_path_style, region, ...settings }, auth) => {
    const store = endpoint ?? awsOrigin("s3", region)
    return putting(settings, bucketUrl(store, settings.bucket, force_path_style), region, auth)
  }
})
