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
 * How a source verifies its senders, in canonical names with every default filled in: the stored form, and (masked) the form that is
 * read. `auth_type` null accepts everybody. If the source's type is a provider's, that provider's `auth_type` comes with the provider's
 * settings.
 */
export type SourceAuth =
  | { readonly auth_type: null; readonly auth: Readonly<Record<string, never>> }
  | { readonly auth_type: Provider["authType"]; readonly auth: ProviderAuth }
  | GenericAuth

/** The same, with the verifier to use: nobody, a provider, or the generic settings. */
type Validated =
  | { readonly by: "nobody" }
  | { readonly by: "provider"; readonly provider: Provider; readonly auth: ProviderAuth }
  | { readonly by: "settings"; readonly generic: GenericAuth }

/** On a source of a provider's type this means the provider's own verification. It is never stored. */
const providerSignature = "PROVIDER_SIGNATURE"

/** Whether a provider's sources can be verified without settings: by a certificate, or by a secret that the first request brings. */
const needsNothing = (provider: Provider, type: string): boolean =>
  Result.isSuccess(validateProviderAuth(provider, type, {}))

/**
 * Resolves a written `auth_type` for a source of `type`. Settings without one mean the provider's (also without settings, with `{}` or null
 * if the provider requires none). `PROVIDER_SIGNATURE` means the provider's, too. Any other value is returned unchanged.
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
 * Validates the `config.auth_type` and `config.auth` of a written source of `type`. Masked secrets must have been restored
 * before. If the type is a provider's and the `auth_type` is its own (see `resolveAuthType`), the settings are the provider's; any other
 * `auth_type` is the generic scheme of that name, because the author chose it. Settings without an `auth_type` are refused, not
 * ignored, because their author believes that verification is on. With an explicit null they are dropped: that turns verification off.
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

/** `unverified`: the source does not verify; the request is accepted and marked so. */
export type Verification = "verified" | "failed" | "unverified"

/** Both functions are synchronous and never throw, whatever the request holds. */
export interface SourceVerifier {
  /** `CertificateNeeded`: fetch that certificate, so that `certificates` returns it, and call again. */
  readonly verify: (request: InboundRequest) => Verification | CertificateNeeded
  /**
   * The answer to a provider's handshake. Null for an ordinary request; `refuse` for a handshake with a wrong token (401). Call this before
   * `verify`.
   */
  readonly handshake: (request: InboundRequest) => Handshake | "refuse" | null
  /** Where the senders present a credential, valid or not. `everything`: the settings that name the places cannot be read. */
  readonly presented: PresentedPlaces | "everything"
}

/** Accepts nobody: for settings that cannot be read. Fails closed, because an open source would accept forgeries. */
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
      // Treated as an ordinary request, whose verification fails: fails closed.
      return null
    }
  }
}

/**
 * The handshake of a source that does not verify. It refuses nobody, stores no secret (that would turn on verification, which the operator
 * did not ask for), and fetches nothing for an unauthenticated sender.
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
 * Prepares the verification of a source once after each change of its settings; it then runs for every request. `certificates` is called
 * each time a certificate is needed.
 *
 * It takes stored settings and validates them again. If they are invalid, no request is accepted. Fails closed, because settings whose
 * encryption key is lost read as empty, and empty settings must not become a guessable secret. Three providers allow empty settings (the
 * first request brings the secret, or a certificate decides). So the reader of stored settings has to tell unreadable ones from empty ones, and
 * must not compile unreadable ones.
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
  // With an auth_type that is not the provider's, the operator handles the whole protocol, including handshakes.
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
