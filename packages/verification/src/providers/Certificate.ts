import { X509Certificate } from "node:crypto"
import type { KeyObject } from "node:crypto"

interface Parsed {
  readonly pem: string
  readonly commonName: string
  readonly key: KeyObject
  readonly validFrom: number
  readonly validTo: number
}

const parse = (pem: string): Parsed | null => {
  try {
    // If the PEM holds several certificates this reads the first, the leaf.
    const certificate = new X509Certificate(pem)
    const names = certificate.subject.split("\n").filter((part) => part.startsWith("CN="))
    const key = certificate.publicKey
    // A self-signed certificate can contain any name, and a certificate authority does not sign messages.
    const isSelfMade = certificate.subject === certificate.issuer || certificate.ca
    if (names.length !== 1 || key.asymmetricKeyType !== "rsa" || isSelfMade) return null
    return {
      pem,
      commonName: names[0]!.slice("CN=".length),
      key,
      validFrom: Date.parse(certificate.validFrom) / 1000,
      validTo: Date.parse(certificate.validTo) / 1000
    }
  } catch {
    return null
  }
}

/**
 * Reads the RSA key of a fetched certificate. Returns null if the certificate is not valid at `nowSeconds`, is not issued to
 * `commonName`, or is no certificate.
 *
 * The certificate chain is not checked: providers serve the leaf alone. It is trusted because it came by TLS from a URL on the provider's host,
 * which the caller has pinned. The name protects against another certificate of the same host.
 */
export const certificateReader = (
  commonName: RegExp
): ((pem: string, nowSeconds: number) => { readonly key: KeyObject } | null) => {
  // A sender uses one certificate for months, so the last one is kept parsed.
  let last: Parsed | null = null
  return (pem, nowSeconds) => {
    if (last?.pem !== pem) last = parse(pem)
    return last !== null &&
      commonName.test(last.commonName) &&
      last.validFrom <= nowSeconds &&
      nowSeconds <= last.validTo
      ? last
      : null
  }
}
