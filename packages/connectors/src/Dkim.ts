import { createHash, createPrivateKey } from "node:crypto"
import sign from "nodemailer/lib/dkim/sign"
import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { remembered } from "./Remembered.ts"
import { Unrenderable } from "./Rendering.ts"
import { type FieldErrors, secret, setting, type SettingsOf, text } from "./Settings.ts"

/** Settings with which a destination signs its letters (DKIM, RFC 6376). */

const name = /^(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$/
const notName = "must be a DNS name of letters, digits, dashes and dots"
const DnsName = (description: string) =>
  text.annotate({ description }).check(Schema.isPattern(name, { message: notName }))

const mask = "****"

export const dkimSettings = {
  dkim_selector: setting(
    DnsName(
      "The selector of the DKIM key: its public part stands at {dkim_selector}._domainkey.{dkim_domain} in the DNS"
    ),
    null
  ),
  dkim_private_key: secret(
    setting(
      text.check(Characters.upTo(16_384)).annotate({
        description:
          "The key that signs letters (DKIM): RSA, in PEM without a password. Encrypted at rest, masked on read"
      }),
      null
    ),
    () => mask
  ),
  dkim_domain: setting(DnsName("The domain of the DKIM key; null: that of from"), null)
}

type DkimSettings = SettingsOf<typeof dkimSettings>

const notKey = "must be an RSA key of 2048 to 4096 bits, in PEM without a password"

/** A longer key takes too much processor time for a signature, and receivers ignore signatures of a shorter one. */
const faultOfKey = remembered((pem = ""): string | null => {
  try {
    const { asymmetricKeyDetails, asymmetricKeyType } = createPrivateKey(pem)
    const bits = asymmetricKeyDetails?.modulusLength ?? 0
    return asymmetricKeyType === "rsa" && bits >= 2048 && bits <= 4096 ? null : notKey
  } catch {
    return notKey
  }
})

/** Errors of the settings together. */
export const faultsOfDkim = ({ dkim_domain, dkim_private_key, dkim_selector }: DkimSettings): FieldErrors => {
  const fault = (name: string, message: string): FieldErrors => [{ path: `config.${name}`, message }]
  if (dkim_private_key === null) {
    return dkim_selector === null && dkim_domain === null
      ? []
      : fault("dkim_private_key", "is required with dkim_selector and dkim_domain")
  }
  if (dkim_selector === null) return fault("dkim_selector", "is required with dkim_private_key")
  // The mask of a stored key, which has been checked: a complete body is judged before masks are replaced, and again after that.
  const message = dkim_private_key === mask ? null : faultOfKey(dkim_private_key)
  return message === null ? [] : fault("dkim_private_key", message)
}

/** Lines in their relaxed form: white space at their ends and empty lines at the end of the body do not count. */
const relaxed = (body: string): string =>
  body
    .replaceAll(/[ \t]+(?=\r\n)/g, "")
    .replaceAll(/[ \t]+/g, " ")
    .replace(/(?:\r\n)*$/, "\r\n")

/** A letter with its signature before the other headers. `fallback`: the domain, if the settings have none. */
export const signedLetter = (letter: string, settings: DkimSettings, fallback: string): string => {
  const { dkim_domain, dkim_private_key, dkim_selector } = settings
  if (dkim_private_key === null || dkim_selector === null) return letter
  const end = letter.indexOf("\r\n\r\n")
  const headers = letter
    .slice(0, end)
    .split(/\r\n(?![ \t])/)
    // The library takes the bytes of a header for characters.
    .map((line) => ({
      key: line.slice(0, line.indexOf(":")).toLowerCase(),
      line: Buffer.from(line).toString("latin1")
    }))
  const digest = createHash("sha256")
    .update(relaxed(letter.slice(end + 4)))
    .digest("base64")
  const signature: string | false = sign(headers, "sha256", digest, {
    domainName: dkim_domain ?? fallback,
    keySelector: dkim_selector,
    privateKey: dkim_private_key
  })
  if (signature === false) throw new Unrenderable("config.dkim_private_key cannot sign the letter")
  return `${signature}\r\n${letter}`
}
