import type { ProviderType } from "./introductions/Introductions.ts"
import type { Headers, SignatureScheme } from "./SignatureScheme.ts"
import type { Signer } from "./Signer.ts"

/** The parts of a request that verification reads. */
export interface InboundRequest {
  readonly method: string
  /** The public URL as the sender called it, with path suffix and query. */
  readonly url: string
  readonly headers: Headers
  /** The query string as it arrived, without `?`; empty when there is none. */
  readonly query: string
  /** The raw bytes, before any parsing. */
  readonly body: Uint8Array
  readonly nowSeconds: number
}

/** The check needs a certificate that is not known yet: the caller fetches it from this URL and checks again. */
export interface CertificateNeeded {
  /** An https URL on a host that the provider owns; the verifier has validated that. */
  readonly certificateUrl: string
}

/** Whether a request is genuine. Synchronous; never throws, whatever the request holds. */
export type Check = (request: InboundRequest) => boolean | CertificateNeeded

/** The certificates fetched so far: PEM by URL. */
export type Certificates = (url: string) => string | undefined

/** The settings of `config.auth`, validated: texts by canonical name. */
export type ProviderAuth = Readonly<Record<string, string>>

/** The answer to a provider's handshake. A handshake is no event: it is stored and answered, but not routed. */
export interface Handshake {
  /** Kind of handshake in the stored record, e.g. `url_verification`. */
  readonly kind: string
  readonly status: number
  readonly contentType: string | null
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
  /** A secret that the sender has announced: stored as `webhook_secret_key` before the answer is sent. */
  readonly remember?: string
  /** An https URL on a host of the provider. It has to be fetched before the answer, to confirm a subscription. */
  readonly confirmUrl?: string
  /** If true, the request is answered only after its check has passed. False if the provider cannot sign this request. */
  readonly needsCheck: boolean
}

/** `null`: an ordinary request. `refuse`: a handshake with a wrong token, 401. */
export type HandshakeOf = (request: InboundRequest, auth: ProviderAuth) => Handshake | "refuse" | null

/** One setting that a provider's sources have in `config.auth`. */
export interface ProviderSetting {
  readonly name: string
  readonly required: boolean
  /** Masked on read. */
  readonly secret: boolean
  /** Other spellings accepted on write. */
  readonly aliases?: ReadonlyArray<string>
  /** The default value. */
  readonly default?: string
  /**
   * Why a value is invalid; null if it is valid. Every value is also checked to be not empty, at most 4,096 characters, and free of control
   * characters. Only values that are not secret may have line breaks and tabs (PEM).
   */
  readonly problem?: (value: string) => string | null
}

/** How a provider's requests are verified. */
export type Verification =
  /**
   * Signatures as data; their secret is `webhook_secret_key`. If there are several schemes, the first whose header is present decides.
   * `tokenHeader`: if none of these headers is present, this one may hold the secret itself.
   */
  | {
      readonly kind: "scheme"
      readonly schemes: readonly [SignatureScheme, ...ReadonlyArray<SignatureScheme>]
      readonly tokenHeader?: string
    }
  /** A header that equals `api_key`; `header: null` means the header named by the setting `header_key`. */
  | { readonly kind: "token"; readonly header: string | null }
  /** HTTP Basic with `username` and `password`. */
  | { readonly kind: "basic" }
  /**
   * Verification by code, where data is not enough. `compile` returns null if the settings yield no usable key; then no request is accepted.
   * `age`: limits of the signed timestamp; null: no timestamp is signed. `sign`: the counterpart, which imitates the provider; null if the
   * secret yields no key. Without it the provider's requests cannot be imitated.
   */
  | {
      readonly kind: "code"
      readonly age: Age | null
      readonly compile: (auth: ProviderAuth, certificates: Certificates) => Check | null
      readonly sign?: (secret: string) => Signer | null
    }

/**
 * How old a timestamp may be, and how far ahead of now, in seconds. If a provider signs each attempt anew, which a documented tolerance
 * implies, it has the usual five minutes or its own value. If a retry repeats the first timestamp, or the documentation does not say,
 * `past` covers all retries: a replay of the same bytes does less harm than an event that is refused on every retry.
 */
export interface Age {
  readonly past: number
  readonly ahead: number
}

/** The answer that a provider expects to a request, as far as it documents it. */
export interface Answer {
  /** The statuses that it accepts as success. */
  readonly status: "2xx" | "200" | "200 or 204" | "204"
  /** Seconds for which it waits for the answer; null if not documented. */
  readonly seconds: number | null
  /** The body that the gateway answers with, unless the source has its own response. */
  readonly body: AnswerBody
}

export type AnswerBody =
  /** The provider ignores the body: the gateway's acknowledgement. */
  | "any"
  | "empty"
  /** Empty, even when the request is refused. */
  | "always empty"
  /** Empty if the request is a form, because the provider would show the body to a person. */
  | "empty for forms"
  /** An empty list of XML instructions; for JSON requests the acknowledgement. */
  | "TwiML"
  /** The first answer to a chat interaction. */
  | "interaction"
  /** A chat message that is shown in the conversation. */
  | "message"

/** One row of the provider table. */
export interface Provider {
  /** The source types of this provider, e.g. `["SVIX", "CLERK", "RESEND"]`: each has its introduction. */
  readonly types: ReadonlyArray<ProviderType>
  /** The value that `config.auth_type` reads as: the nearest of the three. */
  readonly authType: "HMAC" | "API_KEY" | "BASIC_AUTH"
  readonly settings: ReadonlyArray<ProviderSetting>
  readonly verification: Verification
  readonly answer: Answer
  readonly handshake?: HandshakeOf
  /**
   * Headers (lower-case) and query parameters in which senders present a credential, beside those that `verification` names. They are stored
   * encrypted and read masked.
   */
  readonly presents?: { readonly headers?: ReadonlyArray<string>; readonly query?: ReadonlyArray<string> }
}
