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
    // Of several certificates this is the first, the leaf.
    const certificate = new X509Certificate(pem)
    const names = certificate.subject.split("\n").filter((part) => part.startsWith("CN="))
    const key = certificate.publicKey
    // Who issues its own certificate can write any name into it, and an authority signs no messages.
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
 * Reads the RSA key of a fetched certificate, null when the certificate is not in force at `nowSeconds`, is not made
 * out to `commonName`, or is no certificate.
 *
 * Its chain is not checked: providers serve the leaf alone. What makes it theirs is that it came by TLS from a URL on
 * their host, which the caller has pinned; the name guards against another certificate of the same host.
 */
export const certificateReader = (
  commonName: RegExp
): ((pem: string, nowSeconds: number) => { readonly key: KeyObject } | null) => {
  // A sender signs with one certificate for months: parsing the last one again for each request would be a waste.
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
