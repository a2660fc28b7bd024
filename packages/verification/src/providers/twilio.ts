import { createHmac, hash, type KeyObject } from "node:crypto"
import { parse, stringify } from "node:querystring"
import type { Check, Provider } from "../Provider.ts"
import type { Signer } from "../Signer.ts"
import { signingKey } from "@tidegate/model/SigningKey"
import { type FormField, formBody } from "./Forms.ts"
import { sameText, singleHeader, singleParameter } from "./Presented.ts"
import { answer, webhookSecret } from "./settings.ts"

const splitUrl = (url: string) => {
  const found = /^([a-z][a-z0-9+.-]*:\/\/)((?:[^/?#@]*@)?)(\[[^\]/?#]*\]|[^:/?#@]*)(:\d*)?([/?#].*)?$/is.exec(url)
  if (found === null) return null
  const [, scheme = "", user = "", host = "", port = "", rest = ""] = found
  return { scheme, user, host, port, rest }
}

/** The URL without a port, and with its scheme's default port if it has none. */
const portSpellings = (url: string): ReadonlyArray<string> => {
  const parts = splitUrl(url)
  if (parts === null) return [url]
  const { host, port, rest, scheme, user } = parts
  const standard = scheme.toLowerCase() === "https://" ? ":443" : ":80"
  return [scheme + user + host + rest, scheme + user + host + (port === "" ? standard : port) + rest]
}

const reencodedQuery = (url: string): string => {
  const start = url.indexOf("?")
  return start < 0 || start === url.length - 1
    ? url
    : `${url.slice(0, start)}?${stringify(parse(url.slice(start + 1)))}`
}

/**
 * The spellings of a URL that Twilio's services sign, as its own libraries try them: with and without the default port, as received,
 * normalised, and with its query encoded again.
 */
const urlSpellings = (url: string): ReadonlySet<string> => {
  const normalised = URL.canParse(url) ? portSpellings(new URL(url).href) : []
  return new Set([...portSpellings(url), ...normalised, ...normalised.map(reencodedQuery)])
}

/** Larger than any form of Twilio. A form is hashed once for every spelling of the URL, so a larger one is refused. */
const largestForm = 1_048_576

/** Names in order, each followed by its value; equal values of a name count once, and are sorted too. */
const canonicalFields = (fields: ReadonlyArray<FormField>): string => {
  const values = new Map<string, Set<string>>()
  for (const { name, value } of fields) {
    values.set(name, (values.get(name) ?? new Set()).add(value.toString("utf8")))
  }
  return Array.from(values.keys())
    .sort()
    .flatMap((name) =>
      Array.from(values.get(name)!)
        .sort()
        .map((value) => name + value)
    )
    .join("")
}

type Content = Pick<Parameters<Check>[0], "body" | "headers" | "query">

/** The signed content beside the URL; null if the signature does not cover the body. */
const signedFields = ({ body, headers, query }: Content): string | null => {
  if (new URLSearchParams(query).has("bodySHA256")) {
    const digest = singleParameter(query, "bodySHA256")
    return digest !== null && sameText(digest, hash("sha256", body, "hex")) ? "" : null
  }
  if (body.length === 0) return ""
  // Fails closed, because the signature does not cover a body that is neither a form nor named in the URL.
  const fields = body.length > largestForm ? null : formBody(headers, body)
  return fields === null ? null : canonicalFields(fields)
}

const signatureOf = (key: KeyObject, content: string): string =>
  createHmac("sha1", key).update(content, "utf8").digest("base64")

const compile = (secret: string): Check | null => {
  const key = signingKey(secret, "utf8")
  if (key === null) return null
  return (request) => {
    const signature = singleHeader(request.headers, "x-twilio-signature")
    if (signature === null) return false
    const fields = signedFields(request)
    if (fields === null) return false
    for (const url of urlSpellings(request.url)) {
      if (sameText(signature, signatureOf(key, url + fields))) return true
    }
    return false
  }
}

const sign = (secret: string): Signer | null => {
  const key = signingKey(secret, "utf8")
  if (key === null) return null
  return ({ body, headers, url }) => {
    const fields = signedFields({ body, headers, query: new URL(url).search.slice(1) })
    return fields === null ? null : { body, headers: { "x-twilio-signature": signatureOf(key, url + fields) } }
  }
}

/**
 * https://www.twilio.com/docs/usage/security: HMAC-SHA1 over the URL and the sorted form; a JSON body is covered by its
 * `bodySHA256` in the URL. No timestamp is signed, so a replay cannot be detected here.
 */
export const twilio: Provider = {
  types: ["TWILIO"],
  authType: "HMAC",
  settings: [{ ...webhookSecret("utf8"), aliases: ["secret", "auth_token"] }],
  answer: answer("2xx", 15, "TwiML"),
  verification: {
    kind: "code",
    age: null,
    compile: ({ webhook_secret_key = "" }) => compile(webhook_secret_key),
    sign
  }
}
