import { Result } from "effect"
import { fieldError } from "@tidegate/model/AuthSettings"
import type { FieldErrors } from "@tidegate/model/AuthSettings"
import { compileGenericAuth, validateGenericAuth } from "./GenericAuth.ts"
import type { GenericAuth } from "./GenericAuth.ts"
import type { CertificateNeeded, Certificates, Handshake, InboundRequest, Provider, ProviderAuth } from "./Provider.ts"
import { compileProvider, validateProviderAuth } from "./ProviderAuth.ts"
import { presentedPlaces } from "./PresentedPlaces.ts"
import type { PresentedPlaces } from "./PresentedSecrets.ts"
import { providerFor, providerOf } from "./Providers.ts"

export type { CertificateNeeded, Handshake, InboundRequest } from "./Provider.ts"

/**
 * How a source verifies its senders, in canonical names and with every default filled in: what is stored, and what a
 * read shows (masked). `auth_type` null accepts everybody. For a source whose type is a provider's, that provider's
 * `auth_type` comes with the settings of the provider.
 */
export type SourceAuth =
  | { readonly auth_type: null; readonly auth: Readonly<Record<string, never>> }
  | { readonly auth_type: Provider["authType"]; readonly auth: ProviderAuth }
  | GenericAuth

/** The same, with who has to check it. */
type Validated =
  | { readonly by: "nobody" }
  | { readonly by: "provider"; readonly provider: Provider; readonly auth: ProviderAuth }
  | { readonly by: "settings"; readonly generic: GenericAuth }

/** Written for a source of a provider's type, it means what the type says. It is never stored. */
const providerSignature = "PROVIDER_SIGNATURE"

/** Whether a provider's sources can be verified without any settings: by a certificate, or a secret that comes later. */
const needsNothing = (provider: Provider, type: string): boolean =>
  Result.isSuccess(validateProviderAuth(provider, type, {}))

/**
 * The `auth_type` that a written one stands for on a source of `type`: settings without one are the provider's (also none,
 * `{}` or null, where it needs none), and `PROVIDER_SIGNATURE` is its name for whatever it is. Everything else stands for itself.
 */
export const resolveAuthType = (type: string, authType: unknown, auth: unknown): unknown => {
  const provider = providerOf(type)
  if (provider === undefined) return authType
  const isImplied =
    authType === undefined && auth !== undefined && (Object.keys(auth ?? {}).length > 0 || needsNothing(provider, type))
  return isImplied || authType === providerSignature ? provider.authType : authType
}

const validate = (type: string, written: unknown, auth: unknown): Result.Result<Validated, FieldErrors> => {
  const authType = resolveAuthType(type, written, auth)
  const provider = typeof authType === "string" ? providerFor(type, authType) : undefined
  if (provider !== undefined) {
    return Result.map(validateProviderAuth(provider, type, auth), (auth) => ({ by: "provider", provider, auth }))
  }
  if (authType === undefined || authType === null) {
    return authType === undefined && Object.keys(auth ?? {}).length > 0
      ? fieldError(
          "config.auth_type",
          `is required when config.auth is given, because the type ${type} is no provider's`
        )
      : Result.succeed({ by: "nobody" })
  }
  const generic = validateGenericAuth(authType, auth)
  if (generic !== null) return Result.map(generic, (generic) => ({ by: "settings", generic }))
  return fieldError(
    "config.auth_type",
    authType === providerSignature
      ? `${providerSignature} needs a type that names a provider, and ${type} does not`
      : "must be one of BASIC_AUTH, API_KEY, HMAC or null"
  )
}

/**
 * Checks the `config.auth_type` and `config.auth` of a written source of `type`. Masked secrets must have been restored
 * before. Where the type is a provider's and the `auth_type` is its own (see `resolveAuthType`), the settings are the
 * provider's; any other `auth_type` is the generic scheme of that name, because its writer said so.
 * Without an `auth_type`, settings of other types are an error and not ignored: their writer believes that verification
 * is on. With an explicit null they are dropped: that is how verification is turned off.
 */
export const validateSourceAuth = (
  type: string,
  authType: unknown,
  auth: unknown
): Result.Result<SourceAuth, FieldErrors> =>
  Result.map(validate(type, authType, auth), (validated): SourceAuth => {
    switch (validated.by) {
      case "nobody":
        return { auth_type: null, auth: {} }
      case "provider":
        return { auth_type: validated.provider.authType, auth: validated.auth }
      default:
        return validated.generic
    }
  })

/** `unverified`: the source asks for no verification; the request is accepted and marked so. */
export type Verification = "verified" | "failed" | "unverified"

/** Both functions are synchronous and total: they never throw, whatever the request holds. */
export interface SourceVerifier {
  /** `CertificateNeeded`: fetch that certificate, so that `certificates` knows it, and ask again. */
  readonly verify: (request: InboundRequest) => Verification | CertificateNeeded
  /**
   * How the request is answered when it is no event but a provider's question; null when it is an ordinary request, and
   * `refuse` when it is a question with a wrong token (401). Ask this before `verify`.
   */
  readonly handshake: (request: InboundRequest) => Handshake | "refuse" | null
  /** Where its senders present a credential, right or wrong. `everything`: the settings that say so cannot be read. */
  readonly presented: PresentedPlaces | "everything"
}

/** Verifies nobody: for settings that cannot be read. Fails closed, because open would accept forgeries. */
export const verifyNobody: SourceVerifier = {
  verify: () => "failed",
  handshake: () => null,
  presented: "everything"
}

const noHandshake = () => null

const handshakeOf = (provider: Provider | undefined, auth: ProviderAuth): SourceVerifier["handshake"] => {
  const answer = provider?.handshake
  if (answer === undefined) return noHandshake
  return (request) => {
    try {
      return answer(request, auth)
    } catch {
      // An ordinary request, which has to be verified: fails closed.
      return null
    }
  }
}

/**
 * The handshake of a source that verifies nobody: it refuses nobody either, takes no secret (that would turn on a
 * verification that nobody asked for) and has nothing fetched for a sender who has proved nothing.
 */
const unverifiedHandshake =
  (handshake: SourceVerifier["handshake"]): SourceVerifier["handshake"] =>
  (request) => {
    const found = handshake(request)
    if (found === null || found === "refuse" || found.confirmUrl !== undefined) return null
    const { remember: _, ...answer } = found
    return answer
  }

/**
 * Prepares the verification of a source once per change of its settings; it then runs for every request. `certificates`
 * is asked whenever one is needed.
 *
 * It takes stored settings as they are and validates them again. What does not validate verifies nobody: it fails
 * closed, because settings whose encryption key is gone read as none, and none must not become a guessable secret.
 * Three providers' settings may be none (a first call brings the secret, or a certificate decides): who reads what is
 * stored has to tell unreadable settings from none, and may not compile the former.
 */
export const compileSourceAuth = (
  source: {
    readonly type: string
    readonly auth_type: string | null
    readonly auth: unknown
  },
  certificates: Certificates = () => undefined
): SourceVerifier => {
  const result = validate(source.type, source.auth_type, source.auth)
  if (Result.isFailure(result)) return verifyNobody
  const validated = result.success
  const presented = presentedPlaces(providerOf(source.type), validated)
  if (validated.by === "nobody") {
    const handshake = unverifiedHandshake(handshakeOf(providerOf(source.type), {}))
    return { verify: () => "unverified", handshake, presented }
  }
  // Whoever chose another auth_type than the provider's has taken the whole protocol into own hands.
  const handshake = validated.by === "provider" ? handshakeOf(validated.provider, validated.auth) : noHandshake
  const check =
    validated.by === "provider"
      ? compileProvider(validated.provider, validated.auth, certificates)
      : compileGenericAuth(validated.generic)
  if (check === null) return { verify: () => "failed", handshake, presented }
  return {
    verify: (request) => {
      try {
        const verdict = check(request)
        if (typeof verdict === "object") return verdict
        return verdict ? "verified" : "failed"
      } catch {
        return "failed"
      }
    },
    handshake,
    presented
  }
}
