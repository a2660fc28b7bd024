import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto"
import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import type { ClientTls } from "@tidegate/model/ClientTls"
import { digestOf, remembered } from "./Remembered.ts"
import { type FieldErrors, type NoSetting, secret, setting, type SettingsOf, text } from "./Settings.ts"

/** Settings with which a destination shows a certificate to its server (mTLS), and trusts authorities of its own. */

const longestPem = 65_536
const maxCertificates = 10

const block = /-----BEGIN CERTIFICATE-----[A-Za-z\d+/=\s]+-----END CERTIFICATE-----/g

/** The certificates in a PEM text. Null: it has none, too many, or one that cannot be read. */
const certificatesIn = (pem: string): ReadonlyArray<X509Certificate> | null => {
  const blocks = pem.match(block) ?? []
  if (blocks.length === 0 || blocks.length > maxCertificates) return null
  try {
    return blocks.map((one) => new X509Certificate(one))
  } catch {
    return null
  }
}

/** When the first certificate of a text expires (ISO 8601); null: it has no certificates that can be read, or too many. */
const expiryOf = remembered((pem = "") => {
  const expiry = certificatesIn(pem)?.[0]?.validToDate
  return expiry === undefined || Number.isNaN(expiry.getTime()) ? null : expiry.toISOString()
})

const Certificates = text.check(
  Schema.makeFilter(
    (pem: string) =>
      (pem.length <= longestPem && expiryOf(pem) !== null) ||
      `must be 1 to ${maxCertificates} certificates in PEM, at most ${longestPem} characters`,
    { toJsonSchema: () => ({ maxLength: longestPem, pattern: "-----BEGIN CERTIFICATE-----" }) }
  )
)

const mask = "****"

export const clientTls = {
  client_certificate: setting(
    Certificates.annotate({
      description:
        "The certificate that the gateway shows to the server (mTLS), and those between it and its authority, in PEM"
    }),
    null
  ),
  client_key: secret(
    setting(
      text.check(Characters.upTo(16_384)).annotate({
        description: "The key of client_certificate, in PEM without a password. Encrypted at rest, masked on read"
      }),
      null
    ),
    () => mask
  ),
  server_ca: setting(
    Certificates.annotate({
      description:
        "The only authorities that may have signed the server's certificate, in PEM; null: those of the machine"
    }),
    null
  )
}

/** Members that a read shows in addition to the settings. They may be written back, and have no effect. */
export const derivedOfTls: Readonly<Record<string, NoSetting>> = {
  client_certificate_expires_at: Schema.NullOr(Schema.String).annotate({
    message: "must be a string or null",
    description: "When client_certificate expires; null: there is none"
  })
}

type TlsSettings = SettingsOf<typeof clientTls>

export const shownOfTls = ({ client_certificate }: TlsSettings) => ({
  client_certificate_expires_at: client_certificate === null ? null : expiryOf(client_certificate)
})

/** Signing a handshake with a longer key takes too much processor time; TLS libraries refuse a shorter one. */
const isUsable = ({ asymmetricKeyDetails, asymmetricKeyType }: KeyObject): boolean => {
  if (asymmetricKeyType === "ec" || asymmetricKeyType === "ed25519") return true
  const bits = asymmetricKeyDetails?.modulusLength ?? 0
  return asymmetricKeyType === "rsa" && bits >= 2048 && bits <= 4096
}

const keyOf = (pem: string): KeyObject | null => {
  try {
    const key = createPrivateKey(pem)
    return isUsable(key) ? key : null
  } catch {
    return null
  }
}

const faultOfPair = remembered((certificate = "", key = ""): string | null => {
  // The mask of a stored key, which has been checked: a complete body is judged before masks are replaced, and again after that.
  if (key === mask) return null
  const read = keyOf(key)
  if (read === null) {
    return "must be a private key in PEM without a password: EC, Ed25519, or RSA of 2048 to 4096 bits"
  }
  return certificatesIn(certificate)?.[0]?.checkPrivateKey(read) === true
    ? null
    : "does not belong to config.client_certificate (the first one, if it has several)"
})

/** Errors of the settings as a whole. */
export const faultsOfTls = ({
  client_certificate,
  client_key,
  server_ca,
  url
}: TlsSettings & { readonly url: string }): FieldErrors => {
  if (client_certificate === null && client_key === null && server_ca === null) return []
  const fault = (name: string, message: string): FieldErrors => [{ path: `config.${name}`, message }]
  if (!/^https:/i.test(url)) return fault("url", "must be https with client_certificate or server_ca")
  if (client_certificate === null) {
    return client_key === null ? [] : fault("client_certificate", "is required with client_key")
  }
  if (client_key === null) return fault("client_key", "is required with client_certificate")
  const message = faultOfPair(client_certificate, client_key)
  return message === null ? [] : fault("client_key", message)
}

/** The certificate and the authorities for the HTTP client. Undefined: the destination has none of its own. */
export const tlsOf = ({ client_certificate, client_key, server_ca }: TlsSettings): ClientTls | undefined =>
  client_certificate === null && server_ca === null
    ? undefined
    : {
        id: digestOf(client_certificate ?? "", client_key ?? "", server_ca ?? ""),
        identity:
          client_certificate === null || client_key === null
            ? null
            : { certificate: client_certificate, key: client_key },
        authorities: server_ca
      }
